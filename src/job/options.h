/* The options of a job, in one table that generates parsing, --help, the job file and the effective configuration.
 *
 * rbt_options holds the values; options.c holds the table. A value is set by its name and text
 * (rbt_options_set), whether it comes from the command line, a job file or the C API; rbt_options_check then refuses
 * what makes no sense together, with the reason, and fills in what depends on something else ("auto"). Proved by
 * tests/unit/test_options.c.
 */
#ifndef RBT_JOB_OPTIONS_H
#define RBT_JOB_OPTIONS_H

#include "comm/pick.h"
#include "data/store.h"
#include "rubato.h"
#include "runtime/cluster/cluster.h"
#include "solve/sgd.h"

#define RBT_WORKERS_LIMIT        100000
#define RBT_SERVERS_LIMIT        10000
#define RBT_MOMENTUM_DEFAULT     0.9 /* what the table has: an option with another value was given */
#define RBT_SKIP_TRIGGER_DEFAULT 2
#define RBT_DELTA_DEFAULT        1.0 /* where nothing is learned from labels, or these are all the same */
#define RBT_JOIN_TIMEOUT_DEFAULT 60
#define RBT_OPTION_ROOM          4352 /* characters that hold any option's value as text, with the end: a path and a little */

typedef enum rbt_runtime_kind { RBT_RUNTIME_LOCAL, RBT_RUNTIME_SIM, RBT_RUNTIME_CLUSTER } rbt_runtime_kind;
typedef enum rbt_sync {
    RBT_SYNC_AUTO,
    RBT_SYNC_BSP,
    RBT_SYNC_SSP,
    RBT_SYNC_ASP,
    RBT_SYNC_HOP,       /* peers, no servers: a graph of neighbours ... */
    RBT_SYNC_ADPSGD,    /* ... of which one at a time is averaged with ... */
    RBT_SYNC_ALLREDUCE, /* ... or sums around a ring */
    RBT_SYNC_HOGWILD,   /* from here on: shared memory, no servers */
    RBT_SYNC_AIG,
    RBT_SYNC_ROUND_ROBIN,
    RBT_SYNC_PSGD,
    RBT_SYNC_SEQUENTIAL,
} rbt_sync;
typedef enum rbt_order { RBT_ORDER_PARALLEL, RBT_ORDER_SERIAL } rbt_order;
typedef enum rbt_rule_kind {
    RBT_RULE_AUTO,
    RBT_RULE_SUM,
    RBT_RULE_CON,
    RBT_RULE_DYN,
    RBT_RULE_ADAGRAD,
    RBT_RULE_ADAREV,
    RBT_RULE_MOMENTUM
} rbt_rule_kind;
typedef enum rbt_decay { RBT_DECAY_NONE, RBT_DECAY_SQRT, RBT_DECAY_MULT, RBT_DECAY_AUTO } rbt_decay;
typedef enum rbt_normalize { RBT_NORMALIZE_NONE, RBT_NORMALIZE_UNIT, RBT_NORMALIZE_STANDARD } rbt_normalize;
typedef enum rbt_cache_use { RBT_CACHE_OFF, RBT_CACHE_AUTO } rbt_cache_use;
typedef enum rbt_toggle { RBT_AUTO, RBT_OFF, RBT_ON } rbt_toggle;

