/* The cluster runtime as cluster.c, status.c, links.c, room.c, alone.c and heirs.c know it; outside it is opaque. */
#ifndef RBT_RUNTIME_CLUSTER_CLUSTER_STATE_H
#define RBT_RUNTIME_CLUSTER_CLUSTER_STATE_H

#include "runtime/cluster/cluster.h"

/* What processes of a running job say. */
enum {
    SAY_STATUS = RBT_SAY_OWN, /* to the lead: what the workers here have published */
    SAY_DONE,                 /* to the lead: the workers here have ended */
    SAY_CLOSE,                /* from the lead: all have; what is the sum? */
    SAY_TOTALS,               /* to the lead */
    SAY_WEIGH,                /* from the lead: what are the losses at these parameters? */
    SAY_LOSSES,               /* to the lead */
    SAY_INHERIT,              /* from the lead: take over your shares of lost workers' rows */
};

#define STATUS_FIELDS 8 /* that a worker's process tells of it */

typedef struct reported { /* by one process, so far */
    uint64_t bytes;
    uint64_t plain;
    uint64_t messages;
    bool answered; /* the question under way */
    double losses; /* its answer */
    uint64_t rows;
    uint64_t heard_ns; /* when its last status came */
    uint64_t lost_ns;  /* when it was lost */
} reported;

typedef struct waiting_pulls { /* of one process */
    rbt_outbox pulls;
    size_t bytes;
} waiting_pulls;

struct rbt_cluster {
    rbt_run *run;
    rbt_session *session;
    rbt_places places;
    bool leads;
    const rbt_seat *seat;
    uint32_t *rank_of_node;
    rbt_cluster_work work;
    waiting_pulls *waiting; /* per rank; the hub's thread's */

    pthread_mutex_t lock; /* for all below */
    pthread_cond_t news;
    bool *is_gone;                     /* per worker: it has left, as a view has told */
    reported *ranks;                   /* the lead: per rank */
    uint64_t (*before)[STATUS_FIELDS]; /* the lead: per worker, what its former lives have counted */
    float *question;                   /* elsewhere: parameters to be weighed, or NULL */
    uint64_t question_id;
    rbt_message *weighed; /* the lead: parameters that the others are being asked about; NULL: none */
    bool hurries;         /* the lead: after an interrupt nobody waits for losses any more */
    bool closing;         /* the lead: has asked for the sums */
    bool is_alone;        /* elsewhere: the lead is gone, and this process goes on */
    bool has_worked;      /* elsewhere: the workers here have ended ... */
    rbt_err worked;       /* ... like this ... */
    rbt_error failed;     /* ... for this reason */
    uint32_t view;        /* the last one that was heard */
    rbt_snap **last;      /* without servers, per worker here: its last parameters; NULL: none yet */
    bool ended;
    uint64_t stop_asked_ns;
    uint64_t told_ns;
    uint64_t started_ns;           /* the lead; 0: not yet */
    RBT_ARRAY(rbt_rows_of) estate; /* rows of lost workers that are to be taken over */
    bool inherits;                 /* a thread does */
    struct rbt_heirs *heirs;       /* what it shares with us; NULL: there was none */
};

/* ---------------------------------------------------------------------------------------------------- status.c */

/* What the workers here have published, and how long each has been waiting: to the lead. */
void rbt_status_say(rbt_cluster *c, uint32_t say);

/* The lead takes what a process has published, or counted altogether; false: it makes no sense. The lock is held. */
bool rbt_status_take(rbt_cluster *c, uint32_t rank, rbt_unpack *words);
void rbt_status_keep(rbt_cluster *c, uint32_t rank); /* it is back, and counts from 0 */
void rbt_totals_say(rbt_cluster *c);
bool rbt_totals_take(rbt_cluster *c, rbt_unpack *words);

/* The lead: who has been waiting for long, and for whom, is told now and then. The lock is held. */
void rbt_status_tell_patience(rbt_cluster *c);

/* The lead: what the job's processes have told, for those who watch (a hook of the session). */
void rbt_status_draw(void *context, rbt_picture *picture);

/* ----------------------------------------------------------------------------------------------------- links.c */

void rbt_links_place(rbt_cluster *c);
void rbt_links_keep(rbt_cluster *c); /* not the lead: lets go of processes that are not needed, calls those that are */
void rbt_links_hear(rbt_cluster *c, const rbt_message *message); /* a view may change who is needed */

/* Messages of other processes: only for nodes here, only from nodes there, and only what such a node says. */
bool rbt_links_allow(const rbt_cluster *c, uint32_t rank, const rbt_message *message);

/* ------------------------------------------------------------------------------------------------------ room.c */

/* Delivers what has come from a process; a pull only when what is queued for it leaves room, else later. */
void rbt_room_take(rbt_cluster *c, uint32_t rank, rbt_message *message);
void rbt_room_again(rbt_cluster *c, uint32_t rank); /* there may be room */

/* Blocks that nobody asked for, to a process that does not get to read what it asked for: it will ask. */
bool rbt_room_is_wasted(const rbt_cluster *c, const rbt_message *message);
void rbt_room_deinit(rbt_cluster *c);

/* ----------------------------------------------------------------------------------------------------- alone.c */

/* Hooks of the session: the lead is gone; a neighbour is, and there is no lead. */
bool rbt_alone_begin(void *context, rbt_error *why);
void rbt_alone_missed(void *context, uint32_t rank, const rbt_error *why);
void rbt_alone_keep(rbt_cluster *c, const rbt_message *message); /* the last parameters of a worker here */
void rbt_alone_deinit(rbt_cluster *c);

/* ----------------------------------------------------------------------------------------------------- heirs.c */

/* Takes rows of lost workers over, on a thread of its own; false: the words make no sense. The lock is held. */
bool rbt_heirs_take(rbt_cluster *c, rbt_unpack *words);
void rbt_heirs_end(rbt_cluster *c); /* from now on nothing is taken over; a thread that still reads is left alone */

/* The lead: those that still work share the rows of a process that is gone. */
void rbt_heirs_share(rbt_cluster *c, uint32_t rank);

#endif
