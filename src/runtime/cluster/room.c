/* Pulls of a process that does not read what it is sent: they wait here until its queue has room, so that the answers do not pile up.
 * All else it says is heard, so nobody waits for anybody in a circle (docs/architecture.md, section 17). Part of the cluster runtime
 * (cluster.h), on the hub's thread. Proved by tests/cluster/test_hostile_seated.sh. */
#include "base/error.h"
#include "runtime/cluster/cluster_state.h"

/* What the pulls of a process may weigh that wait: each of its workers waits for what it asked before it asks again. */
static size_t waiting_most(const rbt_cluster *c, uint32_t rank)
{
    return (1 + (size_t)rbt_session_seat(c->session, rank)->workers) * RBT_QUEUE_MOST;
}

/* What it takes in memory, not on the wire. */
static size_t weight(const rbt_message *pull)
{
    return sizeof *pull + pull->parts.count * sizeof *pull->parts.at;
}

static void deliver(rbt_cluster *c, rbt_message *message)
{
    rbt_outbox out = {0};

    rbt_outbox_put(&out, message);
    rbt_places_deliver(&c->places, &out);
}

void rbt_room_take(rbt_cluster *c, uint32_t rank, rbt_message *message)
{
    waiting_pulls *w = &c->waiting[rank];

    if (message->type != RBT_MSG_PULL) {
        deliver(c, message);
        return;
    }
    w->bytes += weight(message);
    rbt_outbox_put(&w->pulls, message);
    rbt_room_again(c, rank);
    if (w->bytes > waiting_most(c, rank))
        rbt_session_cut(c->session, rank, "it asks on and on and does not read the answers");
}

void rbt_room_again(rbt_cluster *c, uint32_t rank)
{
    waiting_pulls *w = &c->waiting[rank];

    while (w->pulls.first != NULL && rbt_session_queued(c->session, rank) < RBT_QUEUE_MOST) {
        rbt_message *pull = rbt_outbox_take(&w->pulls);

        w->bytes -= weight(pull);
        deliver(c, pull);
    }
}

bool rbt_room_is_wasted(const rbt_cluster *c, const rbt_message *message)
{
    const rbt_topology *topology = c->run->topology;

    return message->type == RBT_MSG_BLOCKS && message->request == 0 && topology->hop == NULL &&
           topology->budget_bytes == 0 && /* else the server takes note of what it has told */
           rbt_session_queued(c->session, c->rank_of_node[message->to]) >= RBT_QUEUE_MOST;
}

void rbt_room_deinit(rbt_cluster *c)
{
    for (uint32_t r = 0; r < rbt_session_size(c->session); r++)
        for (rbt_message *pull; (pull = rbt_outbox_take(&c->waiting[r].pulls)) != NULL;)
            rbt_message_destroy(pull);
    rbt_free(c->waiting);
}
