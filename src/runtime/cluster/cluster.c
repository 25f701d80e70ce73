/* The cluster runtime; the contract is in cluster.h. */
#include "runtime/cluster/cluster.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/time.h"

#define PATIENCE_NS 5000000000u /* a worker that has waited this long: the lead says for whom */
#define WAIT_NS     200000000u  /* who waits less than that may have been told of late, and work again */
#define SILENT_NS   2000000000u /* a process that has said nothing for so long hangs, or its host does */
#define STOP_NS     3500000000u /* workers that have not stopped so long after an interrupt are left behind */

/* What processes of a running job say. */
enum {
    SAY_STATUS = RBT_SAY_OWN, /* to the lead: what the workers here have published */
    SAY_DONE,                 /* to the lead: the workers here have ended */
    SAY_CLOSE,                /* from the lead: all have; what is the sum? */
    SAY_TOTALS,               /* to the lead */
    SAY_WEIGH,                /* from the lead: what are the losses at these parameters? */
    SAY_LOSSES,               /* to the lead */
    SAY_INHERIT,              /* from the lead: take over your part of a lost worker's rows */
};

typedef struct reported { /* by one process, so far */
    uint64_t bytes;
    uint64_t messages;
    bool done;
    bool lost; /* before it was done */
    bool totals;
    bool answered; /* the question under way */
    double losses; /* its answer */
    uint64_t rows;
    uint64_t heard_ns; /* when its last status came */
} reported;

struct rbt_cluster {
    rbt_run *run;
    rbt_session *session;
    rbt_places places;
    bool leads;
    const rbt_seat *seat;
    rbt_on_loss on_loss;
    uint32_t *rank_of_node;
    rbt_cluster_work work;

    pthread_mutex_t lock; /* for all below */
    pthread_cond_t news;
    reported *ranks; /* the lead: per rank */
    float *question; /* elsewhere: parameters to be weighed, or NULL */
    uint64_t question_id;
    const float *weighed; /* the lead: what the others are being asked about; NULL: nothing */
    bool closing;         /* the lead: has asked for the sums */
    bool close;
    bool ended;
    uint32_t lost_workers;
    uint64_t stop_asked_ns;
    uint64_t told_ns;
    uint64_t started_ns;        /* the lead; 0: not yet */
    RBT_ARRAY(pthread_t) heirs; /* threads that take rows over */
};

/* -------------------------------------------------------------------------------------------------- who is where */

static void place_nodes(rbt_cluster *c)
{
    const rbt_topology *topology = c->run->topology;

    c->rank_of_node = rbt_alloc(rbt_topology_nodes(topology), sizeof *c->rank_of_node); /* master, observers: 0 */
    for (uint32_t r = 0; r < rbt_session_size(c->session); r++) {
        const rbt_seat *seat = rbt_session_seat(c->session, r);

        for (uint32_t i = 0; i < seat->servers; i++)
            c->rank_of_node[rbt_node_of_server(seat->first_server + i)] = r;
        for (uint32_t i = 0; i < seat->workers; i++)
            c->rank_of_node[rbt_node_of_worker(topology, seat->first_worker + i)] = r;
    }
}

static void forward(void *context, rbt_message *message)
{
    rbt_cluster *c = context;

    rbt_session_send(c->session, c->rank_of_node[message->to], message);
}

static void throttle(void *context)
{
    rbt_session_wait_room(((rbt_cluster *)context)->session);
}

static void on_failure(void *context, const rbt_error *error)
{
    rbt_cluster *c = context;

    if (!c->leads && !rbt_session_is_over(c->session))
        rbt_session_fail(c->session, error);
}

/* Does a node of this kind say such a thing, and of itself? A worker speaks for itself alone, in its present life, and
 * never to another worker. */
