/* LIBLINEAR's text models; the contract is in liblinear.h.
 *
 * A file has lines `solver_type`, `nr_class`, `label`, `nr_feature`, `bias`, then `w` and one line per feature. Of two
 * classes the first label is the one a decision value above 0 stands for; with more there is a column of w for each
 * label, and the largest decision value wins, the first of equal ones. A bias of b >= 0 is a last feature of value b.
 */
#include "model/liblinear.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/data.h"
#include "data/file.h"
#include "data/number.h"
#include "model/classes.h"
#include "model/model.h"

/* A bias that decides where all else is zero and is lost in any other sum. */
#define TIE_BREAK 1e-37F

/* What can be done about a file that is refused, when nothing better is known. */
#define REMEDY                                                                                                         \
    "; give a model as liblinear-train or `rubato export --format liblinear` writes it, or have it written again"

typedef struct solver {
    const char *name;
    const rbt_model *model; /* of two classes, or of numbers */
} solver;

/* For each model the first one is what we write. */
static const solver solvers[] = {
    {"L2R_LR", &rbt_model_lr},
    {"L2R_LR_DUAL", &rbt_model_lr},
    {"L1R_LR", &rbt_model_lr},
    {"L2R_L1LOSS_SVC_DUAL", &rbt_model_svm},
    {"L2R_L2LOSS_SVC", &rbt_model_svm2},
    {"L2R_L2LOSS_SVC_DUAL", &rbt_model_svm2},
    {"L1R_L2LOSS_SVC", &rbt_model_svm2},
    {"MCSVM_CS", &rbt_model_softmax},
    {"L2R_L2LOSS_SVR", &rbt_model_linear},
    {"L2R_L2LOSS_SVR_DUAL", &rbt_model_linear},
    {"L2R_L1LOSS_SVR_DUAL", &rbt_model_linear},
};
#define SOLVER_COUNT (sizeof solvers / sizeof solvers[0])

/* ------------------------------------------------------------------------------------------------------ writing */

/* The solver whose layout holds the model, NULL when there is none. A softmax of two classes is a logistic regression
 * on the difference; one of more has LIBLINEAR's layout for many classes, without its (different) probabilities. */
static const char *solver_for(const rbt_trained *t)
{
    const rbt_model *model = t->model == &rbt_model_huber ? &rbt_model_linear : t->model;
    if (model == &rbt_model_softmax && t->shape.classes == 2)
        model = &rbt_model_lr;
    for (size_t i = 0; i < SOLVER_COUNT; i++)
        if (solvers[i].model == model)
            return solvers[i].name;
    return NULL;
}

/* Can LIBLINEAR's programs use the model? */
static rbt_err check_writable(const rbt_trained *t, const char *path, rbt_error *error)
{
    const rbt_shape *shape = &t->shape;
    if (solver_for(t) == NULL)
        return rbt_fail(error, RBT_E_UNSUPPORTED, "%s: not written: LIBLINEAR has nothing like the model %s", path,
                        t->model->name);
    if (shape->unit_rows)
        return rbt_fail(error, RBT_E_UNSUPPORTED,
                        "%s: not written: the model scales rows to length 1, which LIBLINEAR's programs do not; train "
                        "with --normalize none on data that is scaled already, or predict with rubato",
                        path);
    if (shape->cols > INT_MAX - 1)
        return rbt_fail(error, RBT_E_LIMIT, "%s: not written: LIBLINEAR takes at most %d features, the model has %zu",
                        path, INT_MAX - 1, shape->cols);
    for (size_t k = 0; k < shape->classes; k++) {
        char label[RBT_LABEL_ROOM];
        if (shape->names == NULL && fabs(shape->labels[k]) <= INT_MAX && shape->labels[k] == floor(shape->labels[k]))
            continue;
        rbt_shape_label_text(shape, (double)k, label);
        return rbt_fail(error, RBT_E_UNSUPPORTED,
                        "%s: not written: LIBLINEAR's labels are whole numbers, the model has %.200s; number the "
                        "classes in the data and train again, or export to json",
                        path, label);
    }
    return RBT_OK;
}

