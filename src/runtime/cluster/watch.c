/* Watching a job from outside; the contract is in watch.h. */
#include "runtime/cluster/watch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/time.h"
#include "runtime/cluster/session_state.h"

#define PICTURE_NS       1000000000u
#define WATCHER_PATIENCE 30 /* pictures that a watcher may let lie before it is cut off */
#define WORDS_MAX        ((uint64_t)64 << 10)
#define GOODBYE_MS       100

/* ------------------------------------------------------------------------------------------------- the lead */

static rbt_picture_state state_of(const rbt_seat *seat)
{
    switch (seat->state) {
    case RBT_SEAT_EMPTY:
        return RBT_PICTURE_MISSING;
    case RBT_SEAT_JOINED:
        return RBT_PICTURE_JOINED;
    case RBT_SEAT_READY:
        return RBT_PICTURE_READY;
    default:
        return RBT_PICTURE_LOST;
    }
}

/* What the session knows: who is there. The lock is held. */
static void draw_processes(const rbt_session *s, rbt_picture *picture)
{
    bool all_there = true;

    for (uint32_t r = 0; r < s->size; r++) {
        const rbt_seat *seat = &s->seats[r];
        rbt_picture_process process = {.state = state_of(seat),
                                       .first_worker = seat->first_worker,
                                       .workers = seat->workers,
                                       .first_server = seat->first_server,
                                       .servers = seat->servers};

        snprintf(process.host, sizeof process.host, "%s", seat->host);
        rbt_array_push(&picture->processes, process);
        all_there = all_there && seat->state != RBT_SEAT_EMPTY;
    }
    picture->phase = s->started ? RBT_PICTURE_RUNNING : all_there ? RBT_PICTURE_PREPARING : RBT_PICTURE_JOINING;
    if (s->over) {
        picture->phase = RBT_PICTURE_OVER;
        picture->end = s->end;
    }
    picture->elapsed_ns = rbt_now_ns() - s->opened_ns;
    picture->loss = NAN;
    snprintf(picture->title, sizeof picture->title, "%s", s->config.title);
}

static rbt_picture draw(rbt_session *s)
{
    rbt_picture picture = {0};

    pthread_mutex_lock(&s->lock);
    draw_processes(s, &picture);
    pthread_mutex_unlock(&s->lock);
    pthread_mutex_lock(&s->calling);
    if (s->hooks.on_picture != NULL)
        s->hooks.on_picture(s->hooks.context, &picture);
    pthread_mutex_unlock(&s->calling);
    return picture;
}

/* Shows it to those whose last one is gone; `all`: it is the last one, for everybody. The lock is held. */
static void show(rbt_session *s, const rbt_picture *picture, bool all)
{
    rbt_pack words = {0};

    rbt_picture_pack(picture, &words);
    for (size_t i = 0; i < s->watchers.count; i++) {
        watcher *w = &s->watchers.at[i];

        w->missed = rbt_hub_queued(w->peer) > 0 ? w->missed + 1 : 0;
        if (w->missed == 0 || all)
            rbt_session_say_to(w->peer, RBT_SAY_PICTURE, &words, NULL, 0);
        else if (w->missed == WATCHER_PATIENCE)
            rbt_session_cut_peer(w->peer, "it watches the job and does not look");
    }
    rbt_array_free(&words);
}

void rbt_watchers_add(rbt_session *s, rbt_remote *peer)
{
    bool is_full;

    pthread_mutex_lock(&s->lock);
    is_full = s->watchers.count >= RBT_WATCH_MOST;
    if (!is_full)
        rbt_array_push(&s->watchers, ((watcher){.peer = peer}));
    s->pictured_ns = 0; /* it need not wait for its first one */
    pthread_mutex_unlock(&s->lock);
    if (is_full) {
        rbt_error why;

        rbt_fail(&why, RBT_E_LIMIT, "%d watch this job already; end one of them", RBT_WATCH_MOST);
        rbt_session_say_error(peer, RBT_SAY_SORRY, &why);
    }
}

bool rbt_watchers_has(rbt_session *s, const rbt_remote *peer)
{
    bool has = false;

    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->watchers.count; i++)
        has = has || s->watchers.at[i].peer == peer;
    pthread_mutex_unlock(&s->lock);
    return has;
}

void rbt_watchers_forget(rbt_session *s, const rbt_remote *peer)
{
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->watchers.count; i++)
        if (s->watchers.at[i].peer == peer)
            s->watchers.at[i--] = s->watchers.at[--s->watchers.count];
    pthread_mutex_unlock(&s->lock);
}

void rbt_watchers_tick(rbt_session *s)
{
    uint64_t now = rbt_now_ns();
    bool is_time;
    rbt_picture picture;

    pthread_mutex_lock(&s->lock);
    is_time = s->watchers.count > 0 && !s->over && (s->pictured_ns == 0 || now >= s->pictured_ns + PICTURE_NS);
    if (is_time)
        s->pictured_ns = now;
    pthread_mutex_unlock(&s->lock);
    if (!is_time)
        return;
    picture = draw(s);
    pthread_mutex_lock(&s->lock);
    show(s, &picture, false);
    pthread_mutex_unlock(&s->lock);
    rbt_picture_deinit(&picture);
}

void rbt_watchers_end(rbt_session *s)
{
    rbt_picture picture;
    bool must_tell;

    pthread_mutex_lock(&s->lock);
    must_tell = s->over && !s->told_watchers && s->watchers.count > 0;
    s->told_watchers = s->told_watchers || must_tell;
    pthread_mutex_unlock(&s->lock);
    if (!must_tell)
        return;
    picture = draw(s);
    pthread_mutex_lock(&s->lock);
    show(s, &picture, true);
    pthread_mutex_unlock(&s->lock);
    rbt_picture_deinit(&picture);
}

