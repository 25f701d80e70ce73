/* Peers driven by hand: a graph, a peer on every node, and a wire on which what they say lies until the test delivers it,
 * loses it or looks at it. Used by the tests of the peer and of its checker. */
#ifndef RBT_TESTS_UNIT_POND_H
#define RBT_TESTS_UNIT_POND_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "node/onlooker.h"
#include "node/peer.h"

#define POND_PARAMETERS 3

typedef struct pond {
    rbt_topology topology;
    rbt_hop hop;
    rbt_peer *peers;
    rbt_outbox wire;                                            /* said and not delivered yet, in order */
    void (*on_sent)(void *context, const rbt_message *message); /* NULL: nobody watches the wire */
    void (*on_given)(void *context, const rbt_message *message);
    void *context;
} pond;

/* `like` says how they train; its graph is made here. */
void pond_init(pond *p, rbt_graph_kind kind, uint32_t workers, rbt_hop like);
void pond_init_edges(pond *p, const rbt_edge *edges, size_t n, uint32_t workers, rbt_hop like);
void pond_deinit(pond *p);

/* A worker's parameters become `value`, all of them. */
void pond_set(pond *p, uint32_t worker, float value);

/* A worker's calls; what it says goes onto the wire. */
void pond_send(pond *p, uint32_t worker);
void pond_enter(pond *p, uint32_t worker);
void pond_skip(pond *p, uint32_t worker, uint64_t iterations);
void pond_retire(pond *p, uint32_t worker);
bool pond_reduce(pond *p, uint32_t worker, float *value); /* the first parameter of the average */

/* Hands a message over at once. */
void pond_give(pond *p, uint32_t to, rbt_message *message);

/* Messages made by hand. */
rbt_message *update_by_hand(uint32_t from, uint64_t iteration, float value);
rbt_message *note_by_hand(rbt_message_type type, uint32_t from, uint64_t iteration); /* TOKEN, USED, RETIRE */
rbt_message *view_by_hand(const pond *p, uint32_t view, uint32_t lost_bits);

/* What lies on the wire from one worker to another, of that type; UINT32_MAX: any worker. */
size_t pond_count(const pond *p, uint32_t from, uint32_t to, rbt_message_type type);

/* Delivers the oldest message to a worker; false when there is none. pond_quiet delivers all, what is not for a worker is
 * lost. */
bool pond_deliver(pond *p, uint32_t to);
void pond_quiet(pond *p);

/* `found` is the weighted mean of these, as the peer must compute it: in this order, with these weights, to the bit. */
void assert_mean(float found, size_t n, const float *values, const double *weights);

const rbt_neighbour *pond_neighbour(const pond *p, uint32_t worker, uint32_t other);

#endif
