/* Update rules: what a server does with an update (docs/protocols.md, section 2).
 *
 * A server keeps one rbt_cell per block: the value, and whatever the rule remembers. A rule is a small set of functions
 * over a cell: init, on_read (a worker is about to be given the value), apply (an update, with the version it belongs
 * to) and expire (versions nobody can name any more). sum, con and dyn work on snapshots, sparse ones too; all others
 * are procedures (rubato.h: plain f32 arrays, memory per element), which procedure.c makes rules of. rbt_cell_push is
 * the one way in.
 *
 * Versions. dyn: a worker says which version its update belongs to (it knows which copy it computed from;
 * rbt_dyn_version), and the server's V[m] is a lower bound of what worker m will name next. That makes dyn independent
 * of when pulls are answered, repeated or prefetched. Procedures: a block's version is the number of updates it has
 * taken; a worker names the version it read, and the cell keeps what the procedure wants to know of each version that
 * was given to a worker which may still name it.
 *
 * Always: live versions of dyn <= staleness + 1 (asserted on every push); value = what was there at first + all
 * versions (checked by the simulator); versions kept for a procedure <= most_kept. Proved by tests/unit/test_rule.c and
 * test_procedure.c.
 */
#ifndef RBT_RULE_RULE_H
#define RBT_RULE_RULE_H

#include "base/mem.h"
#include "sync/floor.h"
#include "table/snap.h"

/* Versions that are kept of one block for a procedure. Beyond it the oldest goes, and who computed from it counts as
 * having computed from the next: the delay is underestimated, nothing else. Eager pushes, which nobody waits for, are
 * left out before that. Readers that read once per clock hold at most two each, and those of eager pushes. */
#define RBT_KEPT_MAX 64

typedef struct rbt_rule rbt_rule;

typedef struct rbt_rule_config {
    const rbt_rule *rule;
    uint32_t workers;
    uint64_t staleness;
    float factor;        /* con, momentum: what every update is multiplied by */
    float rate;          /* adagrad, adarev: the step size */
    float momentum;      /* momentum: the share of a clock's change that stays */
    uint32_t most_kept;  /* procedures that keep versions: so many; 0: RBT_KEPT_MAX */
    bool partition_sync; /* dyn: fold versions into the value only when they expire; reads name a version */
} rbt_rule_config;

/* One version of dyn: the mean of the updates that share it. */
typedef struct rbt_cell_version {
    uint64_t number;
    uint64_t updates; /* how many share it so far */
    rbt_snap *mean;
} rbt_cell_version;

/* What a procedure keeps of one version, and which workers may still name it. */
typedef struct rbt_kept {
    uint64_t version;
    float *values;
    uint64_t *holders; /* a bit per worker */
} rbt_kept;

/* A block on a server, with its rule's memory. */
typedef struct rbt_cell {
    rbt_snap *value;
    uint64_t updates;                     /* parts with something in them that were applied */
    uint64_t fastest;                     /* cmax, the highest number of clocks any worker has finished here */
    RBT_ARRAY(rbt_cell_version) versions; /* dyn: live ones, ascending by number */
    rbt_floor next;                       /* dyn: V[m], the lowest version worker m can still name */
    uint64_t top;                         /* dyn: one past the highest version anyone has named; at least `fastest` */
    float *memory;                        /* procedures */
    size_t kept_bytes;                    /* procedures: of one version */
    RBT_ARRAY(rbt_kept) kept;             /* procedures: ascending by version */
} rbt_cell;

/* An update as it comes from a worker. */
typedef struct rbt_push {
    uint32_t worker;
    uint64_t clock;   /* the clock it was computed in */
    uint64_t version; /* the version it belongs to; for procedures the one read, RBT_UNBOUNDED: none was */
    uint64_t slowest; /* what the worker knew of the slowest: bounds the version it can name next */
    rbt_snap *update; /* NULL: nothing changed in this block, but it counts */
} rbt_push;

/* What the version of an update is. */
typedef enum rbt_versions {
    RBT_VERSIONS_NONE,
    RBT_VERSIONS_SHARED, /* dyn: one that updates of several workers share, worked out from clocks */
    RBT_VERSIONS_READ,   /* the one it was computed from, told with the value */
} rbt_versions;

struct rbt_rule {
    const char *name;
    const rbt_procedure *procedure; /* NULL: works on snapshots */
    rbt_versions versions;
    bool takes_gradients; /* workers push gradients and see their own effect only through the server */
    bool counts_empty;    /* a push names every block, because one that changes nothing counts, too */
    void (*init)(const rbt_rule_config *config, rbt_cell *cell);
    void (*on_read)(const rbt_rule_config *config, rbt_cell *cell, uint32_t worker);
    void (*apply)(const rbt_rule_config *config, rbt_cell *cell, const rbt_push *push);
    void (*expire)(const rbt_rule_config *config, rbt_cell *cell, uint64_t oldest);
};

extern const rbt_rule rbt_rule_sum;
extern const rbt_rule rbt_rule_con;
extern const rbt_rule rbt_rule_dyn;
extern const rbt_rule rbt_rule_adagrad;
extern const rbt_rule rbt_rule_adarev;
extern const rbt_rule rbt_rule_momentum;

void rbt_cell_init(rbt_cell *cell, const rbt_rule_config *config, rbt_type type, uint32_t length, bool sparse);
void rbt_cell_deinit(rbt_cell *cell);

/* Is this update one the rule can take? Bytes of a peer are checked here, before rbt_cell_push asserts. */
bool rbt_cell_accepts(const rbt_cell *cell, const rbt_rule_config *config, const rbt_push *push);

/* Applies an update; each (worker, clock) exactly once and in clock order per worker, as the server sees to. A
 * procedure that keeps versions may get several parts of one push, each with its own version. */
void rbt_cell_push(rbt_cell *cell, const rbt_rule_config *config, const rbt_push *push);

/* Applies a part of the update of a clock that goes on. */
void rbt_cell_push_part(rbt_cell *cell, const rbt_rule_config *config, const rbt_push *push);

/* The worker will push no more. */
void rbt_cell_leave(rbt_cell *cell, const rbt_rule_config *config, uint32_t worker);

/* A worker is about to be given the value: its updates can name this version from now on. */
void rbt_cell_lend(rbt_cell *cell, const rbt_rule_config *config, uint32_t worker);

/* May the value also go to somebody who has not asked for it? Not if a version would be forgotten for it. */
bool rbt_cell_may_spread(const rbt_cell *cell, const rbt_rule_config *config);

/* The value for a reader: a reference to be released, and the version that updates computed from it belong to. With
 * partition_sync only versions below `version` are in it; otherwise `version` is ignored and everything is. */
rbt_snap *rbt_cell_read(const rbt_cell *cell, const rbt_rule_config *config, uint64_t version, uint64_t *is_version);

/* Versions alive in a cell, and their bytes. */
size_t rbt_cell_version_count(const rbt_cell *cell);
size_t rbt_cell_version_bytes(const rbt_cell *cell);

#endif
