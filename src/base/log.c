/* Logging events: formats a sentence and hands it to the caller's function.
 *
 * Called by runtimes, jobs and readers. Always: nothing is formatted below the level asked for; a sentence that does
 * not fit ends in "...". Proved by tests/unit/test_log.c.
 */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SENTENCE_BYTES 1024

void rbt_log_event(const rbt_log *log, rbt_log_level level, const char *source, const char *format, ...)
{
    if (log == NULL || log->write == NULL || level < log->least)
        return;

    char sentence[SENTENCE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    if (length < 0)
        return;
    if ((size_t)length >= sizeof sentence)
        memcpy(sentence + sizeof sentence - 4, "...", 4);
    log->write(log->context, level, source, sentence);
}
