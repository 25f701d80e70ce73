/* Threads that run a function together. Contract in team.h; proved by tests/unit/test_solve.c. */
#include "solve/team.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/parallel.h"

#define LOOKS 16000 /* about 400 us: as long as it takes to put a processor to sleep and to wake it again */

/* Where all threads wait for the last one: a while awake, since a pass may be short, then asleep. */
typedef struct meeting {
    uint32_t threads;
    uint32_t looks; /* while awake */
    atomic_uint present;
    atomic_uint round;
    pthread_mutex_t lock;
    pthread_cond_t over;
} meeting;

static void meeting_init(meeting *m, uint32_t threads)
{
    cpu_set_t ours;
    bool each_has_one = sched_getaffinity(0, sizeof ours, &ours) == 0 && (uint32_t)CPU_COUNT(&ours) >= threads;
    *m = (meeting){.threads = threads, .looks = each_has_one ? LOOKS : 0};
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->over, NULL);
}

static void meeting_deinit(meeting *m)
{
    pthread_mutex_destroy(&m->lock);
    pthread_cond_destroy(&m->over);
}

static void look_away(void)
{
#ifdef __x86_64__
    __builtin_ia32_pause();
#endif
}

static void meet(meeting *m)
{
    unsigned round = atomic_load_explicit(&m->round, memory_order_acquire);
    if (atomic_fetch_add_explicit(&m->present, 1, memory_order_acq_rel) + 1 == m->threads) {
        atomic_store_explicit(&m->present, 0, memory_order_relaxed);
        pthread_mutex_lock(&m->lock);
        atomic_store_explicit(&m->round, round + 1, memory_order_release);
        pthread_cond_broadcast(&m->over);
        pthread_mutex_unlock(&m->lock);
        return;
    }
    for (uint32_t i = 0; i < m->looks; i++) {
        if (atomic_load_explicit(&m->round, memory_order_acquire) != round)
            return;
        look_away();
    }
    pthread_mutex_lock(&m->lock);
    while (atomic_load_explicit(&m->round, memory_order_acquire) == round)
        pthread_cond_wait(&m->over, &m->lock);
    pthread_mutex_unlock(&m->lock);
}

struct rbt_team {
    uint32_t threads;
    pthread_t *others;        /* threads - 1 */
    pthread_mutex_t starting; /* held until it is known that all threads could be had */
    meeting begin;
    meeting end;
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
        meet(&m.team->begin);
        if (m.team->work == NULL)
            break;
        m.team->work(m.team->context, m.thread);
        meet(&m.team->end);
    }
    return NULL;
}

rbt_err rbt_team_create(uint32_t threads, rbt_team **out, rbt_error *error)
{
    rbt_team *team = rbt_alloc(1, sizeof *team);
    team->others = rbt_alloc(threads, sizeof *team->others);
    team->threads = 1;
    meeting_init(&team->begin, threads);
    meeting_init(&team->end, threads);
    pthread_mutex_init(&team->starting, NULL);
    pthread_mutex_lock(&team->starting);
    while (team->threads < threads) {
        member *m = rbt_alloc(1, sizeof *m);
        *m = (member){team, team->threads};
        if (rbt_parallel_start(&team->others[team->threads - 1], member_run, m) != 0) {
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
        meet(&team->begin);
    }
    for (uint32_t t = 1; t < team->threads; t++)
        pthread_join(team->others[t - 1], NULL);
    meeting_deinit(&team->begin);
    meeting_deinit(&team->end);
    pthread_mutex_destroy(&team->starting);
    rbt_free(team->others);
    rbt_free(team);
}

uint32_t rbt_team_threads(const rbt_team *team)
{
    return team->threads;
}

bool rbt_team_fits(const rbt_team *team)
{
    return team->begin.looks > 0;
}

void rbt_team_run(rbt_team *team, rbt_team_work *work, void *context)
{
    team->work = work;
    team->context = context;
    if (team->threads > 1)
        meet(&team->begin);
    work(context, 0);
    if (team->threads > 1)
        meet(&team->end);
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
