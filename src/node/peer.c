/* The peer's state machine; the contract is in peer.h. A reader who follows an update reads rbt_peer_send, handle_update and
 * rbt_peer_reduce. */
#include "node/peer.h"

#include <string.h>

#include "base/error.h"
#include "math/kernels.h"

#define is_self rbt_peer_is_self

static const rbt_hop *hop_of(const rbt_peer *peer)
{
    return peer->topology->hop;
}

rbt_neighbour *rbt_peer_find(const rbt_peer *peer, uint32_t worker)
{
    for (size_t i = 0; i < peer->neighbours.count; i++)
        if (peer->neighbours.at[i].worker == worker)
            return &peer->neighbours.at[i];
    return NULL;
}

/* They stay in ascending order. */
rbt_neighbour *rbt_peer_meet(rbt_peer *peer, uint32_t worker)
{
    rbt_neighbour *found = rbt_peer_find(peer, worker),
                  new = {.worker = worker, .gone = peer->missed[worker] == RBT_PEER_LEFT};
    size_t at;

    if (found != NULL)
        return found;
    new.tokens = rbt_token_queue_of(hop_of(peer)->max_gap, 0, peer->iteration);
#ifdef RBT_MUTANT_TOKEN /* one too many: the swarm must notice */
    new.tokens.size += hop_of(peer)->max_gap > 0;
#endif
    rbt_array_push(&peer->neighbours, new);
    for (at = peer->neighbours.count - 1; at > 0 && peer->neighbours.at[at - 1].worker > worker; at--)
        peer->neighbours.at[at] = peer->neighbours.at[at - 1];
    peer->neighbours.at[at] = new;
    return &peer->neighbours.at[at];
}

void rbt_peer_init(rbt_peer *peer, const rbt_topology *topology, uint32_t worker, uint32_t n)
{
    const rbt_graph *graph = &topology->hop->graph;
    rbt_neighbours list;

    *peer = (rbt_peer){.topology = topology, .worker = worker, .view = 1};
    peer->node = rbt_node_of_worker(topology, worker);
    peer->is_lost = rbt_alloc(topology->workers, sizeof *peer->is_lost);
    peer->missed = rbt_alloc(topology->workers, sizeof *peer->missed);
    peer->x = rbt_snap_create(RBT_F32, n);
    rbt_allreduce_init(&peer->ring, topology, worker);
    rbt_gossip_init(&peer->gossip, topology, worker);
    if (topology->hop->allreduce)
        return;
    list = rbt_graph_in(graph, worker);
    for (uint32_t i = 0; i < list.count; i++)
        rbt_peer_meet(peer, list.at[i])->is_in = true;
    list = rbt_graph_out(graph, worker);
    for (uint32_t i = 0; i < list.count; i++)
        rbt_peer_meet(peer, list.at[i])->is_out = true;
}

void rbt_peer_deinit(rbt_peer *peer)
{
    for (size_t i = 0; i < peer->neighbours.count; i++)
        rbt_update_queue_deinit(&peer->neighbours.at[i].came);
    rbt_array_free(&peer->neighbours);
    rbt_free(peer->is_lost);
    rbt_free(peer->missed);
    for (size_t i = 0; i < peer->asking.count; i++)
        rbt_message_destroy(peer->asking.at[i]);
    rbt_array_free(&peer->asking);
    rbt_allreduce_deinit(&peer->ring);
    rbt_gossip_deinit(&peer->gossip);
    for (size_t i = 0; i < RBT_PEER_SPARES; i++)
        rbt_snap_unref(peer->spares[i]);
    rbt_snap_unref(peer->x);
}

/* ------------------------------------------------------------------------------------------------- parameters */

rbt_snap *rbt_peer_blank(rbt_peer *peer)
{
    for (size_t i = 0; i < RBT_PEER_SPARES; i++) {
        rbt_snap *spare = peer->spares[i];

        if (spare == NULL || !rbt_snap_is_mine(spare))
            continue;
        peer->spares[i] = NULL;
        return spare;
    }
    return rbt_snap_try_create(RBT_F32, RBT_DENSE, peer->x->length, peer->x->length);
}

void rbt_peer_take(rbt_peer *peer, rbt_snap *x)
{
    size_t at = 0;

    while (at + 1 < RBT_PEER_SPARES && peer->spares[at] != NULL) /* the last one is given up if there are too many */
        at++;
    rbt_snap_unref(peer->spares[at]);
    peer->spares[at] = peer->x;
    peer->x = x;
}

