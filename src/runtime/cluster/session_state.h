/* A session as session.c, join.c, meet.c, swap.c and lost.c know it; outside it is opaque. */
#ifndef RBT_RUNTIME_CLUSTER_SESSION_STATE_H
#define RBT_RUNTIME_CLUSTER_SESSION_STATE_H

#include <pthread.h>

#include "runtime/cluster/session.h"

#define RBT_NOTE_ROOM 1024

typedef struct swapped {
    struct swapped *next;
    uint8_t *bytes;
    size_t n;
} swapped;

#define RBT_HELD_SAYINGS 4

/* A peer that says it is a certain rank, which the roster does not know yet. What it says meanwhile is held: it can be no
 * more than its part of a swap, for then it waits for ours. */
typedef struct claim {
    rbt_remote *peer;
    uint32_t rank;
    rbt_arrival held[RBT_HELD_SAYINGS];
    size_t held_count;
} claim;

/* Somebody who has called and not said yet who it is; the hub's thread alone touches it. */
typedef struct stranger {
    rbt_remote *peer;
    uint64_t since_ns;
} stranger;

/* Somebody who looks on (watch.h). */
typedef struct watcher {
    rbt_remote *peer;
    unsigned missed; /* pictures in a row, because the last one was still under way */
} watcher;

struct rbt_session {
    rbt_session_config config;
    rbt_hub *hub;
    rbt_tls *tls;
    bool leads;
    uint32_t rank;
    rbt_seat me; /* what is known of this process before it has a seat */
    char local_address[RBT_ADDRESS_ROOM];
    char tcp_address[RBT_ADDRESS_ROOM];
    _Atomic(rbt_remote *) lead; /* not at the lead */

    pthread_mutex_t calling; /* held while hooks run; they may call back (recursive) */
    rbt_session_hooks hooks; /* under it */

    RBT_ARRAY(stranger) strangers; /* the hub's thread's */

    pthread_mutex_t lock; /* for all below */
    pthread_cond_t news;
    uint32_t size; /* 0: not known yet */
    rbt_seat *seats;
    RBT_ARRAY(claim) claims;
    RBT_ARRAY(claim) settled; /* those whose words are to be heard now */
    rbt_bytes description;
    swapped **swaps; /* per rank, what came and is not taken yet */
    bool started;
    atomic_bool is_alone; /* the lead is gone, and the job goes on */
    bool over;
    rbt_error end;
    rbt_losses losses;           /* the lead */
    RBT_ARRAY(watcher) watchers; /* the lead */
    uint64_t opened_ns;          /* when it began */
    uint64_t pictured_ns;        /* when they were last shown the job */
    bool told_watchers;          /* that it is over */
};

/* ------------------------------------------------------------------------------------------------- session.c */

uint64_t rbt_session_deadline(uint64_t ms);

/* Sleeps until something changes, at most a moment. The lock is held. */
void rbt_session_nap(rbt_session *session);
void rbt_session_wait_a_moment(pthread_cond_t *news, pthread_mutex_t *lock);

/* Why waiting makes no more sense; RBT_OK: it does. The lock is held. */
rbt_err rbt_session_check(rbt_session *session, rbt_error *error);

/* The job has ended in this process; the first reason counts. */
void rbt_session_end_here(rbt_session *session, const rbt_error *why);

/* The process of a rank, which is not forgotten until it is released; NULL: this one, or not connected. */
rbt_remote *rbt_session_hold(rbt_session *session, uint32_t rank);
void rbt_session_release(rbt_remote *peer); /* may be NULL */

/* Somebody who had called and not said who it is has gone, or is somebody now. */
void rbt_session_forget_stranger(rbt_session *session, const rbt_remote *peer);

/* Is this the one that leads? It is the first that a process dials. */
bool rbt_session_is_lead(const rbt_session *session, const rbt_remote *peer);

void rbt_session_say_to(rbt_remote *peer, uint32_t say, const rbt_pack *words, void *body, size_t body_n);
void rbt_session_say_error(rbt_remote *peer, uint32_t say, const rbt_error *why);
bool rbt_session_read_error(rbt_unpack *words, rbt_error *why);
void rbt_session_cut_peer(rbt_remote *peer, const char *why);

/* The hub's events. */
void rbt_session_on_open(void *context, rbt_remote *peer);
void rbt_session_on_control(void *context, rbt_remote *peer, rbt_arrival *arrival);
void rbt_session_on_message(void *context, rbt_remote *peer, rbt_message *message);
void rbt_session_on_tick(void *context);

/* ---------------------------------------------------------------------------------------------------- swap.c */

void rbt_swap_take(rbt_session *session, rbt_remote *peer, rbt_arrival *arrival); /* what somebody hands over */
void rbt_swap_forget(rbt_session *session);

/* ---------------------------------------------------------------------------------------------------- lost.c */

void rbt_session_on_lost(void *context, rbt_remote *peer, const rbt_error *why); /* the hub's event */
void rbt_lost_apart(rbt_session *session, const rbt_remote *peer, rbt_unpack *words);
void rbt_lost_cut(rbt_session *session, rbt_unpack *words);
void rbt_lost_judge(rbt_session *session); /* the lead: cuts off whom it must, of those that lost each other */

/* ---------------------------------------------------------------------------------------------------- join.c */

/* What is said while processes get together. */
void rbt_join_hello(rbt_session *session, rbt_remote *peer, rbt_unpack *words);
void rbt_join_welcome(rbt_session *session, rbt_remote *peer, rbt_unpack *words);

/* The lead waits until every seat is in that state; `what` is what its processes have then done. */
rbt_err rbt_join_wait(rbt_session *session, rbt_seat_state state, const char *what, uint64_t timeout_ms,
                      rbt_err (*check)(void *, rbt_error *), void *context, rbt_error *error);

/* ---------------------------------------------------------------------------------------------------- meet.c */

void rbt_meet_iam(rbt_session *session, rbt_remote *peer, rbt_unpack *words);

/* Keeps what a peer says (takes it) whose claim waits for the roster; false: there is no such claim, or it says too much. */
bool rbt_meet_hold(rbt_session *session, rbt_remote *peer, rbt_arrival *arrival);
void rbt_meet_forget(rbt_session *session, const rbt_remote *peer); /* it is lost; NULL: all of them */

/* Connects claims with seats, as far as the roster knows them by now (the lock is held); then, without the lock, hears what they
 * have said meanwhile. */
void rbt_meet_settle(rbt_session *session);
void rbt_meet_hear(rbt_session *session);

#endif
