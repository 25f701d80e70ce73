/* Classes: finding and applying them. Contract in classes.h; proved by tests/unit/test_classes.c. */
#include "model/classes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/data.h"
#include "data/number.h"

rbt_err rbt_labels_check_content(const rbt_data *data, rbt_error *error)
{
    if (data->content != RBT_CONTENT_RATINGS && data->content != RBT_CONTENT_DOCS)
        return RBT_OK;
    return rbt_fail(error, RBT_E_DATA,
                    "the data was taken for %s, which have no labels, and the model learns from labels; give --format "
                    "(csv, libsvm, vw) if it is something else, or train %s",
                    data->content == RBT_CONTENT_RATINGS ? "ratings" : "documents",
                    data->content == RBT_CONTENT_RATINGS ? "mf" : "lda");
}

/* The number of features, when the caller left it 0; refuses what has no rows or no labels. */
static rbt_err set_cols(const rbt_data *data, rbt_shape *shape, rbt_error *error)
{
    if (data->rows == 0)
        return rbt_fail(error, RBT_E_DATA, "the data has no rows to train on");
    rbt_err err = rbt_labels_check_content(data, error);
    if (err != RBT_OK)
        return err;
    if (shape->cols == 0)
        shape->cols = data->cols;
    if (shape->cols >= RBT_DATA_INDEX_LIMIT)
        return rbt_fail(error, RBT_E_LIMIT, "%zu features are too many; the limit is %u", shape->cols,
                        RBT_DATA_INDEX_LIMIT - 1);
    return RBT_OK;
}

/* ----------------------------------------------------------------------------------------------------- finding */

/* Labels seen so far, ascending, and the row where each was first seen. */
typedef struct found {
    RBT_ARRAY(double) value;
    RBT_ARRAY(size_t) row;
} found;

/* Where the label is, or where it belongs. */
static size_t place_of(const double *values, size_t count, double label)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (values[middle] < label)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void insert(found *f, size_t at, double label, size_t row)
{
    rbt_array_push(&f->value, label);
    rbt_array_push(&f->row, row);
    for (size_t i = f->value.count - 1; i > at; i--) {
        f->value.at[i] = f->value.at[i - 1];
        f->row.at[i] = f->row.at[i - 1];
    }
    f->value.at[at] = label;
    f->row.at[at] = row;
}

/* Labels met before, by their bits: looking for a label among many others guesses wrong at every turn. Two that fall on the
 * same place drive each other out. */
#define MEMO_BITS 10
typedef struct memo {
    uint32_t bits[1 << MEMO_BITS];
    float class[1 << MEMO_BITS];
} memo;

static void memo_clear(memo *m)
{
    memset(m->bits, 0xff, sizeof m->bits); /* of no number */
}

/* Where a label is if it was met before; else it is put there, and *is_new. */
static inline size_t memo_place(memo *m, float label, bool *is_new)
{
    uint32_t bits;
    memcpy(&bits, &label, sizeof bits);
    size_t at = bits * UINT32_C(0x9e3779b1) >> (32 - MEMO_BITS);
    *is_new = m->bits[at] != bits;
    if (*is_new)
        m->bits[at] = bits;
    return at;
}

/* Collects different labels until there are `enough`. */
static void collect(const rbt_data *data, size_t enough, found *f)
{
    memo met;
    memo_clear(&met);
    for (size_t r = 0; r < data->rows && f->value.count < enough; r++) {
        double label = (double)data->label[r];
        bool is_new;
        memo_place(&met, data->label[r], &is_new);
        if (!is_new)
            continue;
        size_t at = place_of(f->value.at, f->value.count, label);
        if (at == f->value.count || (f->value.at != NULL && f->value.at[at] != label))
            insert(f, at, label, r + 1);
    }
}

void rbt_label_print(double label, char text[RBT_LABEL_ROOM])
{
    if (fabs(label) >= 1e9 && fabs(label) < 1e15 && label == floor(label))
        snprintf(text, RBT_LABEL_ROOM, "%.0f", label);
    else
        text[rbt_number_print((float)label, text)] = '\0';
}

