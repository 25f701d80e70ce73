/* What depends on the data in the options. Contract in prepare.h; proved by tests/unit/test_loading.c and
 * test_sharing_parallel.c. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/data.h"
#include "job/prepare.h"
#include "model/model.h"
#include "solve/columns.h"
#include "solve/newton.h"
#include "solve/rate.h"
#include "solve/sdca.h"

#define FEW_PARAMETERS 2000
#define CHEAP_VALUES   1e8 /* are visited in about a second: so many may be before a training without --epochs ends */
#define MOST_EPOCHS    10000
#define WEAK           0.01 /* l2 times rows, of a row's square */
#define HEAVY_BYTES    (double)((size_t)64 << 20)
#define HEAVY_TIMES    2  /* the data's own bytes */
#define HURRIED        10 /* passes, in which averaged steps come further than dual ones along corners, ... */
#define HURRIED_FEW    3  /* ... and than Newton's iterations, which are there for few parameters */

/* Do so few features occur in the data that there are at most FEW_PARAMETERS to learn? Looks only as long as it may. */
static rbt_err has_few_parameters(const rbt_problem *problem, bool *few, rbt_error *error)
{
    size_t limit = FEW_PARAMETERS / problem->outputs;
    rbt_columns columns = {0};
    rbt_err err = problem->shape->cols > limit ? rbt_columns_init(&columns, problem, limit, error) : RBT_OK;
    *few = columns.count <= limit;
    rbt_columns_deinit(&columns);
    return err;
}

/* Is l2 so small beside the rows that dual coordinate ascent would take ages? It sets one row after the other to its
 * optimum, and goes as far for it as l2 lets it. */
static bool is_weak(const rbt_problem *problem)
{
    if (problem->data->streamed) /* looking would bring it into memory */
        return false;
    return problem->l2 * (double)problem->data->rows < WEAK * rbt_squares_of_row(problem->data);
}

/* Of few parameters and a loss with corners: shall it end after so few passes that dual steps, or Newton's, have hardly
 * begun? A mean of steps has none of the zeros that l1 is for. Of a smooth loss Newton's method is not left even for
 * one pass: it does not mind features of unlike size. */
static bool is_hurried(const rbt_problem *problem, bool newton_fits, const rbt_options *options)
{
    double passes = options->clocks > 0 ? (double)options->clocks : options->epochs;
    double most = !newton_fits ? HURRIED : rbt_newton_rounds(problem) ? HURRIED_FEW : 0;
    return options->tolerance == 0 && problem->l1 == 0 && passes <= most;
}

/* Would what a solver keeps, so many bytes for each row and class, be much, and far more than the data itself? */
static bool is_heavy(const rbt_problem *problem, size_t bytes)
{
    const rbt_data *data = problem->data;
    double own = (double)data->rows * (double)problem->outputs * (double)bytes;
    double given = (double)data->nnz * (sizeof *data->index + sizeof *data->value) +
                   (double)data->rows * (sizeof *data->start + sizeof *data->label);
    return own > HEAVY_BYTES && own > HEAVY_TIMES * given;
}

/* In shared memory: Newton's method for few parameters, where threads without locks would step on each other's feet and
 * second derivatives are cheap, unless somebody wants to see steps kept apart or workers slowed down; dual coordinate
 * ascent for many. Where an l2 that somebody chose is weak, it is too slow with l1, and with so few parameters that the
 * rows contradict each other: then gradient steps, as where there is hardly any data beside what the others keep of
 * each row. */
