/* The columns of CSV text by those of other CSV text. Contract in csv_origin.h; proved by tests/unit/test_origin.c. */
#include "data/csv_origin.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"

#define NONE RBT_CSV_NONE

static bool is_feature(const rbt_origin_column *c)
{
    return c->kind == RBT_COLUMN_NUMBER || c->kind == RBT_COLUMN_WORDS;
}

/* Are columns found by their names? */
static bool by_name(const rbt_csv_layout *l)
{
    return l->header != NULL && l->origin.column.count > 0 && l->origin.column.at[0].name != NULL;
}

/* The origin's column of that kind. */
static size_t there(const rbt_csv_layout *l, rbt_column_kind kind)
{
    for (size_t i = 0; i < l->origin.column.count; i++)
        if (l->origin.column.at[i].kind == kind)
            return i;
    return NONE;
}

void rbt_csv_origin_forget(rbt_csv_layout *l)
{
    size_t first = l->count > 1 && l->header != NULL && strcmp(l->column[1].name, "weight") == 0 ? 2 : 1;
    bool converted = l->header != NULL && l->count > first && strcmp(l->column[0].name, "label") == 0;
    for (size_t i = first; converted && i < l->count; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "f%zu", i - first + 1);
        converted = strcmp(l->column[i].name, name) == 0;
    }
    for (size_t i = 0; converted && i < l->origin.column.count; i++)
        converted = !rbt_origin_is_named(&l->origin.column.at[i], "f1");
    l->weighted = converted && first == 2;
    l->converted = converted && (l->origin.column.count > 0 || l->origin.base != RBT_BASE_AUTO || l->origin.bits > 0);
    if (l->converted)
        rbt_origin_deinit(&l->origin);
}

/* ------------------------------------------------------------------------------------------------ label and weight */

/* The column here; several may have no name, then it is the one in the same place. */
static size_t here_by_name(const rbt_csv_layout *l, size_t there)
{
    if (there < l->count && rbt_origin_is_named(&l->origin.column.at[there], l->column[there].name))
        return there;
    for (size_t i = 0; there != NONE && i < l->count; i++)
        if (rbt_origin_is_named(&l->origin.column.at[there], l->column[i].name))
            return i;
    return NONE;
}

rbt_err rbt_csv_origin_roles(rbt_csv_layout *l, const rbt_reading *reading, const char *name, rbt_error *error)
{
    size_t label = there(l, RBT_COLUMN_LABEL), weight = there(l, RBT_COLUMN_WEIGHT), count = l->origin.column.count;
    bool unlabelled = false; /* without names: the label's column is missing */
    if (by_name(l)) {
        label = here_by_name(l, label);
        weight = here_by_name(l, weight);
    } else {
        unlabelled = reading->unlabelled && label != NONE && l->count + 1 == count;
        if (unlabelled && weight != NONE)
            weight -= weight > label;
        if (l->count != count)
            label = NONE;
        if (l->count != count && !unlabelled)
            weight = NONE;
    }
    if (reading->weight == NULL)
        l->weight = weight;
    if (reading->label != NULL)
        return RBT_OK;
    l->label = label;
    if (label != NONE || reading->unlabelled)
        return RBT_OK;
    if (!by_name(l))
        return rbt_fail(error, RBT_E_DATA,
                        "%s: has %zu columns, the training data had %zu; give data with the same columns", name,
                        l->count, count);
    size_t of = there(l, RBT_COLUMN_LABEL);
    return rbt_fail(error, RBT_E_USAGE,
                    "%s: has no column '%.*s', which is the label in the training data; name its label's with --label",
                    name, of != NONE ? (int)l->origin.column.at[of].bytes : 0,
                    of != NONE ? l->origin.column.at[of].name : "");
}

/* ------------------------------------------------------------------------------------------------------- features */

/* The origin's feature that a column here is; the one behind the last that was found is the likeliest. */
static size_t feature_named(const rbt_csv_layout *l, const char *column, const bool *taken, size_t likely)
{
    size_t count = l->origin.column.count;
    for (size_t k = 0; k < count; k++) {
        size_t i = likely + k < count ? likely + k : likely + k - count;
        const rbt_origin_column *c = &l->origin.column.at[i];
        if (is_feature(c) && !taken[i] && rbt_origin_is_named(c, column))
            return i;
    }
    return NONE;
}

static size_t feature_behind(const rbt_csv_layout *l, size_t i)
{
    while (i < l->origin.column.count && !is_feature(&l->origin.column.at[i]))
        i++;
    return i < l->origin.column.count ? i : NONE;
}

