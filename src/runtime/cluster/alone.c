/* Peers without a lead: training without servers needs it for joining, metrics and the result, not for training. When it is gone
 * the peers go on to their last iteration, every process on its own: who loses a neighbour makes the view itself that the master
 * would have made (both ends of a lost peer's edges notice its end, so they repair the graph alike), and what the workers of a
 * process have at the end is kept for it to be saved. Part of the cluster runtime (cluster.h). Proved by
 * tests/cluster/test_processes_leaderless.sh. */
#include <stdio.h>

#include "base/error.h"
#include "runtime/cluster/cluster_state.h"
#include "table/snap.h"

static void tell(rbt_cluster *c, const char *sentence)
{
    rbt_session_log(c->session, RBT_LOG_WARNING, "cluster", sentence);
}

/* The workers here hear that those of a rank have left. */
static void do_without(rbt_cluster *c, uint32_t rank)
{
    const rbt_topology *topology = c->run->topology;
    const rbt_seat *gone = rbt_session_seat(c->session, rank);
    rbt_outbox out = {0};

    pthread_mutex_lock(&c->lock);
    c->view = c->view > 1 ? c->view + 1 : 2; /* the first one is 1, and nobody tells it */
    for (uint32_t i = 0; i < gone->workers; i++)
        c->is_gone[gone->first_worker + i] = true;
    for (uint32_t i = 0; i < c->seat->workers; i++) {
        rbt_node to = rbt_node_of_worker(topology, c->seat->first_worker + i);
        rbt_message *view = rbt_message_create(RBT_MSG_VIEW, RBT_MASTER, to);

        view->view = c->view;
        for (uint32_t m = 0; m < topology->workers; m++)
            rbt_array_push(&view->members,
                           ((rbt_member){.state = c->is_gone[m] ? RBT_MEMBER_RETIRED : RBT_MEMBER_LIVE}));
        rbt_outbox_put(&out, view);
    }
    pthread_mutex_unlock(&c->lock);
    rbt_links_keep(c);
    rbt_places_deliver(&c->places, &out);
}

/* Why a process cannot do without another one's workers, or NULL. */
static const char *find_reason(const rbt_cluster *c, uint32_t rank)
{
    if (rbt_session_seat(c->session, rank)->workers == 0)
        return NULL;
    if (c->run->topology->hop->allreduce)
        return "all-reduce needs every worker";
    return c->work.on_loss == RBT_LOSS_CONTINUE || c->work.on_loss == RBT_LOSS_AUTO
               ? NULL
               : "only --on-worker-loss continue goes on without it";
}

bool rbt_alone_begin(void *context, rbt_error *why)
{
    rbt_cluster *c = context;
    const char *reason;
    char sentence[sizeof why->text + 64];
    rbt_error told = *why;

    if (c->run->topology->hop == NULL)
        return false;
    reason = find_reason(c, 0);
    if (reason != NULL) {
        rbt_fail(why, RBT_E_LOST, "%s; %s", told.text, reason);
        return false;
    }
    snprintf(sentence, sizeof sentence, "%s; this process goes on to its last iteration without it", told.text);
    tell(c, sentence);
    pthread_mutex_lock(&c->lock);
    c->is_alone = true;
    pthread_cond_broadcast(&c->news);
    pthread_mutex_unlock(&c->lock);
    if (rbt_session_seat(c->session, 0)->workers > 0)
        do_without(c, 0);
    return true;
}

void rbt_alone_missed(void *context, uint32_t rank, const rbt_error *why)
{
    rbt_cluster *c = context;
    const char *reason = find_reason(c, rank);
    char name[RBT_HOST_ROOM + 32];
    rbt_error told;

    rbt_session_name(c->session, rank, name, sizeof name);
    rbt_fail(&told, RBT_E_LOST, "%s was lost (%s); %s", name, why->text,
             reason != NULL ? reason : "this process goes on without it");
    if (reason != NULL) {
        rbt_session_leave(c->session, &told);
        return;
    }
    tell(c, told.text);
    do_without(c, rank);
}

/* ------------------------------------------------------------------------------------------------------- the end */

void rbt_alone_keep(rbt_cluster *c, const rbt_message *message)
{
    uint32_t mine = message->worker - c->seat->first_worker;

    if (c->run->topology->hop == NULL || message->type != RBT_MSG_BLOCKS || message->slowest != RBT_UNBOUNDED ||
        message->worker < c->seat->first_worker || mine >= c->seat->workers || message->parts.count != 1)
        return;
    pthread_mutex_lock(&c->lock);
    if (c->last == NULL)
        c->last = rbt_alloc(c->seat->workers, sizeof *c->last);
    rbt_snap_unref(c->last[mine]);
    c->last[mine] = rbt_snap_ref(message->parts.at[0].snap);
    pthread_mutex_unlock(&c->lock);
}

void rbt_alone_deinit(rbt_cluster *c)
{
    for (uint32_t i = 0; c->last != NULL && i < c->seat->workers; i++)
        rbt_snap_unref(c->last[i]);
    rbt_free(c->last);
}

bool rbt_cluster_was_alone(rbt_cluster *c, float *mean)
{
    size_t n = c->work.n;
    bool all = c->is_alone && c->last != NULL;

    for (uint32_t m = 0; all && m < c->seat->workers; m++)
        all = c->last[m] != NULL && c->last[m]->length == n;
    for (size_t i = 0; all && i < n; i++) {
        double sum = 0;

        for (uint32_t m = 0; m < c->seat->workers; m++)
            sum += (double)c->last[m]->f32[i];
        mean[i] = (float)(sum / c->seat->workers);
    }
    return all;
}
