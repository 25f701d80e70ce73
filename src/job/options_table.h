/* The option table's own types: seen by the files of options that are driven by the table, and by nobody else. */
#ifndef RBT_JOB_OPTIONS_TABLE_H
#define RBT_JOB_OPTIONS_TABLE_H

#include "job/options.h"

typedef enum rbt_option_kind {
    RBT_OPTION_TEXT,      /* char *, NULL when not given */
    RBT_OPTION_FLAG,      /* bool; no value on the command line */
    RBT_OPTION_WORD,      /* an enum whose values count through `words` */
    RBT_OPTION_U32,       /* a count in min .. max; `zero` is the word for 0 */
    RBT_OPTION_U64,       /* likewise */
    RBT_OPTION_REAL,      /* above min, or from min on when `closed`; `zero` is the word for 0 */
    RBT_OPTION_STALENESS, /* staleness and staleness_given */
    RBT_OPTION_BATCH,     /* batch and batch_percent */
    RBT_OPTION_DECAY,     /* decay and decay_factor */
    RBT_OPTION_FILTER,    /* filter and filter_given */
    RBT_OPTION_TARGET,    /* target_loss and has_target */
} rbt_option_kind;

typedef struct rbt_option {
    const char *name;
    const char *group;
    rbt_option_kind kind;
    size_t offset;
    const char *fallback; /* the default as text, NULL = none */
    const char *syntax;   /* what the help shows for the value */
    const char *help;
    const char *when; /* where it is allowed, NULL = always */
    const char *words;
    const char *zero;
    uint64_t min;
    uint64_t max;
    bool closed;
    bool automatic; /* real: takes "auto" too, kept as NAN */
} rbt_option;

/* The i-th option, NULL past the last. Options of one group follow each other. */
const rbt_option *rbt_option_at(size_t i);

/* Has the option the same value in both? */
bool rbt_option_is_same(const rbt_option *o, const rbt_options *a, const rbt_options *b);

#endif
