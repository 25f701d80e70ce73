/* Problems. Contract in problem.h; proved by tests/unit/test_solve.c. */
#include "solve/problem.h"

#include "base/error.h"
#include "base/mem.h"
#include "data/data.h"
#include "math/kernels.h"
#include "model/model.h"

rbt_problem rbt_problem_of(const rbt_model *model, const rbt_shape *shape, const rbt_data *data, double l1, double l2)
{
    size_t n = model->size(shape), outputs = model->outputs(shape);
    return (rbt_problem){.model = model,
                         .shape = shape,
                         .data = data,
                         .l1 = l1,
                         .l2 = l2,
                         .n = n,
                         .weights = shape->bias ? n - outputs : n,
                         .outputs = outputs};
}

bool rbt_problem_is_walkable(const rbt_problem *problem)
{
    return problem->model->link != NULL || problem->model == &rbt_model_softmax;
}

/* --------------------------------------------------------------------------------------------------- objective */

double rbt_problem_penalty(const rbt_problem *problem, const float *w)
{
    const rbt_kernels *k = rbt_kernels_best();
    double penalty = problem->l2 > 0 ? problem->l2 / 2 * k->norm2_squared(w, problem->weights) : 0;
    return problem->l1 > 0 ? penalty + problem->l1 * k->norm1(w, problem->weights) : penalty;
}

typedef struct losing {
    const rbt_problem *problem;
    const float *w;
} losing;

static double block_loss(void *context, size_t first, size_t n)
{
    const losing *l = context;
    double loss = l->problem->model->loss(l->problem->shape, l->problem->data, first, n, l->w);
    rbt_data_release_passed(l->problem->data, first, n);
    return loss;
}

double rbt_problem_objective(const rbt_problem *problem, const float *w, rbt_team *team)
{
    losing l = {problem, w};
    double loss = rbt_team_sum(team, problem->data->rows, block_loss, &l);
    return loss / (double)problem->data->rows + rbt_problem_penalty(problem, w);
}

/* Every thread counts a part of the rows. */
typedef struct counting {
    const rbt_data *data;
    size_t cols;
    uint32_t threads;
    uint32_t *counts; /* for one thread after the other */
} counting;

static void count_rows(void *context, uint32_t thread)
{
    const counting *job = context;
    const rbt_data *data = job->data;
    uint32_t *c = job->counts + thread * job->cols;
    size_t row = data->rows * thread / job->threads, last = data->rows * (thread + 1) / job->threads;
    for (size_t n = rbt_data_block_rows(data); row < last; row += n) {
        n = last - row < n ? last - row : n;
        for (size_t i = data->start[row]; i < data->start[row + n]; i++)
            if (data->index[i] < job->cols)
                c[data->index[i]]++;
        rbt_data_release_rows(data, row, n);
    }
}

rbt_err rbt_problem_count_columns(const rbt_problem *problem, rbt_team *team, uint32_t **counts, rbt_error *error)
{
    const rbt_data *data = problem->data;
    size_t cols = problem->shape->cols;
    uint32_t threads = team != NULL ? rbt_team_threads(team) : 1;
    if (threads <= 1 || cols > data->nnz / sizeof **counts / threads) /* small beside the data, or not at all */
        threads = 1;
    counting job = {data, cols, threads, rbt_try_alloc(cols > 0 ? cols : 1, threads * sizeof **counts)};
    if (job.counts == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory to count the rows of %zu features", cols);
    if (threads == 1)
        count_rows(&job, 0);
    else
        rbt_team_run(team, count_rows, &job);
    for (uint32_t t = 1; t < threads; t++)
        for (size_t j = 0; j < cols; j++)
            job.counts[j] += job.counts[t * cols + j];
    *counts = job.counts;
    return RBT_OK;
}