void rbt_peer_add(rbt_peer *peer, const float *update, float factor)
{
    rbt_snap *sum;

    if (!rbt_snap_is_mine(peer->x)) {
        sum = rbt_peer_blank(peer);
        RBT_ASSERT(sum != NULL);
        memcpy(sum->f32, peer->x->f32, sum->length * sizeof(float));
        rbt_peer_take(peer, sum);
    }
    rbt_kernels_best()->axpy(factor, update, peer->x->f32, peer->x->length);
}

static rbt_message *say(const rbt_peer *peer, rbt_env *env, rbt_message_type type, rbt_node to)
{
    rbt_message *message = rbt_message_create(type, peer->node, to);

    message->view = peer->view;
    message->worker = peer->worker;
    message->clock = peer->iteration;
    rbt_outbox_put(&env->out, message);
    return message;
}

static void carry(rbt_message *message, rbt_snap *x)
{
    rbt_part part = {.snap = rbt_snap_ref(x)};

    rbt_array_push(&message->parts, part);
}

/* --------------------------------------------------------------------------------------------------- sending */

bool rbt_peer_may_send(const rbt_peer *peer)
{
    for (size_t i = 0; hop_of(peer)->notify_ack && i < peer->neighbours.count; i++) {
        const rbt_neighbour *n = &peer->neighbours.at[i];

        if (n->is_out && !is_self(peer, n) && !n->gone && n->used < peer->iteration)
            return false;
    }
    return true;
}

void rbt_peer_send(rbt_peer *peer, rbt_env *env)
{
    RBT_ASSERT(!peer->has_sent && rbt_peer_may_send(peer));
    for (size_t i = 0; i < peer->neighbours.count; i++) {
        const rbt_neighbour *n = &peer->neighbours.at[i];

        if (!n->is_out || is_self(peer, n) || n->gone)
            continue;
        if (n->untold || rbt_token_queue_ahead(&n->tokens) > (int64_t)hop_of(peer)->staleness) {
            peer->withheld++; /* it is past this, and told us so; or will tell where it is */
            continue;
        }
        carry(say(peer, env, RBT_MSG_UPDATE, rbt_node_of_worker(peer->topology, n->worker)), peer->x);
        peer->sent++;
    }
    peer->has_sent = true;
}

/* ------------------------------------------------------------------------------------------------- receiving */

/* The oldest iteration whose updates are still of use. */
static uint64_t oldest(const rbt_peer *peer)
{
    uint64_t s = hop_of(peer)->staleness;

#ifdef RBT_MUTANT_LATE /* too old by one: the swarm must notice */
    s++;
#endif
    return peer->iteration > s ? peer->iteration - s : 0;
}

/* Discards what is too old; with staleness also what is not the newest. */
static void discard(rbt_peer *peer, rbt_neighbour *n)
{
    const rbt_update *newest;

    peer->discarded += rbt_update_queue_drop(&n->came, oldest(peer));
    newest = rbt_update_queue_newest(&n->came);
    if (hop_of(peer)->staleness > 0 && newest != NULL)
        rbt_update_queue_drop(&n->came, newest->iteration);
}

static void count_queue(rbt_peer *peer)
{
    uint64_t waiting = 0, in = 0;

    for (size_t i = 0; i < peer->neighbours.count; i++) {
        waiting += peer->neighbours.at[i].came.count;
        in += peer->neighbours.at[i].is_in;
    }
    if (waiting > peer->peak_queue)
        peer->peak_queue = waiting;
    /* With tokens nobody sends more than max_gap iterations ahead of us, or is not listened to. */
    RBT_ASSERT(hop_of(peer)->max_gap == 0 || waiting <= (1 + hop_of(peer)->max_gap) * in);
}

/* With tokens: has it sent as many iterations ahead as it may? One that sends more breaks the protocol. */
static bool is_full(const rbt_peer *peer, const rbt_neighbour *n)
{
    return hop_of(peer)->max_gap > 0 && n->came.count > hop_of(peer)->max_gap;
}

static void take_update(rbt_peer *peer, rbt_neighbour *n, const rbt_message *message)
{
    if (!n->is_in || n->since > message->clock) {  /* a neighbour that a repair has given us, or will soon */
        uint64_t missed = peer->missed[n->worker]; /* this may be one of them, repeated: the others do not come again */

        n->is_in = true;
        n->since = message->clock > missed ? message->clock : missed;
    }
    if (message->clock < oldest(peer) || is_full(peer, n)) {
        peer->discarded++;
        return;
    }
    if (!rbt_update_queue_put(&n->came, message->clock, message->parts.at[0].snap))
        return; /* repeated */
    discard(peer, n);
    count_queue(peer);
}

