/* The built-in models; registry.c lists them. A model is a table of functions (rbt_model of rubato.h) without state.
 * Always holds: a model never reads a parameter beyond its size, whatever features the data has. Proved by
 * tests/unit/test_lr.c and test_softmax.c.
 */
#ifndef RBT_MODEL_MODEL_H
#define RBT_MODEL_MODEL_H

#include "rubato.h"

extern const rbt_model rbt_model_lr; /* linear.c */
extern const rbt_model rbt_model_svm;
extern const rbt_model rbt_model_svm2;
extern const rbt_model rbt_model_linear;
extern const rbt_model rbt_model_huber;
extern const rbt_model rbt_model_softmax; /* softmax.c */

/* Does the model predict classes, rather than numbers? */
bool rbt_model_is_classifier(const rbt_model *model);

/* Turns n decision values into probabilities; answers with the loss of the given label. */
double rbt_softmax(double *z, size_t n, size_t label);

#endif
