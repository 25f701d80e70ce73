/* How long a hub's thread stays awake when it has nothing to do. Waking a thread takes 5 to 50 us, so where answers come sooner it
 * looks for them a while before it sleeps. That pays only where they do: after a vigil in vain the next occasions are passed over,
 * twice as many each time, so that a job whose messages are rare, or whose processes outnumber the cores, hardly keeps any. A hub
 * that nobody speaks to sleeps. Called by hub.c; proved by tests/unit/test_vigil.c. */
#ifndef RBT_RUNTIME_CLUSTER_VIGIL_H
#define RBT_RUNTIME_CLUSTER_VIGIL_H

#include <stdbool.h>
#include <stdint.h>

#define RBT_VIGIL_NS   50000 /* of one vigil */
#define RBT_VIGIL_PASS 255   /* occasions that are passed over, at most */

typedef struct rbt_vigil {
    uint64_t seen;     /* traffic, when it was looked at last */
    uint64_t until_ns; /* of the vigil being kept; 0: none is */
    uint32_t pass;     /* occasions to pass over after the next vigil in vain */
    uint32_t passing;  /* of these, those to come */
} rbt_vigil;

/* May the thread stay awake? `traffic` is any number that changes when something comes or goes. */
static inline bool rbt_vigil_keep(rbt_vigil *v, uint64_t traffic, uint64_t now_ns)
{
    if (traffic != v->seen) { /* an occasion; one in a vigil has made that worth while */
        v->seen = traffic;
        if (v->until_ns != 0)
            v->pass = 0;
        if (v->passing > 0) {
            v->passing--;
            return false;
        }
        v->until_ns = now_ns + RBT_VIGIL_NS;
    } else if (v->until_ns != 0 && now_ns >= v->until_ns) {
        v->until_ns = 0;
        v->pass = v->pass < RBT_VIGIL_PASS / 2 ? 2 * v->pass + 1 : RBT_VIGIL_PASS;
        v->passing = v->pass;
    }
    return v->until_ns != 0;
}

#endif