static void handle_update(rbt_peer *peer, const rbt_message *message, rbt_env *env)
{
    rbt_neighbour *n = rbt_peer_find(peer, message->worker);
    const rbt_snap *x = message->parts.count == 1 ? message->parts.at[0].snap : NULL;

    if (n == NULL && message->worker < peer->topology->workers && message->clock < UINT64_MAX &&
        peer->missed[message->worker] <= message->clock)
        peer->missed[message->worker] = message->clock + 1;
    if (n == NULL || is_self(peer, n) || x == NULL || x->type != RBT_F32 || x->form != RBT_DENSE ||
        x->length != peer->x->length)
        return;
    if (hop_of(peer)->side != NULL)
        rbt_gossip_handle(peer, message, env);
    else
        take_update(peer, n, message);
}

/* What of a neighbour would be taken now, or NULL. */
static rbt_update *usable(const rbt_peer *peer, const rbt_neighbour *n)
{
    rbt_update *newest = rbt_update_queue_newest(&n->came);

    if (hop_of(peer)->staleness > 0)
        return newest != NULL && newest->iteration >= oldest(peer) ? newest : NULL;
    return rbt_update_queue_get(&n->came, peer->iteration);
}

/* Can something of use still come from it? */
static bool may_come(const rbt_peer *peer, const rbt_neighbour *n)
{
    return !n->gone && n->since <= peer->iteration;
}

/* How many in-neighbours, the peer itself not counted, have sent something of use, and how many may still. */
static void count_usable(const rbt_peer *peer, uint32_t *there, uint32_t *missing)
{
    *there = *missing = 0;
    for (size_t i = 0; i < peer->neighbours.count; i++) {
        const rbt_neighbour *n = &peer->neighbours.at[i];

        if (!n->is_in || is_self(peer, n))
            continue;
        if (usable(peer, n) != NULL)
            ++*there;
        else if (may_come(peer, n))
            ++*missing;
    }
}

static bool is_enough(const rbt_peer *peer)
{
    uint32_t there, missing;

    count_usable(peer, &there, &missing);
    return missing <= hop_of(peer)->backup;
}

/* -------------------------------------------------------------------------------------------------- reducing */

/* With staleness the newer is the heavier; otherwise all are alike, unless somebody was lost. */
static double weight_of(const rbt_peer *peer, const rbt_neighbour *n, uint64_t iteration)
{
    const rbt_hop *hop = hop_of(peer);

    if (hop->staleness > 0)
        return (double)(iteration + hop->staleness + 1 - peer->iteration);
    return peer->mended && hop->backup == 0 ? n->weight : 1;
}

static void note_staleness(rbt_peer *peer, uint64_t iteration)
{
    uint64_t age = iteration < peer->iteration ? peer->iteration - iteration : 0;

    peer->staleness_seen[age < RBT_STALENESS_BINS - 1 ? age : RBT_STALENESS_BINS - 1]++;
    peer->staleness_sum += age;
    peer->taken++;
}

/* Whose parameters are in the average, and what they weigh before all are divided by the sum of weights. After a repair the peer
 * itself weighs what the others leave of 1. */
static void gather(rbt_peer *peer, rbt_mix *mix, double *weights)
{
    double others = 0, sum = 0;
    size_t self = 0;

    for (size_t i = 0; i < peer->neighbours.count; i++) {
        rbt_neighbour *n = &peer->neighbours.at[i];
        rbt_update *taken = n->is_in && !is_self(peer, n) ? usable(peer, n) : NULL;

        if (is_self(peer, n)) {
            self = mix->count;
            mix->x[mix->count] = rbt_snap_ref(peer->x);
            weights[mix->count++] = weight_of(peer, n, peer->iteration);
        } else if (taken != NULL) {
            RBT_ASSERT(taken->iteration + hop_of(peer)->staleness >= peer->iteration);
            note_staleness(peer, taken->iteration);
            taken->used = true;
            mix->x[mix->count] = rbt_snap_ref(taken->x);
            others += weights[mix->count++] = weight_of(peer, n, taken->iteration);
        }
    }
    if (peer->mended && hop_of(peer)->staleness == 0 && hop_of(peer)->backup == 0)
        weights[self] = others < 1 ? 1 - others : 0;
    for (size_t i = 0; i < mix->count; i++)
        sum += weights[i];
    for (size_t i = 0; i < mix->count; i++)
        mix->weight[i] = (float)(weights[i] / sum);
}

