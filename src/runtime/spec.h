/* Texts like "bw=1Gbit,lat=200us": keys with values, as --net, --cost, --faults and --straggler take them.
 *
 * The caller lists the keys it knows, with what kind of value each has and within which limits; rbt_spec_parse fills in
 * the ones that were given. Strict: a key is given at most once, a number is the whole value, a unit is not guessed.
 * Every refusal names the option, the key, what was found, what is expected, and an example. Numbers are read exactly
 * and whatever the program's locale is. Used by straggler.c and for rbt_sim_options_parse (sim.h).
 * Proved by tests/unit/test_spec.c.
 */
#ifndef RBT_RUNTIME_SPEC_H
#define RBT_RUNTIME_SPEC_H

#include "rubato.h"

typedef enum rbt_spec_kind {
    RBT_SPEC_NUMBER,   /* 2, 0.5, 1e-3 */
    RBT_SPEC_COUNT,    /* a whole number */
    RBT_SPEC_CHANCE,   /* from 0 to 1 */
    RBT_SPEC_DURATION, /* number and ns, us, ms or s; 0 needs no unit; kept in nanoseconds */
    RBT_SPEC_RATE,     /* number and bit, Kbit, Mbit or Gbit (a second, powers of 1000); kept in bits per second */
    RBT_SPEC_TEXT,     /* anything without a comma, at least one character */
} rbt_spec_kind;

typedef struct rbt_spec_key {
    const char *name;
    rbt_spec_kind kind;
    double least; /* both allowed; in nanoseconds, bits per second; ignored for texts */
    double most;
    const char *example; /* of the key with a value: "lat=200us" */

    /* filled in */
    bool given;
    double number;
    const char *text; /* where the value stands in the text given, and its length */
    size_t text_bytes;
} rbt_spec_key;

#define RBT_SPEC_TEXT_MAX     4096    /* bytes of one text */
#define RBT_SPEC_COUNT_MAX    1000000 /* crashes, partitions */
#define RBT_SPEC_DURATION_MAX 1e15    /* ns, eleven days: any sum of a few thousand fits 64 bits */
#define RBT_SPEC_RATE_MAX     1e15    /* bits per second */

/* Reads n bytes of text: "key=value" or several with commas between. `what` is how messages name it: "--net". */
rbt_err rbt_spec_parse(const char *what, const char *text, size_t n, rbt_spec_key *keys, size_t key_count,
                       rbt_error *error);

/* --budget: "200Mbit" or "200Mbit,burst=20ms", as bytes per second and bytes. */
rbt_err rbt_budget_parse(const char *text, uint64_t *bytes_per_second, uint64_t *burst_bytes, rbt_error *error);

/* A decimal number, digits[.digits][e[+-]digits], from `at`, never reading `end` or beyond. Returns where it stops, or
 * NULL when there is none, when it has more digits than a double holds exactly, or when its exponent goes past 22. */
const char *rbt_spec_number(const char *at, const char *end, double *value);

#endif
