/* How processes become one job, and stop being one.
 *
 * One process leads (rank 0): it listens, waits for the others, gives each its seat (rank, workers, servers) and the job
 * description, and decides when the job starts and ends. The others join by its address and the key. Everybody then
 * dials the seats before its own, over a Unix socket on the same host and TCP otherwise. From joining on, every process
 * knows: when the lead is gone or says so, the job is over.
 *
 * The session runs on the hub's thread and is asked by others; functions that wait say so. What the runtime itself says
 * (kinds from RBT_SAY_OWN on) and nodes' messages are handed to the hooks. Proved by tests/cluster and
 * tests/unit/test_session_local.c.
 */
#ifndef RBT_RUNTIME_CLUSTER_SESSION_H
#define RBT_RUNTIME_CLUSTER_SESSION_H

#include <stdatomic.h>

#include "base/crew.h"
#include "base/pack.h"
#include "runtime/cluster/hub.h"
#include "runtime/cluster/losses.h"
#include "runtime/cluster/picture.h"

#define RBT_HOST_ROOM   72
#define RBT_RANKS_LIMIT 65536
#define RBT_WATCH_MOST  16
#define RBT_SWAP_MOST   ((uint64_t)1 << 30) /* bytes that one process hands another in one swap */

/* After an interrupt nobody is left within 5 s: workers may finish their clocks for so long, then goodbyes take at most so long
 * everywhere, and a launcher kills who is left so long after the signal. */
#define RBT_STOP_MS   2800
#define RBT_LEAVE_MS  500
#define RBT_LAUNCH_MS 3900

typedef enum rbt_seat_state { RBT_SEAT_EMPTY, RBT_SEAT_JOINED, RBT_SEAT_READY, RBT_SEAT_LOST } rbt_seat_state;

/* How long nothing has come from somebody. */
typedef struct rbt_silence {
    uint64_t heard; /* bytes that had come */
    uint32_t ticks; /* since so many no more have */
} rbt_silence;

/* One process of the job. */
typedef struct rbt_seat {
    uint32_t first_worker, workers; /* the roles, the same in every process's roster */
    uint32_t first_server, servers;
    uint32_t incarnation; /* of its workers */
    uint64_t life;
    uint64_t host_id; /* the same for processes that can meet in one kernel and one network */
    uint32_t pid;
    char host[RBT_HOST_ROOM];
    char tcp[RBT_ADDRESS_ROOM]; /* where it listens; empty: nowhere */
    char local[RBT_ADDRESS_ROOM];
    rbt_seat_state state;
    bool is_missed;   /* its connection broke, and the lead was told; what came of that is not known here */
    rbt_remote *peer; /* NULL: this process, or not connected */
    bool is_idle;     /* not the lead: this process needs no connection to it, now that the job runs ... */
    bool
        is_parting; /* ... and has said so to the hub: when the connection is gone, and is needed after all, it dials again */

    /* The lead, before the start. */
    rbt_silence silence;
    uint32_t awaits; /* the rank it waits for, as it says; 0: none but the lead */
} rbt_seat;

/* What processes say to each other. */
typedef enum rbt_say {
    RBT_SAY_HELLO = 1, /* to the lead: who wants to join */
    RBT_SAY_WELCOME,   /* from the lead: the seat, the roster, the job description */
    RBT_SAY_SORRY,     /* from the lead: why not */
    RBT_SAY_IAM,       /* to a seat before one's own: who dials */
    RBT_SAY_NOTE,      /* to the lead: a sentence for whoever watches */
    RBT_SAY_SWAP,
    RBT_SAY_READY,
    RBT_SAY_START,
    RBT_SAY_FAILED, /* to the lead: the reason, and whose it is */
    RBT_SAY_APART,  /* to the lead: the connection to that rank is gone, and why */
    RBT_SAY_CUT,    /* from the lead: that rank, in that life, is no part of the job any more */
    RBT_SAY_END,    /* from the lead: it is over, and why */
    RBT_SAY_WATCH,  /* to the lead: show me the job (watch.h) */
    RBT_SAY_PICTURE,
    RBT_SAY_ALIVE, /* to the lead, once a second before the start: which rank it waits for, 0: none */
    RBT_SAY_OWN    /* from here on: the runtime's */
} rbt_say;

