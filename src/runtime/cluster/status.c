/* What the processes of a running job publish: told to the lead ten times a second and at the end, summed there, shown to those
 * who watch, and used to say who waits for whom. Part of the cluster runtime (cluster.h). Proved by tests/cluster/test_top.sh,
 * test_processes_patience.sh and test_processes_smoke.sh. */
#include <stdio.h>

#include "base/error.h"
#include "base/time.h"
#include "runtime/cluster/cluster_state.h"

#define PATIENCE_NS 5000000000u /* a worker that has waited this long: the lead says for whom */
#define WAIT_NS     200000000u  /* who waits less than that may have been told of late, and work again */
#define SILENT_NS   2000000000u /* a process that has said nothing for so long hangs, or its host does */

static _Atomic uint64_t *field(rbt_published *p, size_t i)
{
    _Atomic uint64_t *fields[] = {&p->clock,     &p->samples,       &p->compute_ns, &p->wait_ns, &p->communication_ns,
                                  &p->slowed_ns, &p->staleness_sum, &p->reads};

    return fields[i];
}

/* What the workers here have published, and how long each has been waiting. */
void rbt_status_say(rbt_cluster *c, uint32_t say)
{
    rbt_pack words = {0};
    uint64_t now = rbt_now_ns();

    pthread_mutex_lock(&c->lock); /* several threads tell; what they count only grows */
    rbt_pack_u64(&words, atomic_load(&c->run->bytes));
    rbt_pack_u64(&words, atomic_load(&c->run->plain));
    rbt_pack_u64(&words, atomic_load(&c->run->messages));
    for (uint32_t i = 0; i < c->seat->workers; i++) {
        rbt_published *p = &c->run->published[c->seat->first_worker + i];
        uint64_t since = atomic_load_explicit(&p->waiting_since_ns, memory_order_relaxed);

        for (size_t f = 0; f < STATUS_FIELDS; f++)
            rbt_pack_u64(&words, atomic_load_explicit(field(p, f), memory_order_relaxed));
        rbt_pack_u64(&words, since != 0 && now > since ? now - since : 0);
    }
    rbt_session_say(c->session, 0, say, &words, NULL, 0);
    pthread_mutex_unlock(&c->lock);
    rbt_array_free(&words);
}

bool rbt_status_take(rbt_cluster *c, uint32_t rank, rbt_unpack *words)
{
    const rbt_seat *seat = rbt_session_seat(c->session, rank);
    reported *r = &c->ranks[rank];
    uint64_t bytes = rbt_unpack_u64(words), plain = rbt_unpack_u64(words), messages = rbt_unpack_u64(words),
             now = rbt_now_ns();

    for (uint32_t i = 0; i < seat->workers; i++) {
        rbt_published *p = &c->run->published[seat->first_worker + i];
        uint64_t waited;

        for (size_t f = 0; f < STATUS_FIELDS; f++)
            atomic_store_explicit(field(p, f), c->before[seat->first_worker + i][f] + rbt_unpack_u64(words),
                                  memory_order_relaxed);
        waited = rbt_unpack_u64(words);
        atomic_store_explicit(&p->waiting_since_ns, waited > 0 && waited < now ? now - waited : 0,
                              memory_order_relaxed);
    }
    if (!rbt_unpack_done(words) || bytes < r->bytes || plain < r->plain || messages < r->messages)
        return false;
    atomic_fetch_add(&c->run->bytes, bytes - r->bytes);
    atomic_fetch_add(&c->run->plain, plain - r->plain);
    atomic_fetch_add(&c->run->messages, messages - r->messages);
    r->bytes = bytes;
    r->plain = plain;
    r->messages = messages;
    r->heard_ns = now;
    return true;
}

void rbt_status_keep(rbt_cluster *c, uint32_t rank)
{
    const rbt_seat *seat = rbt_session_seat(c->session, rank);

    for (uint32_t m = seat->first_worker; m < seat->first_worker + seat->workers; m++)
        for (size_t f = 1; f < STATUS_FIELDS; f++) /* not the clock, at which it goes on */
            c->before[m][f] = atomic_load_explicit(field(&c->run->published[m], f), memory_order_relaxed);
}

/* ------------------------------------------------------------------------------------------ who waits for whom */

static bool is_silent(rbt_cluster *c, uint32_t rank, uint64_t now)
{
    rbt_rank_state state = rank == 0 ? RBT_RANK_TOLD : rbt_session_state(c->session, rank);

    return (state == RBT_RANK_WORKING || state == RBT_RANK_DONE) && c->ranks[rank].heard_ns != 0 &&
           now > c->ranks[rank].heard_ns + SILENT_NS;
}

