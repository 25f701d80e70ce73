/* Copies of the parameters for threads. Contract in replica.h; proved by tests/unit/test_replica_parallel.c. */
#include "solve/replica.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/mem.h"
#include "data/data.h"
#include "solve/spin.h"

#define BATCH       256        /* features under one lock */
#define PACES       24         /* each twice as slow as the one before it */
#define SAMPLE_ROWS 2048       /* looked at to learn which features are common, at least; ... */
#define SAMPLE_RUNS 32         /* ... in so many places */
#define MOST_BYTES  (32 << 20) /* of all copies */
#define LINE        64         /* bytes */
#define SETTLED     1024       /* parameters at a time */

/* Visits between two exchanges: */
#define VISITS       128  /* at most, ... */
#define CALM         0.25 /* ... which is enough for two threads whose rows' steps take so much of their error away */
#define VISITS_LEAST 2
#define HOT          2 /* times its error: steps that take more overshoot, however often threads meet */
#define CROWD        4 /* exchanges for each visit of a feature: to meet more often is no better than to share */

/* Features of one pace, exchanged together. */
typedef struct batch {
    atomic_uchar busy;
    uint32_t first; /* place in the common vector */
    uint32_t n;
    char apart[LINE - 3 * sizeof(uint32_t)]; /* locks on one line would have threads wait for each other again */
} batch;

typedef struct replica {
    float *w;    /* a thread's copy, ordered like the parameters */
    float *base; /* of the common features, in their order: what the copy was when it last met the others' */
    uint64_t looks;
    char apart[2 * LINE]; /* from the next one: each is written with every look */
} replica;

struct rbt_replicas {
    float *w; /* the parameters */
    size_t cols;
    size_t k; /* parameters per feature */
    uint32_t threads;
    replica *replica;  /* by thread */
    uint32_t *feature; /* the common ones, by pace, then by number */
    uint32_t common_count;
    float *common; /* what the threads agreed on for these, in the same order */
    batch *batch;
    uint32_t pace[PACES + 1]; /* the first batch of each pace; then their number */
};

bool rbt_replicas_pay(const rbt_problem *problem, uint32_t threads)
{
    size_t bytes_each = 2 * sizeof(float) * problem->weights; /* when every feature is common */
    return problem->weights > 0 && bytes_each < MOST_BYTES / threads && bytes_each < problem->data->nnz / threads;
}

/* What the others do between two exchanges is too much when it is added: it grows with their number and with their steps, and the
 * steps of large ones also in each other's way, which the cube stands for (tried: docs/speed.md). A power of two, so that it
 * does not change with every pass. */
double rbt_replicas_visits(uint32_t threads, double heat)
{
    double calm = CALM / heat, visits = VISITS * 2.0 / threads * (calm < 1 ? calm * calm * calm : calm);
    visits = exp2(rint(log2(fmax(VISITS_LEAST, fmin(VISITS, visits)))));
    return heat > HOT || visits * CROWD < threads ? 0 : visits;
}

/* --------------------------------------------------------------------------------------------------- the paces */

/* For every feature, in how many of the rows looked at it occurs. Returns how many rows that were: enough to meet one that
 * is due once in a pass about once; what none of them has counts as rare. */
static size_t sample(const rbt_data *data, size_t cols, double visits, uint32_t *counts)
{
    size_t wanted = (size_t)((double)data->rows / visits), sampled = 0;
    size_t run = (wanted > SAMPLE_ROWS ? wanted : SAMPLE_ROWS) / SAMPLE_RUNS;
    size_t stride = data->rows / SAMPLE_RUNS > run ? data->rows / SAMPLE_RUNS : run;
    for (size_t first = 0; first < data->rows; first += stride) {
        size_t n = data->rows - first < run ? data->rows - first : run;
        for (size_t i = data->start[first]; i < data->start[first + n]; i++)
            if (data->index[i] < cols)
                counts[data->index[i]]++;
        rbt_data_release_rows(data, first, n); /* what lies between the runs is not visited */
        sampled += n;
    }
    return sampled;
}

/* How many looks apart, as a power of two, a feature is exchanged so that it was visited about so many times between. */
static uint32_t pace_of(uint32_t count, size_t sampled, uint32_t threads, double visits)
{
    double looks = count > 0 ? visits * (double)sampled / ((double)count * RBT_REPLICA_ROWS * threads) : INFINITY;
    int pace = looks < 2 ? 0 : ilogb(looks);
    return pace < PACES - 1 ? (uint32_t)pace : PACES - 1;
}

/* Sorts the features that are due more than once in a pass by pace, and cuts each pace into batches. */
static bool sort_by_pace(rbt_replicas *r, const rbt_data *data, const uint32_t *paces)
{
    uint32_t at[PACES + 1] = {0}, batches = 0, n = 0, rare = 0;
    while (rare < PACES && ((size_t)RBT_REPLICA_ROWS << rare) <= data->rows / r->threads / 2)
        rare++;
    for (size_t j = 0; j < r->cols; j++)
        at[paces[j] + 1]++;
    for (unsigned pace = 0; pace < PACES; pace++)
        at[pace + 1] += at[pace];
    r->common_count = n = at[rare];
    r->feature = rbt_try_alloc(n, sizeof *r->feature);
    r->common = rbt_try_alloc((size_t)n * r->k, sizeof *r->common);
    r->batch = rbt_try_alloc(n / BATCH + PACES, sizeof *r->batch);
    if (r->feature == NULL || r->common == NULL || r->batch == NULL)
        return false;
    for (unsigned pace = 0; pace < PACES; pace++) {
        r->pace[pace] = batches;
        for (uint32_t first = at[pace]; pace < rare && first < at[pace + 1]; first += BATCH) {
            r->batch[batches].first = first;
            r->batch[batches++].n = at[pace + 1] - first < BATCH ? at[pace + 1] - first : BATCH;
        }
    }
    r->pace[PACES] = batches;
    for (size_t j = 0; j < r->cols; j++)
        if (paces[j] < rare)
            r->feature[at[paces[j]]++] = (uint32_t)j;
    for (uint32_t i = 0; i < n; i++)
        memcpy(r->common + i * r->k, r->w + r->feature[i] * r->k, r->k * sizeof *r->w);
    return true;
}