static bool is_in_character(const rbt_cluster *c, uint32_t rank, const rbt_message *message)
{
    const rbt_topology *topology = c->run->topology;
    uint32_t worker;

    switch (message->type) {
    case RBT_MSG_VIEW:
        return message->from <= topology->servers;
    case RBT_MSG_STABLE:
    case RBT_MSG_STOP:
        return message->from == RBT_MASTER;
    case RBT_MSG_ACK:
    case RBT_MSG_BLOCKS:
    case RBT_MSG_RESUMED:
    case RBT_MSG_REPORT:
        return message->from != RBT_MASTER && message->from <= topology->servers;
    case RBT_MSG_PUSH:
    case RBT_MSG_PULL:
    case RBT_MSG_RETIRE:
    case RBT_MSG_HELLO:
    case RBT_MSG_RESUME:
    case RBT_MSG_ASK:
        if (message->from <= topology->servers || message->to > topology->servers)
            return false;
        worker = message->from - rbt_node_of_worker(topology, 0);
        return message->worker == worker &&
               (worker >= topology->workers || message->incarnation == rbt_session_seat(c->session, rank)->incarnation);
    default: /* what the runtime alone may say */
        return false;
    }
}

/* Without servers: workers speak to each other, to the master and to observers, each for itself; observers ask. */
static bool is_among_peers(const rbt_cluster *c, const rbt_message *message)
{
    const rbt_topology *topology = c->run->topology;
    uint32_t worker = message->from - rbt_node_of_worker(topology, 0);

    switch (message->type) {
    case RBT_MSG_VIEW:
    case RBT_MSG_STOP:
        return message->from == RBT_MASTER;
    case RBT_MSG_UPDATE:
    case RBT_MSG_TOKEN:
    case RBT_MSG_USED:
    case RBT_MSG_CHUNK:
    case RBT_MSG_RETIRE:
    case RBT_MSG_BLOCKS:
        return message->from != RBT_MASTER && worker < topology->workers && message->worker == worker;
    case RBT_MSG_PULL:
        return message->from != RBT_MASTER && worker >= topology->workers && message->worker == worker;
    default:
        return false;
    }
}

/* Messages of other processes: only for nodes here, only from nodes there. */
static bool is_allowed(const rbt_cluster *c, uint32_t rank, const rbt_message *message)
{
    uint32_t nodes = rbt_topology_nodes(c->run->topology);

    return message->from < nodes && message->to < nodes && c->rank_of_node[message->from] == rank &&
           c->places.place[message->to].is_here &&
           (c->run->topology->hop != NULL ? is_among_peers(c, message) : is_in_character(c, rank, message));
}

static void on_message(void *context, uint32_t rank, rbt_message *message)
{
    rbt_cluster *c = context;
    rbt_outbox out = {0};

    if (!is_allowed(c, rank, message)) {
        char why[128];

        snprintf(why, sizeof why, "it sent a %s in another's name or to nobody", rbt_message_name(message->type));
        rbt_message_destroy(message);
        rbt_session_cut(c->session, rank, why);
        return;
    }
    rbt_outbox_put(&out, message);
    rbt_places_deliver(&c->places, &out);
}

/* ------------------------------------------------------------------------------------------------------- status */

static _Atomic uint64_t *field(rbt_published *p, size_t i)
{
    _Atomic uint64_t *fields[] = {&p->clock,     &p->samples,       &p->compute_ns, &p->wait_ns, &p->communication_ns,
                                  &p->slowed_ns, &p->staleness_sum, &p->reads};

    return fields[i];
}

#define FIELDS 8

