/* A session as session.c, join.c, strangers.c, meet.c, swap.c, patience.c, lost.c and watch.c know it; outside it is opaque. */
#ifndef RBT_RUNTIME_CLUSTER_SESSION_STATE_H
#define RBT_RUNTIME_CLUSTER_SESSION_STATE_H

#include <pthread.h>

#include "runtime/cluster/session.h"

#define RBT_NOTE_ROOM  1024
#define RBT_NAMED_MOST 16   /* ranks in one sentence */
#define RBT_TELL_MS    5000 /* how often whoever waits says for whom */
#define RBT_STRANGER_MOST                                                                                              \
    4096 /* bytes that a caller without a rank may say at once: where it is, and who it wants to be */

typedef struct swapped {
    struct swapped *next;
    uint8_t *bytes;
    size_t n;
} swapped;

/* A peer that says it is a certain rank, which the roster does not know yet. Nothing is read from it meanwhile: it may be about
 * to hand over much, and nobody knows yet whether it may. */
typedef struct claim {
    rbt_remote *peer;
    uint32_t rank;
} claim;

/* Somebody who has called and not said yet who it is; the hub's thread alone touches it. */
typedef struct stranger {
    rbt_remote *peer;
    uint64_t since_ns;
    bool has_asked; /* for a seat */
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
    bool has_failed_together;   /* a common step has: the words are everybody's; of the thread that swaps */

    pthread_mutex_t calling; /* held while hooks run; they may call back (recursive) */
    rbt_session_hooks hooks; /* under it */

    RBT_ARRAY(stranger) strangers; /* the hub's thread's, as are: */
    uint32_t ticks;
    rbt_silence lead_silence; /* not at the lead */

    pthread_mutex_t lock; /* for all below */
    pthread_cond_t news;
    uint32_t size; /* 0: not known yet */
    rbt_seat *seats;
    RBT_ARRAY(claim) claims;
    RBT_ARRAY(claim) settled; /* those who are to be heard now */
    rbt_bytes description;
    swapped **swaps;   /* per rank, what came and is not taken yet */
    bool has_welcomed; /* the lead */
    uint32_t awaits;   /* elsewhere, before the start: the rank it waits for; 0: none but the lead */
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

/* Puts before a sentence whose it is. */
void rbt_session_blame(const rbt_session *session, uint32_t rank, rbt_error *error);

/* The job has ended in this process; the first reason counts. */
void rbt_session_end_here(rbt_session *session, const rbt_error *why);

/* The process of a rank, which is not forgotten until it is released; NULL: this one, or not connected. */
rbt_remote *rbt_session_hold(rbt_session *session, uint32_t rank);
void rbt_session_release(rbt_remote *peer); /* may be NULL */

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
void rbt_session_on_room(void *context, rbt_remote *peer);
void rbt_session_on_tick(void *context);

/* ----------------------------------------------------------------------------------------------- strangers.c */

/* Somebody who had called and not said who it is has gone, or is somebody now. */
void rbt_session_forget_stranger(rbt_session *session, const rbt_remote *peer);

/* Somebody asks for a seat: has it done so before? */
bool rbt_session_asks_again(rbt_session *session, const rbt_remote *peer);
void rbt_strangers_check(rbt_session *session); /* cuts off who takes too long */

/* ---------------------------------------------------------------------------------------------------- swap.c */

void rbt_swap_take(rbt_session *session, rbt_remote *peer, rbt_arrival *arrival); /* what somebody hands over */
void rbt_swap_forget(rbt_session *session);

/* ---------------------------------------------------------------------------------------------------- lost.c */

/* Nothing more is heard of the lead: nobody there tells what becomes of the job. */
void rbt_lost_unled(rbt_session *session);

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

/* ------------------------------------------------------------------------------------------------ patience.c */

void rbt_patience_tick(rbt_session *session); /* the hub's thread: says that it lives, counts who does not */
void rbt_patience_take(rbt_session *session, rbt_remote *peer, rbt_unpack *words); /* the lead: it lives */

/* The lead: has somebody been silent for too long? The lock is held. */
rbt_err rbt_patience_check(rbt_session *session, rbt_error *error);

/* " rank 3 on host b (silent for 7 s)"; how long that is, always less than `room`. The lock is held. */
size_t rbt_patience_name(const rbt_session *session, uint32_t rank, char *text, size_t room);

/* The lead, which swaps and has what ranks before `first` hand over: says for whom it waits. The lock is held. */
void rbt_patience_tell(rbt_session *session, uint32_t first);

/* ---------------------------------------------------------------------------------------------------- meet.c */

void rbt_meet_again(rbt_session *session, uint32_t rank); /* dials a seat before this one */
void rbt_meet_iam(rbt_session *session, rbt_remote *peer, rbt_unpack *words);

void rbt_meet_forget(rbt_session *session, const rbt_remote *peer); /* it is lost; NULL: all of them */

/* Connects claims with seats, as far as the roster knows them by now (the lock is held); then, without the lock, reads on
 * from them. Both on the hub's thread. */
void rbt_meet_settle(rbt_session *session);
void rbt_meet_hear(rbt_session *session);

#endif
