/* What becomes of a job that loses processes: the lead's decisions, as one small state machine per rank.
 *
 * Events go in: a rank has started, is lost, is back, has done its work, has told its totals, or somebody complains that
 * it cannot reach another one any more. Decisions come out: the job goes on without it (and who takes over which of its
 * rows), waits for it, or ends with this reason; and which one of two that lost each other is cut off, for the lead alone
 * reaches both. It knows no socket, no thread and no clock: time is an argument, and session.c and cluster.c carry out what
 * it says. Always: a rank that is gone is never waited for; the rows of every worker are with exactly one rank, as long as
 * one works that can take them. Proved by tests/unit/test_losses.c and on real processes by tests/cluster.
 */
#ifndef RBT_RUNTIME_CLUSTER_LOSSES_H
#define RBT_RUNTIME_CLUSTER_LOSSES_H

#include "base/mem.h"
#include "rubato.h"

#define RBT_APART_MS 1500 /* so long it waits for the lead itself to lose one of two that cannot reach each other */

/* AUTO: as CONTINUE where others can take over the rows, else the job ends. */
typedef enum rbt_on_loss { RBT_LOSS_CONTINUE, RBT_LOSS_STOP, RBT_LOSS_WAIT, RBT_LOSS_AUTO } rbt_on_loss;

typedef enum rbt_rank_state {
    RBT_RANK_COMING,    /* not at work yet */
    RBT_RANK_WORKING,   /* its workers are */
    RBT_RANK_DONE,      /* they have ended */
    RBT_RANK_TOLD,      /* and what they counted has come */
    RBT_RANK_RETURNING, /* somebody has taken its place and prepares */
    RBT_RANK_AWAY,      /* lost, and waited for */
    RBT_RANK_GONE       /* lost, and nobody waits */
} rbt_rank_state;

/* Every step-th row of a worker's share from `first` on. */
typedef struct rbt_rows_of {
    uint32_t worker, first, step;
} rbt_rows_of;

/* Who takes over what. */
typedef struct rbt_bequest {
    uint32_t rank;
    rbt_rows_of rows;
} rbt_bequest;
typedef RBT_ARRAY(rbt_bequest) rbt_bequests;

typedef struct rbt_rank {
    uint32_t first_worker, workers, servers;
    rbt_rank_state state;
    RBT_ARRAY(rbt_rows_of) inherited; /* beside those of its own workers */
} rbt_rank;

/* `by` cannot reach `about` any more. */
typedef struct rbt_complaint {
    uint32_t by, about;
    bool is_accused; /* of having broken the protocol; otherwise the network may have */
    char why[256];
} rbt_complaint;

typedef struct rbt_losses {
    rbt_on_loss on_loss;
    bool needs_all;     /* nobody can go on without one: a sum over all */
    bool cannot_return; /* who was lost has nothing to come back to */
    bool rows_stay;     /* nobody can take over the rows of another, and the result needs them */
    uint32_t size;
    rbt_rank *ranks;
    RBT_ARRAY(rbt_complaint) complaints;
    uint64_t since_ns; /* of the first one */
} rbt_losses;

typedef enum rbt_verdict {
    RBT_VERDICT_NOTHING, /* it is not needed any more */
    RBT_VERDICT_GO_ON,   /* without it */
    RBT_VERDICT_WAIT,    /* for it */
    RBT_VERDICT_END      /* the job ends */
} rbt_verdict;

void rbt_losses_init(rbt_losses *losses, rbt_on_loss on_loss, uint32_t size);
void rbt_losses_deinit(rbt_losses *losses);

/* The roles of a rank. */
void rbt_losses_seat(rbt_losses *losses, uint32_t rank, uint32_t first_worker, uint32_t workers, uint32_t servers);

/* All start; somebody takes the place of one that is away (false: nobody is waited for there), and works; its workers have
 * ended; all is told. */
void rbt_losses_start(rbt_losses *losses);
bool rbt_losses_return(rbt_losses *losses, uint32_t rank);
void rbt_losses_back(rbt_losses *losses, uint32_t rank);
void rbt_losses_done(rbt_losses *losses, uint32_t rank);
void rbt_losses_told(rbt_losses *losses, uint32_t rank);

/* A rank is lost. *reason (END) says why the job cannot go on, to stand behind a semicolon. */
rbt_verdict rbt_losses_lost(rbt_losses *losses, uint32_t rank, const char **reason);

/* After GO_ON: the rows of that rank, shared by those that still work; empty when nobody does. The caller frees it. */
rbt_bequests rbt_losses_bequeath(rbt_losses *losses, uint32_t rank);

/* `by` says that it cannot reach `about`. */
void rbt_losses_complain(rbt_losses *losses, uint32_t by, uint32_t about, bool is_accused, const char *why,
                         uint64_t now_ns);

/* Is somebody to be cut off by now? Then *complaint says who (`about`), and on whose word; what was said of it is forgotten.
 * Servers are kept before workers, who is accused goes before who accuses, and who lost many before who lost one. */
bool rbt_losses_judge(rbt_losses *losses, uint64_t now_ns, rbt_complaint *complaint);

/* Have the workers of one in this state ended, has all been told that will ever be? Who is gone has nothing more to say. */
bool rbt_rank_is_done(rbt_rank_state state);
bool rbt_rank_is_told(rbt_rank_state state);
bool rbt_losses_is_lost(const rbt_losses *losses, uint32_t rank);

#endif