static rbt_err settle_optimizer(const rbt_loaded *loaded, rbt_options *options, bool l2_given, rbt_error *error)
{
    rbt_problem problem = rbt_problem_of(loaded->model, &loaded->shape, &loaded->data, options->l1, options->l2);
    bool few, slowed = options->straggler != NULL, fits = rbt_newton_fits(&problem);
    bool newton = fits && !rbt_options_takes_turns(options) && !slowed && !is_heavy(&problem, RBT_NEWTON_ROW_BYTES);
    rbt_err err = has_few_parameters(&problem, &few, error);

    if (err != RBT_OK)
        return err;
    if (options->optimizer == RBT_OPTIMIZER_AUTO)
        options->optimizer = few && is_hurried(&problem, fits, options)                  ? RBT_OPTIMIZER_ASGD
                             : few && newton                                             ? RBT_OPTIMIZER_NEWTON
                             : problem.l2 == 0 || is_heavy(&problem, RBT_SDCA_ROW_BYTES) ? RBT_OPTIMIZER_SGD
                             : l2_given && (few || options->l1 > 0) && is_weak(&problem) ? RBT_OPTIMIZER_SGD
                                                                                         : RBT_OPTIMIZER_SDCA;
    rbt_options_settle_decay(options);
    if (options->optimizer == RBT_OPTIMIZER_NEWTON && !fits)
        return rbt_newton_rounds(&problem)
                   ? rbt_fail(error, RBT_E_USAGE,
                              "--optimizer newton needs at most %d parameters for %s, whose loss is not smooth; use "
                              "--optimizer sdca, or train svm2",
                              RBT_NEWTON_SQUARE, loaded->model->name)
                   : rbt_fail(error, RBT_E_USAGE,
                              "--optimizer newton with --l1 needs one output and at most %d parameters; leave out "
                              "--l1, or use --optimizer sdca",
                              RBT_NEWTON_SQUARE);
    if (options->optimizer == RBT_OPTIMIZER_NEWTON && slowed)
        return rbt_fail(
            error, RBT_E_USAGE,
            "--straggler slows workers down, and those of --optimizer newton share every pass evenly; leave "
            "one of them out");
    if (options->workers_auto && few && options->optimizer != RBT_OPTIMIZER_NEWTON &&
        !rbt_options_takes_turns(options) && !slowed)
        options->workers = 1;
    return RBT_OK;
}

/* sdca knows how far it is: where passes cost next to nothing, it may make as many as it needs. */
static void settle_epochs(const rbt_extent *extent, rbt_options *options)
{
    double cheap = floor(CHEAP_VALUES / (double)(extent->nnz + 1));
    if (options->epochs_auto && options->optimizer == RBT_OPTIMIZER_SDCA)
        options->epochs = fmax(options->epochs, fmin(cheap, MOST_EPOCHS));
}

/* ------------------------------------------------------------------------------------- rows at several places */

typedef struct counting {
    const rbt_problem *problem;
    const rbt_extent *extent;
    rbt_squares squares;
} counting;

static void add_squares(void *context, void *sums)
{
    const counting *c = context;
    rbt_squares_add(sums, c->problem->data, c->extent->first_nnz, c->extent->nnz);
}

static void add_counts(void *context, void *sums)
{
    const counting *c = context;
    const rbt_data *data = c->problem->data;
    uint32_t *counts = sums;
    for (size_t i = 0; i < data->nnz; i++)
        if (data->index[i] < c->problem->shape->cols)
            counts[data->index[i]]++;
}

/* What steps must know of all rows. */
static rbt_err find_facts(const rbt_problem *problem, const rbt_extent *extent, rbt_crew *crew, rbt_facts *facts,
                          rbt_error *error)
{
    counting c = {.problem = problem, .extent = extent};
    size_t cols = problem->shape->cols;
    rbt_err err = rbt_crew_travel(crew, RBT_OK, add_squares, &c, &c.squares, sizeof c.squares, error);
    facts->rows = extent->rows;
    facts->square = rbt_squares_mean(&c.squares);
    if (err != RBT_OK || (problem->l1 == 0 && problem->l2 == 0))
        return err;
    facts->counts = rbt_try_alloc(cols + 1, sizeof *facts->counts);
    if (facts->counts == NULL)
        err = rbt_fail(error, RBT_E_MEMORY, "not enough memory to count the rows of %zu features", cols);
    return rbt_crew_travel(crew, err, add_counts, &c, facts->counts, cols * sizeof *facts->counts, error);
}

/* A row of the sample on its way: numbers, then indices, then values. */
typedef struct sampled {
    uint32_t n;
    float label;
    float weight;
} sampled;

