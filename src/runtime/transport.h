/* What the runtimes have in common: handing a message to the node it is for, and the encode mode. */
#ifndef RBT_RUNTIME_TRANSPORT_H
#define RBT_RUNTIME_TRANSPORT_H

#include "runtime/runtime.h"

/* The nodes every runtime has: the master and the servers. Clients belong to their workers. */
typedef struct rbt_nodes {
    rbt_master master;
    rbt_server *servers;
    bool *has_server; /* per server: it lives here */
} rbt_nodes;

/* `here`: per node of the job, whether it lives here; NULL: all do. */
void rbt_nodes_init(rbt_nodes *nodes, const rbt_run *run, const bool *here);
void rbt_nodes_deinit(rbt_nodes *nodes, rbt_run *run); /* what the servers counted goes to the run */

/* What each process of several workers shares (a runtime with threads adds the lock); NULL when every worker has its own. */
rbt_process *rbt_processes_create(const rbt_topology *topology);
void rbt_processes_destroy(rbt_process *processes, const rbt_topology *topology);

/* Lets the master or a server handle a message. */
void rbt_nodes_handle(rbt_nodes *nodes, rbt_node to, rbt_message *message, rbt_env *env);

/* Is this one of the observer's messages? They are free: they do not count and take no time. */
bool rbt_is_observed(const rbt_run *run, const rbt_message *message);

/* What a codec remembers of every pair of nodes whose messages it squeezes in this process: opened before the first message
 * and closed after the last. A node's are used by who runs that node, one thread at a time. */
void rbt_transport_open(rbt_run *run);
void rbt_transport_close(rbt_run *run);

/* This node has died: its next life begins without what the former one sent and received. */
void rbt_transport_forget(rbt_run *run, rbt_node node);

/* Counts a message that took so many bytes, and would have taken `plain` without a codec. */
void rbt_transport_count(rbt_run *run, size_t plain, size_t bytes);

/* Counts the message, of `bytes` as encoded and squeezed if it `travels` (else it stays as it is, and is counted so); in
 * encode mode also replaces it by what comes out of encoding and decoding it. */
rbt_message *rbt_transport_pass(rbt_run *run, rbt_message *message, bool travels, size_t *bytes);

#endif