/* ---------------------------------------------------------------------------------------------- the watcher */

struct rbt_watch {
    rbt_hub *hub;
    rbt_tls *tls;
    const atomic_bool *interrupted;
    pthread_mutex_t lock; /* for all below */
    pthread_cond_t news;
    bool has_picture;
    rbt_picture picture;
    rbt_error lost; /* why no more will come; RBT_OK: some may */
};

static void set_lost(rbt_watch *watch, const rbt_error *why)
{
    pthread_mutex_lock(&watch->lock);
    if (watch->lost.code == RBT_OK)
        watch->lost = *why;
    pthread_cond_broadcast(&watch->news);
    pthread_mutex_unlock(&watch->lock);
}

static void take_picture(rbt_watch *watch, rbt_remote *peer, rbt_unpack *words)
{
    rbt_picture picture;

    if (!rbt_picture_unpack(words, &picture)) {
        rbt_session_cut_peer(peer, "its picture of the job makes no sense");
        return;
    }
    pthread_mutex_lock(&watch->lock);
    rbt_picture_deinit(&watch->picture);
    watch->picture = picture;
    watch->has_picture = true;
    pthread_cond_broadcast(&watch->news);
    pthread_mutex_unlock(&watch->lock);
}

static void on_control(void *context, rbt_remote *peer, rbt_arrival *arrival)
{
    rbt_watch *watch = context;
    rbt_unpack words = rbt_unpack_of(arrival->head, arrival->header.head);
    uint32_t say = rbt_unpack_u32(&words);
    rbt_error why;

    if (say == RBT_SAY_PICTURE) {
        take_picture(watch, peer, &words);
    } else if (say == RBT_SAY_SORRY && rbt_session_read_error(&words, &why)) {
        rbt_fail(&why, RBT_E_LIMIT, "the lead at %s does not show the job: %s", peer->name, why.text);
        set_lost(watch, &why);
    } else {
        rbt_session_cut_peer(peer, "it is not the lead of a job");
    }
    rbt_arrival_deinit(arrival);
}

static void on_message(void *context, rbt_remote *peer, rbt_message *message)
{
    (void)context;
    rbt_message_destroy(message);
    rbt_session_cut_peer(peer, "it is not the lead of a job");
}

static void on_lost(void *context, rbt_remote *peer, const rbt_error *why)
{
    rbt_error told = *why;

    if (why->code == RBT_OK || (why->code == RBT_E_IO && peer->life != 0))
        rbt_fail(&told, RBT_E_LOST, "the job's lead at %s is gone: %s", peer->name,
                 why->code == RBT_OK ? "it ended" : why->text);
    set_lost(context, &told);
}

rbt_err rbt_watch_open(const rbt_session_config *config, const char *text, rbt_watch **out, rbt_error *error)
{
    rbt_watch *watch;
    rbt_address address;
    rbt_link_config links = {.key = config->key,
                             .job = config->job,
                             .encryption = config->insecure ? RBT_ENCRYPT_OFF : config->encryption,
                             .head_max = RBT_FRAME_HEAD_MAX,
                             .body_max = WORDS_MAX};
    rbt_hub_events events = {.on_control = on_control, .on_message = on_message, .on_lost = on_lost};
    rbt_log silent = {0};
    pthread_condattr_t monotonic;
    rbt_err err = rbt_address_parse(text, RBT_PORT, &address, error);

    if (err != RBT_OK)
        return err;
    watch = rbt_alloc(1, sizeof *watch);
    watch->interrupted = config->interrupted;
    pthread_mutex_init(&watch->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&watch->news, &monotonic);
    pthread_condattr_destroy(&monotonic);
    events.context = watch;
    if (config->has_key && !config->insecure)
        err = rbt_tls_create(&config->key, &watch->tls, error);
    links.tls = watch->tls;
    if (err == RBT_OK)
        err = rbt_hub_create(&links, &events, &silent, &watch->hub, error);
    rbt_key_wipe(&links.key);
    if (err != RBT_OK) {
        rbt_watch_close(watch);
        return err;
    }
    rbt_session_say_to(rbt_hub_dial(watch->hub, &address, 0, config->join_timeout_ms), RBT_SAY_WATCH, NULL, NULL, 0);
    *out = watch;
    return RBT_OK;
}

void rbt_watch_close(rbt_watch *watch)
{
    if (watch == NULL)
        return;
    rbt_hub_destroy(watch->hub, GOODBYE_MS);
    rbt_tls_destroy(watch->tls);
    rbt_picture_deinit(&watch->picture);
    pthread_cond_destroy(&watch->news);
    pthread_mutex_destroy(&watch->lock);
    rbt_free(watch);
}

rbt_err rbt_watch_next(rbt_watch *watch, rbt_picture *picture, rbt_error *error)
{
    rbt_err err = RBT_OK;

    pthread_mutex_lock(&watch->lock);
    while (err == RBT_OK && !watch->has_picture) {
        if (watch->interrupted != NULL && atomic_load(watch->interrupted))
            err = rbt_fail(error, RBT_E_INTERRUPTED, "interrupted");
        else if (watch->lost.code != RBT_OK)
            err = (*error = watch->lost).code;
        else
            rbt_session_wait_a_moment(&watch->news, &watch->lock);
    }
    if (err == RBT_OK) {
        *picture = watch->picture;
        watch->picture = (rbt_picture){0};
        watch->has_picture = false;
    }
    pthread_mutex_unlock(&watch->lock);
    return err;
}
