/* Logging events: what the library has to say goes through one function the caller supplies; the library never prints.
 * A level, a short name of the thing that speaks, a sentence. Proved by tests/unit/test_log.c. */
#ifndef RBT_BASE_LOG_H
#define RBT_BASE_LOG_H

typedef enum rbt_log_level { RBT_LOG_DEBUG, RBT_LOG_INFO, RBT_LOG_WARNING } rbt_log_level;

typedef struct rbt_log {
    void (*write)(void *context, rbt_log_level level, const char *source, const char *sentence); /* NULL: silent */
    void *context;
    rbt_log_level least; /* quieter events are not formatted at all */
} rbt_log;

void rbt_log_event(const rbt_log *log, rbt_log_level level, const char *source, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
