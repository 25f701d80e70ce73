/* The built-in models, one file each; registry.c lists them. A model is a table of functions (rbt_model of rubato.h)
 * without state. Always holds: a model never reads a parameter beyond its size, whatever features the data has.
 * Proved by tests/unit/test_lr.c.
 */
#ifndef RBT_MODEL_MODEL_H
#define RBT_MODEL_MODEL_H

#include "rubato.h"

extern const rbt_model rbt_model_lr; /* lr.c: binary logistic regression */

#endif
