/* A server's answers: pulls that may be answered now, those that are held back, and blocks that nobody asked for.
 *
 * Part of the server, called by server.c and early_server.c. What holds always: an answer contains every update of every worker
 * from clocks below the pull's `need`, and all of the asker's own before the pull; a pull is held back until that is so, and
 * answered once. docs/protocols.md, section 1. Proved by tests/unit/test_server.c and by the swarm.
 */
#ifndef RBT_NODE_PULLS_H
#define RBT_NODE_PULLS_H

#include "node/server.h"

void rbt_pulls_deinit(rbt_server *server);

/* Takes a pull of the present view and life: answers it, or holds it back. */
void rbt_pulls_take(rbt_server *server, rbt_message *pull, rbt_env *env);

/* Answers every held pull whose time has come, in the order they came. */
void rbt_pulls_answer_held(rbt_server *server, rbt_env *env);

/* Does a worker wait for an answer? */
bool rbt_pulls_are_held(const rbt_server *server, uint32_t worker);

/* A worker came back: nobody waits for answers to its earlier lives. */
void rbt_pulls_forget(rbt_server *server, uint32_t worker, uint32_t incarnation);

/* Pushes what is new to the workers that read here before, so that they seldom have to ask (Bösen's callbacks). Those
 * that asked and are held will be answered anyway. */
void rbt_pulls_spread(rbt_server *server, rbt_env *env);

#endif
