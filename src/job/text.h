/* Numbers and names as people type them: strict parsing, shortest printing, and the nearest known word for a misspelt
 * one.
 *
 * Used by the option table and by the commands. A number is the whole text or an error; "1e5" is a count because it is
 * integral, "0x10", " 7" and "7x" are not numbers. What is printed reads back as the same value. Proved by
 * tests/unit/test_options.c.
 */
#ifndef RBT_JOB_TEXT_H
#define RBT_JOB_TEXT_H

#include "rubato.h"

#define RBT_REAL_ROOM 32 /* characters that hold any double or uint64_t as text, with the end */

/* A count in min .. max. `what` is how the message names the option, e.g. "--workers". */
rbt_err rbt_text_to_count(const char *what, const char *text, uint64_t min, uint64_t max, uint64_t *value,
                          rbt_error *error);

/* A finite number. */
rbt_err rbt_text_to_real(const char *what, const char *text, double *value, rbt_error *error);

/* The shortest decimal text that reads back as the same double; "nan", "inf" and "-inf" for the others. */
void rbt_text_from_real(double value, char *text, size_t room);

/* A loss for people, in six digits: "0.25"; "not a number" and "infinite" where it went astray, and not what the C library calls
 * these (-nan). Fills `text` and returns it. */
const char *rbt_text_from_loss(double loss, char text[RBT_REAL_ROOM]);

/* Finds the known word nearest to a misspelt one: initialise with the word, offer the candidates, ask. */
typedef struct rbt_nearest {
    const char *word;
    const char *best;
    size_t distance;
} rbt_nearest;

void rbt_nearest_offer(rbt_nearest *nearest, const char *candidate);
const char *rbt_nearest_found(const rbt_nearest *nearest); /* NULL when nothing is near enough to be meant */

#endif