/* The rows of the sample that are here, as bytes, in the sample's order. */
static rbt_err pack_sample(const rbt_data *data, const rbt_extent *extent, const uint32_t *sample, size_t n,
                           rbt_bytes *out, rbt_error *error)
{
    for (int pass = 0; pass < 2; pass++) { /* how long it is; then what it is */
        uint8_t *at = out->at;
        for (size_t i = 0; i < n; i++) {
            if (sample[i] < extent->first || sample[i] >= extent->first + data->rows)
                continue;
            size_t row = sample[i] - extent->first, first = data->start[row], features = data->start[row + 1] - first;
            const sampled s = {(uint32_t)features, data->label[row], (float)rbt_data_weight(data, row)};
            if (pass == 0) {
                out->n += sizeof s + features * (sizeof *data->index + sizeof *data->value);
                continue;
            }
            memcpy(at, &s, sizeof s);
            at += sizeof s;
            memcpy(at, data->index + first, features * sizeof *data->index);
            at += features * sizeof *data->index;
            memcpy(at, data->value + first, features * sizeof *data->value);
            at += features * sizeof *data->value;
        }
        if (pass == 0 && (out->at = rbt_try_alloc_raw(out->n + 1, 1)) == NULL)
            return rbt_fail(error, RBT_E_MEMORY,
                            "not enough memory for %zu bytes of rows to try step sizes on; give --lr", out->n);
    }
    return RBT_OK;
}

/* The next row of one process's bytes to the end of the sample. */
static rbt_err unpack_row(rbt_bytes *in, size_t cols, rbt_data *to, rbt_error *error)
{
    sampled s = {0};
    size_t features = 0, bytes = sizeof s;
    if (in->n >= sizeof s) {
        memcpy(&s, in->at, sizeof s);
        features = s.n;
        bytes += features * (sizeof *to->index + sizeof *to->value);
    }
    if (in->n < bytes)
        return rbt_fail(error, RBT_E_PROTOCOL, "a row of the sample to try step sizes on has not arrived; give --lr");
    const uint8_t *at = in->at + sizeof s;
    to->label[to->rows] = s.label;
    if (to->weight != NULL)
        to->weight[to->rows] = s.weight;
    memcpy(to->index + to->nnz, at, features * sizeof *to->index);
    memcpy(to->value + to->nnz, at + features * sizeof *to->index, features * sizeof *to->value);
    for (size_t i = 0; i < features; i++)
        if (to->index[to->nnz + i] >= cols)
            return rbt_fail(error, RBT_E_PROTOCOL, "a row of the sample to try step sizes on is damaged; give --lr");
    to->nnz += features;
    to->start[++to->rows] = to->nnz;
    in->at += bytes;
    in->n -= bytes;
    return RBT_OK;
}

/* The sample's rows, put together from what all processes have of them. */
static rbt_err unpack_sample(const rbt_loaded *loaded, const size_t *rows_of, rbt_crew *crew, const uint32_t *sample,
                             size_t n, const rbt_bytes *in, rbt_data *out, rbt_error *error)
{
    rbt_bytes *left = rbt_alloc(crew->size, sizeof *left);
    size_t bytes = 0;
    for (uint32_t r = 0; r < crew->size; r++) {
        left[r] = in[r];
        bytes += in[r].n;
    }
    rbt_err err = rbt_data_alloc(n, bytes / (sizeof *out->index + sizeof *out->value), out, error);
    if (err == RBT_OK && loaded->data.weight != NULL)
        out->weight = rbt_alloc(n, sizeof *out->weight);
    for (size_t i = 0; err == RBT_OK && i < n; i++) {
        size_t r = 0, end = rows_of[0];
        while (r + 1 < crew->size && sample[i] >= end)
            end += rows_of[++r];
        err = unpack_row(&left[r], loaded->data.cols, out, error);
    }
    out->cols = loaded->data.cols;
    rbt_free(left);
    return err;
}

/* Gathers the sample at rank 0 (elsewhere `out` stays empty). */
static rbt_err gather_sample(const rbt_loaded *loaded, const rbt_extent *extent, rbt_crew *crew, const uint32_t *sample,
                             size_t n, rbt_data *out, rbt_error *error)
{
    rbt_bytes *to = rbt_alloc(crew->size, sizeof *to), *in = rbt_alloc(crew->size, sizeof *in), mine = {0};
    size_t rows = loaded->data.rows, *rows_of = rbt_alloc(crew->size, sizeof *rows_of);
    rbt_err err = pack_sample(&loaded->data, extent, sample, n, &mine, error);
    err = rbt_crew_share(crew, err, &rows, sizeof rows, rows_of, error);
    if (err == RBT_OK) {
        to[0] = mine;
        err = rbt_crew_swap(crew, err, to, in, error);
        if (err == RBT_OK && crew->rank == 0)
            err = unpack_sample(loaded, rows_of, crew, sample, n, in, out, error);
        rbt_crew_free(crew, in);
    }
    rbt_free(mine.at);
    rbt_free(rows_of);
    rbt_free(to);
    rbt_free(in);
    return err;
}