static bool set_paces(rbt_replicas *r, const rbt_data *data, double visits)
{
    uint32_t *of = rbt_try_alloc(r->cols, sizeof *of); /* each feature's count, then its pace */
    size_t sampled = of != NULL ? sample(data, r->cols, visits, of) : 0;
    for (size_t j = 0; of != NULL && j < r->cols; j++)
        of[j] = pace_of(of[j], sampled, r->threads, visits);
    bool done = of != NULL && sort_by_pace(r, data, of);
    rbt_free(of);
    return done;
}

static bool make_copies(rbt_replicas *r)
{
    for (uint32_t t = 0; t < r->threads; t++) {
        replica *mine = &r->replica[t];
        mine->w = rbt_try_alloc_raw(r->cols * r->k, sizeof *mine->w);
        mine->base = rbt_try_alloc_raw(r->common_count * r->k, sizeof *mine->base);
        if (mine->w == NULL || mine->base == NULL)
            return false;
    }
    return true;
}

rbt_replicas *rbt_replicas_create(const rbt_problem *problem, float *w, uint32_t threads, double visits)
{
    size_t cols = problem->shape->cols;
    rbt_replicas *r = rbt_alloc(1, sizeof *r);
    *r = (rbt_replicas){.w = w,
                        .cols = cols,
                        .k = problem->outputs,
                        .threads = threads,
                        .replica = rbt_alloc(threads, sizeof *r->replica)};
    if (!set_paces(r, problem->data, visits) || !make_copies(r)) {
        rbt_replicas_destroy(r);
        return NULL;
    }
    return r;
}

void rbt_replicas_destroy(rbt_replicas *r)
{
    if (r == NULL)
        return;
    for (uint32_t t = 0; t < r->threads; t++) {
        rbt_free(r->replica[t].w);
        rbt_free(r->replica[t].base);
    }
    rbt_free(r->replica);
    rbt_free(r->common);
    rbt_free(r->feature);
    rbt_free(r->batch);
    rbt_free(r);
}

float *rbt_replicas_of(const rbt_replicas *r, uint32_t thread)
{
    return r->replica[thread].w;
}

/* ------------------------------------------------------------------------------------------------ the exchange */

/* Adds what this thread changed to what all agreed on, and takes over what the others did. Under the batch's lock. */
static void exchange_batch(const rbt_replicas *r, const replica *mine, const batch *b)
{
    const uint32_t *restrict feature = r->feature + b->first;
    float *restrict common = r->common + b->first * r->k, *restrict base = mine->base + b->first * r->k;
    for (uint32_t i = 0; i < b->n; i++) {
        float *restrict own = mine->w + feature[i] * r->k;
        for (size_t c = 0; c < r->k; c++, common++, base++)
            own[c] = *base = *common = *common + (own[c] - *base);
    }
}

/* The first so many batches. Another thread that is busy with one is waited for: where there are more threads than processors it
 * may be asleep, and all others would go on without each other until it wakes up. */
static void exchange_first(rbt_replicas *r, const replica *mine, uint32_t batches)
{
    for (batch *b = r->batch; b < r->batch + batches; b++) {
        rbt_spin_lock(&b->busy);
        exchange_batch(r, mine, b);
        rbt_spin_unlock(&b->busy);
    }
}

void rbt_replicas_look(rbt_replicas *r, uint32_t thread)
{
    replica *mine = &r->replica[thread];
    unsigned slowest = (unsigned)__builtin_ctzll(++mine->looks | (1ULL << (PACES - 1)));
    exchange_first(r, mine, r->pace[slowest + 1]);
}

void rbt_replicas_begin(rbt_replicas *r, uint32_t thread)
{
    replica *mine = &r->replica[thread];
    memcpy(mine->w, r->w, r->cols * r->k * sizeof *r->w);
    for (uint32_t i = 0; i < r->common_count; i++)
        memcpy(mine->base + i * r->k, r->w + r->feature[i] * r->k, r->k * sizeof *r->w);
}

void rbt_replicas_end(rbt_replicas *r, uint32_t thread)
{
    exchange_first(r, &r->replica[thread], r->pace[PACES]);
}

/* Where no thread was told of another one, the parameters are what every copy began with. */
void rbt_replicas_settle(rbt_replicas *r, uint32_t thread)
{
    size_t first = r->cols * thread / r->threads, last = r->cols * (thread + 1) / r->threads;
    float *restrict w = r->w, was[SETTLED];
    for (size_t i = first * r->k, n; i < last * r->k; i += n) {
        n = last * r->k - i < SETTLED ? last * r->k - i : SETTLED;
        memcpy(was, w + i, n * sizeof *was);
        for (uint32_t t = 0; t < r->threads; t++) {
            const float *restrict own = r->replica[t].w + i;
            for (size_t j = 0; j < n; j++)
                w[i + j] += own[j] - was[j];
        }
    }
    for (uint32_t i = 0; i < r->common_count; i++)
        if (r->feature[i] >= first && r->feature[i] < last)
            memcpy(w + r->feature[i] * r->k, r->common + i * r->k, r->k * sizeof *w);
}
