/* AD-PSGD; the contract is in gossip.h. */
#include "node/gossip.h"

#include "base/error.h"
#include "node/peer.h"

#define NOBODY UINT32_MAX

void rbt_gossip_init(rbt_gossip *gossip, const rbt_topology *topology, uint32_t worker)
{
    const rbt_hop *hop = topology->hop;

    *gossip = (rbt_gossip){.partner = NOBODY};
    if (hop->side == NULL)
        return;
    gossip->rng = rbt_rng_stream(hop->seed, RBT_STREAM_GOSSIP, worker);
    gossip->asks = hop->side[worker] == 0;
    gossip->answered = rbt_alloc(topology->workers, sizeof *gossip->answered);
}

void rbt_gossip_deinit(rbt_gossip *gossip)
{
    rbt_free(gossip->answered);
}

static void say(const rbt_peer *peer, uint32_t to, uint64_t question, rbt_env *env)
{
    rbt_message *message = rbt_message_create(RBT_MSG_UPDATE, peer->node, rbt_node_of_worker(peer->topology, to));
    rbt_part part = {.snap = rbt_snap_ref(peer->x)};

    message->view = peer->view;
    message->worker = peer->worker;
    message->clock = question;
    rbt_array_push(&message->parts, part);
    rbt_outbox_put(&env->out, message);
}

void rbt_gossip_begin(rbt_peer *peer, rbt_env *env)
{
    rbt_gossip *gossip = &peer->gossip;
    size_t there = 0, drawn;

    RBT_ASSERT(gossip->partner == NOBODY);
    if (!gossip->asks)
        return;
    for (size_t i = 0; i < peer->neighbours.count; i++)
        there += !rbt_peer_is_self(peer, &peer->neighbours.at[i]) && !peer->neighbours.at[i].gone;
    if (there == 0)
        return;
    drawn = (size_t)rbt_rng_below(&gossip->rng, there);
    for (size_t i = 0; i < peer->neighbours.count; i++) {
        const rbt_neighbour *n = &peer->neighbours.at[i];

        if (rbt_peer_is_self(peer, n) || n->gone)
            continue;
        if (drawn-- == 0)
            gossip->partner = n->worker;
    }
    say(peer, gossip->partner, ++gossip->asked, env);
    peer->sent++;
}

bool rbt_gossip_is_over(rbt_peer *peer)
{
    const rbt_neighbour *n = peer->gossip.partner != NOBODY ? rbt_peer_find(peer, peer->gossip.partner) : NULL;

    if (n != NULL && n->gone) /* what it had to say came before the news that it is gone */
        peer->gossip.partner = NOBODY;
    return peer->gossip.partner == NOBODY;
}

static void answer(rbt_peer *peer, const rbt_message *message, rbt_env *env)
{
    rbt_mix mix = {0};
    rbt_snap *x[2] = {rbt_snap_ref(peer->x), rbt_snap_ref(message->parts.at[0].snap)};
    float half[2] = {0.5f, 0.5f};

    peer->gossip.answered[message->worker] = message->clock;
    mix = (rbt_mix){.count = 2, .x = x, .weight = half, .out = rbt_peer_blank(peer)};
    RBT_ASSERT(mix.out != NULL); /* it has had as much before */
    rbt_peer_take(peer, rbt_mix_average(&mix, NULL, 0));
    peer->gossip.averaged++;
    say(peer, message->worker, message->clock, env);
    peer->sent++;
#ifdef RBT_MUTANT_GOSSIP /* keeps a part of what it gave away: the swarm must notice */
    rbt_peer_add(peer, peer->x->f32, 0.01f);
#endif
}

void rbt_gossip_handle(rbt_peer *peer, const rbt_message *message, rbt_env *env)
{
    rbt_gossip *gossip = &peer->gossip;

    if (gossip->asks) {
        if (message->worker != gossip->partner || message->clock != gossip->asked)
            return; /* repeated, or given up */
        rbt_peer_take(peer, rbt_snap_ref(message->parts.at[0].snap));
        gossip->partner = NOBODY;
        gossip->averaged++;
    } else if (message->clock > gossip->answered[message->worker] && !peer->retired) {
        answer(peer, message, env);
    }
}