/* How the data writes a label. */
static const char *written(const rbt_data *data, double label, char room[RBT_LABEL_ROOM])
{
    if (data->label_names != NULL && label >= 0 && label < (double)data->label_count)
        snprintf(room, RBT_LABEL_ROOM, "%.200s", data->label_names[(size_t)label]);
    else
        rbt_label_print(label, room);
    return room;
}

static rbt_err refuse_classes(const rbt_data *data, const found *f, size_t wanted, rbt_error *error)
{
    char a[RBT_LABEL_ROOM], b[RBT_LABEL_ROOM], c[RBT_LABEL_ROOM];
    const double *v = f->value.at;
    const size_t *row = f->row.at;
    RBT_ASSERT(v != NULL && f->value.count > 0); /* set_cols has refused data without rows */
    if (f->value.count == 1)
        return rbt_fail(error, RBT_E_DATA,
                        "all %zu rows have the label %s; a classifier needs at least two different labels, for example "
                        "-1 and 1",
                        data->rows, written(data, v[0], a));
    if (wanted > 0)
        return rbt_fail(
            error, RBT_E_DATA,
            "the data has more than two labels: %s (row %zu), %s (row %zu) and %s (row %zu); this model "
            "takes exactly two: use softmax, merge classes or leave rows out; for numbers train linear or huber",
            written(data, v[0], a), row[0], written(data, v[1], b), row[1], written(data, v[2], c), row[2]);
    return rbt_fail(error, RBT_E_LIMIT,
                    "the data has more than %d different labels; if they are numbers to predict, train linear or huber",
                    RBT_CLASSES_LIMIT);
}

rbt_err rbt_shape_set_classes(const rbt_data *data, size_t wanted, rbt_shape *shape, rbt_error *error)
{
    size_t limit = wanted > 0 ? wanted : RBT_CLASSES_LIMIT;
    found f = {0};
    rbt_err err = set_cols(data, shape, error);
    if (err != RBT_OK)
        return err;
    collect(data, limit + 1, &f);
    if (f.value.count < 2 || f.value.count > limit) {
        err = refuse_classes(data, &f, wanted, error);
        goto free_found;
    }
    shape->classes = f.value.count;
    if (data->label_names == NULL) {
        shape->labels = f.value.at;
        f.value.at = NULL; /* moved */
    } else {
        shape->names = rbt_alloc(shape->classes, sizeof *shape->names);
        for (size_t i = 0; i < shape->classes; i++)
            shape->names[i] = rbt_strdup(data->label_names[(size_t)f.value.at[i]]);
    }
free_found:
    rbt_array_free(&f.value);
    rbt_array_free(&f.row);
    return err;
}

rbt_err rbt_shape_set_numbers(const rbt_data *data, rbt_shape *shape, rbt_error *error)
{
    rbt_err err = set_cols(data, shape, error);
    if (err != RBT_OK)
        return err;
    shape->classes = 0;
    if (data->label_names != NULL)
        return rbt_fail(
            error, RBT_E_DATA,
            "the labels are words such as '%.60s'; regression needs numbers: choose another --label column, "
            "or train lr or softmax",
            data->label_names[0]);
    return RBT_OK;
}

/* ---------------------------------------------------------------------------------------------------- applying */

/* The class with this name, or `classes`. */
static size_t class_named(const rbt_shape *shape, const char *name)
{
    for (size_t i = 0; i < shape->classes; i++)
        if (strcmp(shape->names[i], name) == 0)
            return i;
    return shape->classes;
}

/* The class with this number, or `classes`. */
static size_t class_numbered(const rbt_shape *shape, double label)
{
    size_t at = place_of(shape->labels, shape->classes, label);
    return at < shape->classes && shape->labels[at] == label ? at : shape->classes;
}

/* The class whose name is this number, however it is written, or `classes`: also where two are. */
static size_t class_named_as_number(const rbt_shape *shape, double label)
{
    size_t at = shape->classes, count = 0;
    for (size_t i = 0; i < shape->classes; i++) {
        const char *name = shape->names[i], *end = name + strlen(name);
        float number = 0;
        if (rbt_number_parse(name, end, &number) == end && (double)number == label) {
            at = i;
            count++;
        }
    }
    return count == 1 ? at : shape->classes;
}

