/* A cluster driven by hand: a master, servers and clients, and a wire on which what they say lies until the test
 * delivers it, loses it, repeats it or changes it. One table of f32. Used by the tests of src/node and of the checker.
 */
#ifndef RBT_TESTS_UNIT_WORLD_H
#define RBT_TESTS_UNIT_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "node/master.h"
#include "node/server.h"
#include "node/worker.h"

#define ANY UINT32_MAX /* a node: all of them */

typedef struct world {
    rbt_topology topology;
    rbt_master master;
    rbt_server *servers;
    rbt_client *clients; /* workers, then observers */
    rbt_span *spans;     /* all blocks of the table */
    rbt_outbox wire;     /* said and not delivered yet, in order */
    uint64_t now_ns;
} world;

/* `like` says how many nodes there are and how they keep time; the table has `cols` columns, one block on each server
 * when they are few. */
void world_init(world *world, rbt_topology like, const rbt_rule *rule, uint32_t cols);
void world_deinit(world *world);

rbt_node node_of_worker(const world *world, uint32_t worker);
rbt_node node_of_block(const world *world, uint32_t block);

/* A worker that died and comes back under its next incarnation. */
void world_restart(world *world, uint32_t worker);

/* What lies on the wire: how many of that type (0: any) from one node to another; the first of them, taken off. */
size_t world_count(const world *world, rbt_node from, rbt_node to, rbt_message_type type);
rbt_message *world_take(world *world, rbt_node from, rbt_node to, rbt_message_type type);
void world_put(world *world, rbt_message *message);
void world_lose(world *world, rbt_node from, rbt_node to);

/* Hands a message to its node at once; what the node says goes onto the wire. */
void world_handle(world *world, rbt_message *message);

/* Delivers from one node to another, until nothing between them is left; both ANY: until all is quiet. */
void world_deliver(world *world, rbt_node from, rbt_node to);

/* A worker's calls. Reads are of the first element of a block, increments of all elements of the table. */
bool world_want(world *world, uint32_t worker, uint64_t staleness);
float world_read(world *world, uint32_t worker, uint32_t block, uint64_t staleness);
void world_increment(world *world, uint32_t worker, float delta);
void world_clock(world *world, uint32_t worker);

/* want, deliver everything, want: the worker must be able to read then. Increments by `delta` and ends the clock; the
 * push stays on the wire. */
void world_work(world *world, uint32_t worker, uint64_t staleness, float delta);

/* Messages made by hand: a push of `value` to every element of the server's blocks, a pull of all its blocks. */
rbt_message *push_by_hand(const world *world, uint32_t worker, uint64_t clock, uint32_t server, float value);
rbt_message *pull_by_hand(const world *world, uint32_t worker, uint64_t clock, uint64_t need, uint32_t server,
                          uint64_t request);

/* The first element of the first block of a message. */
float first_value(const rbt_message *blocks);

#endif
