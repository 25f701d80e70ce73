/* The peer's state machine; the contract is in peer.h. A reader who follows an update reads rbt_peer_send, handle_update and
 * rbt_peer_reduce. */
#include "node/peer.h"

#include <string.h>

#include "base/error.h"
#include "math/kernels.h"
#include "sync/bridge.h"

#define CHUNK 8192 /* floats that are averaged at a time: the sums stay in the nearest cache */

#define UNTOLD (UINT64_MAX / 2) /* where a new out-neighbour stands, until it tells: further than anybody gets */

static const rbt_hop *hop_of(const rbt_peer *peer)
{
    return peer->topology->hop;
}

static bool is_self(const rbt_peer *peer, const rbt_neighbour *n)
{
    return n->worker == peer->worker;
}

static rbt_neighbour *find(const rbt_peer *peer, uint32_t worker)
{
    for (size_t i = 0; i < peer->neighbours.count; i++)
        if (peer->neighbours.at[i].worker == worker)
            return &peer->neighbours.at[i];
    return NULL;
}

/* The neighbour with this number, a new one if there is none; they stay in ascending order. */
static rbt_neighbour *meet(rbt_peer *peer, uint32_t worker)
{
    rbt_neighbour *found = find(peer, worker), new = {.worker = worker};
    size_t at;

    if (found != NULL)
        return found;
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
    peer->x = rbt_snap_create(RBT_F32, n);
    rbt_allreduce_init(&peer->ring, topology, worker);
    if (topology->hop->allreduce)
        return;
    list = rbt_graph_in(graph, worker);
    for (uint32_t i = 0; i < list.count; i++)
        meet(peer, list.at[i])->is_in = true;
    list = rbt_graph_out(graph, worker);
    for (uint32_t i = 0; i < list.count; i++)
        meet(peer, list.at[i])->is_out = true;
}

