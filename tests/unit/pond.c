/* Peers driven by hand; the contract is in pond.h. */
#include "unit/pond.h"

#include "base/error.h"
#include "math/kernels.h"

static void fill(pond *p, uint32_t workers, rbt_hop like)
{
    rbt_graph graph = p->hop.graph;

    p->hop = like;
    p->hop.graph = graph;
    p->hop.parameters = POND_PARAMETERS;
    p->topology = (rbt_topology){.workers = workers, .observers = 1, .hop = &p->hop};
    p->peers = rbt_alloc(workers, sizeof *p->peers);
    p->wire = (rbt_outbox){0};
    p->on_sent = p->on_given = NULL;
    for (uint32_t m = 0; m < workers; m++)
        rbt_peer_init(&p->peers[m], &p->topology, m, POND_PARAMETERS);
}

void pond_init(pond *p, rbt_graph_kind kind, uint32_t workers, rbt_hop like)
{
    rbt_error error = {0};

    assert_int_equal(rbt_graph_init(&p->hop.graph, kind, workers, NULL, &error), RBT_OK);
    fill(p, workers, like);
}

void pond_init_edges(pond *p, const rbt_edge *edges, size_t n, uint32_t workers, rbt_hop like)
{
    rbt_error error = {0};

    assert_int_equal(rbt_graph_init_edges(&p->hop.graph, workers, edges, n, &error), RBT_OK);
    fill(p, workers, like);
}

void pond_deinit(pond *p)
{
    rbt_message *message;

    while ((message = rbt_outbox_take(&p->wire)) != NULL)
        rbt_message_destroy(message);
    for (uint32_t m = 0; m < p->topology.workers; m++)
        rbt_peer_deinit(&p->peers[m]);
    rbt_free(p->peers);
    rbt_graph_deinit(&p->hop.graph);
}

void pond_set(pond *p, uint32_t worker, float value)
{
    rbt_snap *x = rbt_snap_create(RBT_F32, POND_PARAMETERS);

    for (uint32_t i = 0; i < POND_PARAMETERS; i++)
        x->f32[i] = value;
    rbt_peer_take(&p->peers[worker], x);
}

/* What was said goes onto the wire. */
static void end(pond *p, rbt_env *env)
{
    rbt_message *message;

    while ((message = rbt_outbox_take(&env->out)) != NULL) {
        if (p->on_sent != NULL)
            p->on_sent(p->context, message);
        rbt_outbox_put(&p->wire, message);
    }
}

void pond_send(pond *p, uint32_t worker)
{
    rbt_env env = {0};

    rbt_peer_send(&p->peers[worker], &env);
    end(p, &env);
}

void pond_enter(pond *p, uint32_t worker)
{
    rbt_env env = {0};

    rbt_peer_enter(&p->peers[worker], &env);
    end(p, &env);
}

void pond_skip(pond *p, uint32_t worker, uint64_t iterations)
{
    rbt_env env = {0};

    rbt_peer_skip(&p->peers[worker], iterations, &env);
    end(p, &env);
}

void pond_retire(pond *p, uint32_t worker)
{
    rbt_env env = {0};

    rbt_peer_retire(&p->peers[worker], &env);
    end(p, &env);
}

bool pond_reduce(pond *p, uint32_t worker, float *value)
{
    rbt_env env = {0};
    rbt_mix mix = {0};
    rbt_snap *mixed = NULL;
    bool ready = rbt_peer_reduce(&p->peers[worker], &mix, &env);

    end(p, &env);
    if (ready)
        mixed = rbt_mix_average(&mix, NULL, 0);
    if (ready && value != NULL)
        *value = mixed->f32[0];
    for (uint32_t i = 1; ready && i < POND_PARAMETERS; i++) /* all elements are alike */
        assert_memory_equal(&mixed->f32[i], &mixed->f32[0], sizeof(float));
    rbt_snap_unref(mixed);
    rbt_mix_deinit(&mix);
    return ready;
}

void pond_give(pond *p, uint32_t to, rbt_message *message)
{
    rbt_env env = {0};

    message->to = to + 1;
    if (p->on_given != NULL)
        p->on_given(p->context, message);
    rbt_peer_handle(&p->peers[to], message, &env);
    end(p, &env);
}

rbt_message *note_by_hand(rbt_message_type type, uint32_t from, uint64_t iteration)
{
    rbt_message *message = rbt_message_create(type, from + 1, 0);

    message->worker = from;
    message->clock = iteration;
    return message;
}

rbt_message *update_by_hand(uint32_t from, uint64_t iteration, float value)
{
    rbt_message *message = note_by_hand(RBT_MSG_UPDATE, from, iteration);
    rbt_part part = {.snap = rbt_snap_create(RBT_F32, POND_PARAMETERS)};

    for (uint32_t i = 0; i < POND_PARAMETERS; i++)
        part.snap->f32[i] = value;
    rbt_array_push(&message->parts, part);
    return message;
}

rbt_message *view_by_hand(const pond *p, uint32_t view, uint32_t lost_bits)
{
    rbt_message *message = rbt_message_create(RBT_MSG_VIEW, RBT_MASTER, 0);

    message->view = view;
    for (uint32_t m = 0; m < p->topology.workers; m++) {
        rbt_member member = {.state = lost_bits >> m & 1 ? RBT_MEMBER_RETIRED : RBT_MEMBER_LIVE};

        rbt_array_push(&message->members, member);
    }
    return message;
}

size_t pond_count(const pond *p, uint32_t from, uint32_t to, rbt_message_type type)
{
    size_t count = 0;

    for (const rbt_message *message = p->wire.first; message != NULL; message = message->next)
        count += (from == UINT32_MAX || message->from == from + 1) && (to == UINT32_MAX || message->to == to + 1) &&
                 message->type == type;
    return count;
}

bool pond_deliver(pond *p, uint32_t to)
{
    rbt_outbox rest = {0};
    rbt_message *message, *found = NULL;

    while ((message = rbt_outbox_take(&p->wire)) != NULL) {
        if (found == NULL && message->to == to + 1)
            found = message;
        else
            rbt_outbox_put(&rest, message);
    }
    p->wire = rest;
    if (found != NULL)
        pond_give(p, to, found);
    return found != NULL;
}

void pond_quiet(pond *p)
{
    rbt_message *message;

    while ((message = rbt_outbox_take(&p->wire)) != NULL) {
        if (message->to >= 1 && message->to <= p->topology.workers)
            pond_give(p, message->to - 1, message);
        else
            rbt_message_destroy(message);
    }
}

const rbt_neighbour *pond_neighbour(const pond *p, uint32_t worker, uint32_t other)
{
    const rbt_peer *peer = &p->peers[worker];

    for (size_t i = 0; i < peer->neighbours.count; i++)
        if (peer->neighbours.at[i].worker == other)
            return &peer->neighbours.at[i];
    return NULL;
}

static float mean_of(const float *values, const double *weights, size_t n)
{
    float sum = 0;
    double all = 0;

    for (size_t i = 0; i < n; i++)
        all += weights[i];
    for (size_t i = 0; i < n; i++)
        rbt_kernels_best()->axpy((float)(weights[i] / all), &values[i], &sum, 1);
    return sum;
}

void assert_mean(float found, size_t n, const float *values, const double *weights)
{
    float must = mean_of(values, weights, n);

    assert_memory_equal(&found, &must, sizeof must);
}
