/* Who is where, who needs whom, and who may say what to whom: the links between the processes of a running job. A process needs
 * those it has something to say to: a worker's the servers', a server's the workers', a peer's its neighbours in the graph, also
 * those that a loss has given it; and the lead. Part of the cluster runtime (cluster.h). Proved by tests/cluster/test_hostile.sh
 * and test_processes_leaderless.sh. */
#include "base/error.h"
#include "runtime/cluster/cluster_state.h"
#include "sync/bridge.h"

void rbt_links_place(rbt_cluster *c)
{
    const rbt_topology *topology = c->run->topology;

    c->is_gone = rbt_alloc(topology->workers, sizeof *c->is_gone);
    c->rank_of_node = rbt_alloc(rbt_topology_nodes(topology), sizeof *c->rank_of_node); /* master, observers: 0 */
    for (uint32_t r = 0; r < rbt_session_size(c->session); r++) {
        const rbt_seat *seat = rbt_session_seat(c->session, r);

        for (uint32_t i = 0; i < seat->servers; i++)
            c->rank_of_node[rbt_node_of_server(seat->first_server + i)] = r;
        for (uint32_t i = 0; i < seat->workers; i++)
            c->rank_of_node[rbt_node_of_worker(topology, seat->first_worker + i)] = r;
    }
}

/* ------------------------------------------------------------------------------------------------- who needs whom */

static void need(const rbt_cluster *c, uint32_t worker, bool *is_needed)
{
    is_needed[c->rank_of_node[rbt_node_of_worker(c->run->topology, worker)]] = true;
}

/* The neighbours of one worker here. */
static void need_neighbours(const rbt_cluster *c, uint32_t worker, uint32_t *list, bool *is_needed)
{
    const rbt_topology *topology = c->run->topology;

    if (topology->hop->allreduce) {
        need(c, (worker + 1) % topology->workers, is_needed);
        need(c, (worker + topology->workers - 1) % topology->workers, is_needed);
        return;
    }
    for (int out = 0; out < 2; out++) {
        uint32_t count = rbt_bridge(&topology->hop->graph, c->is_gone, worker, out, list);

        for (uint32_t i = 0; i < count; i++)
            need(c, list[i], is_needed);
    }
}

void rbt_links_keep(rbt_cluster *c)
{
    const rbt_topology *topology = c->run->topology;
    uint32_t size = rbt_session_size(c->session);
    bool *is_needed = rbt_alloc(size, sizeof *is_needed);
    uint32_t *list = rbt_alloc(topology->workers, sizeof *list);

    pthread_mutex_lock(&c->lock);
    for (uint32_t r = 0; r < size && topology->hop == NULL; r++) {
        const rbt_seat *seat = rbt_session_seat(c->session, r);

        is_needed[r] = (c->seat->workers > 0 && seat->servers > 0) || (c->seat->servers > 0 && seat->workers > 0);
    }
    for (uint32_t i = 0; topology->hop != NULL && i < c->seat->workers; i++)
        need_neighbours(c, c->seat->first_worker + i, list, is_needed);
    rbt_session_keep(c->session, is_needed); /* under the lock: what was worked out last counts */
    pthread_mutex_unlock(&c->lock);
    rbt_free(is_needed);
    rbt_free(list);
}

void rbt_links_hear(rbt_cluster *c, const rbt_message *message)
{
    const rbt_topology *topology = c->run->topology;
    bool news = false;

    if (message->type != RBT_MSG_VIEW || message->members.count != topology->workers)
        return;
    pthread_mutex_lock(&c->lock);
    c->view = message->view > c->view ? message->view : c->view;
    for (uint32_t m = 0; m < topology->workers; m++)
        if (message->members.at[m].state == RBT_MEMBER_RETIRED && !c->is_gone[m]) {
            news = c->is_gone[m] = true;
            atomic_store(&c->run->published[m].is_lost, true);
        }
    pthread_mutex_unlock(&c->lock);
    if (news && topology->hop != NULL)
        rbt_links_keep(c);
}

/* ---------------------------------------------------------------------------------------------- who may say what */

/* A worker speaks for itself alone, in its present life, and never to another worker. */
static bool is_from_worker(const rbt_cluster *c, uint32_t rank, const rbt_message *message)
{
    const rbt_topology *topology = c->run->topology;
    uint32_t worker = message->from - rbt_node_of_worker(topology, 0);

    return message->from > topology->servers && message->to <= topology->servers && message->worker == worker &&
           (worker >= topology->workers || message->incarnation == rbt_session_seat(c->session, rank)->incarnation);
}

/* Does a node of this kind say such a thing, and of itself? */
static bool is_in_character(const rbt_cluster *c, uint32_t rank, const rbt_message *message)
{
    const rbt_topology *topology = c->run->topology;

    switch (message->type) {
    case RBT_MSG_VIEW:
        return message->from <= topology->servers;
    case RBT_MSG_STABLE:
    case RBT_MSG_STOP:
        return message->from == RBT_MASTER;
    case RBT_MSG_ACK:
    case RBT_MSG_BLOCKS:
    case RBT_MSG_ROWS:
    case RBT_MSG_RESUMED:
    case RBT_MSG_REPORT:
        return message->from != RBT_MASTER && message->from <= topology->servers;
    case RBT_MSG_GOT: /* both ways */
        return is_from_worker(c, rank, message) || (message->from != RBT_MASTER && message->from <= topology->servers);
    case RBT_MSG_PUSH:
    case RBT_MSG_EARLY:
    case RBT_MSG_PULL:
    case RBT_MSG_RETIRE:
    case RBT_MSG_HELLO:
    case RBT_MSG_RESUME:
    case RBT_MSG_ASK:
        return is_from_worker(c, rank, message);
    default: /* what the runtime alone may say */
        return false;
    }
}

/* Without servers: workers speak to each other, to the master and to observers, each for itself; observers ask. */
static bool is_among_peers(const rbt_cluster *c, const rbt_message *message)
{
    const rbt_topology *topology = c->run->topology;
    uint32_t worker = message->from - rbt_node_of_worker(topology, 0);

    switch (message->type) {
    case RBT_MSG_VIEW:
    case RBT_MSG_STOP:
        return message->from == RBT_MASTER;
    case RBT_MSG_UPDATE:
    case RBT_MSG_TOKEN:
    case RBT_MSG_USED:
    case RBT_MSG_CHUNK:
    case RBT_MSG_RETIRE:
    case RBT_MSG_BLOCKS:
        return message->from != RBT_MASTER && worker < topology->workers && message->worker == worker;
    case RBT_MSG_PULL:
        return message->from != RBT_MASTER && worker >= topology->workers && message->worker == worker;
    default:
        return false;
    }
}

/* Messages of other processes: only for nodes here, only from nodes there. */
bool rbt_links_allow(const rbt_cluster *c, uint32_t rank, const rbt_message *message)
{
    uint32_t nodes = rbt_topology_nodes(c->run->topology);

    return message->from < nodes && message->to < nodes && c->rank_of_node[message->from] == rank &&
           c->places.place[message->to].is_here &&
           (c->run->topology->hop != NULL ? is_among_peers(c, message) : is_in_character(c, rank, message));
}