static rbt_err refuse_count(const rbt_csv_layout *l, const char *name, rbt_error *error)
{
    size_t here = l->count - (l->label != NONE) - (l->weight != NONE), before = 0;
    for (size_t i = 0; i < l->origin.column.count; i++)
        before += is_feature(&l->origin.column.at[i]);
    return rbt_fail(error, RBT_E_DATA,
                    "%s: has %zu columns of features, the training data had %zu; give data with the same columns, and "
                    "name the label's with --label (none, if there is none)",
                    name, here, before);
}

/* Which of the origin's columns each feature here is. */
static rbt_err pair(rbt_csv_layout *l, bool *taken, size_t *of, const char *name, rbt_error *error)
{
    size_t next = 0;
    for (size_t i = 0; i < l->count; i++) {
        of[i] = NONE;
        if (i == l->label || i == l->weight)
            continue;
        of[i] = by_name(l) ? feature_named(l, l->column[i].name, taken, next) : feature_behind(l, next);
        if (of[i] == NONE && !by_name(l))
            return refuse_count(l, name, error);
        if (of[i] == NONE)
            return rbt_fail(error, RBT_E_DATA,
                            "%s: column %zu, '%.60s', is no feature of the training data; leave it out, or name the "
                            "label's column with --label",
                            name, i + 1, l->column[i].name);
        taken[of[i]] = true;
        next = of[i] + 1 < l->origin.column.count || !by_name(l) ? of[i] + 1 : 0;
    }
    for (size_t i = 0; i < l->origin.column.count; i++) {
        const rbt_origin_column *c = &l->origin.column.at[i];
        if (!is_feature(c) || taken[i])
            continue;
        return !by_name(l) ? refuse_count(l, name, error)
                           : rbt_fail(error, RBT_E_DATA,
                                      "%s: has no column '%.*s', which the training data had; give data with the same "
                                      "columns",
                                      name, (int)(c->bytes < 60 ? c->bytes : 60), c->name);
    }
    return RBT_OK;
}

/* Words are hashed with the seed that they were hashed with there. */
static uint64_t seed_of(const rbt_csv_layout *l, size_t here, size_t there)
{
    const rbt_origin_column *c = &l->origin.column.at[there];
    char number[24];
    if (c->name != NULL && l->column[here].name != NULL)
        return rbt_hash(l->column[here].name, strlen(l->column[here].name), 0);
    if (c->name != NULL)
        return rbt_hash(c->name, c->bytes, 0);
    return rbt_hash(number, (size_t)snprintf(number, sizeof number, "%zu", there + 1), 0);
}

rbt_err rbt_csv_origin_columns(rbt_csv_layout *l, const char *name, rbt_error *error)
{
    size_t count = l->origin.column.count;
    bool *taken = rbt_alloc(count, sizeof *taken);
    size_t *of = rbt_alloc(l->count, sizeof *of);
    uint32_t *index = rbt_alloc(count, sizeof *index), last = 0;
    rbt_err err = pair(l, taken, of, name, error);
    for (size_t i = 0; i < count; i++) {
        index[i] = l->numbers;
        l->numbers += l->origin.column.at[i].kind == RBT_COLUMN_NUMBER;
        l->words |= l->origin.column.at[i].kind == RBT_COLUMN_WORDS;
    }
    for (size_t i = 0; err == RBT_OK && i < l->count; i++) {
        rbt_csv_column *c = &l->column[i];
        if (of[i] == NONE)
            continue;
        c->plain = l->origin.column.at[of[i]].kind == RBT_COLUMN_NUMBER;
        atomic_store_explicit(&c->words, !c->plain, memory_order_relaxed);
        c->index = index[of[i]];
        l->mixed |= c->plain && c->index < last;
        last = c->plain ? c->index : last;
        c->seed = c->plain ? 0 : seed_of(l, i, of[i]);
    }
    rbt_free(taken);
    rbt_free(of);
    rbt_free(index);
    return err;
}

/* --------------------------------------------------------------------------------------------------------- text */

char *rbt_csv_origin_text(const rbt_csv_layout *l, const rbt_reading *reading)
{
    if (l->origin.column.count > 0) /* the same features */
        return rbt_strdup(reading->origin);
    if (l->converted)
        return NULL;
    rbt_origin origin = {.bits = l->words ? rbt_reading_bits(reading) : 0};
    for (size_t i = 0; i < l->count; i++) {
        const char *name = l->column[i].name;
        rbt_origin_column c = {.kind = i == l->label        ? RBT_COLUMN_LABEL
                                       : i == l->weight     ? RBT_COLUMN_WEIGHT
                                       : l->column[i].plain ? RBT_COLUMN_NUMBER
                                                            : RBT_COLUMN_WORDS,
                               .name = name,
                               .bytes = name != NULL ? strlen(name) : 0};
        rbt_array_push(&origin.column, c);
    }
    char *text = rbt_origin_text(&origin);
    rbt_origin_deinit(&origin);
    return text;
}
