/* The list of built-in models: rbt_model_find and rbt_model_at of rubato.h. A new model is one file and one line here.
 * Proved by tests/unit/test_lr.c. */
#include "model/model.h"

#include <string.h>

static const rbt_model *const built_in[] = {&rbt_model_lr,      &rbt_model_svm,    &rbt_model_svm2,
                                            &rbt_model_softmax, &rbt_model_linear, &rbt_model_huber};

const rbt_model *rbt_model_at(size_t i)
{
    return i < sizeof built_in / sizeof built_in[0] ? built_in[i] : NULL;
}

const rbt_model *rbt_model_find(const char *name)
{
    for (size_t i = 0; rbt_model_at(i) != NULL; i++)
        if (strcmp(rbt_model_at(i)->name, name) == 0)
            return rbt_model_at(i);
    return NULL;
}

bool rbt_model_is_classifier(const rbt_model *model)
{
    return !model->numbers;
}
