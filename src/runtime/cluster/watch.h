/* Watching a job from outside: `rubato top`.
 *
 * A peer that has the key and says RBT_SAY_WATCH to the lead, before it has a seat, is a watcher: the lead shows it a
 * picture of the job at once, about once a second from then on, and when the job ends. Watchers have no say: there are
 * RBT_WATCH_MOST at most, one that does not take what it is sent is shown nothing more until it does (and cut off
 * after WATCHER_PATIENCE pictures), and one that is lost is forgotten. Nothing is made while nobody watches.
 *
 * The lead's side is called by session.c on the hub's thread; the watcher's side is a hub of its own and is called by
 * cli/top.c. Proved by tests/cluster/test_top.sh.
 */
#ifndef RBT_RUNTIME_CLUSTER_WATCH_H
#define RBT_RUNTIME_CLUSTER_WATCH_H

#include "runtime/cluster/picture.h"
#include "runtime/cluster/session.h"

/* ------------------------------------------------------------------------------------------------- the lead */

/* Somebody wants to watch. */
void rbt_watchers_add(rbt_session *session, rbt_remote *peer);
bool rbt_watchers_has(rbt_session *session, const rbt_remote *peer);
void rbt_watchers_forget(rbt_session *session, const rbt_remote *peer);

/* Shows them the job, if it is time to. */
void rbt_watchers_tick(rbt_session *session);

/* Tells them that it is over. */
void rbt_watchers_end(rbt_session *session);

/* ---------------------------------------------------------------------------------------------- the watcher */

typedef struct rbt_watch rbt_watch;

/* Of the configuration the key and its use, the job, the time-out for reaching the lead, and the interruption count. */
rbt_err rbt_watch_open(const rbt_session_config *config, const char *address, rbt_watch **watch, rbt_error *error);
void rbt_watch_close(rbt_watch *watch);

/* Waits for the next picture (the newest, when several have come). RBT_E_INTERRUPTED: by the configuration's flag;
 * RBT_E_LOST: the lead is gone without a word. */
rbt_err rbt_watch_next(rbt_watch *watch, rbt_picture *picture, rbt_error *error);

#endif
