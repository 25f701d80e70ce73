/* A small JSON writer: objects and arrays on one line, in the order they are written.
 *
 * Used by the JSON lines and by compare. Text is escaped, and what is not UTF-8 becomes U+FFFD, so the output is always
 * valid JSON whatever a file is called. Doubles are the shortest text that reads back the same; NaN and infinity, which
 * JSON does not have, are null. Output errors stay in the FILE (ferror) and are the caller's to report. Proved by
 * tests/unit/test_json.c.
 */
#ifndef RBT_REPORT_JSON_H
#define RBT_REPORT_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define RBT_JSON_DEPTH 8

typedef struct rbt_json {
    FILE *file;
    unsigned depth;
    bool some[RBT_JSON_DEPTH]; /* has the object or array at this depth a member yet? */
    char close[RBT_JSON_DEPTH];
} rbt_json;

/* `key` is the member's name inside an object, and NULL in an array and at the top. */
void rbt_json_object(rbt_json *json, const char *key);
void rbt_json_array(rbt_json *json, const char *key);
void rbt_json_end(rbt_json *json); /* the innermost object or array; a newline after the outermost */
void rbt_json_text(rbt_json *json, const char *key, const char *text);
void rbt_json_real(rbt_json *json, const char *key, double value);
void rbt_json_count(rbt_json *json, const char *key, uint64_t value);
void rbt_json_integer(rbt_json *json, const char *key, int64_t value);
void rbt_json_bool(rbt_json *json, const char *key, bool value);
void rbt_json_null(rbt_json *json, const char *key);
void rbt_json_hex(rbt_json *json, const char *key, uint64_t value); /* 16 digits, as a string: too wide for a double */

/* Text that is a number, true or false becomes that; other text a string. */
void rbt_json_guess(rbt_json *json, const char *key, const char *text);

#endif
