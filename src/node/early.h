/* Managed communication: what workers and servers send before a clock ends, within their budget (docs/protocols.md,
 * section 3.1).
 *
 * A worker sends strips of its update buffer (EARLY), a server strips of blocks that have changed (ROWS, to registered
 * readers); comm/pick.h says which first. Called by worker.c and server.c, and by the runtime on behalf of a program
 * whenever it calls. What holds always:
 *   - these messages go out only while the sender's bucket has room for them (comm/budget.h), a strip that is larger than that
 *     room alone, while half of it is free; all others go out as without a budget, so that no bound depends on spare bandwidth, but
 *     are counted;
 *   - they do not go out while too many bytes of them are unacknowledged, a server's reader by reader;
 *   - an early send is kept until it is acknowledged, and sent again under a new view; a server takes the early sends of a
 *     clock in order and each once, before the push that ends the clock;
 *   - of a worker that dies in the middle of a clock the early sends are taken back, but for blocks whose update has
 *     come whole: its next life computes the clock again;
 *   - a reader sees all of its own updates: early sends stay among them until a copy includes them (rbt_applied);
 *   - only tables whose updates may come in parts take part (rbt_is_managed), and no job under BSP has a budget;
 *   - where updates name versions (adarev) a strip is a block: its parts go in the order of their versions, and a copy that
 *     comes while the program computes from an earlier one is parked until it reads again.
 * Proved by tests/unit/test_early.c and by the swarm.
 */
#ifndef RBT_NODE_EARLY_H
#define RBT_NODE_EARLY_H

#include "node/server.h"
#include "node/worker.h"
#include "wire/codec.h"

#define RBT_EARLY_MAX        4096u  /* early sends of one clock to one server */
#define RBT_EARLY_LOOK       65536u /* strips that are looked at for one early send */
#define RBT_EARLY_UNANSWERED 4u     /* bursts that may be unacknowledged: the network has enough */
#define RBT_EARLY_MESSAGE    128u   /* bytes: more than the head of a message without its parts */
#define RBT_EARLY_PART       32u    /* ... than what names a part */

/* Counts a message that goes out. */
void rbt_early_count(const rbt_topology *topology, rbt_budget *budget, const rbt_message *message, uint64_t now_ns);

/* ---- the worker */
void rbt_client_init_early(rbt_client *client);

/* Sends what there is room for. Cheap when there is none. */
void rbt_client_send_early(rbt_client *client, rbt_env *env);

void rbt_client_take_got(rbt_client *client, const rbt_message *got);
void rbt_client_take_rows(rbt_client *client, const rbt_message *rows, rbt_env *env);

/* How many early sends of the clock under way are in a copy that includes this of ours. */
uint64_t rbt_early_included(const rbt_client *client, rbt_applied included);

/* May it not replace what we have? It lacks early sends that the copy includes (and that are no longer kept); or it has
 * early sends of a former life of ours, of whatever clock, which the servers have taken back. */
bool rbt_early_lacks(const rbt_client *client, const rbt_copy *copy, rbt_applied included);

/* Takes a copy of a block that has tags, if it is newer; in a clock that has read the block, for the next read. */
void rbt_early_renew(rbt_client *client, const rbt_part *part, uint64_t slowest, rbt_applied included);

/* ---- the server */
void rbt_server_init_early(rbt_server *server);
void rbt_server_deinit_early(rbt_server *server);

/* What of a worker's clocks is in the server's blocks. */
rbt_applied rbt_early_applied(const rbt_server *server, uint32_t worker);

/* Notes, before and after, how an update changes a cell, for its readers. NULL changes nothing. */
void rbt_early_note(rbt_server *server, rbt_server_cell *cell, const rbt_snap *update, bool is_after);

/* Takes an early send of a present life. */
void rbt_server_take_early(rbt_server *server, rbt_message *message, rbt_env *env);

/* The clock has ended: they stay for good. Or the worker is no more: they go. */
void rbt_server_forget_early(rbt_server *server, uint32_t worker);
void rbt_server_undo_early(rbt_server *server, uint32_t worker);

/* A reader has received rows. */
void rbt_server_take_got(rbt_server *server, const rbt_message *got);

/* Tells readers what has changed, as far as there is room. */
void rbt_server_send_rows(rbt_server *server, rbt_env *env);

#endif
