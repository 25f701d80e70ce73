/* What a job trains, by its name: a built-in model, a built-in method, or one from a shared object.
 *
 * Called wherever a name becomes a thing. A shared object stays loaded until the process ends: what it gave away has no
 * other end. Proved by tests/cli/test_methods.sh and tests/install. */
#ifndef RBT_JOB_TRAINEE_H
#define RBT_JOB_TRAINEE_H

#include "rubato.h"

/* One of both. */
typedef struct rbt_trainee {
    const rbt_model *model;
    const rbt_method *method;
    bool is_plugin; /* the name is a path */
} rbt_trainee;

/* An unknown name is refused with the nearest one, or with the list of those there are. */
rbt_err rbt_trainee_find(const char *name, rbt_trainee *kind, rbt_error *error);

/* Does the name lead to a shared object? */
bool rbt_trainee_is_path(const char *name);

/* Is it one that cannot go through shared memory: a method without a `pass`, or a model from a shared object? */
bool rbt_trainee_needs_servers(const char *name);

/* The method of this name, or NULL: there is none, or it is a model. */
const rbt_method *rbt_trainee_method(const char *name);

#endif
