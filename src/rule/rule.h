/* Update rules: what a server does with an update (docs/protocols.md, section 2).
 *
 * A server keeps one rbt_cell per block: the value, and whatever the rule remembers. A rule is three functions after
 * DynSGD, map (update -> version), update (apply it to that version) and expire (a version nobody will push to again
 * goes); sum, con and adagrad have a single version and use only update. rbt_cell_push is the one way in.
 *
 * Versions: a worker says which version its update belongs to (it knows which copy it computed from; rbt_dyn_version),
 * and the server's V[m] is a lower bound of what worker m will name next. That makes dyn independent of when pulls are
 * answered, repeated or prefetched.
 *
 * Always: live versions of dyn <= staleness + 1 (asserted on every push); value = what was there at first + all
 * versions (checked by the simulator). Proved by tests/unit/test_rule.c.
 */
#ifndef RBT_RULE_RULE_H
#define RBT_RULE_RULE_H

#include "base/mem.h"
#include "sync/floor.h"
#include "table/snap.h"

typedef struct rbt_rule rbt_rule;

typedef struct rbt_rule_config {
    const rbt_rule *rule;
    uint32_t workers;
    uint64_t staleness;
    float factor;        /* con: what every update is multiplied by */
    float rate;          /* adagrad: the step size */
    bool partition_sync; /* dyn: fold versions into the value only when they expire; reads name a version */
} rbt_rule_config;

/* One version of dyn: the mean of the updates that share it. */
typedef struct rbt_cell_version {
    uint64_t number;
    uint64_t updates; /* how many share it so far */
    rbt_snap *mean;
} rbt_cell_version;

/* A block on a server, with its rule's memory. */
typedef struct rbt_cell {
    rbt_snap *value;
    rbt_snap *squares;                    /* adagrad: sum of squared gradients */
    RBT_ARRAY(rbt_cell_version) versions; /* dyn: live ones, ascending by number */
    rbt_floor next;                       /* dyn: V[m], the lowest version worker m can still name */
    uint64_t fastest;                     /* dyn: cmax, the highest number of clocks any worker has finished */
    uint64_t top;                         /* dyn: one past the highest version anyone has named; at least `fastest` */
} rbt_cell;

/* An update as it comes from a worker. */
typedef struct rbt_push {
    uint32_t worker;
    uint64_t clock;   /* the clock it was computed in */
    uint64_t version; /* the version it belongs to */
    uint64_t slowest; /* what the worker knew of the slowest: bounds the version it can name next */
    rbt_snap *update; /* NULL: nothing changed in this block, but it counts */
} rbt_push;

struct rbt_rule {
    const char *name;
    bool takes_gradients; /* workers push gradients and see their own effect only through the server */
    void (*init)(const rbt_rule_config *config, rbt_cell *cell);
    uint64_t (*map)(const rbt_cell *cell, const rbt_push *push);
    void (*update)(const rbt_rule_config *config, rbt_cell *cell, uint64_t version, rbt_snap *update);
    void (*expire)(const rbt_rule_config *config, rbt_cell *cell, uint64_t oldest);
};

extern const rbt_rule rbt_rule_sum;
extern const rbt_rule rbt_rule_con;
extern const rbt_rule rbt_rule_dyn;
extern const rbt_rule rbt_rule_adagrad;

void rbt_cell_init(rbt_cell *cell, const rbt_rule_config *config, rbt_type type, uint32_t length, bool sparse);
void rbt_cell_deinit(rbt_cell *cell);

/* Is this update one the rule can take? Bytes of a peer are checked here, before rbt_cell_push asserts. */
bool rbt_cell_accepts(const rbt_cell *cell, const rbt_rule_config *config, const rbt_push *push);

/* Applies an update; each (worker, clock) exactly once and in clock order per worker, as the server sees to. */
void rbt_cell_push(rbt_cell *cell, const rbt_rule_config *config, const rbt_push *push);

/* The worker will push no more. */
void rbt_cell_leave(rbt_cell *cell, const rbt_rule_config *config, uint32_t worker);

/* The value for a reader: a reference to be released, and the version that updates computed from it belong to. With
 * partition_sync only versions below `version` are in it; otherwise `version` is ignored and everything is. */
rbt_snap *rbt_cell_read(const rbt_cell *cell, const rbt_rule_config *config, uint64_t version, uint64_t *is_version);

size_t rbt_cell_version_bytes(const rbt_cell *cell);

#endif
