/* Matrix factorisation: what is done with a fitted model. Contract in mf.h.
 *
 * Users and items that have names are in the order of these, so that a name is found by halving; without names a user is
 * the row's number and an item the column's. Whoever the model does not know is foretold by the mean and what is known of
 * the other; data without names is refused by a model that has them.
 */
#include "method/mf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

#define UNKNOWN SIZE_MAX

/* A fitted model's arrays. */
typedef struct factors {
    size_t users, items, rank;
    const float *p, *q, *user_bias, *item_bias;
    const rbt_name_list *user_names, *item_names;
    double mean;
} factors;

static bool is_array(const rbt_values *v, uint64_t rows, uint64_t cols)
{
    return v != NULL && v->type == RBT_F32 && v->rows == rows && v->cols == cols;
}

rbt_err rbt_mf_open(const rbt_fitted *fitted, rbt_error *error)
{
    const rbt_values *users = rbt_fitted_values(fitted, "users"), *items = rbt_fitted_values(fitted, "items");
    const rbt_name_list *user_names = rbt_fitted_names(fitted, "user_names"),
                        *item_names = rbt_fitted_names(fitted, "item_names");

    if (users == NULL || items == NULL || users->cols < 1 || !is_array(users, users->rows, users->cols) ||
        !is_array(items, items->rows, users->cols) ||
        !is_array(rbt_fitted_values(fitted, "user_biases"), 1, users->rows) ||
        !is_array(rbt_fitted_values(fitted, "item_biases"), 1, items->rows) ||
        !isfinite(rbt_fitted_number(fitted, "mean")) || (user_names != NULL && user_names->n != users->rows) ||
        (item_names != NULL && item_names->n != items->rows))
        return rbt_fail(error, RBT_E_DATA,
                        "the model file does not hold the factors of users and items; train it again");
    return RBT_OK;
}