typedef struct rbt_options {
    /* what */
    char *model;
    char *data;            /* PATH */
    char *valid;           /* PATH or NULL */
    char *out;             /* PATH or NULL */
    char *settings;        /* --set NAME=VALUE,...: options of the method's own; each also as --NAME VALUE */
    rbt_cache_use cache;   /* --cache off|auto */
    rbt_store_level store; /* --store memory|disk|both */

    /* how data is read; rbt_reading in rubato.h says what each is */
    char *format;      /* --format or NULL */
    char *label;       /* --label or NULL */
    char *weight;      /* --weight or NULL */
    uint32_t bits;     /* --bits; 0 = auto */
    rbt_base base;     /* --base auto|0|1 */
    uint64_t skip_bad; /* --skip-bad */

    /* the job */
    rbt_runtime_kind runtime; /* --runtime local|sim|cluster */
    uint32_t workers;         /* --workers N; 0 = as many as cores */
    bool workers_auto;        /* it was: the data may be too small for all of them */
    uint32_t servers;         /* --servers P; 0 = 1, and none in shared memory */
    rbt_sync sync; /* --sync; auto: hogwild for a model on local unless something of servers is asked for, else ssp */
    const char *sync_for; /* the option for whose sake auto became ssp, if that was not to be expected; or NULL */
    uint64_t staleness;   /* --staleness S; only with ssp (default 3 there); 0 under bsp, RBT_UNBOUNDED under asp */
    bool staleness_given;
    rbt_rule_kind rule;        /* --rule auto|sum|con|dyn|adagrad|adarev|momentum; auto: con under bsp, dyn otherwise */
    double global_rate;        /* --global-rate G: con's factor; 0 = 1/workers; only with con */
    rbt_toggle partition_sync; /* --partition-sync on|off: dyn only; auto = on when servers > 1, unless --eager on */
    rbt_toggle eager; /* --eager on|off: servers push fresh blocks to readers; ssp only; auto = on with 0 < s < inf and
                         no partition-sync */
    uint64_t clocks;  /* --clocks N; 0 = as epochs demand */
    double epochs;    /* --epochs N; 0 = 10 when no clocks are given */
    bool epochs_auto; /* they were, and the tolerance ends it: small data may need more */
    double batch;     /* --batch N|F%: rows, or percent of the worker's rows; 0 = one row when lr is found, else 10 % */
    bool batch_percent;
    uint64_t batches_per_clock; /* --batches-per-clock N; 0 = one pass */
    uint64_t seed;              /* --seed N, default 1 */
    char *straggler;            /* --straggler SPEC or NULL */
    uint64_t eval_every;        /* --eval-every N clocks, default 1; 0 = only at the end */
    bool verify;                /* --verify: run the checkers on this run too */
    bool encode;                /* --encode: every message is encoded and decoded on its way (testing) */

    /* peers without servers; only with --sync hop, the graph also with adpsgd */
    char *graph;           /* --graph KIND|FILE; NULL = ring-based, for adpsgd ring */
    char *machines;        /* --machines N|N,N,...: for cliques; or NULL */
    uint64_t max_gap;      /* --max-gap G: iterations ahead of a neighbour; 0 = no tokens */
    uint32_t backup;       /* --backup N: in-neighbours that are not waited for */
    uint64_t skip;         /* --skip J: iterations that may be advanced by at once; 0 = one */
    uint64_t skip_trigger; /* --skip-trigger T: only when so far behind; default 2 */
    rbt_order order;       /* --order parallel|serial */
    bool notify_ack;       /* --notify-ack */

    /* learning */
    rbt_optimizer optimizer; /* --optimizer; auto: sdca in shared memory where it fits, else sgd */
    double momentum;         /* --momentum, default 0.9 */
    double lr;               /* --lr ETA; 0 = found on a sample of the data */
    bool lr_found;           /* it was 0, and has been found */
    rbt_decay decay;         /* --decay none|sqrt:ALPHA|mult:BETA */
    double decay_factor;
    double l2;               /* --l2 LAMBDA; NAN = 1 / rows, softmax half */
    double l1;               /* --l1 LAMBDA, default 0 */
    double delta;            /* --delta D: huber's; NAN = auto: by the spread of the labels */
    bool no_bias;            /* --no-bias */
    rbt_normalize normalize; /* --normalize none|unit|standard */
    char *class_weight;      /* --class-weight balanced|LABEL=W,... or NULL */
    double tolerance;  /* --tolerance X: stops when the objective is within this share of the optimum; NAN = auto */
    uint64_t patience; /* --patience N: stops after so many evaluations on --valid without a better one; 0 = never */
    uint32_t folds;    /* --folds K: cross-validation; 0 = none */
    double filter;     /* --filter threshold=X; default 1e-6 with dyn, else 0 */
    bool filter_given;
    double significant; /* --filter significant=X; 0 = all is. A method with an option of that name takes it over */
    bool significant_given;
    bool kkt_given; /* --filter kkt=X, which is an option of l1lr's own; and X */
    double kkt;
    char *budget;          /* --budget RATE[,burst=TIME] or NULL */
    rbt_priority priority; /* --priority round-robin|random|magnitude|relative */
    char *codec;           /* --codec none|delta,keys,zeros,lz4,fp16 or NULL */
    double target_loss;    /* --target-loss X */
    bool has_target;

    /* the cluster; only with --runtime cluster. None of it changes what is trained. */
    char *key;                  /* --key FILE or NULL */
    char *listen;               /* --listen ADDRESS or NULL */
    char *advertise;            /* --advertise ADDRESS or NULL */
    uint32_t join_timeout;      /* --join-timeout S, default 60 */
    bool insecure;              /* --insecure: no encryption between hosts */
    rbt_toggle shm;             /* --shm auto|on|off: memory shared by processes of one host */
    rbt_on_loss on_worker_loss; /* --on-worker-loss auto|continue|stop|wait */
    rbt_toggle colocate;        /* --colocate on|off: servers in the workers' processes; auto: the starter decides */

    /* the simulator and the cluster */
    uint32_t per_process; /* --per-process N: workers that share a process and its cache */

    /* the simulator; only with --runtime sim */
    char *net;     /* --net bw=1Gbit,lat=200us,jitter=50us */
    char *speed;   /* --speed 1,1,0.5 or 2=0.5,4-7=2 */
    char *cluster; /* --cluster FILE */
    char *cost;    /* --cost sample=100ns,nnz=2ns,byte=0.1ns,message=1us */
    char *faults;  /* --faults drop=P,dup=P,delay=P,crash=N,partition=N */

    /* output */
    char *json;   /* --json FILE */
    char *report; /* --report FILE.html */
    bool quiet;
} rbt_options;

