/* A worker as its program holds it: the client, and how the runtime lets it wait.
 *
 * The blocking calls of rubato.h (program.c, and hop.c for jobs without servers) are the only places where a worker waits. They are
 * written once, over the operations below; places.c and sim.c supply them. */
#ifndef RBT_RUNTIME_HANDLE_H
#define RBT_RUNTIME_HANDLE_H

#include "node/onlooker.h"
#include "node/peer.h"
#include "runtime/runtime.h"

typedef struct rbt_worker_ops {
    /* Handles the messages that have come; when there are none and `wait` is set, sleeps until one comes. A peer's are handled when
     * they come: then it only waits for one that has been since the last call. False when this worker is no more (crashed): the
     * program must end. */
    bool (*receive)(rbt_worker *worker, bool wait);
    void (*deliver)(rbt_worker *worker, rbt_outbox *out);
    uint64_t (*now_ns)(rbt_worker *worker);
    void (*work)(rbt_worker *worker, uint64_t samples, uint64_t nonzeros); /* NULL: time passes by itself */
    void (*sleep_ns)(rbt_worker *worker, uint64_t ns);                     /* NULL: `work` has charged it already */

    /* A worker's peer, whose messages other threads handle: nobody else touches it while it is held. Letting go delivers what it has
     * said, before anything it says later. NULL: one thread runs all. */
    void (*hold)(rbt_worker *worker);
    void (*let_go)(rbt_worker *worker, rbt_outbox *out);
} rbt_worker_ops;

struct rbt_worker {
    rbt_client client;
    rbt_run *run;
    const rbt_worker_ops *ops;
    void *place;            /* the runtime's own */
    rbt_process *process;   /* what it shares with the others of its process, or NULL */
    rbt_peer *peer;         /* a job without servers: the node of this worker ... */
    rbt_onlooker *onlooker; /* ... or of this observer; the client then has its number and clock alone */
    rbt_mix mix;            /* the average it is working on */
    RBT_ARRAY(rbt_span) spans;
    uint64_t since_ns;         /* when the program got control back */
    uint64_t clock_compute_ns; /* computed in this clock so far */
    uint64_t compute_ns;
    uint64_t wait_ns;
    uint64_t communication_ns;
    uint64_t slowed_ns;
    uint64_t samples;
    uint64_t added_clocks; /* at the end, for what was held back: not the program's */
    uint64_t reads;        /* a peer's: updates of others that it has taken */
    uint64_t increments;
};

void rbt_worker_init(rbt_worker *worker, rbt_run *run, uint32_t id, uint32_t incarnation, const rbt_worker_ops *ops,
                     void *place);
void rbt_worker_deinit(rbt_worker *worker);

/* Hands a message to the worker's node. */
void rbt_worker_handle(rbt_worker *worker, rbt_message *message, rbt_env *env);

/* A job without servers (peer.h). rbt_hop_read copies the peer's parameters, rbt_hop_add adds an update to them. The others wait
 * until the protocol lets the worker go on: rbt_hop_send sends the parameters; rbt_hop_receive gives the average plus factor * add
 * (NULL: nothing), which is the caller's; rbt_hop_next hands new parameters over (taken; NULL: they stay) and enters the next iteration,
 * perhaps after jumping over some. */
void rbt_hop_read(rbt_worker *worker, float *to);
void rbt_hop_add(rbt_worker *worker, const float *update, float factor);
rbt_err rbt_hop_send(rbt_worker *worker, rbt_error *error);
rbt_err rbt_hop_receive(rbt_worker *worker, const float *add, float factor, rbt_snap **mixed, rbt_error *error);
rbt_err rbt_hop_next(rbt_worker *worker, rbt_snap *x, rbt_error *error);

/* All-reduce: `values` becomes the sum over all workers. */
rbt_err rbt_hop_sum(rbt_worker *worker, float *values, size_t n, rbt_error *error);

/* AD-PSGD: averages with one neighbour; at the end, one who answers stays until all who may ask have left. */
rbt_err rbt_hop_gossip(rbt_worker *worker, rbt_error *error);
rbt_err rbt_hop_linger(rbt_worker *worker, rbt_error *error);

/* Called by program.c: the end, and the observer's mean of all peers once the slowest is in iteration `need`. */
rbt_err rbt_hop_retire(rbt_worker *worker);
rbt_err rbt_hop_observe(rbt_worker *observer, uint64_t need, void *out, uint64_t *slowest, rbt_error *error);
uint64_t rbt_hop_observed_updates(const rbt_worker *observer);
uint64_t rbt_hop_observed_skipped(const rbt_worker *observer);

/* Runs the program from its first clock (or where a former life stopped) to the end, and leaves the job. */
rbt_err rbt_worker_run(rbt_worker *worker, const rbt_program *program, rbt_error *error);

/* The observer waits until it has all blocks of a table, as rbt_observe; they are in its client's cache. */
rbt_err rbt_observe_wait(rbt_worker *observer, rbt_table table, uint64_t need, uint64_t *slowest, rbt_error *error);

/* How many updates are in what the observer has of a table; of peers, how many iterations, and how many of these were jumped over
 * and made none. */
uint64_t rbt_observed_updates(const rbt_worker *observer, rbt_table table);
uint64_t rbt_observed_skipped(const rbt_worker *observer);

/* How many clocks of a worker are in all that the observer read last. */
uint64_t rbt_observed_clock(const rbt_worker *observer, uint32_t worker);

/* The observer's read: a whole table once `need` rounds have passed (rbt_rounds; RBT_UNBOUNDED: once all have left), and
 * what the slowest has finished by then. */
rbt_err rbt_observe(rbt_worker *observer, rbt_table table, uint64_t need, void *out, uint64_t *slowest,
                    rbt_error *error);

/* The same of rows row .. row + n - 1 of a table with servers, and how many updates are in them: blocks in which none of them
 * lies are not asked for. */
rbt_err rbt_observe_rows(rbt_worker *observer, rbt_table table, uint64_t row, uint64_t n, uint64_t need, void *out,
                         uint64_t *slowest, uint64_t *updates, rbt_error *error);

/* The observer's word to the master: the objective after a clock. */
void rbt_observer_report(rbt_worker *observer, uint64_t clock, double objective);

/* The time on the runtime's clock since the run began. */
uint64_t rbt_worker_elapsed_ns(rbt_worker *worker);

#endif