static factors factors_of(const rbt_fitted *fitted)
{
    const rbt_values *users = rbt_fitted_values(fitted, "users"), *items = rbt_fitted_values(fitted, "items");

    return (factors){.users = (size_t)users->rows,
                     .items = (size_t)items->rows,
                     .rank = (size_t)users->cols,
                     .p = users->at,
                     .q = items->at,
                     .user_bias = rbt_fitted_values(fitted, "user_biases")->at,
                     .item_bias = rbt_fitted_values(fitted, "item_biases")->at,
                     .user_names = rbt_fitted_names(fitted, "user_names"),
                     .item_names = rbt_fitted_names(fitted, "item_names"),
                     .mean = rbt_fitted_number(fitted, "mean")};
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Where a name is; without a list, names are numbers from 1. */
static size_t find(const rbt_name_list *names, size_t n, const char *name)
{
    if (names != NULL) {
        char **at = bsearch(&name, names->at, names->n, sizeof *names->at, by_name);

        return at != NULL ? (size_t)(at - names->at) : UNKNOWN;
    }
    char *end;
    unsigned long long number = strtoull(name, &end, 10);

    return *name >= '0' && *name <= '9' && *end == '\0' && number >= 1 && number <= n ? (size_t)number - 1 : UNKNOWN;
}

/* What the model foretells; UNKNOWN for whoever it does not know. */
static double foretell(const factors *f, size_t user, size_t item)
{
    bool knows_user = user < f->users, knows_item = item < f->items;
    double told =
        f->mean + (knows_user ? (double)f->user_bias[user] : 0) + (knows_item ? (double)f->item_bias[item] : 0);

    for (size_t k = 0; knows_user && knows_item && k < f->rank; k++)
        told += (double)f->p[user * f->rank + k] * (double)f->q[item * f->rank + k];
    return told;
}

/* Ratings are numbered as they first occur, and the model's names are sorted: a place in other data says nothing about either. */
static rbt_err need_names(const factors *f, const rbt_data *data, rbt_error *error)
{
    if ((f->user_names == NULL || data->row_names != NULL) && (f->item_names == NULL || data->col_names != NULL))
        return RBT_OK;
    return rbt_fail(error, RBT_E_DATA,
                    "the model knows users and items by their names, and the data has none; give ratings, as lines "
                    "user::item::rating or a cache of such, or train on data without names, too");
}

/* The model's number of a row or a column of some data: by its name if the data has names, else, as in the model, its number. */
static size_t number_of(const rbt_name_list *list, size_t n, const rbt_ids *names, size_t i)
{
    return names != NULL ? find(list, n, rbt_ids_name(names, i)) : i;
}

/* A row's or a column's name, or its number from 1. */
static void print_name(FILE *out, const rbt_ids *names, size_t i)
{
    if (names != NULL)
        fputs(rbt_ids_name(names, i), out);
    else
        fprintf(out, "%zu", i + 1);
}

rbt_err rbt_mf_predict(const rbt_fitted *fitted, const rbt_data *data, size_t row, FILE *out, rbt_error *error)
{
    factors f = factors_of(fitted);
    size_t user;
    rbt_err err = need_names(&f, data, error);

    if (err != RBT_OK)
        return err;
    user = number_of(f.user_names, f.users, data->row_names, row);
    for (size_t i = data->start[row]; i < data->start[row + 1]; i++) {
        size_t item = number_of(f.item_names, f.items, data->col_names, data->index[i]);

        print_name(out, data->row_names, row);
        fputc('\t', out);
        print_name(out, data->col_names, data->index[i]);
        fprintf(out, "\t%.6g\n", foretell(&f, user, item));
    }
    return RBT_OK;
}

rbt_err rbt_mf_predict_one(const rbt_fitted *fitted, const char *user, const char *item, FILE *out, rbt_error *error)
{
    factors f = factors_of(fitted);

    (void)error;
    fprintf(out, "%s\t%s\t%.6g\n", user, item,
            foretell(&f, find(f.user_names, f.users, user), find(f.item_names, f.items, item)));
    return RBT_OK;
}

rbt_err rbt_mf_evaluate(const rbt_fitted *fitted, const rbt_data *data, rbt_figure *figures, size_t *n,
                        rbt_error *error)
{
    factors f = factors_of(fitted);
    double squares = 0, sizes = 0, count = (double)data->nnz;
    rbt_err err = need_names(&f, data, error);
    size_t *item = err == RBT_OK ? rbt_try_alloc_raw(data->cols, sizeof *item) : NULL;

    if (err != RBT_OK)
        return err;
    if (item == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for %zu items", data->cols);
    for (size_t c = 0; c < data->cols; c++)
        item[c] = number_of(f.item_names, f.items, data->col_names, c);
    for (size_t r = 0; r < data->rows; r++) {
        size_t user = number_of(f.user_names, f.users, data->row_names, r);

        for (size_t i = data->start[r]; i < data->start[r + 1]; i++) {
            double off = (double)data->value[i] - foretell(&f, user, item[data->index[i]]);

            squares += off * off;
            sizes += fabs(off);
        }
    }
    rbt_free(item);
    figures[0] = (rbt_figure){"loss", count > 0 ? squares / count : NAN};
    figures[1] = (rbt_figure){"rmse", count > 0 ? sqrt(squares / count) : NAN};
    figures[2] = (rbt_figure){"mae", count > 0 ? sizes / count : NAN};
    figures[3] = (rbt_figure){"ratings", count};
    *n = 4;
    return RBT_OK;
}

/* -------------------------------------------------------------------------------------------------------- recommending */

typedef struct candidate {
    double told;
    size_t item;
} candidate;

/* The best first; of equals, that with the lower number. */
static int by_rating(const void *a, const void *b)
{
    const candidate *x = a, *y = b;

    return x->told > y->told ? -1 : x->told < y->told ? 1 : x->item < y->item ? -1 : x->item > y->item;
}

/* Marks the items that `known` has for a user. */
static void mark_known(const factors *f, const rbt_data *known, const char *user, bool *is_known)
{
    size_t row = known->row_names != NULL ? rbt_ids_find(known->row_names, user) : find(NULL, known->rows, user);

    for (size_t i = row < known->rows ? known->start[row] : 0; row < known->rows && i < known->start[row + 1]; i++) {
        size_t item = number_of(f->item_names, f->items, known->col_names, known->index[i]);

        if (item < f->items)
            is_known[item] = true;
    }
}

rbt_err rbt_mf_recommend(const rbt_fitted *fitted, const rbt_data *known, const char *user, size_t n, FILE *out,
                         rbt_error *error)
{
    factors f = factors_of(fitted);
    size_t row = find(f.user_names, f.users, user), count = 0;
    candidate *list = rbt_try_alloc_raw(f.items, sizeof *list);
    bool *is_known = rbt_try_alloc(f.items, sizeof *is_known);
    rbt_err err = list != NULL && is_known != NULL
                      ? RBT_OK
                      : rbt_fail(error, RBT_E_MEMORY, "not enough memory for %zu items", f.items);

    if (err == RBT_OK && row == UNKNOWN)
        err = rbt_fail(error, RBT_E_DATA, "the model knows no user '%.60s'; it was trained with %zu others", user,
                       f.users);
    if (err == RBT_OK && known != NULL)
        err = need_names(&f, known, error);
    if (err != RBT_OK || list == NULL || is_known == NULL)
        goto free_lists;
    if (known != NULL)
        mark_known(&f, known, user, is_known);
    for (size_t i = 0; i < f.items; i++)
        if (!is_known[i])
            list[count++] = (candidate){foretell(&f, row, i), i};
    qsort(list, count, sizeof *list, by_rating);
    for (size_t i = 0; i < n && i < count; i++) {
        if (f.item_names != NULL)
            fprintf(out, "%s\t%.6g\n", f.item_names->at[list[i].item], list[i].told);
        else
            fprintf(out, "%zu\t%.6g\n", list[i].item + 1, list[i].told);
    }
free_lists:
    rbt_free(list);
    rbt_free(is_known);
    return err;
}

void rbt_mf_describe(const rbt_fitted *fitted, FILE *out)
{
    factors f = factors_of(fitted);

    fprintf(out, "factors     %zu users and %zu items of rank %zu, around a mean of %.6g\n", f.users, f.items, f.rank,
            f.mean);
}