void rbt_options_init(rbt_options *options); /* the defaults */
void rbt_options_deinit(rbt_options *options);
void rbt_options_copy(rbt_options *to, const rbt_options *from); /* `to` is initialised */

rbt_err rbt_options_set(rbt_options *options, const char *name, const char *value, rbt_error *error);

/* Does the option take a value on the command line? false for flags (--quiet); error when unknown (with the nearest
 * name). */
rbt_err rbt_options_takes_value(const char *name, bool *takes, rbt_error *error);

/* Is the value free text (a path, a name, a SPEC) rather than a number, a word or a flag? false when unknown. */
bool rbt_options_is_text(const char *name);

/* May the value be the name of a file? false when unknown. */
bool rbt_options_names_file(const char *name);

/* Reads "option = value" lines; # starts a comment. Errors carry file:line. */
rbt_err rbt_options_read_file(rbt_options *options, const char *path, rbt_error *error);

/* Refuses combinations that make no sense, and settles what depends on something else. Checking twice changes nothing.
 */
rbt_err rbt_options_check(rbt_options *options, rbt_error *error);

/* The i-th option that has a value and applies to this job: its name and its value as text, false past the last.
 * Setting all of them, in order, on fresh options describes the same job, before and after rbt_options_check. */
bool rbt_options_at(const rbt_options *options, size_t i, const char **name, char *value, size_t room);

/* Does the job run in shared memory, without servers? After rbt_options_check. */
static inline bool rbt_options_shared(const rbt_options *options)
{
    return options->sync >= RBT_SYNC_HOGWILD;
}

/* Are threads in shared memory kept apart, step by step? */
static inline bool rbt_options_takes_turns(const rbt_options *options)
{
    return options->sync == RBT_SYNC_AIG || options->sync == RBT_SYNC_ROUND_ROBIN;
}

/* Do workers send gradients, of which servers make steps that adapt themselves? */
static inline bool rbt_options_adaptive(const rbt_options *options)
{
    return options->rule == RBT_RULE_ADAGRAD || options->rule == RBT_RULE_ADAREV;
}