static rbt_err put_header(const rbt_trained *t, rbt_output *output, rbt_error *error)
{
    const rbt_shape *shape = &t->shape;
    size_t classes = shape->classes;
    rbt_err err = rbt_output_print(output, error, "solver_type %s\nnr_class %zu\n", solver_for(t),
                                   classes > 0 ? classes : 2); /* LIBLINEAR says 2 for numbers */
    if (classes == 2 && err == RBT_OK)
        err = rbt_output_print(output, error, "label %.0f %.0f\n", shape->labels[1], shape->labels[0]);
    for (size_t k = 0; classes > 2 && err == RBT_OK && k < classes; k++)
        err = rbt_output_print(output, error, "%s%.0f%s", k == 0 ? "label " : " ", shape->labels[k],
                               k + 1 == classes ? "\n" : "");
    if (err == RBT_OK)
        err = rbt_output_print(output, error, "nr_feature %zu\nbias %d\nw\n", shape->cols, shape->bias ? 1 : -1);
    return err;
}

rbt_err rbt_liblinear_write(const rbt_trained *t, const char *path, rbt_error *error)
{
    size_t outputs = t->model->outputs(&t->shape);
    rbt_output output;
    rbt_err err = check_writable(t, path, error);
    if (err == RBT_OK)
        err = rbt_output_open(path, &output, error);
    if (err != RBT_OK)
        return err;
    err = put_header(t, &output, error);
    for (size_t i = 0; err == RBT_OK && i < t->n; i += outputs) {
        if (outputs == 2) /* softmax of two classes */
            err = rbt_output_print(&output, error, "%.17g \n", (double)t->w[i + 1] - (double)t->w[i]);
        for (size_t k = 0; outputs != 2 && err == RBT_OK && k < outputs; k++)
            err = rbt_output_print(&output, error, k + 1 == outputs ? "%.17g \n" : "%.17g ", (double)t->w[i + k]);
    }
    if (err == RBT_OK)
        return rbt_output_finish(&output, true, error);
    rbt_output_abandon(&output);
    return err;
}

/* ------------------------------------------------------------------------------------------------------ reading */

typedef struct header {
    const char *name; /* of the file */
    const char *at, *end;
    size_t line;
    const solver *solver;
    long classes, features;
    bool has_bias;
    float bias;
    long *label;
} header;

/* The next line, without its end. */
static bool next_line(header *h, const char **text, const char **stop)
{
    if (h->at == h->end)
        return false;
    const char *newline = memchr(h->at, '\n', (size_t)(h->end - h->at));
    *text = h->at;
    *stop = newline != NULL ? newline : h->end;
    h->at = newline != NULL ? newline + 1 : h->end;
    h->line++;
    if (*stop > *text && (*stop)[-1] == '\r')
        (*stop)--;
    return true;
}

/* The next word of a line; empty at its end. */
static size_t take_word(const char **at, const char *stop, const char **word)
{
    while (*at < stop && (**at == ' ' || **at == '\t'))
        (*at)++;
    *word = *at;
    while (*at < stop && **at != ' ' && **at != '\t')
        (*at)++;
    return (size_t)(*at - *word);
}

static bool word_is(const char *word, size_t length, const char *text)
{
    return strlen(text) == length && memcmp(word, text, length) == 0;
}

/* A whole number from min to max. */
static rbt_err take_count(const header *h, const char *key, const char **at, const char *stop, long min, long max,
                          long *value, rbt_error *error)
{
    const char *word;
    size_t n = take_word(at, stop, &word);
    char digits[24] = "", *rest;
    if (n > 0 && n < sizeof digits)
        memcpy(digits, word, n);
    *value = strtol(digits, &rest, 10);
    if (digits[0] == '\0' || digits[0] == ' ' || *rest != '\0' || strlen(digits) != n || *value < min || *value > max)
        return rbt_fail(error, RBT_E_DATA, "%s:%zu: after %s a whole number from %ld to %ld is expected" REMEDY,
                        h->name, h->line, key, min, max);
    return RBT_OK;
}

