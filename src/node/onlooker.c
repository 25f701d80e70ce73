/* The observer of a job without servers; the contract is in onlooker.h. */
#include "node/onlooker.h"

#include <math.h>
#include <string.h>

#include "base/error.h"

void rbt_onlooker_init(rbt_onlooker *onlooker, const rbt_topology *topology, uint32_t n)
{
    *onlooker = (rbt_onlooker){.topology = topology, .view = 1, .n = n};
    onlooker->node = rbt_node_of_worker(topology, topology->workers);
    onlooker->poses = rbt_alloc(topology->workers, sizeof *onlooker->poses);
}

void rbt_onlooker_deinit(rbt_onlooker *onlooker)
{
    for (uint32_t m = 0; m < onlooker->topology->workers; m++)
        rbt_snap_unref(onlooker->poses[m].x);
    rbt_free(onlooker->poses);
}

static void take_blocks(rbt_onlooker *onlooker, const rbt_message *message)
{
    rbt_pose *pose;
    const rbt_snap *x;

    if (message->worker >= onlooker->topology->workers || message->parts.count != 1)
        return;
    x = message->parts.at[0].snap;
    if (x == NULL || x->type != RBT_F32 || x->form != RBT_DENSE || x->length != onlooker->n ||
        message->reach > message->included)
        return;
    pose = &onlooker->poses[message->worker];
    if (pose->x != NULL && message->included < pose->iteration)
        return;
    rbt_snap_unref(pose->x);
    pose->x = rbt_snap_ref(message->parts.at[0].snap);
    pose->iteration = message->included;
    pose->skipped = message->reach;
    pose->has_ended = pose->has_ended || message->slowest == RBT_UNBOUNDED;
    pose->is_asked = false;
}

void rbt_onlooker_handle(rbt_onlooker *onlooker, rbt_message *message)
{
    if (message->type == RBT_MSG_BLOCKS)
        take_blocks(onlooker, message);
    if (message->type == RBT_MSG_VIEW && message->view > onlooker->view &&
        message->members.count == onlooker->topology->workers) {
        onlooker->view = message->view;
        for (uint32_t m = 0; m < onlooker->topology->workers; m++)
            if (message->members.at[m].state == RBT_MEMBER_RETIRED)
                onlooker->poses[m].is_lost = true;
    }
    rbt_message_destroy(message);
}

bool rbt_onlooker_look(rbt_onlooker *onlooker, uint64_t iteration, rbt_env *env)
{
    bool all = true;

    for (uint32_t m = 0; m < onlooker->topology->workers; m++) {
        rbt_pose *pose = &onlooker->poses[m];
        rbt_message *pull;

        if (pose->has_ended || pose->is_lost || (pose->x != NULL && pose->iteration >= iteration))
            continue;
        all = false;
        if (pose->is_asked)
            continue;
        pull = rbt_message_create(RBT_MSG_PULL, onlooker->node, rbt_node_of_worker(onlooker->topology, m));
        pull->view = onlooker->view;
        pull->worker = onlooker->topology->workers;
        pull->need = iteration;
        pose->is_asked = true;
        pull->request = ++onlooker->last_request;
        rbt_outbox_put(&env->out, pull);
    }
    return all;
}

bool rbt_onlooker_is_over(const rbt_onlooker *onlooker)
{
    for (uint32_t m = 0; m < onlooker->topology->workers; m++)
        if (!onlooker->poses[m].has_ended && !onlooker->poses[m].is_lost)
            return false;
    return true;
}

/* The picture of a lost peer is its neighbours' past, not a part of what is left. */
static bool counts(const rbt_pose *pose)
{
    return pose->x != NULL && (!pose->is_lost || pose->has_ended);
}

uint32_t rbt_onlooker_peers(const rbt_onlooker *onlooker)
{
    uint32_t peers = 0;

    for (uint32_t m = 0; m < onlooker->topology->workers; m++)
        peers += counts(&onlooker->poses[m]);
    return peers;
}

void rbt_onlooker_mean(const rbt_onlooker *onlooker, float *mean, double *spread)
{
    uint32_t workers = onlooker->topology->workers, peers = rbt_onlooker_peers(onlooker);
    double squares = 0;

    memset(mean, 0, onlooker->n * sizeof *mean);
    for (size_t i = 0; peers > 0 && i < onlooker->n; i++) {
        double sum = 0, squared = 0;

        for (uint32_t m = 0; m < workers; m++)
            if (counts(&onlooker->poses[m]))
                sum += (double)onlooker->poses[m].x->f32[i];
        mean[i] = (float)(sum / peers);
        for (uint32_t m = 0; m < workers; m++)
            if (counts(&onlooker->poses[m])) {
                double off = (double)onlooker->poses[m].x->f32[i] - sum / peers;

                squared += off * off;
            }
        squares += squared;
    }
    *spread = peers > 0 ? sqrt(squares / peers) : 0;
}