/* What the workers here have published, and how long each has been waiting. */
static void say_status(rbt_cluster *c, uint32_t say)
{
    rbt_pack words = {0};
    uint64_t now = rbt_now_ns();

    rbt_pack_u64(&words, atomic_load(&c->run->bytes));
    rbt_pack_u64(&words, atomic_load(&c->run->messages));
    for (uint32_t i = 0; i < c->seat->workers; i++) {
        rbt_published *p = &c->run->published[c->seat->first_worker + i];
        uint64_t since = atomic_load_explicit(&p->waiting_since_ns, memory_order_relaxed);

        for (size_t f = 0; f < FIELDS; f++)
            rbt_pack_u64(&words, atomic_load_explicit(field(p, f), memory_order_relaxed));
        rbt_pack_u64(&words, since != 0 && now > since ? now - since : 0);
    }
    rbt_session_say(c->session, 0, say, &words, NULL, 0);
    rbt_array_free(&words);
}

static bool take_status(rbt_cluster *c, uint32_t rank, rbt_unpack *words)
{
    const rbt_seat *seat = rbt_session_seat(c->session, rank);
    reported *r = &c->ranks[rank];
    uint64_t bytes = rbt_unpack_u64(words), messages = rbt_unpack_u64(words), now = rbt_now_ns();

    for (uint32_t i = 0; i < seat->workers; i++) {
        rbt_published *p = &c->run->published[seat->first_worker + i];
        uint64_t waited;

        for (size_t f = 0; f < FIELDS; f++)
            atomic_store_explicit(field(p, f), rbt_unpack_u64(words), memory_order_relaxed);
        waited = rbt_unpack_u64(words);
        atomic_store_explicit(&p->waiting_since_ns, waited > 0 && waited < now ? now - waited : 0,
                              memory_order_relaxed);
    }
    if (!rbt_unpack_done(words) || bytes < r->bytes || messages < r->messages)
        return false;
    atomic_fetch_add(&c->run->bytes, bytes - r->bytes);
    atomic_fetch_add(&c->run->messages, messages - r->messages);
    r->bytes = bytes;
    r->messages = messages;
    r->heard_ns = now;
    return true;
}

/* The lead: says who has been waiting for long, and for whom: a worker whose process says nothing any more, else the one
 * that works and has finished the fewest clocks. */
static void tell_patience(rbt_cluster *c)
{
    const rbt_topology *topology = c->run->topology;
    uint64_t now = rbt_now_ns(), least = UINT64_MAX, longest = 0;
    uint32_t slowest = 0, waiter = 0;
    bool found_silent = false;
    char slow[RBT_HOST_ROOM + 32], waiting[RBT_HOST_ROOM + 32];

    if (now < c->told_ns + PATIENCE_NS)
        return;
    c->told_ns = now;
    for (uint32_t m = 0; m < topology->workers; m++) {
        rbt_published *p = &c->run->published[m];
        uint64_t clock = atomic_load_explicit(&p->clock, memory_order_relaxed);
        uint64_t since = atomic_load_explicit(&p->waiting_since_ns, memory_order_relaxed);
        uint32_t rank = c->rank_of_node[rbt_node_of_worker(topology, m)];

        if (c->ranks[rank].done || (rank != 0 && rbt_session_seat(c->session, rank)->state == RBT_SEAT_LOST))
            continue;
        bool is_silent = rank != 0 && c->ranks[rank].heard_ns != 0 && now > c->ranks[rank].heard_ns + SILENT_NS;

        if (since != 0 && !is_silent && now - since > longest) {
            longest = now - since;
            waiter = m;
        }
        if ((is_silent && !found_silent) || ((is_silent || since == 0) && is_silent == found_silent && clock < least)) {
            found_silent = is_silent;
            least = clock;
            slowest = m;
        }
    }
    if (longest < PATIENCE_NS || least == UINT64_MAX)
        return;
    rbt_session_name(c->session, c->rank_of_node[rbt_node_of_worker(topology, slowest)], slow, sizeof slow);
    rbt_session_name(c->session, c->rank_of_node[rbt_node_of_worker(topology, waiter)], waiting, sizeof waiting);
    rbt_log_event(&c->run->log, RBT_LOG_INFO, "cluster",
                  "worker %u (%s) has waited %llu s for worker %u (%s, clock %llu)%s", waiter, waiting,
                  (unsigned long long)(longest / 1000000000u), slowest, slow, (unsigned long long)least,
                  found_silent ? ", whose process is silent: is it stopped, is its host overloaded?" : "");
}

