/* Walking over rows. Contract in walk.h; proved by tests/unit/test_solve.c. */
#include "solve/walk.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "solve/spin.h"

#define AHEAD      8         /* rows asked for before they are needed */
#define FAR_BYTES  (1 << 20) /* of parameters: more are asked for, too; fewer are there already */
#define BIAS_STEPS 64        /* rows between two writes of the biases, which every row changes */
#define NUMBERS    64        /* of steps, that a thread takes at once */
#define APART      128       /* bytes: two cache lines, which processors like to fetch together */

rbt_err rbt_walk_init(rbt_walk *walk, const rbt_problem *problem, rbt_access access, uint32_t threads, rbt_error *error)
{
    *walk = (rbt_walk){.problem = problem,
                       .access = access,
                       .threads = threads,
                       .caution = 1,
                       .is_far = problem->weights * sizeof(float) > FAR_BYTES};
    if (access == RBT_ACCESS_AIG) {
        walk->locks = rbt_try_alloc(problem->shape->cols + 1, sizeof *walk->locks);
        if (walk->locks == NULL)
            return rbt_fail(error, RBT_E_MEMORY, "not enough memory for the locks of %zu features; use --sync hogwild",
                            problem->shape->cols);
    }
    return RBT_OK;
}

void rbt_walk_deinit(rbt_walk *walk)
{
    rbt_free(walk->locks);
    walk->locks = NULL;
}

void rbt_walker_init(rbt_walker *walker, rbt_walk *walk, float *w, uint32_t thread)
{
    size_t outputs = walk->problem->outputs;
    double *room = rbt_alloc(1, 5 * outputs * sizeof *room + 2 * APART);
    double *first = (double *)(((uintptr_t)room + APART - 1) / APART * APART);
    *walker = (rbt_walker){.walk = walk,
                           .w = w,
                           .biases = w + walk->problem->weights,
                           .thread = thread,
                           .memory = room,
                           .z = first,
                           .bias = first + outputs,
                           .seen = first + 2 * outputs,
                           .room = first + 3 * outputs};
}

void rbt_walker_deinit(rbt_walker *walker)
{
    rbt_free(walker->memory);
}

/* ------------------------------------------------------------------------------------------------------ access */

/* The indices of a row ascend, so all threads take locks in the same order; that of the biases is the last. */
static void lock_row(const rbt_walk *walk, rbt_row row)
{
    for (size_t i = 0; i < row.n; i++)
        rbt_spin_lock(&walk->locks[row.index[i]]);
    if (walk->problem->shape->bias)
        rbt_spin_lock(&walk->locks[walk->problem->shape->cols]);
}

static void unlock_row(const rbt_walk *walk, rbt_row row)
{
    for (size_t i = 0; i < row.n; i++)
        rbt_spin_unlock(&walk->locks[row.index[i]]);
    if (walk->problem->shape->bias)
        rbt_spin_unlock(&walk->locks[walk->problem->shape->cols]);
}

static void wait_for_turn(rbt_walk *walk, uint32_t thread)
{
    unsigned spins = 0;
    while (atomic_load_explicit(&walk->turn, memory_order_acquire) % walk->threads != thread)
        rbt_spin(&spins);
}

static void pass_turn(rbt_walk *walk)
{
    atomic_store_explicit(&walk->turn, atomic_load_explicit(&walk->turn, memory_order_relaxed) + 1,
                          memory_order_release);
}

/* ------------------------------------------------------------------------------------------------------ biases */

static void read_biases(rbt_walker *walker)
{
    const rbt_problem *p = walker->walk->problem;
    for (size_t k = 0; p->shape->bias && k < p->outputs; k++)
        walker->bias[k] = walker->seen[k] = (double)rbt_load(walker->biases + k);
}

/* Every row changes the biases: writing them each time would have the threads wait for that one cache line. */
static void write_biases(rbt_walker *walker)
{
    const rbt_problem *p = walker->walk->problem;
    for (size_t k = 0; p->shape->bias && k < p->outputs; k++) {
        float *at = walker->biases + k;
        if (walker->bias[k] != walker->seen[k])
            rbt_store(at, (float)((double)rbt_load(at) + (walker->bias[k] - walker->seen[k])));
    }
    read_biases(walker);
}

/* -------------------------------------------------------------------------------------------------------- rows */