/* The step size, found at rank 0 on rows of all. */
static rbt_err find_rate_together(const rbt_loaded *loaded, rbt_options *options, const rbt_problem *problem,
                                  const rbt_extent *extent, rbt_crew *crew, rbt_error *error)
{
    uint32_t *sample = rbt_alloc(RBT_RATE_SAMPLE, sizeof *sample);
    double steepness = rbt_rate_steepness(problem), *all = rbt_alloc(crew->size, sizeof *all);
    size_t n = rbt_rate_sample(extent->rows, options->seed, sample);
    rbt_data rows = {0};
    rbt_problem seen = *problem;
    double rate = 0;
    rbt_err err = gather_sample(loaded, extent, crew, sample, n, &rows, error);
    err = rbt_crew_share(crew, err, &steepness, sizeof steepness, all, error);
    for (uint32_t r = 0; err == RBT_OK && r < crew->size; r++)
        steepness = fmax(steepness, all[r]);
    for (size_t i = 0; i < n; i++)
        sample[i] = (uint32_t)i;
    seen.data = &rows;
    if (err == RBT_OK && crew->rank == 0)
        err = rbt_rate_try(&seen, sample, n, steepness, options->optimizer, options->momentum, &rate, error);
    err = rbt_crew_share(crew, err, &rate, sizeof rate, all, error);
    if (err == RBT_OK)
        options->lr = all[0];
    rbt_data_deinit(&rows);
    rbt_free(sample);
    rbt_free(all);
    return err;
}

/* -------------------------------------------------------------------------------------------------------- all */

rbt_err rbt_prepare_options(rbt_loaded *loaded, rbt_options *options, const rbt_extent *extent, rbt_crew *crew,
                            rbt_error *error)
{
    bool l2_given = !isnan(options->l2);
    if (!l2_given) /* softmax: a penalty on the weights of every class, of which few matter to a row */
        options->l2 = (loaded->model == &rbt_model_softmax ? 0.5 : 1) / (double)extent->rows;
    if (isnan(options->delta) && loaded->model == &rbt_model_huber)
        options->delta = loaded->shape.delta;
    rbt_problem problem = rbt_problem_of(loaded->model, &loaded->shape, &loaded->data, options->l1, options->l2);
    rbt_err err = rbt_options_shared(options) ? settle_optimizer(loaded, options, l2_given, error) : RBT_OK;
    settle_epochs(extent, options);
    if (err == RBT_OK && extent->leaves) {
        err = find_facts(&problem, extent, crew, &loaded->facts, error);
        problem.facts = &loaded->facts;
    }
    if (err != RBT_OK || options->lr > 0 || options->optimizer >= RBT_OPTIMIZER_SDCA)
        return err;
    if (rbt_options_adaptive(options) && !rbt_options_shared(options)) {
        options->lr = RBT_RATE_ADAPTIVE;
        return RBT_OK;
    }
    if (!rbt_problem_is_walkable(&problem))
        return rbt_fail(error, RBT_E_USAGE,
                        "a step size for the model %s cannot be found by trying; give --lr, as in --lr 0.1",
                        loaded->model->name);
    options->lr_found = true;
    uint32_t together = options->sync == RBT_SYNC_ROUND_ROBIN ? options->workers : 1;
    err = crew->size == 1 ? rbt_rate_find(&problem, options->optimizer, options->momentum, together, options->seed,
                                          &options->lr, error)
                          : find_rate_together(loaded, options, &problem, extent, crew, error);
    if (options->rule == RBT_RULE_MOMENTUM) /* a step goes on until it is 1 / (1 - momentum) times as long */
        options->lr *= 1 - options->momentum;
    return err;
}