/* ----------------------------------------------------------------------------------------------------- hearing */

static void wake(rbt_cluster *c)
{
    pthread_cond_broadcast(&c->news);
}

static void say_totals(rbt_cluster *c)
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

static bool take_totals(rbt_cluster *c, rbt_unpack *words)
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

static bool hear_member(rbt_cluster *c, uint32_t rank, uint32_t say, rbt_unpack *words)
{
    reported *r = &c->ranks[rank];
    bool fine = true;

    switch (say) {
    case SAY_STATUS:
        return take_status(c, rank, words);
    case SAY_DONE:
        fine = take_status(c, rank, words);
        r->done = r->done || fine;
        return fine;
    case SAY_TOTALS:
        fine = !r->totals && take_totals(c, words);
        r->totals = r->totals || fine;
        return fine;
    case SAY_LOSSES:
        if (rbt_unpack_u64(words) == c->question_id) {
            r->losses = rbt_unpack_f64(words);
            r->rows = rbt_unpack_u64(words);
            r->answered = true;
        }
        return !words->bad;
    default:
        return false;
    }
}

/* A thread that takes over rows of a worker that was lost. */
typedef struct heritage {
    rbt_cluster *cluster;
    uint32_t lost, part, parts;
} heritage;

static void *inherit(void *argument)
{
    heritage *h = argument;
    rbt_cluster *c = h->cluster;
    rbt_error error;

    if (c->work.inherit(c->work.context, h->lost, h->part, h->parts, &error) != RBT_OK)
        rbt_log_event(&c->run->log, RBT_LOG_WARNING, "cluster",
                      "rows of worker %u, which was lost, could not be taken over: %s", h->lost, error.text);
    rbt_free(h);
    return NULL;
}

/* The lock is held. */
static void begin_inherit(rbt_cluster *c, uint32_t lost, uint32_t part, uint32_t parts)
{
    heritage *h = rbt_alloc(1, sizeof *h);
    pthread_t thread;

    *h = (heritage){.cluster = c, .lost = lost, .part = part, .parts = parts};
    if (c->work.inherit != NULL && pthread_create(&thread, NULL, inherit, h) == 0)
        rbt_array_push(&c->heirs, thread);
    else
        rbt_free(h);
}

static bool hear_lead(rbt_cluster *c, uint32_t say, rbt_unpack *words, rbt_arrival *arrival)
{
    uint32_t lost, part, parts;

    switch (say) {
    case SAY_INHERIT:
        lost = rbt_unpack_u32(words);
        part = rbt_unpack_u32(words);
        parts = rbt_unpack_u32(words);
        if (!rbt_unpack_done(words) || lost >= c->run->topology->workers || part >= parts)
            return false;
        begin_inherit(c, lost, part, parts);
        return true;
    case SAY_CLOSE:
        c->close = true;
        return true;
    case SAY_WEIGH:
        c->question_id = rbt_unpack_u64(words);
        if (!rbt_unpack_done(words) || arrival->header.body != c->work.n * sizeof(float))
            return false;
        rbt_free(c->question);
        c->question = (float *)arrival->body;
        arrival->body = NULL;
        return true;
    default:
        return false;
    }
}

static void on_say(void *context, uint32_t rank, uint32_t say, rbt_arrival *arrival)
{
    rbt_cluster *c = context;
    rbt_unpack words = rbt_unpack_of(arrival->head, arrival->header.head);
    bool fine = false;

    (void)rbt_unpack_u32(&words); /* say */
    pthread_mutex_lock(&c->lock);
    if (c->leads)
        fine = hear_member(c, rank, say, &words);
    else if (rank == 0)
        fine = hear_lead(c, say, &words, arrival);
    wake(c);
    pthread_mutex_unlock(&c->lock);
    rbt_arrival_deinit(arrival);
    if (!fine)
        rbt_session_cut(c->session, rank, "what it said makes no sense");
}