static inline float shrunk(float w, float by)
{
    return w > by ? w - by : w < -by ? w + by : 0;
}

static void scores(rbt_walker *walker, rbt_row row, double *z)
{
    const rbt_walk *walk = walker->walk;
    size_t k = walk->problem->outputs;
    if (walk->threshold > 0) {
        memcpy(z, walker->bias, k * sizeof *z);
        for (size_t i = 0; i < row.n; i++)
            for (size_t c = 0; c < k; c++)
                z[c] += (double)(row.value[i] *
                                 shrunk(rbt_load(walker->w + (size_t)row.index[i] * k + c), walk->threshold));
    } else if (k == 1) {
        *z = *walker->bias + (double)rbt_row_dot(row, walker->w);
    } else {
        memcpy(z, walker->bias, k * sizeof *z);
        rbt_row_dot_many(row, walker->w, k, z);
    }
}

static void step_row(rbt_walker *walker, size_t r)
{
    rbt_walk *walk = walker->walk;
    rbt_row row = rbt_row_of(walk->problem->data, r, walk->problem->shape->cols);
    if (walk->access == RBT_ACCESS_AIG) {
        lock_row(walk, row);
        read_biases(walker);
    }
    scores(walker, row, walker->z);
    bool changes = walk->coefficients(walker, r, walker->z);
    if (walk->access == RBT_ACCESS_ROUND_ROBIN) {
        wait_for_turn(walk, walker->thread);
        read_biases(walker);
    }
    if (changes)
        walk->apply(walker, row, walker->z);
    if (walk->access == RBT_ACCESS_ROUND_ROBIN) {
        write_biases(walker);
        pass_turn(walk);
    } else if (walk->access == RBT_ACCESS_AIG) {
        write_biases(walker);
        unlock_row(walk, row);
    }
    walker->step += walk->numbered ? 1 : walk->threads;
}

/* Threads do not go at the same speed, and one may do rows of another: what each has done does not tell how many steps
 * there have been. None is numbered higher than there are rows. */
static void take_numbers(rbt_walker *walker, size_t left)
{
    walker->step =
        atomic_fetch_add_explicit(&walker->walk->number, left < NUMBERS ? left : NUMBERS, memory_order_relaxed);
}

/* What the row's features will be looked up for. */
static void prefetch_parameters(const rbt_walker *walker, size_t r)
{
    const rbt_walk *walk = walker->walk;
    rbt_row row = rbt_row_of(walk->problem->data, r, walk->problem->shape->cols);
    rbt_row_prefetch_parameters(row, walker->w, walk->problem->outputs);
    if (walk->by_feature != NULL)
        rbt_row_prefetch_parameters(row, walk->by_feature, 1);
}

void rbt_walker_rows(rbt_walker *walker, const uint32_t *rows, size_t n, size_t known)
{
    rbt_walk *walk = walker->walk;
    read_biases(walker);
    for (size_t i = 0; i < n; i++) {
        if (i + 2 * AHEAD < known)
            rbt_row_prefetch_start(walk->problem->data, rows[i + 2 * AHEAD]);
        if (i + AHEAD < known)
            rbt_row_prefetch(walk->problem->data, rows[i + AHEAD]);
        if (walk->is_far && i + 1 < known)
            prefetch_parameters(walker, rows[i + 1]);
        if (walk->numbered && i % NUMBERS == 0)
            take_numbers(walker, n - i);
        step_row(walker, rows[i]);
        if (i % RBT_REPLICA_ROWS == RBT_REPLICA_ROWS - 1 && walk->replicas != NULL)
            rbt_replicas_look(walk->replicas, walker->thread);
        if (i % BIAS_STEPS == BIAS_STEPS - 1 && walk->access == RBT_ACCESS_HOGWILD)
            write_biases(walker);
    }
    if (walk->access == RBT_ACCESS_HOGWILD || walk->access == RBT_ACCESS_ALONE)
        write_biases(walker);
}

void rbt_walker_pass_turns(const rbt_walker *walker, size_t turns)
{
    rbt_walk *walk = walker->walk;
    for (size_t i = 0; walk->access == RBT_ACCESS_ROUND_ROBIN && i < turns; i++) {
        wait_for_turn(walk, walker->thread);
        pass_turn(walk);
    }
}