/* One that was lost and is waited for is told of whether or not somebody needs it already. */
static bool tell_away(rbt_cluster *c, uint64_t now)
{
    for (uint32_t r = 1; r < rbt_session_size(c->session); r++) {
        rbt_rank_state state = rbt_session_state(c->session, r);
        char name[RBT_HOST_ROOM + 32];

        if ((state != RBT_RANK_AWAY && state != RBT_RANK_RETURNING) || now < c->ranks[r].lost_ns + PATIENCE_NS)
            continue;
        rbt_session_name(c->session, r, name, sizeof name);
        rbt_log_event(&c->run->log, RBT_LOG_INFO, "cluster", "the job waits for %s, which was lost %llu s ago%s", name,
                      (unsigned long long)((now - c->ranks[r].lost_ns) / 1000000000u),
                      state == RBT_RANK_AWAY ? " and has not come back"
                                             : "; its seat is taken again, and it loads its data");
        return true;
    }
    return false;
}

static uint32_t rank_of_worker(const rbt_cluster *c, uint32_t worker)
{
    return c->rank_of_node[rbt_node_of_worker(c->run->topology, worker)];
}

/* The worker that has waited longest, and the one that works and has finished the fewest clocks; UINT32_MAX: none. */
static void find_workers(rbt_cluster *c, uint64_t now, uint32_t *waiter, uint64_t *waited, uint32_t *slowest)
{
    uint64_t least = UINT64_MAX;

    *waiter = *slowest = UINT32_MAX;
    *waited = 0;
    for (uint32_t m = 0; m < c->run->topology->workers; m++) {
        const rbt_published *p = &c->run->published[m];
        uint64_t clock = atomic_load_explicit(&p->clock, memory_order_relaxed);
        uint64_t since = atomic_load_explicit(&p->waiting_since_ns, memory_order_relaxed);
        uint32_t rank = rank_of_worker(c, m);

        if ((rank != 0 && rbt_session_state(c->session, rank) != RBT_RANK_WORKING) || is_silent(c, rank, now))
            continue;
        if (since != 0 && now > since && now - since > *waited) {
            *waited = now - since;
            *waiter = m;
        } else if (since == 0 && clock < least) {
            least = clock;
            *slowest = m;
        }
    }
}

/* "worker 3 (rank 4 on host b, clock 17)", or the server there. */
static void name_role(rbt_cluster *c, uint32_t rank, uint32_t worker, char *text, size_t room)
{
    const rbt_seat *seat = rbt_session_seat(c->session, rank);
    char name[RBT_HOST_ROOM + 32];

    rbt_session_name(c->session, rank, name, sizeof name);
    if (seat->workers > 0)
        snprintf(text, room, "worker %u (%s, clock %llu)", worker, name,
                 (unsigned long long)atomic_load_explicit(&c->run->published[worker].clock, memory_order_relaxed));
    else
        snprintf(text, room, "server %u (%s)", seat->first_server, name);
}

/* The lead: says who has been waiting for long, and for whom: one that was lost and is to come back, a process that says nothing any
 * more, the worker that has finished the fewest clocks, or, when all wait, a server. */
void rbt_status_tell_patience(rbt_cluster *c)
{
    uint64_t now = rbt_now_ns(), waited;
    uint32_t silent = 1, waiter, slowest, size = rbt_session_size(c->session);
    char whom[RBT_HOST_ROOM + 96] = "the answer of a server", name[RBT_HOST_ROOM + 32];

    if (now < c->told_ns + PATIENCE_NS)
        return;
    c->told_ns = now;
    if (tell_away(c, now))
        return;
    while (silent < size && !is_silent(c, silent, now))
        silent++;
    find_workers(c, now, &waiter, &waited, &slowest);
    if (silent < size)
        name_role(c, silent, rbt_session_seat(c->session, silent)->first_worker, whom, sizeof whom);
    else if (slowest != UINT32_MAX)
        name_role(c, rank_of_worker(c, slowest), slowest, whom, sizeof whom);
    if (waited >= PATIENCE_NS) {
        rbt_session_name(c->session, rank_of_worker(c, waiter), name, sizeof name);
        rbt_log_event(&c->run->log, RBT_LOG_INFO, "cluster", "worker %u (%s) has waited %llu s for %s%s", waiter, name,
                      (unsigned long long)(waited / 1000000000u), whom,
                      silent < size ? ", whose process is silent: is it stopped, is its host overloaded?" : "");
    } else if (silent < size && now >= c->ranks[silent].heard_ns + PATIENCE_NS) {
        rbt_log_event(&c->run->log, RBT_LOG_INFO, "cluster",
                      "%s has said nothing for %llu s: is its process stopped, is its host overloaded?", whom,
                      (unsigned long long)((now - c->ranks[silent].heard_ns) / 1000000000u));
    }
}