static void on_over(void *context)
{
    rbt_cluster *c = context;

    pthread_mutex_lock(&c->lock);
    c->ended = true;
    wake(c);
    pthread_mutex_unlock(&c->lock);
    rbt_places_end(&c->places);
}

/* ------------------------------------------------------------------------------------------------------- losing */

static void stop_for_loss(rbt_cluster *c, uint32_t rank, const rbt_error *why, const char *what)
{
    char name[RBT_HOST_ROOM + 32];
    rbt_error told;

    rbt_session_name(c->session, rank, name, sizeof name);
    rbt_fail(&told, RBT_E_LOST, "%s was lost (%s); %s", name, why->code == RBT_OK ? "it left" : why->text, what);
    rbt_session_end(c->session, &told);
}

/* The master learns of it as of any message. */
static void tell_master(rbt_cluster *c, uint32_t rank)
{
    const rbt_seat *seat = rbt_session_seat(c->session, rank);
    rbt_outbox out = {0};

    for (uint32_t i = 0; i < seat->workers; i++) {
        rbt_message *lost = rbt_message_create(RBT_MSG_LOST, RBT_MASTER, RBT_MASTER);

        atomic_store(&c->run->published[seat->first_worker + i].is_lost, c->on_loss == RBT_LOSS_CONTINUE);

        lost->worker = seat->first_worker + i;
        lost->incarnation = seat->incarnation;
        rbt_outbox_put(&out, lost);
    }
    rbt_places_deliver(&c->places, &out);
}

/* The lead: the others share the rows of a process's workers. */
static void bequeath(rbt_cluster *c, uint32_t rank)
{
    const rbt_seat *gone = rbt_session_seat(c->session, rank);
    uint32_t size = rbt_session_size(c->session), parts = 0, part = 0;

    pthread_mutex_lock(&c->lock);
    for (uint32_t r = 0; r < size; r++)
        parts += rbt_session_seat(c->session, r)->workers > 0 && !c->ranks[r].done;
    for (uint32_t r = 0; r < size; r++) {
        if (rbt_session_seat(c->session, r)->workers == 0 || c->ranks[r].done)
            continue;
        for (uint32_t i = 0; i < gone->workers; i++) {
            rbt_pack words = {0};

            rbt_pack_u32(&words, gone->first_worker + i);
            rbt_pack_u32(&words, part);
            rbt_pack_u32(&words, parts);
            if (r == 0)
                begin_inherit(c, gone->first_worker + i, part, parts);
            else
                rbt_session_say(c->session, r, SAY_INHERIT, &words, NULL, 0);
            rbt_array_free(&words);
        }
        part++;
    }
    pthread_mutex_unlock(&c->lock);
    rbt_log_event(&c->run->log, RBT_LOG_INFO, "cluster", "the other %u processes with workers take over its rows",
                  parts);
}

static void on_lost(void *context, uint32_t rank, const rbt_error *why)
{
    rbt_cluster *c = context;
    const rbt_seat *seat = rbt_session_seat(c->session, rank);
    char name[RBT_HOST_ROOM + 32];
    bool done, all;

    pthread_mutex_lock(&c->lock);
    done = c->ranks[rank].done;
    c->ranks[rank].lost = !done;
    if (!done)
        c->lost_workers += seat->workers;
    all = c->lost_workers >= c->run->topology->workers;
    if (c->on_loss == RBT_LOSS_CONTINUE || done)
        c->ranks[rank].done = c->ranks[rank].totals = c->ranks[rank].answered = true; /* nothing more comes from it */
    wake(c);
    pthread_mutex_unlock(&c->lock);
    if (seat->servers > 0)
        stop_for_loss(c, rank, why, "it held parameters, so the job ends");
    else if (done)
        tell_master(c, rank); /* which knows that its workers have left, if they have */
    else if (c->on_loss == RBT_LOSS_STOP)
        stop_for_loss(c, rank, why, "the job ends, as --on-worker-loss stop says");
    else if (all && c->on_loss == RBT_LOSS_CONTINUE)
        stop_for_loss(c, rank, why, "no worker is left");
    else {
        rbt_session_name(c->session, rank, name, sizeof name);
        rbt_log_event(&c->run->log, RBT_LOG_WARNING, "cluster", "%s was lost (%s)", name,
                      why->code == RBT_OK ? "it left" : why->text);
        tell_master(c, rank);
        if (c->on_loss == RBT_LOSS_CONTINUE)
            bequeath(c, rank);
    }
}