typedef struct rbt_session_config {
    rbt_key key;
    bool has_key;
    bool insecure;
    rbt_encryption encryption;
    rbt_rings shm;
    uint64_t job;          /* 0: no name */
    rbt_on_loss on_loss;   /* the lead: what becomes of the job when a process with workers is lost */
    bool needs_all;        /* the lead: nobody can go on without one (all-reduce) */
    bool cannot_return;    /* the lead: who was lost has nothing to come back to */
    bool rows_stay;        /* the lead: nobody can take over the rows of another, and the result needs them */
    const char *local;     /* the Unix socket of the lead, as "unix:@name"; NULL: one that nobody can guess */
    const char *listen;    /* or NULL */
    const char *advertise; /* or NULL */
    bool has_others;       /* not the lead: it is known that processes of other hosts take part */
    uint64_t join_timeout_ms;
    const atomic_bool *interrupted; /* or NULL */
    char title[RBT_PICTURE_TITLE];  /* the lead: what the job is, for those who watch it */
    /* Not the lead, which had its seat: the lead is lost or silent and has not said that the job is over. Before on_over; or NULL. */
    void (*on_unled)(void *context);
    void (*on_free)(void *context); /* not the lead: from now on this process may go on without one; or NULL */
    void (*on_over)(void *context,
                    const rbt_error *why); /* not the lead, which had its seat: the job is over; or NULL */
    void *context;
    rbt_log log; /* at the lead; elsewhere only when there is no lead any more */
} rbt_session_config;

typedef struct rbt_session rbt_session;

typedef struct rbt_session_hooks {
    void (*on_say)(void *context, uint32_t rank, uint32_t say, rbt_arrival *arrival); /* takes it */
    void (*on_message)(void *context, uint32_t rank, rbt_message *message);           /* takes it */
    void (*on_room)(void *context, uint32_t rank); /* what is queued for it has become less than RBT_QUEUE_LOW */
    /* The lead, after the start; with END the session ends the job when this returns. */
    void (*on_lost)(void *context, uint32_t rank, rbt_verdict verdict, const rbt_error *why);
    void (*on_back)(void *context, uint32_t rank); /* a lost seat is taken again */
    void (*on_over)(void *context);                /* the job has ended here */
    /* Not the lead, after the start: the lead is gone. True: this process goes on without it, and is then told itself which
     * ranks it has lost. NULL: it ends. */
    bool (*on_alone)(void *context, rbt_error *why);
    void (*on_missed)(void *context, uint32_t rank, const rbt_error *why);
    void (*on_tick)(void *context);
    void (*on_picture)(void *context, rbt_picture *picture); /* somebody watches: the workers are added to it */
    void *context;
} rbt_session_hooks;

/* ------------------------------------------------------------------------------------------------------ the lead */

/* Begins to listen. `seats` (copied) has the roles of all ranks; the lead's own is 0. */
rbt_err rbt_session_lead(const rbt_session_config *config, const rbt_seat *seats, uint32_t size, rbt_session **session,
                         rbt_error *error);

/* Where others join: over a Unix socket on this host, and over TCP ("" when it does not listen there). */
const char *rbt_session_local_address(const rbt_session *session);
const char *rbt_session_tcp_address(const rbt_session *session);

/* Waits until all seats are taken, telling every 5 s who is missing; RBT_E_MISSING after the time-out. `check` (may be
 * NULL) is asked ten times a second whether it is still worth waiting. */
rbt_err rbt_session_gather(rbt_session *session, rbt_err (*check)(void *context, rbt_error *error), void *context,
                           rbt_error *error);

/* Tells everybody their seats and the job description. */
void rbt_session_welcome(rbt_session *session, const rbt_bytes *description);