/* The class of a label as the data has it, or `classes`. One word among the labels makes words of all, also of numbers. */
static size_t class_of(const rbt_shape *shape, const rbt_data *data, double label)
{
    if (shape->names != NULL && data->label_names != NULL && label >= 0 && label < (double)data->label_count)
        return class_named(shape, data->label_names[(size_t)label]); /* however long */
    if (shape->names != NULL)
        return class_named_as_number(shape, label);
    if (data->label_names == NULL)
        return class_numbered(shape, label);
    const char *name = label >= 0 && label < (double)data->label_count ? data->label_names[(size_t)label] : "";
    const char *end = name + strlen(name);
    float number = 0;
    return rbt_number_parse(name, end, &number) == end ? class_numbered(shape, (double)number) : shape->classes;
}

static rbt_err refuse_label(const rbt_shape *shape, const rbt_data *data, size_t row, rbt_error *error)
{
    char text[RBT_LABEL_ROOM], first[RBT_LABEL_ROOM], last[RBT_LABEL_ROOM];
    rbt_shape_label_text(shape, 0, first);
    rbt_shape_label_text(shape, (double)(shape->classes - 1), last);
    return rbt_fail(error, RBT_E_DATA,
                    "row %zu has the label %.200s, but the model was trained on %zu labels from %.200s to %.200s; use "
                    "data with the same labels",
                    row + 1, written(data, (double)data->label[row], text), shape->classes, first, last);
}

static rbt_err number_labels(const rbt_shape *shape, rbt_data *data, rbt_error *error)
{
    memo known;
    memo_clear(&known);
    for (size_t r = 0; r < data->rows; r++) {
        bool is_new;
        size_t at = memo_place(&known, data->label[r], &is_new);
        if (is_new) {
            size_t class = class_of(shape, data, (double)data->label[r]);
            if (class == shape->classes)
                return refuse_label(shape, data, r, error);
            known.class[at] = (float)class;
        }
        data->label[r] = known.class[at];
    }
    return RBT_OK;
}

rbt_err rbt_shape_apply(const rbt_shape *shape, bool labels, rbt_data *data, rbt_error *error)
{
    rbt_err err = rbt_labels_check_content(data, error);
    if (err != RBT_OK)
        return err;
    if (labels && shape->classes == 0 && data->label_names != NULL)
        return rbt_fail(
            error, RBT_E_DATA,
            "the labels are words such as '%.60s', the model predicts numbers; choose another --label column",
            data->label_names[0]);
    if (labels && shape->classes > 0)
        err = number_labels(shape, data, error);
    if (err != RBT_OK)
        return err;
    return shape->unit_rows ? rbt_data_scale_rows(data, error) : RBT_OK;
}

const char *rbt_shape_label(const rbt_shape *shape, double label, char room[RBT_LABEL_ROOM])
{
    if (shape->classes > 0 && shape->names != NULL)
        return shape->names[(size_t)label];
    if (shape->classes > 0)
        rbt_label_print(shape->labels[(size_t)label], room);
    else
        room[rbt_number_print((float)label, room)] = '\0';
    return room;
}

void rbt_shape_label_text(const rbt_shape *shape, double label, char text[RBT_LABEL_ROOM])
{
    char room[RBT_LABEL_ROOM];
    snprintf(text, RBT_LABEL_ROOM, "%.250s", rbt_shape_label(shape, label, room));
}

void rbt_shape_copy(rbt_shape *to, const rbt_shape *from)
{
    *to = *from;
    if (from->labels != NULL) {
        to->labels = rbt_alloc(from->classes, sizeof *to->labels);
        memcpy(to->labels, from->labels, from->classes * sizeof *to->labels);
    }
    if (from->names != NULL) {
        to->names = rbt_alloc(from->classes, sizeof *to->names);
        for (size_t i = 0; i < from->classes; i++)
            to->names[i] = rbt_strdup(from->names[i]);
    }
}

void rbt_shape_deinit(rbt_shape *shape)
{
    for (size_t i = 0; shape->names != NULL && i < shape->classes; i++)
        rbt_free(shape->names[i]);
    rbt_free(shape->names);
    rbt_free(shape->labels);
    *shape = (rbt_shape){0};
}
