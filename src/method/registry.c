/* The list of built-in methods. A new one is one file and one line here. Proved by tests/unit/test_fitted.c. */
#include "method/method.h"

#include <string.h>

#include "base/error.h"

static const rbt_method *const built_in[] = {&rbt_method_kmeans, &rbt_method_l1lr, &rbt_method_lasso,
                                             &rbt_method_lda,    &rbt_method_mf,   &rbt_method_sketch};

const rbt_method *rbt_method_at(size_t i)
{
    return i < sizeof built_in / sizeof built_in[0] ? built_in[i] : NULL;
}

const rbt_method *rbt_method_find(const char *name)
{
    for (size_t i = 0; rbt_method_at(i) != NULL; i++)
        if (strcmp(rbt_method_at(i)->name, name) == 0)
            return rbt_method_at(i);
    return NULL;
}

const rbt_method_option *rbt_method_option_find(const rbt_method *method, const char *name)
{
    for (const rbt_method_option *o = method->options; o != NULL && o->name != NULL; o++)
        if (strcmp(o->name, name) == 0)
            return o;
    return NULL;
}

rbt_err rbt_method_refuse_ratings(const char *method, const rbt_data *data, rbt_error *error)
{
    if (data->content != RBT_CONTENT_RATINGS)
        return RBT_OK;
    return rbt_fail(
        error, RBT_E_DATA,
        "%s cannot use ratings: items are numbered anew in every file, and its models know columns by their "
        "numbers; train mf, or write the data as LIBSVM text with numbers of your own",
        method);
}
