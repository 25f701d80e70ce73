/* Callers of a session that have not said who they are: how many there may be, how long they may take, how often they may ask. The
 * contract is in session.h; all runs on the hub's thread. Proved by tests/unit/test_strangers_local.c and tests/cluster/test_hostile.sh. */
#include "base/error.h"
#include "base/time.h"
#include "runtime/cluster/session_state.h"
#include "runtime/cluster/watch.h"

#define STRANGER_MS    10000 /* a caller that has not said who it is by then is cut off ... */
#define CLAIM_MS       60000 /* ... or, while this process waits for the roster, has not been found in it by then */
#define STRANGERS_MOST 256   /* beside one for every seat */

void rbt_session_on_open(void *context, rbt_remote *peer)
{
    rbt_session *s = context;

    if (peer->rank != RBT_RANK_NONE) /* we have dialled it */
        return;
    rbt_array_push(&s->strangers, ((stranger){.peer = peer, .since_ns = rbt_now_ns()}));
    if (s->strangers.count > STRANGERS_MOST + (size_t)s->size)
        rbt_session_cut_peer(peer, "too many have called who do not say who they are");
}

void rbt_session_forget_stranger(rbt_session *s, const rbt_remote *peer)
{
    for (size_t i = 0; i < s->strangers.count; i++)
        if (s->strangers.at[i].peer == peer)
            s->strangers.at[i--] = s->strangers.at[--s->strangers.count];
}

bool rbt_session_asks_again(rbt_session *s, const rbt_remote *peer)
{
    bool has_asked = false;

    for (size_t i = 0; i < s->strangers.count; i++)
        if (s->strangers.at[i].peer == peer) {
            has_asked = s->strangers.at[i].has_asked;
            s->strangers.at[i].has_asked = true;
        }
    return has_asked;
}

static bool has_claim(rbt_session *s, const rbt_remote *peer)
{
    bool has = false;

    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->claims.count; i++)
        has = has || s->claims.at[i].peer == peer;
    pthread_mutex_unlock(&s->lock);
    return has;
}

void rbt_strangers_check(rbt_session *s)
{
    uint64_t now = rbt_now_ns();

    for (size_t i = 0; i < s->strangers.count; i++) {
        rbt_remote *peer = s->strangers.at[i].peer;
        uint64_t waited_ms = (now - s->strangers.at[i].since_ns) / 1000000u;

        if (peer->rank != RBT_RANK_NONE || rbt_watchers_has(s, peer))
            s->strangers.at[i--] = s->strangers.at[--s->strangers.count];
        else if (waited_ms > (s->size == 0 && has_claim(s, peer) ? CLAIM_MS : STRANGER_MS))
            rbt_session_cut_peer(peer, "it did not say who it is");
    }
}