static rbt_err take_real(const header *h, const char *key, const char **at, const char *stop, float *value,
                         rbt_error *error)
{
    const char *word;
    size_t n = take_word(at, stop, &word);
    if (n == 0 || rbt_number_parse(word, word + n, value) != word + n || !isfinite(*value))
        return rbt_fail(error, RBT_E_DATA,
                        "%s:%zu: %s has '%.*s' where a number that a 32-bit float holds is expected" REMEDY, h->name,
                        h->line, key, (int)(n < 40 ? n : 40), word);
    return RBT_OK;
}

static rbt_err take_solver(header *h, const char **at, const char *stop, rbt_error *error)
{
    const char *word;
    size_t n = take_word(at, stop, &word);
    for (size_t i = 0; i < SOLVER_COUNT; i++)
        if (word_is(word, n, solvers[i].name))
            h->solver = &solvers[i];
    if (h->solver == NULL)
        return rbt_fail(
            error, RBT_E_UNSUPPORTED,
            "%s:%zu: solver type '%.*s' is none that can be read; there are the classifiers L2R_LR, L1R_LR, "
            "L2R_L1LOSS_SVC_DUAL, L2R_L2LOSS_SVC, L1R_L2LOSS_SVC, MCSVM_CS, the regressions L2R_L2LOSS_SVR, "
            "L2R_L1LOSS_SVR_DUAL, and the _DUAL forms of these; train with one of them (-s 0 to 7, 11 to 13)",
            h->name, h->line, (int)(n < 40 ? n : 40), word);
    return RBT_OK;
}

static rbt_err take_labels(header *h, const char **at, const char *stop, rbt_error *error)
{
    rbt_err err = RBT_OK;
    if (h->classes == 0)
        return rbt_fail(error, RBT_E_DATA, "%s:%zu: label stands before nr_class; put nr_class first", h->name,
                        h->line);
    h->label = rbt_alloc((size_t)h->classes, sizeof *h->label);
    for (long k = 0; err == RBT_OK && k < h->classes; k++) {
        err = take_count(h, "label", at, stop, INT_MIN, INT_MAX, &h->label[k], error);
        if (err == RBT_OK && (long)(double)(float)h->label[k] != h->label[k])
            err = rbt_fail(error, RBT_E_LIMIT,
                           "%s:%zu: label %ld has too many digits to be kept exactly; number the classes from 1 in the "
                           "data, and train the model again",
                           h->name, h->line, h->label[k]);
    }
    return err;
}

/* One line of the header; *done at the line `w`. */
static rbt_err take_line(header *h, bool *done, rbt_error *error)
{
    const char *at, *stop, *key, *rest;
    if (!next_line(h, &at, &stop))
        return rbt_fail(error, RBT_E_DATA,
                        "%s:%zu: the file ends before the line 'w': it is cut short or no LIBLINEAR "
                        "model" REMEDY,
                        h->name, h->line + 1);
    size_t n = take_word(&at, stop, &key);
    rbt_err err = RBT_OK;
    if (word_is(key, n, "solver_type") && h->solver == NULL)
        err = take_solver(h, &at, stop, error);
    else if (word_is(key, n, "nr_class") && h->classes == 0)
        err = take_count(h, "nr_class", &at, stop, 2, RBT_CLASSES_LIMIT, &h->classes, error);
    else if (word_is(key, n, "label") && h->label == NULL)
        err = take_labels(h, &at, stop, error);
    else if (word_is(key, n, "nr_feature") && h->features < 0)
        err = take_count(h, "nr_feature", &at, stop, 0, INT_MAX - 1, &h->features, error);
    else if (word_is(key, n, "bias") && !h->has_bias) {
        h->has_bias = true;
        err = take_real(h, "bias", &at, stop, &h->bias, error);
    } else if (word_is(key, n, "w"))
        *done = true;
    else if (n > 0 && !isprint((unsigned char)key[0]))
        return rbt_fail(error, RBT_E_DATA,
                        "%s:%zu: is no text; give a model that liblinear-train wrote (Rubato's own need no import)",
                        h->name, h->line);
    else
        return rbt_fail(
            error, RBT_E_DATA,
            "%s:%zu: '%.*s' is unknown here or stands twice; solver_type, nr_class, label, nr_feature, bias "
            "and w are expected, each once" REMEDY,
            h->name, h->line, (int)(n < 40 ? n : 40), key);
    if (err == RBT_OK && take_word(&at, stop, &rest) > 0)
        err = rbt_fail(error, RBT_E_DATA, "%s:%zu: there is more on the line than belongs there" REMEDY, h->name,
                       h->line);
    return err;
}