/* The lead: asks a process what its rows' losses are at these parameters. The lock is held. */
static void ask_losses(rbt_cluster *c, uint32_t rank)
{
    size_t bytes = c->work.n * sizeof *c->weighed;
    uint8_t *copy = rbt_session_seat(c->session, rank)->workers > 0 ? rbt_try_alloc_raw(bytes, 1) : NULL;
    rbt_pack words = {0};

    if (copy == NULL)
        return;
    memcpy(copy, c->weighed, bytes);
    rbt_pack_u64(&words, c->question_id);
    rbt_session_say(c->session, rank, SAY_WEIGH, &words, copy, bytes);
    rbt_array_free(&words);
}

/* What its former life was asked and did not answer, the new one is asked again. */
static void on_back(void *context, uint32_t rank)
{
    rbt_cluster *c = context;
    char name[RBT_HOST_ROOM + 32];

    pthread_mutex_lock(&c->lock);
    if (c->ranks[rank].lost)
        c->lost_workers -= rbt_session_seat(c->session, rank)->workers;
    c->ranks[rank] = (reported){0};
    if (c->weighed != NULL)
        ask_losses(c, rank);
    if (c->closing)
        rbt_session_say(c->session, rank, SAY_CLOSE, NULL, NULL, 0);
    pthread_mutex_unlock(&c->lock);
    rbt_session_name(c->session, rank, name, sizeof name);
    rbt_log_event(&c->run->log, RBT_LOG_INFO, "cluster", "%s is back", name);
}

/* The lead: an interrupt asks the workers to stop after their clocks; who takes too long is left behind. */
static void look_for_interrupt(rbt_cluster *c)
{
    rbt_error told;

    if (c->run->interrupted == NULL || !atomic_load(c->run->interrupted))
        return;
    if (c->stop_asked_ns == 0) {
        c->stop_asked_ns = rbt_now_ns();
        rbt_places_request_stop(&c->places);
    } else if (rbt_now_ns() > c->stop_asked_ns + STOP_NS) {
        rbt_fail(&told, RBT_E_INTERRUPTED,
                 "interrupted; workers did not finish the clock they were in within %u ms, so there is no result",
                 (unsigned)(STOP_NS / 1000000u));
        rbt_session_end(c->session, &told);
    }
}

static void on_tick(void *context)
{
    rbt_cluster *c = context;

    if (!c->leads) {
        say_status(c, SAY_STATUS);
        return;
    }
    look_for_interrupt(c);
    pthread_mutex_lock(&c->lock);
    tell_patience(c);
    pthread_mutex_unlock(&c->lock);
}

/* The lead: what the job's processes have told, for those who watch. */
static void on_picture(void *context, rbt_picture *picture)
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
    for (size_t r = 1; r < picture->processes.count; r++)
        if (c->ranks[r].done && picture->processes.at[r].workers > 0 &&
            picture->processes.at[r].state != RBT_PICTURE_LOST)
            picture->processes.at[r].state = RBT_PICTURE_DONE;
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

/* ------------------------------------------------------------------------------------------------------- running */