/* Waits until all are ready, and starts. */
rbt_err rbt_session_start(rbt_session *session, rbt_error *error);

/* Tells everybody that the job is over, and why (RBT_OK: it is done). */
void rbt_session_end(rbt_session *session, const rbt_error *why);

/* How a rank stands; its workers have ended (and all it counted has come); who takes over the rows of one without which the
 * job goes on: the caller frees it. */
rbt_rank_state rbt_session_state(rbt_session *session, uint32_t rank);
void rbt_session_done(rbt_session *session, uint32_t rank, bool has_told);
rbt_bequests rbt_session_bequeath(rbt_session *session, uint32_t rank);

/* ---------------------------------------------------------------------------------------------------- the others */

/* Joins and waits for the seat; `rank` is the one wanted, or RBT_RANK_NONE. The description is the caller's to free. */
rbt_err rbt_session_join(const rbt_session_config *config, const char *address, uint32_t rank, rbt_session **session,
                         rbt_bytes *description, rbt_error *error);

/* Tells the lead that all is prepared, and waits for the start. */
rbt_err rbt_session_ready(rbt_session *session, rbt_error *error);

/* This process may go on when the lead is gone (hook on_alone): says so to who started it. */
void rbt_session_set_free(rbt_session *session);

/* The job has ended in this process, for this reason; nobody is told. */
void rbt_session_leave(rbt_session *session, const rbt_error *why);

/* Tells the lead that something failed here. */
void rbt_session_fail(rbt_session *session, const rbt_error *why);

/* ------------------------------------------------------------------------------------------------------- everybody */

void rbt_session_destroy(rbt_session *session);
uint32_t rbt_session_rank(const rbt_session *session);
uint32_t rbt_session_size(const rbt_session *session);
const rbt_seat *rbt_session_seat(const rbt_session *session, uint32_t rank);

/* Connects to all seats before one's own and waits until those behind it have called. */
rbt_err rbt_session_meet(rbt_session *session, rbt_error *error);

/* While the job runs: holds connections to the ranks that are needed (and to the lead), and to no others. One that has become
 * needed is dialled if it comes before this one, otherwise it will call. */
void rbt_session_keep(rbt_session *session, const bool *is_needed);

/* The job's processes as a crew; the session must outlive it. */
rbt_crew rbt_session_crew(rbt_session *session);

/* From now on the hooks are called; none of the former ones runs any more when this returns. */
void rbt_session_hook(rbt_session *session, const rbt_session_hooks *hooks);

/* Says something of the runtime's own; `body` is taken. */
void rbt_session_say(rbt_session *session, uint32_t rank, uint32_t say, const rbt_pack *words, void *body,
                     size_t body_n);

/* The same with the values of dense blocks as the body, which stay where they are: several may be told the same. */
void rbt_session_say_blocks(rbt_session *session, uint32_t rank, uint32_t say, const rbt_pack *words,
                            const rbt_message *blocks);
size_t rbt_session_send(rbt_session *session, uint32_t rank, rbt_message *message,
                        unsigned codec); /* takes it; how many bytes it took, without the frame around it */
void rbt_session_wait_room(rbt_session *session);
size_t rbt_session_queued(rbt_session *session, uint32_t rank); /* bytes that have not gone out, or not arrived */
void rbt_session_cut(rbt_session *session, uint32_t rank, const char *why);
void rbt_session_expect(rbt_session *session, uint64_t body_max);
void rbt_session_traffic(const rbt_session *session, uint64_t *out, uint64_t *in);

/* The job ended: RBT_OK while it has not. */
rbt_err rbt_session_over(rbt_session *session, rbt_error *why);
bool rbt_session_is_over(rbt_session *session);

/* The log of a process (`write` of an rbt_log whose context is the session): told at the lead, by name. */
void rbt_session_log(void *session, rbt_log_level level, const char *source, const char *sentence);

/* How a rank is called in messages: "rank 3 on host b". */
void rbt_session_name(const rbt_session *session, uint32_t rank, char *name, size_t room);

#endif