/* -------------------------------------------------------------------------------------------------- the totals */

void rbt_totals_say(rbt_cluster *c)
{
    const rbt_run *run = c->run;
    rbt_run sum = {0};
    rbt_pack words = {0};

    for (uint32_t i = 0; i < c->seat->servers; i++)
        rbt_run_add_server(&sum, &c->places.nodes.servers[c->seat->first_server + i]);
    rbt_pack_u64(&words, sum.max_gap);
    rbt_pack_u64(&words, sum.peak_versions);
    rbt_pack_u64(&words, sum.version_bytes);
    rbt_pack_u64(&words, sum.repeated);
    rbt_pack_u64(&words, atomic_load(&run->skipped));
    for (size_t i = 0; i < RBT_STALENESS_BINS; i++)
        rbt_pack_u64(&words, run->staleness_histogram[i]);
    rbt_session_say(c->session, 0, SAY_TOTALS, &words, NULL, 0);
    rbt_array_free(&words);
}

bool rbt_totals_take(rbt_cluster *c, rbt_unpack *words)
{
    rbt_run *run = c->run;
    uint64_t gap = rbt_unpack_u64(words), versions = rbt_unpack_u64(words), bytes = rbt_unpack_u64(words);

    run->max_gap = gap > run->max_gap ? gap : run->max_gap;
    run->peak_versions = versions > run->peak_versions ? versions : run->peak_versions;
    run->version_bytes = bytes > run->version_bytes ? bytes : run->version_bytes;
    run->repeated += rbt_unpack_u64(words);
    atomic_fetch_add(&run->skipped, rbt_unpack_u64(words));
    for (size_t i = 0; i < RBT_STALENESS_BINS; i++)
        run->staleness_histogram[i] += rbt_unpack_u64(words);
    return rbt_unpack_done(words);
}

/* The lead: what the job's processes have told, for those who watch. */
void rbt_status_draw(void *context, rbt_picture *picture)
{
    rbt_cluster *c = context;
    const rbt_run *run = c->run;
    uint64_t now = rbt_now_ns(), started;

    pthread_mutex_lock(&c->lock);
    started = c->started_ns;
    pthread_mutex_unlock(&c->lock);
    if (picture->phase < RBT_PICTURE_RUNNING || started == 0)
        return;
    picture->elapsed_ns = now - started;
    picture->bytes = atomic_load(&run->bytes);
    picture->messages = atomic_load(&run->messages);
    picture->loss = atomic_load(&run->loss);
    pthread_mutex_lock(&c->lock);
    for (size_t r = 1; r < picture->processes.count; r++) {
        rbt_picture_process *process = &picture->processes.at[r];
        rbt_rank_state state = rbt_session_state(c->session, (uint32_t)r);

        if (state == RBT_RANK_AWAY || state == RBT_RANK_RETURNING)
            process->state = RBT_PICTURE_AWAY;
        else if (process->workers > 0 && process->state != RBT_PICTURE_LOST && state >= RBT_RANK_DONE)
            process->state = RBT_PICTURE_DONE;
    }
    pthread_mutex_unlock(&c->lock);
    for (uint32_t m = 0; m < run->topology->workers; m++) {
        const rbt_published *p = &run->published[m];
        uint64_t since = atomic_load_explicit(&p->waiting_since_ns, memory_order_relaxed);
        rbt_picture_worker worker = {
            .clock = atomic_load_explicit(&p->clock, memory_order_relaxed),
            .rows = atomic_load_explicit(&p->samples, memory_order_relaxed),
            .compute_ns = atomic_load_explicit(&p->compute_ns, memory_order_relaxed),
            .wait_ns = atomic_load_explicit(&p->wait_ns, memory_order_relaxed),
            .communication_ns = atomic_load_explicit(&p->communication_ns, memory_order_relaxed),
            .waiting_ns = since != 0 && now > since + WAIT_NS ? now - since : 0,
        };

        rbt_array_push(&picture->workers, worker);
    }
}