static rbt_err take_header(header *h, rbt_error *error)
{
    bool done = false;
    while (!done) {
        rbt_err err = take_line(h, &done, error);
        if (err != RBT_OK)
            return err;
    }
    const char *missing = h->solver == NULL ? "solver_type"
                          : h->classes == 0 ? "nr_class"
                          : h->features < 0 ? "nr_feature"
                          : !h->has_bias    ? "bias"
                                            : NULL;
    bool numbers = h->solver != NULL && h->solver->model == &rbt_model_linear;
    if (missing == NULL && !numbers && h->label == NULL)
        missing = "label";
    if (missing != NULL)
        return rbt_fail(error, RBT_E_DATA, "%s:%zu: there is no line '%s' before 'w'" REMEDY, h->name, h->line,
                        missing);
    if (numbers && (h->label != NULL || h->classes != 2))
        return rbt_fail(error, RBT_E_DATA, "%s:%zu: %s predicts numbers, but the file has labels of classes" REMEDY,
                        h->name, h->line, h->solver->name);
    return RBT_OK;
}

typedef struct column {
    long label;
    size_t at; /* in the file */
} column;

static int by_label(const void *a, const void *b)
{
    long x = ((const column *)a)->label, y = ((const column *)b)->label;
    return (x > y) - (x < y);
}

/* Which class each of the file's labels is: classes are in ascending order. Refuses a label that stands twice. */
static rbt_err order_labels(const header *h, rbt_shape *shape, size_t *class_of, rbt_error *error)
{
    size_t n = (size_t)h->classes;
    column *sorted = rbt_alloc(n, sizeof *sorted);
    rbt_err err = RBT_OK;
    shape->classes = n;
    shape->labels = rbt_alloc(n, sizeof *shape->labels);
    for (size_t i = 0; i < n; i++)
        sorted[i] = (column){h->label[i], i};
    qsort(sorted, n, sizeof *sorted, by_label);
    for (size_t k = 0; k < n; k++) {
        shape->labels[k] = (double)sorted[k].label;
        class_of[sorted[k].at] = k;
        if (k > 0 && sorted[k].label == sorted[k - 1].label)
            err = rbt_fail(error, RBT_E_DATA, "%s: the label %ld stands twice" REMEDY, h->name, sorted[k].label);
    }
    rbt_free(sorted);
    return err;
}

/* How the file's columns of weights become ours. */
typedef struct layout {
    size_t lines, columns; /* in the file */
    size_t outputs;        /* in the model: as many as columns; or 1, of the first column */
    size_t *class_of;      /* of each column's label */
    float factor;
} layout;

static rbt_err take_weights(header *h, const layout *l, rbt_trained *t, rbt_error *error)
{
    const char *at = h->at, *stop = h->at, *rest;
    for (size_t i = 0; i < l->lines; i++) {
        float times = i == (size_t)h->features ? l->factor * h->bias : l->factor, value = 0;
        if (!next_line(h, &at, &stop))
            return rbt_fail(error, RBT_E_DATA,
                            "%s:%zu: the file ends after %zu of %zu lines of weights: it is cut short" REMEDY, h->name,
                            h->line + 1, i, l->lines);
        for (size_t k = 0; k < l->columns; k++) {
            rbt_err err = take_real(h, "w", &at, stop, &value, error);
            if (err != RBT_OK)
                return err;
            if (!isfinite(value * times))
                return rbt_fail(error, RBT_E_DATA,
                                "%s:%zu: the weight times the bias is more than a 32-bit float holds; train the model "
                                "again with a smaller -B",
                                h->name, h->line);
            if (l->outputs > 1 || k == 0)
                t->w[i * l->outputs + (l->outputs > 1 ? l->class_of[k] : 0)] = value * times;
        }
        if (take_word(&at, stop, &rest) > 0)
            return rbt_fail(error, RBT_E_DATA, "%s:%zu: more than %zu weights on the line" REMEDY, h->name, h->line,
                            l->columns);
    }
    while (next_line(h, &at, &stop))
        if (take_word(&at, stop, &rest) > 0)
            return rbt_fail(error, RBT_E_DATA, "%s:%zu: there is more after the %zu lines of weights" REMEDY, h->name,
                            h->line, l->lines);
    return RBT_OK;
}