/* The most that a frame of this job can carry: all blocks of all tables, or the parameters to be weighed. */
static uint64_t largest_body(const rbt_topology *topology, size_t n)
{
    uint64_t bytes = n * sizeof(float);

    for (uint32_t t = 0; t < topology->tables; t++) {
        const rbt_layout *layout = &topology->layout[t];

        if (layout->sparse)
            return RBT_SWAP_MOST;
        bytes += layout->rows * layout->cols * rbt_type_size(layout->type);
    }
    return bytes;
}

rbt_cluster *rbt_cluster_create(rbt_run *run, rbt_session *session, rbt_on_loss on_loss, const rbt_cluster_work *work)
{
    rbt_cluster *c = rbt_alloc(1, sizeof *c);
    uint32_t nodes = rbt_topology_nodes(run->topology);
    bool *here = rbt_alloc(nodes, sizeof *here);
    rbt_session_hooks hooks = {.on_say = on_say,
                               .on_message = on_message,
                               .on_lost = on_lost,
                               .on_back = on_back,
                               .on_over = on_over,
                               .on_tick = on_tick,
                               .on_picture = on_picture,
                               .context = c};

    *c = (rbt_cluster){.run = run, .session = session, .on_loss = on_loss, .work = *work};
    c->leads = rbt_session_rank(session) == 0;
    c->seat = rbt_session_seat(session, rbt_session_rank(session));
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->news, NULL);
    c->ranks = rbt_alloc(rbt_session_size(session), sizeof *c->ranks);
    place_nodes(c);
    for (rbt_node node = 0; node < nodes; node++)
        here[node] = c->rank_of_node[node] == rbt_session_rank(session);
    rbt_places_init(&c->places, run, "cluster", here);
    rbt_free(here);
    c->places.forward = forward;
    c->places.throttle = throttle;
    c->places.on_failure = on_failure;
    c->places.context = c;
    c->places.knows_all = false; /* the lead says who waits for whom */
    c->places.incarnation = c->seat->incarnation;
    rbt_session_expect(session, largest_body(run->topology, work->n));
    rbt_session_hook(session, &hooks);
    return c;
}

void rbt_cluster_destroy(rbt_cluster *c)
{
    rbt_session_hooks none = {0};

    if (c == NULL)
        return;
    rbt_session_hook(c->session, &none);
    for (size_t i = 0; i < c->heirs.count; i++)
        pthread_join(c->heirs.at[i], NULL);
    rbt_array_free(&c->heirs);
    rbt_places_deinit(&c->places);
    pthread_cond_destroy(&c->news);
    pthread_mutex_destroy(&c->lock);
    rbt_free(c->ranks);
    rbt_free(c->question);
    rbt_free(c->rank_of_node);
    rbt_free(c);
}