bool rbt_peer_reduce(rbt_peer *peer, rbt_mix *mix, rbt_env *env)
{
    size_t room = peer->neighbours.count;
    double *weights;

    if (!is_enough(peer))
        return false;
    RBT_ASSERT(mix->count == 0 && mix->out == NULL);
    rbt_mix_make_room(mix, room);
    weights = rbt_alloc(room, sizeof *weights);
    gather(peer, mix, weights);
    rbt_free(weights);
    mix->out = rbt_peer_blank(peer);
    for (size_t i = 0; hop_of(peer)->notify_ack && i < room; i++) {
        const rbt_neighbour *n = &peer->neighbours.at[i];

        if (n->is_in && !is_self(peer, n) && usable(peer, n) != NULL)
            say(peer, env, RBT_MSG_USED, rbt_node_of_worker(peer->topology, n->worker));
    }
    return true;
}

/* --------------------------------------------------------------------------------------------------- tokens */

/* Does this one's token queue bind? */
static bool binds(const rbt_peer *peer, const rbt_neighbour *n)
{
    return hop_of(peer)->max_gap > 0 && n->is_out && !is_self(peer, n) && !n->gone && !n->untold;
}

bool rbt_peer_may_enter(const rbt_peer *peer)
{
    for (size_t i = 0; i < peer->neighbours.count; i++) {
        const rbt_neighbour *n = &peer->neighbours.at[i];

        if (binds(peer, n) && !rbt_token_queue_may_take(&n->tokens, 1))
            return false;
    }
    return true;
}

static void take_tokens(rbt_peer *peer, uint64_t count)
{
    for (size_t i = 0; i < peer->neighbours.count; i++)
        if (binds(peer, &peer->neighbours.at[i]))
            rbt_token_queue_take(&peer->neighbours.at[i].tokens, count);
}

/* Answers observers that wanted this iteration. */
static void answer_observers(rbt_peer *peer, rbt_env *env)
{
    size_t kept = 0;

    for (size_t i = 0; i < peer->asking.count; i++) {
        rbt_message *pull = peer->asking.at[i], *blocks;

        if (peer->iteration < pull->need) {
            peer->asking.at[kept++] = pull;
            continue;
        }
        blocks = say(peer, env, RBT_MSG_BLOCKS, pull->from);
        blocks->request = pull->request;
        blocks->slowest = peer->iteration;
        blocks->included = peer->iteration;
        blocks->reach = peer->skipped;
        carry(blocks, peer->x);
        rbt_message_destroy(pull);
    }
    peer->asking.count = kept;
}

static void begin_iteration(rbt_peer *peer, uint64_t iteration, rbt_env *env)
{
    peer->iteration = iteration;
    peer->has_sent = false;
    for (size_t i = 0; i < peer->neighbours.count; i++) {
        rbt_neighbour *n = &peer->neighbours.at[i];

        discard(peer, n);
        if (hop_of(peer)->max_gap > 0 && n->is_in && !is_self(peer, n) && !n->gone)
            say(peer, env, RBT_MSG_TOKEN, rbt_node_of_worker(peer->topology, n->worker));
    }
    answer_observers(peer, env);
}

void rbt_peer_enter(rbt_peer *peer, rbt_env *env)
{
    take_tokens(peer, 1);
    begin_iteration(peer, peer->iteration + 1, env);
}

uint64_t rbt_peer_jump(const rbt_peer *peer)
{
    int64_t least = INT64_MAX;
    uint64_t length;

    for (size_t i = 0; i < peer->neighbours.count; i++) {
        const rbt_neighbour *n = &peer->neighbours.at[i];

        if (!n->is_out || is_self(peer, n) || n->gone)
            continue;
        if (n->untold)
            return 0;
        least = rbt_token_queue_ahead(&n->tokens) < least ? rbt_token_queue_ahead(&n->tokens) : least;
    }
    if (least == INT64_MAX)
        return 0;
#ifdef RBT_MUTANT_JUMP /* past the slowest out-neighbour: the swarm must notice */
    least++;
#endif
    length = rbt_jump_length(least, hop_of(peer)->skip, hop_of(peer)->skip_trigger);
    return length > 0 ? length - 1 : 0; /* the last one is entered, not jumped over */
}

void rbt_peer_skip(rbt_peer *peer, uint64_t iterations, rbt_env *env)
{
    RBT_ASSERT(iterations > 0 && iterations <= rbt_peer_jump(peer));
    take_tokens(peer, iterations);
    peer->skipped += iterations;
    begin_iteration(peer, peer->iteration + iterations, env);
    peer->has_sent = true; /* nobody needs what was jumped over */
}

/* Does the peer, as it stands, wait for this one? For an answer before it sends, for an update before it reduces, then for
 * a token. */