/* A row of which nothing counts, not even a bias: LIBLINEAR gives it the second of two labels, or the first of many. Ours is the
 * smallest label. Where the two differ, classes whose bias is 0 get one that decides just these. */
static void break_ties(const header *h, const layout *l, rbt_trained *t)
{
    bool wanted = l->outputs == 1 && h->label != NULL && h->label[0] < h->label[1];
    float *bias = t->w + t->shape.cols * l->outputs;
    for (size_t k = 0; l->outputs > 1 && k < l->outputs; k++)
        wanted |= l->class_of[k] != k;
    for (size_t k = 0; wanted && k < l->outputs; k++) {
        float *at = &bias[l->outputs > 1 ? l->class_of[k] : 0];
        if (*at == 0)
            *at = TIE_BREAK * (float)(l->outputs - k);
    }
    if (wanted && !t->shape.bias) {
        t->shape.bias = true;
        t->n += l->outputs;
    }
}

/* Of two classes LIBLINEAR looks at the first column only, even where the file has two (MCSVM_CS). */
static rbt_err take_model(header *h, rbt_trained *t, rbt_error *error)
{
    RBT_ASSERT(h->solver != NULL); /* take_header has made sure */
    const rbt_model *model = h->solver->model;
    bool numbers = model == &rbt_model_linear, two = numbers || h->classes == 2;
    layout l = {.lines = (size_t)h->features + (h->bias >= 0 ? 1 : 0),
                .columns = two && model != &rbt_model_softmax ? 1 : (size_t)h->classes,
                .outputs = two ? 1 : (size_t)h->classes,
                .class_of = rbt_alloc((size_t)h->classes, sizeof *l.class_of)};
    rbt_err err = numbers ? RBT_OK : order_labels(h, &t->shape, l.class_of, error);
    if (err != RBT_OK)
        goto free_classes;
    l.factor = two && !numbers && l.class_of[0] == 0 ? -1 : 1; /* our "yes" is the larger label */
    if (l.lines > (size_t)(h->end - h->at) / l.columns) {      /* a number takes a byte at least */
        err = rbt_fail(error, RBT_E_DATA,
                       "%s:%zu: %zu lines of %zu weights are promised, more than the file has bytes" REMEDY, h->name,
                       h->line, l.lines, l.columns);
        goto free_classes;
    }
    t->model = !two ? &rbt_model_softmax : model == &rbt_model_softmax ? &rbt_model_svm : model;
    t->shape.cols = (size_t)h->features;
    t->shape.bias = h->bias >= 0;
    t->n = l.lines * l.outputs;
    t->w = rbt_try_alloc(t->n + l.outputs, sizeof *t->w); /* and a bias, should ties need it */
    if (t->w == NULL) {
        err = rbt_fail(error, RBT_E_MEMORY, "%s: not enough memory for its %zu parameters; use a larger machine",
                       h->name, t->n);
        goto free_classes;
    }
    err = take_weights(h, &l, t, error);
    if (err == RBT_OK)
        break_ties(h, &l, t);
free_classes:
    rbt_free(l.class_of);
    return err;
}

rbt_err rbt_liblinear_parse(const char *text, size_t bytes, const char *name, rbt_trained *trained, rbt_error *error)
{
    header h = {.name = name, .at = text, .end = text + bytes, .features = -1};
    rbt_trained t = {0};
    rbt_err err = take_header(&h, error);
    if (err == RBT_OK)
        err = take_model(&h, &t, error);
    if (err == RBT_OK)
        *trained = t;
    else
        rbt_trained_deinit(&t);
    rbt_free(h.label);
    return err;
}

rbt_err rbt_liblinear_read(const char *path, rbt_trained *trained, rbt_error *error)
{
    rbt_input input;
    rbt_err err = rbt_input_open(path, &input, error);
    if (err != RBT_OK)
        return err;
    err = rbt_liblinear_parse(input.bytes, input.n, input.name, trained, error);
    rbt_input_close(&input);
    return err;
}