/* Does the job run on peers that have no servers? After rbt_options_check. */
static inline bool rbt_options_peers(const rbt_options *options)
{
    return options->sync >= RBT_SYNC_HOP && options->sync <= RBT_SYNC_ALLREDUCE;
}

/* Writes the help of all options but some (NULL: none; else names, the last NULL), group by group, through `write`; and of one:
 * "  --name SYNTAX   text", wrapped. */
void rbt_options_help_line(const char *name, const char *syntax, const char *text,
                           void (*write)(void *context, const char *line), void *context);
void rbt_options_help(const char *const *without, void (*write)(void *context, const char *line), void *context);

/* The lines of a method's own options; those of one that is not built in go by --set. */
void rbt_options_help_method(const rbt_method *method, void (*write)(void *context, const char *line), void *context);

/* Parses protocol shorthand of compare: "bsp", "asp/sum", "ssp:3/con", "ssp:10/dyn" into sync, staleness and rule;
 * "hop:ring-based/max-gap=5/backup=1", "adpsgd:ring", "allreduce" into sync, graph and the options of peers. What the shorthand
 * leaves out stays as it was (--rule, --graph, and --staleness under ssp and hop); what is senseless under that protocol is
 * dropped, so that one command line serves several protocols. To be called before rbt_options_check. */
rbt_err rbt_options_set_protocol(rbt_options *options, const char *text, rbt_error *error);

/* Refuses what would be ignored by all of a comparison's runs: --sync, and an option that none of the n, each made of `asked` by
 * rbt_options_set_protocol, has kept. */
rbt_err rbt_options_check_protocols(const rbt_options *asked, const rbt_options *runs, size_t n, rbt_error *error);

/* Sets an option of the model's own, in place of what it was. */
rbt_err rbt_options_put_setting(rbt_options *options, const char *name, const char *value, rbt_error *error);

/* A part of rbt_options_check (options_unused.c): refuses what would be ignored. `method`: NULL for a model. And does the
 * method's list of what it does not heed have the word? */
rbt_err rbt_options_check_unused(const rbt_options *options, rbt_sync sync, const rbt_method *method, rbt_error *error);
bool rbt_method_unheeds(const rbt_method *method, const char *word);

/* --filter (options_filter.c): setting, printing, and parts of rbt_options_check. */
rbt_err rbt_options_set_filter(rbt_options *options, const char *value, rbt_error *error);
void rbt_options_print_filter(const rbt_options *options, char *value, size_t room);
rbt_err rbt_options_check_filter(const rbt_options *options, rbt_rule_kind rule, rbt_error *error);
void rbt_options_settle_filter(rbt_options *options);

/* --decay that nobody gave, once the optimizer is known: by rbt_options_check, or when the data is. */
void rbt_options_settle_decay(rbt_options *options);

/* The rule of what goes under `auto`, and whether a --budget makes sense with it. */
rbt_rule_kind rbt_options_rule(const rbt_options *options, rbt_sync sync);
rbt_err rbt_options_check_budget(const rbt_options *options, rbt_sync sync, rbt_rule_kind rule, rbt_error *error);

/* Parts of rbt_options_check (options_peers.c): `served` is an option given that is for servers, or NULL. */
rbt_err rbt_options_check_peers(const rbt_options *options, rbt_sync sync, const char *served, rbt_error *error);
void rbt_options_settle_peers(rbt_options *options);
const char *rbt_sync_name(rbt_sync sync);

/* Likewise (options_hosts.c): workers and servers as --cluster or --speed have them, if nothing else is said. */
rbt_err rbt_options_check_hosts(rbt_options *options, bool served, rbt_error *error);

/* Likewise (options_codec.c). Does it ask for a codec? Drops what makes no sense: without servers fp16, in shared memory all. */
bool rbt_options_squeeze(const rbt_options *options);
rbt_err rbt_options_check_codec(const rbt_options *options, rbt_sync sync, rbt_rule_kind rule, rbt_error *error);
void rbt_options_drop_codec(rbt_options *options, bool all);

#endif