/* Waits until every other process has done that, or the job is over. */
static void wait_for_all(rbt_cluster *c, size_t offset)
{
    pthread_mutex_lock(&c->lock);
    for (uint32_t r = 1; r < rbt_session_size(c->session); r++)
        while (!*(bool *)((char *)&c->ranks[r] + offset) && !c->ended)
            pthread_cond_wait(&c->news, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

rbt_err rbt_cluster_losses(rbt_cluster *c, const float *w, double *sum, uint64_t *rows, rbt_error *error)
{
    uint32_t size = rbt_session_size(c->session);

    pthread_mutex_lock(&c->lock);
    c->question_id++;
    c->weighed = w;
    for (uint32_t r = 1; r < size; r++) {
        c->ranks[r].answered = rbt_session_seat(c->session, r)->workers == 0 || c->ranks[r].totals;
        c->ranks[r].losses = 0;
        c->ranks[r].rows = 0;
        ask_losses(c, r);
    }
    pthread_mutex_unlock(&c->lock);
    *rows = 0;
    *sum = c->seat->workers > 0 ? c->work.losses(c->work.context, w, rows) : 0;
    wait_for_all(c, offsetof(reported, answered));
    pthread_mutex_lock(&c->lock);
    c->weighed = NULL;
    pthread_mutex_unlock(&c->lock);
    if (rbt_session_over(c->session, error) != RBT_OK)
        return error != NULL ? error->code : RBT_E_LOST;
    for (uint32_t r = 1; r < size; r++) { /* in the order of ranks: the same sum each time */
        *sum += c->ranks[r].losses;
        *rows += c->ranks[r].rows;
    }
    return RBT_OK;
}

/* A process that joined: its main thread answers the lead until the job is over. */
static void *run_here(void *context)
{
    rbt_cluster *c = context;

    rbt_places_run(&c->places, c->seat->first_worker, c->seat->workers, false, NULL);
    say_status(c, SAY_DONE);
    return NULL;
}

static void answer(rbt_cluster *c)
{
    pthread_mutex_lock(&c->lock);
    while (!c->ended) {
        if (c->question != NULL) {
            float *w = c->question;
            uint64_t id = c->question_id, rows = 0;
            rbt_pack words = {0};

            c->question = NULL;
            pthread_mutex_unlock(&c->lock);
            rbt_pack_u64(&words, id);
            rbt_pack_f64(&words, c->work.losses(c->work.context, w, &rows));
            rbt_pack_u64(&words, rows);
            say_status(c, SAY_STATUS); /* who asks at the end then has the last clocks, too */
            rbt_session_say(c->session, 0, SAY_LOSSES, &words, NULL, 0);
            rbt_array_free(&words);
            rbt_free(w);
            pthread_mutex_lock(&c->lock);
        } else if (c->close) {
            c->close = false;
            pthread_mutex_unlock(&c->lock);
            say_totals(c);
            pthread_mutex_lock(&c->lock);
        } else {
            pthread_cond_wait(&c->news, &c->lock);
        }
    }
    pthread_mutex_unlock(&c->lock);
}

static rbt_err run_member(rbt_cluster *c, rbt_error *error)
{
    pthread_t thread;
    rbt_err err = rbt_session_ready(c->session, error);

    if (err != RBT_OK)
        return err;
    if (pthread_create(&thread, NULL, run_here, c) != 0)
        return rbt_fail(error, RBT_E_LIMIT, "the system refused a thread");
    answer(c);
    pthread_join(thread, NULL);
    return rbt_session_over(c->session, error);
}

static rbt_err run_lead(rbt_cluster *c, rbt_error *error)
{
    rbt_run *run = c->run;
    rbt_err err = rbt_session_start(c->session, error);
    uint64_t started;

    if (err != RBT_OK)
        return err;
    started = rbt_now_ns();
    pthread_mutex_lock(&c->lock);
    c->started_ns = started;
    pthread_mutex_unlock(&c->lock);
    err = rbt_places_run(&c->places, c->seat->first_worker, c->seat->workers, run->topology->observers > 0, error);
    if (err == RBT_OK || err == RBT_E_DIVERGED || err == RBT_E_BROKEN)
        wait_for_all(c, offsetof(reported, done));
    run->elapsed_ns = rbt_now_ns() - started;
    if (err == RBT_OK && !rbt_session_is_over(c->session)) {
        pthread_mutex_lock(&c->lock);
        c->closing = true;
        for (uint32_t r = 1; r < rbt_session_size(c->session); r++)
            rbt_session_say(c->session, r, SAY_CLOSE, NULL, NULL, 0);
        pthread_mutex_unlock(&c->lock);
        wait_for_all(c, offsetof(reported, totals));
    }
    if (rbt_session_over(c->session, error) != RBT_OK) /* the cause comes before its effects */
        err = error->code;
    return err;
}

rbt_err rbt_cluster_run(rbt_cluster *c, rbt_error *error)
{
    rbt_error discarded;

    if (error == NULL)
        error = &discarded;
    return c->leads ? run_lead(c, error) : run_member(c, error);
}