static bool is_awaited(const rbt_peer *peer, const rbt_neighbour *n)
{
    if (is_self(peer, n) || n->gone)
        return false;
    if (hop_of(peer)->side != NULL)
        return n->worker == peer->gossip.partner;
    if (!peer->has_sent && !rbt_peer_may_send(peer))
        return n->is_out && n->used < peer->iteration;
    if (!is_enough(peer))
        return n->is_in && usable(peer, n) == NULL && may_come(peer, n);
    return binds(peer, n) && !rbt_token_queue_may_take(&n->tokens, 1);
}

uint32_t rbt_peer_waits_for(const rbt_peer *peer)
{
    uint32_t late = UINT32_MAX, workers = peer->topology->workers;
    uint64_t least = UINT64_MAX;

    if (peer->ring.sum != NULL) /* all-reduce: for a chunk of the one before */
        return (peer->worker + workers - 1) % workers;
    for (size_t i = 0; i < peer->neighbours.count; i++) {
        const rbt_neighbour *n = &peer->neighbours.at[i];

        if (is_awaited(peer, n) && n->tokens.told < least) {
            least = n->tokens.told;
            late = n->worker;
        }
    }
    return late;
}

/* ------------------------------------------------------------------------------------------------- all messages */

static void handle_token(rbt_peer *peer, const rbt_message *message)
{
    rbt_neighbour *n = rbt_peer_find(peer, message->worker);

    if (n == NULL || is_self(peer, n))
        return;
    if (n->untold)
        n->tokens = rbt_token_queue_of(hop_of(peer)->max_gap, message->clock, peer->iteration);
    n->untold = false;
    rbt_token_queue_tell(&n->tokens, message->clock);
}

static void handle_used(rbt_peer *peer, const rbt_message *message)
{
    rbt_neighbour *n = rbt_peer_find(peer, message->worker);

    if (n != NULL && (n->used == UINT64_MAX || message->clock + 1 > n->used))
        n->used = message->clock + 1;
}

/* It may know of a loss that makes us neighbours before we do: then it is remembered until we meet. */
static void handle_retire(rbt_peer *peer, const rbt_message *message)
{
    rbt_neighbour *n = rbt_peer_find(peer, message->worker);

    if (n != NULL)
        n->gone = true;
    else if (message->worker < peer->topology->workers)
        peer->missed[message->worker] = RBT_PEER_LEFT;
}

void rbt_peer_handle(rbt_peer *peer, rbt_message *message, rbt_env *env)
{
    switch (message->type) {
    case RBT_MSG_UPDATE:
        handle_update(peer, message, env);
        break;
    case RBT_MSG_TOKEN:
        handle_token(peer, message);
        break;
    case RBT_MSG_USED:
        handle_used(peer, message);
        break;
    case RBT_MSG_RETIRE:
        handle_retire(peer, message);
        break;
    case RBT_MSG_VIEW:
        rbt_peer_handle_view(peer, message);
        break;
    case RBT_MSG_STOP:
        peer->stopping = true;
        break;
    case RBT_MSG_CHUNK:
        rbt_allreduce_handle(&peer->ring, message);
        return;
    case RBT_MSG_PULL:
        rbt_array_push(&peer->asking, message);
        answer_observers(peer, env);
        return;
    default:
        break;
    }
    rbt_message_destroy(message);
}

void rbt_peer_retire(rbt_peer *peer, rbt_env *env)
{
    peer->retired = true;
    say(peer, env, RBT_MSG_RETIRE, RBT_MASTER);
    for (size_t i = 0; i < peer->neighbours.count; i++)
        if (!is_self(peer, &peer->neighbours.at[i]) && !peer->neighbours.at[i].gone)
            say(peer, env, RBT_MSG_RETIRE, rbt_node_of_worker(peer->topology, peer->neighbours.at[i].worker));
    for (uint32_t o = 0; o < peer->topology->observers; o++) { /* who has not asked yet would ask nobody */
        rbt_message *last =
            say(peer, env, RBT_MSG_BLOCKS, rbt_node_of_worker(peer->topology, peer->topology->workers + o));

        last->slowest = RBT_UNBOUNDED;
        last->included = peer->iteration;
        last->reach = peer->skipped;
        carry(last, peer->x);
    }
}

bool rbt_peer_is_alone(const rbt_peer *peer)
{
    for (size_t i = 0; i < peer->neighbours.count; i++)
        if (!is_self(peer, &peer->neighbours.at[i]) && !peer->neighbours.at[i].gone)
            return false;
    return true;
}
