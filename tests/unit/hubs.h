/* Two hubs for tests: each side counts and checks what arrives, and what it is told. */
#ifndef TESTS_UNIT_HUBS_H
#define TESTS_UNIT_HUBS_H

#include <pthread.h>
#include <time.h>

#include "runtime/cluster/hub.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define FRAMES 4000
#else
#define FRAMES 20000
#endif
#define BODY_MAX   ((uint64_t)64 << 20)
#define DEADLINE_S 30 /* when a test gives up */

/* One process's part, in a hub. */
typedef struct hub_side {
    rbt_hub *hub;
    rbt_tls *tls;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    rbt_remote *peer; /* the last that was opened */
    int opened;
    int lost;
    rbt_error why;                        /* of the last that was lost */
    char log[16384];                      /* all that was logged */
    uint64_t next;                        /* the number that the next frame must have */
    uint64_t bytes;                       /* received */
    bool is_wrong;                        /* something came that was not sent so */
    bool hold;                            /* the hub's thread stops at the next message ... */
    uint64_t hold_at;                     /* ... or when so many have come; 0: it does not */
    atomic_bool holds_next, resumes_next; /* it holds its peer at the next frame, reads again with the next tick */
    int ticks;                            /* of its hub */
    size_t answers;                       /* bytes with which it answers each control frame; 0: it does not */
    uint32_t frames;                      /* to send */
    uint32_t large;                       /* elements of the largest blocks */
    uint64_t seed;
    rbt_remote *to;
} hub_side;

/* Waits until a number of the side has got so far. */
#define wait_for(s, condition)                                                                                         \
    do {                                                                                                               \
        struct timespec until;                                                                                         \
        int late = 0;                                                                                                  \
        clock_gettime(CLOCK_REALTIME, &until);                                                                         \
        until.tv_sec += DEADLINE_S;                                                                                    \
        pthread_mutex_lock(&(s)->lock);                                                                                \
        while (!(condition) && late == 0)                                                                              \
            late = pthread_cond_timedwait(&(s)->changed, &(s)->lock, &until);                                          \
        pthread_mutex_unlock(&(s)->lock);                                                                              \
        if (late != 0)                                                                                                 \
            fail_msg("waited in vain for " #condition "; next %llu, lost %d (%s), log: %s",                            \
                     (unsigned long long)(s)->next, (s)->lost, (s)->why.text, (s)->log);                               \
    } while (0)

rbt_link_config hub_config(const rbt_key *key, rbt_encryption encryption, bool rings);
void hub_side_start(hub_side *s, rbt_link_config config);
void hub_side_stop(hub_side *s, uint64_t grace_ms);
/* Writes to the side's log; the side is the context. */
void hub_side_log(void *context, rbt_log_level level, const char *source, const char *sentence);
rbt_address hub_address(const char *text);
rbt_address hub_free_address(bool is_unix);
rbt_address hub_side_listen(hub_side *s, bool is_unix);
void hub_side_assert_there(hub_side *s);
void assert_contains(const char *text, const char *part);
/* `a` dials `b`. */
void hub_sides_join(hub_side *a, hub_side *b, bool is_unix);
/* Both send so many frames at the same time, of blocks up to `large` elements: each arrives once and in order. */
void hub_sides_exchange(hub_side *a, hub_side *b, uint32_t frames, uint32_t large);
rbt_key hub_key(void);
/* A connected one without a hub. */
int hub_plain_socket(const rbt_address *to);
/* A thread that sends the frames of a side. */
void *hub_send_all(void *argument);

#endif