void rbt_peer_deinit(rbt_peer *peer)
{
    for (size_t i = 0; i < peer->neighbours.count; i++) {
        rbt_neighbour *n = &peer->neighbours.at[i];

        for (size_t k = 0; k < n->came.count; k++)
            rbt_snap_unref(n->came.at[k].x);
        rbt_array_free(&n->came);
    }
    rbt_array_free(&peer->neighbours);
    rbt_free(peer->is_lost);
    for (size_t i = 0; i < peer->asking.count; i++)
        rbt_message_destroy(peer->asking.at[i]);
    rbt_array_free(&peer->asking);
    rbt_allreduce_deinit(&peer->ring);
    rbt_snap_unref(peer->x);
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
        if (n->entered > peer->iteration + hop_of(peer)->staleness) {
            peer->withheld++; /* it is past this, and told us so */
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

static void drop_first(rbt_neighbour *n)
{
    rbt_snap_unref(n->came.at[0].x);
    n->came.count--;
    memmove(n->came.at, n->came.at + 1, n->came.count * sizeof *n->came.at);
}

/* Discards what is too old; with staleness also what is not the newest. */
static void discard(rbt_peer *peer, rbt_neighbour *n)
{
    while (n->came.count > 0 &&
           (n->came.at[0].iteration < oldest(peer) || (hop_of(peer)->staleness > 0 && n->came.count > 1))) {
        peer->discarded += n->came.at[0].iteration < oldest(peer) && !n->came.at[0].used;
        drop_first(n);
    }
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
    /* With tokens nobody sends more than max_gap iterations ahead of us. */
    RBT_ASSERT(hop_of(peer)->max_gap == 0 || waiting <= (1 + hop_of(peer)->max_gap) * in);
}

static void handle_update(rbt_peer *peer, const rbt_message *message)
{
    rbt_neighbour *n = find(peer, message->worker);
    rbt_arrived new = {.iteration = message->clock};
    size_t at;

    if (n == NULL || is_self(peer, n) || message->parts.count != 1 || message->parts.at[0].snap == NULL ||
        message->parts.at[0].snap->type != RBT_F32 || message->parts.at[0].snap->form != RBT_DENSE ||
        message->parts.at[0].snap->length != peer->x->length)
        return;
    if (!n->is_in || n->since > message->clock) { /* a neighbour that a repair has given us, or will soon */
        n->is_in = true;
        n->since = message->clock;
    }
    if (message->clock < oldest(peer)) {
        peer->discarded++;
        return;
    }
    for (at = n->came.count; at > 0 && n->came.at[at - 1].iteration >= message->clock; at--)
        if (n->came.at[at - 1].iteration == message->clock)
            return; /* repeated */
    new.x = rbt_snap_ref(message->parts.at[0].snap);
    rbt_array_push(&n->came, new);
    memmove(n->came.at + at + 1, n->came.at + at, (n->came.count - 1 - at) * sizeof *n->came.at);
    n->came.at[at] = new;
    discard(peer, n);
    count_queue(peer);
}

/* What of a neighbour would be taken now, or NULL. */
static const rbt_arrived *usable(const rbt_peer *peer, const rbt_neighbour *n)
{
    const rbt_arrived *last = n->came.count > 0 ? &n->came.at[n->came.count - 1] : NULL;

    if (hop_of(peer)->staleness > 0)
        return last != NULL && last->iteration >= oldest(peer) ? last : NULL;
    for (size_t i = 0; i < n->came.count; i++)
        if (n->came.at[i].iteration == peer->iteration)
            return &n->came.at[i];
    return NULL;
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

/* With staleness the newer is the heavier; otherwise all are alike. */
static double weight_of(const rbt_peer *peer, uint64_t iteration)
{
    return hop_of(peer)->staleness > 0 ? (double)(iteration + hop_of(peer)->staleness + 1 - peer->iteration) : 1;
}

static void note_staleness(rbt_peer *peer, uint64_t iteration)
{
    uint64_t age = iteration < peer->iteration ? peer->iteration - iteration : 0;

    peer->staleness_seen[age < RBT_STALENESS_BINS - 1 ? age : RBT_STALENESS_BINS - 1]++;
}

/* The weighted mean, chunk by chunk, in the order of the workers' numbers. */
static rbt_snap *average(const float *const *values, const double *weights, size_t count, uint32_t n)
{
    const rbt_kernels *kernels = rbt_kernels_best();
    rbt_snap *mean = rbt_snap_try_create(RBT_F32, RBT_DENSE, n, n);
    double sum = 0;

    RBT_ASSERT(mean != NULL);
    for (size_t i = 0; i < count; i++)
        sum += weights[i];
    for (size_t at = 0; at < n; at += CHUNK) {
        size_t part = n - at < CHUNK ? n - at : CHUNK;

        memset(mean->f32 + at, 0, part * sizeof(float));
        for (size_t i = 0; i < count; i++)
            kernels->axpy((float)(weights[i] / sum), values[i] + at, mean->f32 + at, part);
    }
    return mean;
}

bool rbt_peer_reduce(rbt_peer *peer, rbt_snap **mixed, rbt_env *env)
{
    size_t room = peer->neighbours.count, count = 0;
    const float **values;
    double *weights;

    if (!is_enough(peer))
        return false;
    values = rbt_alloc(room, sizeof *values);
    weights = rbt_alloc(room, sizeof *weights);
    for (size_t i = 0; i < room; i++) {
        rbt_neighbour *n = &peer->neighbours.at[i];
        const rbt_arrived *taken = n->is_in ? usable(peer, n) : NULL;

        if (is_self(peer, n)) {
            values[count] = peer->x->f32;
            weights[count++] = weight_of(peer, peer->iteration);
        } else if (taken != NULL) {
            RBT_ASSERT(taken->iteration + hop_of(peer)->staleness >= peer->iteration);
            note_staleness(peer, taken->iteration);
            n->came.at[taken - n->came.at].used = true;
            values[count] = taken->x->f32;
            weights[count++] = weight_of(peer, taken->iteration);
        }
    }
    *mixed = average(values, weights, count, peer->x->length);
    rbt_free(values);
    rbt_free(weights);
    for (size_t i = 0; hop_of(peer)->notify_ack && i < room; i++) {
        const rbt_neighbour *n = &peer->neighbours.at[i];

        if (n->is_in && !is_self(peer, n) && usable(peer, n) != NULL)
            say(peer, env, RBT_MSG_USED, rbt_node_of_worker(peer->topology, n->worker));
    }
    return true;
}

/* --------------------------------------------------------------------------------------------------- tokens */

bool rbt_peer_may_enter(const rbt_peer *peer)
{
    uint64_t gap = hop_of(peer)->max_gap;

#ifdef RBT_MUTANT_TOKEN /* one too many: the swarm must notice */
    gap += gap > 0;
#endif
    for (size_t i = 0; gap > 0 && i < peer->neighbours.count; i++) {
        const rbt_neighbour *n = &peer->neighbours.at[i];

        if (n->is_out && !is_self(peer, n) && !n->gone && peer->iteration + 1 > n->entered + gap)
            return false;
    }
    return true;
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

/* The guarantee that tokens give: nobody is more than `ahead` iterations ahead of an out-neighbour. */
static void assert_gap(const rbt_peer *peer, uint64_t iteration, uint64_t ahead)
{
    for (size_t i = 0; hop_of(peer)->max_gap > 0 && i < peer->neighbours.count; i++) {
        const rbt_neighbour *n = &peer->neighbours.at[i];

        RBT_ASSERT(!n->is_out || is_self(peer, n) || n->gone || iteration <= n->entered + ahead);
    }
}

void rbt_peer_enter(rbt_peer *peer, rbt_env *env)
{
    RBT_ASSERT(rbt_peer_may_enter(peer));
    assert_gap(peer, peer->iteration + 1, hop_of(peer)->max_gap);
    begin_iteration(peer, peer->iteration + 1, env);
}

uint64_t rbt_peer_jump(const rbt_peer *peer)
{
    const rbt_hop *hop = hop_of(peer);
    uint64_t least = UINT64_MAX;

    if (hop->skip == 0)
        return 0;
    for (size_t i = 0; i < peer->neighbours.count; i++) {
        const rbt_neighbour *n = &peer->neighbours.at[i];

        if (!n->is_out || is_self(peer, n) || n->gone)
            continue;
        if (n->entered <= peer->iteration || n->entered == UNTOLD)
            return 0;
        if (n->entered - peer->iteration < least)
            least = n->entered - peer->iteration;
    }
    if (least == UINT64_MAX || least < hop->skip_trigger || least < 2)
        return 0;
#ifdef RBT_MUTANT_JUMP /* past the slowest out-neighbour: the swarm must notice */
    least++;
#endif
    return least - 1 < hop->skip ? least - 1 : hop->skip; /* the next one is entered, not jumped over */
}

void rbt_peer_skip(rbt_peer *peer, uint64_t iterations, rbt_env *env)
{
    RBT_ASSERT(iterations > 0 && iterations <= rbt_peer_jump(peer));
    assert_gap(peer, peer->iteration + iterations + 1, 0); /* never past one */
    peer->skipped += iterations;
    begin_iteration(peer, peer->iteration + iterations, env);
    peer->has_sent = true; /* nobody needs what was jumped over */
}

void rbt_peer_take(rbt_peer *peer, rbt_snap *x)
{
    rbt_snap_unref(peer->x);
    peer->x = x;
}

/* Does the peer, as it stands, wait for this one? For an answer before it sends, for an update before it reduces, then for
 * a token. */
static bool is_awaited(const rbt_peer *peer, const rbt_neighbour *n)
{
    const rbt_hop *hop = hop_of(peer);

    if (is_self(peer, n) || n->gone)
        return false;
    if (!peer->has_sent && !rbt_peer_may_send(peer))
        return n->is_out && n->used < peer->iteration;
    if (!is_enough(peer))
        return n->is_in && usable(peer, n) == NULL && may_come(peer, n);
    return n->is_out && hop->max_gap > 0 && peer->iteration + 1 > n->entered + hop->max_gap;
}

uint32_t rbt_peer_waits_for(const rbt_peer *peer)
{
    uint32_t late = UINT32_MAX;
    uint64_t least = UINT64_MAX;

    for (size_t i = 0; i < peer->neighbours.count; i++) {
        const rbt_neighbour *n = &peer->neighbours.at[i];

        if (is_awaited(peer, n) && n->entered < least) {
            least = n->entered;
            late = n->worker;
        }
    }
    return late;
}

/* -------------------------------------------------------------------------------------------------- members */

/* Whom we now send to directly. Where it stands it will tell, if there are tokens. */
static void connect_out(rbt_peer *peer, uint32_t worker)
{
    rbt_neighbour *to = meet(peer, worker);

    if (to->is_out)
        return;
    to->is_out = true;
    to->entered = hop_of(peer)->max_gap > 0 ? UNTOLD : 0;
    to->used = UNTOLD;
}

/* Who now sends to us directly. From when on is not known: it is waited for from its first update on. */
static void connect_in(rbt_peer *peer, uint32_t worker)
{
    rbt_neighbour *from = meet(peer, worker);

    if (from->is_in)
        return;
    from->is_in = true;
    from->since = UINT64_MAX;
}

/* What lost peers would have passed on goes directly. */
static void repair(rbt_peer *peer)
{
    const rbt_graph *graph = &hop_of(peer)->graph;
    uint32_t *list = rbt_alloc(graph->nodes, sizeof *list), count;

    count = rbt_bridge(graph, peer->is_lost, peer->worker, true, list);
    for (uint32_t i = 0; i < count; i++)
        connect_out(peer, list[i]);
    count = rbt_bridge(graph, peer->is_lost, peer->worker, false, list);
    for (uint32_t i = 0; i < count; i++)
        connect_in(peer, list[i]);
    rbt_free(list);
}

static void handle_view(rbt_peer *peer, const rbt_message *message)
{
    bool news = false;

    if (message->view <= peer->view || message->members.count != peer->topology->workers)
        return;
    peer->view = message->view;
    for (uint32_t m = 0; m < peer->topology->workers; m++) {
        rbt_neighbour *n = find(peer, m);

        if (message->members.at[m].state != RBT_MEMBER_RETIRED || m == peer->worker || peer->is_lost[m])
            continue;
        news = peer->is_lost[m] = true;
        if (n != NULL)
            n->gone = true;
    }
    if (news && !hop_of(peer)->allreduce) /* which has no graph */
        repair(peer);
}

static void handle_token(rbt_peer *peer, const rbt_message *message)
{
    rbt_neighbour *n = find(peer, message->worker);

    if (n == NULL || is_self(peer, n))
        return;
    if (n->entered == UNTOLD || message->clock > n->entered)
        n->entered = message->clock;
}

void rbt_peer_handle(rbt_peer *peer, rbt_message *message, rbt_env *env)
{
    rbt_neighbour *n;

    switch (message->type) {
    case RBT_MSG_UPDATE:
        handle_update(peer, message);
        break;
    case RBT_MSG_TOKEN:
        handle_token(peer, message);
        break;
    case RBT_MSG_USED:
        n = find(peer, message->worker);
        if (n != NULL && (n->used == UNTOLD || message->clock + 1 > n->used))
            n->used = message->clock + 1;
        break;
    case RBT_MSG_RETIRE:
        n = find(peer, message->worker);
        if (n != NULL)
            n->gone = true;
        break;
    case RBT_MSG_VIEW:
        handle_view(peer, message);
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
    say(peer, env, RBT_MSG_RETIRE, RBT_MASTER);
    for (size_t i = 0; i < peer->neighbours.count; i++)
        if (!is_self(peer, &peer->neighbours.at[i]) && !peer->neighbours.at[i].gone)
            say(peer, env, RBT_MSG_RETIRE, rbt_node_of_worker(peer->topology, peer->neighbours.at[i].worker));
    for (uint32_t o = 0; o < peer->topology->observers; o++) { /* who has not asked yet would ask nobody */
        rbt_message *last =
            say(peer, env, RBT_MSG_BLOCKS, rbt_node_of_worker(peer->topology, peer->topology->workers + o));

        last->slowest = RBT_UNBOUNDED;
        last->included = peer->iteration;
        carry(last, peer->x);
    }
}
