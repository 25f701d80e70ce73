/* The cluster runtime; the contract is in cluster.h. */
#include "runtime/cluster/cluster_state.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/time.h"

#define STOP_NS                                                                                                        \
    (RBT_STOP_MS * UINT64_C(1000000)) /* workers that have not stopped so long after an interrupt are left behind */
#define WEIGH_NS    (STOP_NS / 2)     /* so long after an interrupt losses are not waited for any more */
#define PART_FLOATS ((size_t)1 << 28) /* of the parameters in one block of a question */

/* -------------------------------------------------------------------------------------------------- who is where */

static void forward(void *context, rbt_message *message)
{
    rbt_cluster *c = context;
    size_t plain = rbt_wire_size(message), bytes;
    bool is_observed = rbt_is_observed(c->run, message);

    if (rbt_room_is_wasted(c, message)) {
        rbt_message_destroy(message);
        return;
    }
    rbt_alone_keep(c, message);
    bytes = rbt_session_send(c->session, c->rank_of_node[message->to], message, c->run->codec);
    if (!is_observed)
        rbt_transport_count(c->run, plain, bytes);
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

static void on_message(void *context, uint32_t rank, rbt_message *message)
{
    rbt_cluster *c = context;

    if (!rbt_links_allow(c, rank, message)) {
        char why[128];

        snprintf(why, sizeof why, "it sent a %s in another's name or to nobody", rbt_message_name(message->type));
        rbt_message_destroy(message);
        rbt_session_cut(c->session, rank, why);
        return;
    }
    rbt_links_hear(c, message);
    rbt_room_take(c, rank, message);
}

static void on_room(void *context, uint32_t rank)
{
    rbt_room_again(context, rank);
}

/* ----------------------------------------------------------------------------------------------------- hearing */

static void wake(rbt_cluster *c)
{
    pthread_cond_broadcast(&c->news);
}

/* Has a process done its work, has it told all, has it answered the question? Who is gone will not; who is away may come back. */
static bool has_done(rbt_cluster *c, uint32_t rank)
{
    return rbt_rank_is_done(rbt_session_state(c->session, rank));
}

static bool has_told(rbt_cluster *c, uint32_t rank)
{
    return rbt_rank_is_told(rbt_session_state(c->session, rank));
}

static bool has_answered(rbt_cluster *c, uint32_t rank)
{
    return c->ranks[rank].answered || rbt_session_state(c->session, rank) == RBT_RANK_GONE;
}

/* Is there nothing to wait for any more? */
static bool need_not_answer(rbt_cluster *c, uint32_t rank)
{
    return c->hurries || has_answered(c, rank);
}

static bool hear_member(rbt_cluster *c, uint32_t rank, uint32_t say, rbt_unpack *words)
{
    reported *r = &c->ranks[rank];
    bool fine = true;

    switch (say) {
    case SAY_STATUS: /* who is coming back has counted nothing yet, and its former life's sums still stand */
        return rbt_session_state(c->session, rank) == RBT_RANK_RETURNING || rbt_status_take(c, rank, words);
    case SAY_DONE:
        fine = rbt_status_take(c, rank, words);
        if (fine)
            rbt_session_done(c->session, rank, false);
        return fine;
    case SAY_TOTALS:
        fine = c->closing && !has_told(c, rank) && rbt_totals_take(c, words);
        if (fine)
            rbt_session_done(c->session, rank, true);
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

static bool hear_lead(rbt_cluster *c, uint32_t say, rbt_unpack *words, rbt_arrival *arrival)
{
    switch (say) {
    case SAY_INHERIT:
        return rbt_heirs_take(c, words);
    case SAY_CLOSE: /* on_say */
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
    if (fine && !c->leads && say == SAY_CLOSE) { /* here, because the main thread may be weighing */
        rbt_status_say(c, SAY_STATUS);           /* also what servers have sent since */
        rbt_totals_say(c);
    }
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

/* The master learns of it as of any message. */
static void tell_master(rbt_cluster *c, uint32_t rank, bool is_gone)
{
    const rbt_seat *seat = rbt_session_seat(c->session, rank);
    rbt_outbox out = {0};

    for (uint32_t i = 0; i < seat->workers; i++) {
        rbt_message *lost = rbt_message_create(RBT_MSG_LOST, RBT_MASTER, RBT_MASTER);

        if (is_gone)
            atomic_store(&c->run->published[seat->first_worker + i].is_lost, true);
        lost->worker = seat->first_worker + i;
        lost->incarnation = seat->incarnation;
        rbt_outbox_put(&out, lost);
    }
    rbt_places_deliver(&c->places, &out);
}

static void on_lost(void *context, uint32_t rank, rbt_verdict verdict, const rbt_error *why)
{
    rbt_cluster *c = context;
    char name[RBT_HOST_ROOM + 32];

    pthread_mutex_lock(&c->lock);
    c->ranks[rank].lost_ns = rbt_now_ns();
    wake(c);
    pthread_mutex_unlock(&c->lock);
    if (verdict == RBT_VERDICT_END)
        return;
    if (verdict != RBT_VERDICT_NOTHING) {
        rbt_session_name(c->session, rank, name, sizeof name);
        rbt_log_event(&c->run->log, RBT_LOG_WARNING, "cluster", "%s was lost (%s)", name,
                      why->code == RBT_OK ? "it left" : why->text);
    }
    tell_master(c, rank, verdict == RBT_VERDICT_GO_ON);
    if (verdict == RBT_VERDICT_GO_ON)
        rbt_heirs_share(c, rank);
}

/* The lead: asks a process what its rows' losses are at these parameters, which all questions share. The lock is held. */
static void ask_losses(rbt_cluster *c, uint32_t rank)
{
    rbt_pack words = {0};

    if (rbt_session_seat(c->session, rank)->workers == 0)
        return;
    rbt_pack_u64(&words, c->question_id);
    rbt_session_say_blocks(c->session, rank, SAY_WEIGH, &words, c->weighed);
    rbt_array_free(&words);
}

/* What its former life was asked and did not answer, the new one is asked again. */
static void on_back(void *context, uint32_t rank)
{
    rbt_cluster *c = context;
    char name[RBT_HOST_ROOM + 32];

    pthread_mutex_lock(&c->lock);
    c->ranks[rank] = (reported){0};
    rbt_status_keep(c, rank);
    if (c->weighed != NULL)
        ask_losses(c, rank);
    if (c->closing)
        rbt_session_say(c->session, rank, SAY_CLOSE, NULL, NULL, 0);
    pthread_mutex_unlock(&c->lock);
    rbt_session_name(c->session, rank, name, sizeof name);
    rbt_log_event(&c->run->log, RBT_LOG_INFO, "cluster", "%s is back", name);
}

/* Do workers train, here or elsewhere? */
static bool is_at_work(rbt_cluster *c)
{
    bool works = atomic_load(&c->places.working) > 0;

    for (uint32_t r = 1; r < rbt_session_size(c->session); r++)
        works = works || rbt_session_state(c->session, r) == RBT_RANK_WORKING;
    return works;
}

/* The lead: an interrupt asks the workers to stop after their clocks; losses that take too long are given up, and who takes longer
 * still is left behind. */
static void look_for_interrupt(rbt_cluster *c)
{
    uint64_t now = rbt_now_ns();
    rbt_error told;

    if (c->run->interrupted == NULL || !atomic_load(c->run->interrupted))
        return;
    if (c->stop_asked_ns == 0) {
        c->stop_asked_ns = now;
        rbt_places_request_stop(&c->places);
    } else if (now > c->stop_asked_ns + STOP_NS) {
        rbt_fail(&told, RBT_E_INTERRUPTED, "interrupted; %s within %u ms, so there is no result",
                 is_at_work(c) ? "workers did not finish the clock they were in"
                               : "what the workers have learned could not be collected",
                 RBT_STOP_MS);
        rbt_session_end(c->session, &told);
    } else if (now > c->stop_asked_ns + WEIGH_NS) {
        pthread_mutex_lock(&c->lock);
        c->hurries = true;
        wake(c);
        pthread_mutex_unlock(&c->lock);
    }
}

static void on_tick(void *context)
{
    rbt_cluster *c = context;

    if (!c->leads) {
        rbt_status_say(c, SAY_STATUS);
        return;
    }
    look_for_interrupt(c);
    pthread_mutex_lock(&c->lock);
    rbt_status_tell_patience(c);
    pthread_mutex_unlock(&c->lock);
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

rbt_cluster *rbt_cluster_create(rbt_run *run, rbt_session *session, const rbt_cluster_work *work)
{
    rbt_cluster *c = rbt_alloc(1, sizeof *c);
    uint32_t nodes = rbt_topology_nodes(run->topology);
    bool *here = rbt_alloc(nodes, sizeof *here);
    rbt_session_hooks hooks = {.on_say = on_say,
                               .on_message = on_message,
                               .on_room = on_room,
                               .on_lost = on_lost,
                               .on_back = on_back,
                               .on_over = on_over,
                               .on_alone = rbt_alone_begin,
                               .on_missed = rbt_alone_missed,
                               .on_tick = on_tick,
                               .on_picture = rbt_status_draw,
                               .context = c};

    *c = (rbt_cluster){.run = run, .session = session, .work = *work};
    c->leads = rbt_session_rank(session) == 0;
    c->seat = rbt_session_seat(session, rbt_session_rank(session));
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->news, NULL);
    c->ranks = rbt_alloc(rbt_session_size(session), sizeof *c->ranks);
    c->before = rbt_alloc(run->topology->workers, sizeof *c->before);
    c->waiting = rbt_alloc(rbt_session_size(session), sizeof *c->waiting);
    rbt_links_place(c);
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
    rbt_heirs_end(c);
    rbt_alone_deinit(c);
    rbt_room_deinit(c);
    rbt_places_deinit(&c->places);
    pthread_cond_destroy(&c->news);
    pthread_mutex_destroy(&c->lock);
    rbt_free(c->ranks);
    rbt_free(c->before);
    rbt_free(c->question);
    rbt_free(c->rank_of_node);
    rbt_free(c->is_gone);
    rbt_free(c);
}

/* Waits until every other process has done that, or the job is over. */
static void wait_for_all(rbt_cluster *c, bool (*has)(rbt_cluster *c, uint32_t rank))
{
    pthread_mutex_lock(&c->lock);
    for (uint32_t r = 1; r < rbt_session_size(c->session); r++)
        while (!c->ended && !has(c, r))
            pthread_cond_wait(&c->news, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

/* A copy of the parameters for the questions under way; NULL: there is no memory for it. */
static rbt_message *copy_parameters(const float *w, size_t n)
{
    rbt_message *copy = rbt_message_create(RBT_MSG_BLOCKS, RBT_MASTER, RBT_MASTER);

    for (size_t at = 0; at < n; at += PART_FLOATS) {
        uint32_t part = (uint32_t)(n - at < PART_FLOATS ? n - at : PART_FLOATS);
        rbt_snap *snap = rbt_snap_try_create(RBT_F32, RBT_DENSE, part, part);

        if (snap == NULL) {
            rbt_message_destroy(copy);
            return NULL;
        }
        memcpy(snap->f32, w + at, part * sizeof *w);
        rbt_array_push(&copy->parts, (rbt_part){.snap = snap});
    }
    return copy;
}

/* Has nobody been left out because there was no time? */
static bool have_all_answered(rbt_cluster *c)
{
    bool all = true;

    for (uint32_t r = 1; r < rbt_session_size(c->session); r++)
        all = all && has_answered(c, r);
    return all;
}

rbt_err rbt_cluster_losses(rbt_cluster *c, const float *w, double *sum, uint64_t *rows, rbt_error *error)
{
    uint32_t size = rbt_session_size(c->session);
    rbt_message *copy = copy_parameters(w, c->work.n);
    bool is_complete;

    if (copy == NULL)
        return rbt_fail(error, RBT_E_MEMORY,
                        "not enough memory to ask the processes for their losses at %zu parameters (%.0f MB); the lead "
                        "needs a host with more",
                        c->work.n, (double)c->work.n * sizeof *w / 1e6);
    pthread_mutex_lock(&c->lock);
    c->question_id++;
    c->weighed = copy;
    for (uint32_t r = 1; r < size; r++) {
        c->ranks[r].answered = rbt_session_seat(c->session, r)->workers == 0 || has_told(c, r);
        c->ranks[r].losses = 0;
        c->ranks[r].rows = 0;
        if (!c->hurries)
            ask_losses(c, r);
    }
    is_complete = !c->hurries;
    pthread_mutex_unlock(&c->lock);
    *rows = 0;
    *sum = is_complete && c->seat->workers > 0 ? c->work.losses(c->work.context, w, rows) : 0;
    wait_for_all(c, need_not_answer);
    pthread_mutex_lock(&c->lock);
    is_complete = is_complete && have_all_answered(c);
    c->weighed = NULL;
    pthread_mutex_unlock(&c->lock);
    rbt_message_destroy(copy);
    if (rbt_session_over(c->session, error) != RBT_OK)
        return error != NULL ? error->code : RBT_E_LOST;
    if (!is_complete)
        return rbt_fail(error, RBT_E_INTERRUPTED, "interrupted; there was no time to work out the loss");
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

    rbt_error error = {RBT_OK, ""};
    rbt_err err = rbt_places_run(&c->places, c->seat->first_worker, c->seat->workers, false, &error);

    rbt_status_say(c, SAY_DONE);
    pthread_mutex_lock(&c->lock);
    c->worked = err;
    c->failed = error;
    c->has_worked = true;
    wake(c);
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static void answer(rbt_cluster *c)
{
    pthread_mutex_lock(&c->lock);
    while (!c->ended && !(c->is_alone && c->has_worked)) {
        if (c->question != NULL) {
            float *w = c->question;
            uint64_t id = c->question_id, rows = 0;
            rbt_pack words = {0};

            c->question = NULL;
            pthread_mutex_unlock(&c->lock);
            rbt_pack_u64(&words, id);
            rbt_pack_f64(&words, c->work.losses(c->work.context, w, &rows));
            rbt_pack_u64(&words, rows);
            rbt_status_say(c, SAY_STATUS); /* who asks at the end then has the last clocks, too */
            rbt_session_say(c->session, 0, SAY_LOSSES, &words, NULL, 0);
            rbt_array_free(&words);
            rbt_free(w);
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
    rbt_links_keep(c);
    if (c->run->topology->hop != NULL)
        rbt_session_set_free(c->session);
    if (pthread_create(&thread, NULL, run_here, c) != 0)
        return rbt_fail(error, RBT_E_LIMIT, "the system refused a thread");
    answer(c);
    pthread_join(thread, NULL);
    err = rbt_session_over(c->session, error);
    if (err == RBT_OK && c->is_alone && c->worked != RBT_OK) { /* there was nobody to tell it to */
        *error = c->failed;
        err = c->worked;
    }
    return err;
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
        wait_for_all(c, has_done);
    run->elapsed_ns = rbt_now_ns() - started;
    if (err == RBT_OK && !rbt_session_is_over(c->session)) {
        pthread_mutex_lock(&c->lock);
        c->closing = true;
        for (uint32_t r = 1; r < rbt_session_size(c->session); r++)
            rbt_session_say(c->session, r, SAY_CLOSE, NULL, NULL, 0);
        pthread_mutex_unlock(&c->lock);
        wait_for_all(c, has_told);
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
