/* The one table of error codes, and the two ways to report: rbt_fail (others' mistakes) and rbt_panic (ours).
 *
 * Called by everything. Always: a failed call leaves a code other than RBT_OK and a sentence that fits the buffer;
 * rbt_panic is the only function of the library that writes to stderr or ends the process.
 * Proved by tests/unit/test_error.c.
 */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct err_entry {
    const char *name;
    int exit_code;
} err_entry;

static const err_entry err_table[] = {
    [RBT_OK] = {"ok", 0},
    [RBT_E_USAGE] = {"usage", 2},
    [RBT_E_DATA] = {"data", 1},
    [RBT_E_IO] = {"io", 1},
    [RBT_E_MEMORY] = {"memory", 1},
    [RBT_E_LIMIT] = {"limit", 1},
    [RBT_E_PROTOCOL] = {"protocol", 1},
    [RBT_E_DIVERGED] = {"diverged", 1},
    [RBT_E_NO_PROGRESS] = {"no-progress", 6},
    [RBT_E_BROKEN] = {"broken", 5},
    [RBT_E_TARGET] = {"target", 3},
    [RBT_E_INTERRUPTED] = {"interrupted", 130},
    [RBT_E_UNSUPPORTED] = {"unsupported", 1},
    [RBT_E_CRASHED] = {"crashed", 1},
    [RBT_E_MISSING] = {"missing", 4},
    [RBT_E_LOST] = {"lost", 7},
    [RBT_E_PIPE] = {"pipe", 141}, /* as if SIGPIPE had ended it, which is what other programs do */
};

#define ERR_COUNT (sizeof err_table / sizeof err_table[0])

const char *rbt_err_name(rbt_err code)
{
    return (size_t)code < ERR_COUNT ? err_table[code].name : "unknown";
}

int rbt_err_exit_code(rbt_err code)
{
    return (size_t)code < ERR_COUNT ? err_table[code].exit_code : 1;
}

rbt_err rbt_fail(rbt_error *error, rbt_err code, const char *format, ...)
{
    RBT_ASSERT(code != RBT_OK);
    if (error == NULL)
        return code;

    /* Formatted aside first: a caller that adds its place to an error passes error->text as an argument. */
    char text[sizeof error->text];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);

    if (length < 0)
        text[0] = '\0';
    else if ((size_t)length >= sizeof text)
        memcpy(text + sizeof text - 4, "...", 4);
    error->code = code;
    memcpy(error->text, text, strlen(text) + 1);
    return code;
}

void rbt_panic(const char *file, int line, const char *what)
{
    fprintf(stderr, "rubato: bug: %s:%d: %s does not hold; please report this line\n", file, line, what);
    abort();
}
