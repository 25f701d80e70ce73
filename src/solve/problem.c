/* Problems and teams. Contract in problem.h; proved by tests/unit/test_solve.c. */
#include "solve/problem.h"

#include <pthread.h>
#include <stdatomic.h>

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

/* ------------------------------------------------------------------------------------------------------- teams */

struct rbt_team {
    uint32_t threads;
    pthread_t *others;        /* threads - 1 */
    pthread_mutex_t starting; /* held until it is known that all threads could be had */
    pthread_barrier_t begin;
    pthread_barrier_t end;
    bool complete;
    rbt_team_work *work; /* NULL: go home */
    void *context;
};

typedef struct member {
    rbt_team *team;
    uint32_t thread;
} member;

static void *member_run(void *argument)
{
    member m = *(member *)argument;
    rbt_free(argument);
    pthread_mutex_lock(&m.team->starting);
    pthread_mutex_unlock(&m.team->starting);
    while (m.team->complete) {
        pthread_barrier_wait(&m.team->begin);
        if (m.team->work == NULL)
            break;
        m.team->work(m.team->context, m.thread);
        pthread_barrier_wait(&m.team->end);
    }
    return NULL;
}

rbt_err rbt_team_create(uint32_t threads, rbt_team **out, rbt_error *error)
{
    rbt_team *team = rbt_alloc(1, sizeof *team);
    team->others = rbt_alloc(threads, sizeof *team->others);
    team->threads = 1;
    pthread_barrier_init(&team->begin, NULL, threads);
    pthread_barrier_init(&team->end, NULL, threads);
    pthread_mutex_init(&team->starting, NULL);
    pthread_mutex_lock(&team->starting);
    while (team->threads < threads) {
        member *m = rbt_alloc(1, sizeof *m);
        *m = (member){team, team->threads};
        if (pthread_create(&team->others[team->threads - 1], NULL, member_run, m) != 0) {
            rbt_free(m);
            break;
        }
        team->threads++;
    }
    team->complete = team->threads == threads;
    pthread_mutex_unlock(&team->starting);
    if (!team->complete) {
        rbt_err err = rbt_fail(error, RBT_E_LIMIT,
                               "the system gives %u threads only, not the %u asked for; use fewer "
                               "--workers",
                               team->threads, threads);
        rbt_team_destroy(team);
        return err;
    }
    *out = team;
    return RBT_OK;
}

void rbt_team_destroy(rbt_team *team)
{
    if (team == NULL)
        return;
    if (team->complete && team->threads > 1) {
        team->work = NULL;
        pthread_barrier_wait(&team->begin);
    }
    for (uint32_t t = 1; t < team->threads; t++)
        pthread_join(team->others[t - 1], NULL);
    pthread_barrier_destroy(&team->begin);
    pthread_barrier_destroy(&team->end);
    pthread_mutex_destroy(&team->starting);
    rbt_free(team->others);
    rbt_free(team);
}

uint32_t rbt_team_threads(const rbt_team *team)
{
    return team->threads;
}

void rbt_team_run(rbt_team *team, rbt_team_work *work, void *context)
{
    team->work = work;
    team->context = context;
    if (team->threads > 1)
        pthread_barrier_wait(&team->begin);
    work(context, 0);
    if (team->threads > 1)
        pthread_barrier_wait(&team->end);
}

typedef struct summing {
    size_t rows;
    rbt_block_sum *block;
    void *context;
    double *partial;
    atomic_size_t next;
} summing;

static void sum_blocks(void *context, uint32_t thread)
{
    summing *s = context;
    (void)thread;
    for (;;) {
        size_t block = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed), first = block * RBT_BLOCK_ROWS;
        if (first >= s->rows)
            return;
        s->partial[block] =
            s->block(s->context, first, s->rows - first < RBT_BLOCK_ROWS ? s->rows - first : RBT_BLOCK_ROWS);
    }
}

double rbt_team_sum(rbt_team *team, size_t rows, rbt_block_sum *block, void *context)
{
    size_t blocks = (rows + RBT_BLOCK_ROWS - 1) / RBT_BLOCK_ROWS;
    summing s = {.rows = rows, .block = block, .context = context, .partial = rbt_alloc(blocks, sizeof(double))};
    double sum = 0;
    rbt_team_run(team, sum_blocks, &s);
    for (size_t i = 0; i < blocks; i++)
        sum += s.partial[i];
    rbt_free(s.partial);
    return sum;
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
