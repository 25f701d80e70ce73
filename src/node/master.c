/* The master's state machine; the contract is in master.h. */
#include "node/master.h"

#include "base/error.h"
#include "sync/staleness.h"

void rbt_master_init(rbt_master *master, const rbt_topology *topology)
{
    *master = (rbt_master){.topology = topology, .view = 1, .reached_clock = RBT_UNBOUNDED};
    master->members = rbt_alloc(topology->workers, sizeof *master->members);
    master->left = rbt_alloc(topology->workers, sizeof *master->left);
    master->slowest = rbt_alloc(topology->servers, sizeof *master->slowest);
    master->version = rbt_alloc(topology->servers, sizeof *master->version);
}

void rbt_master_deinit(rbt_master *master)
{
    for (size_t i = 0; i < master->asking.count; i++)
        rbt_message_destroy(master->asking.at[i]);
    rbt_array_free(&master->asking);
    rbt_array_free(&master->asking_since_ns);
    rbt_free(master->members);
    rbt_free(master->left);
    rbt_free(master->slowest);
    rbt_free(master->version);
}

static rbt_message *say(rbt_master *master, rbt_env *env, rbt_message_type type, rbt_node to)
{
    rbt_message *message = rbt_message_create(type, RBT_MASTER, to);

    message->view = master->view;
    rbt_outbox_put(&env->out, message);
    return message;
}

/* ------------------------------------------------------------------------------------------------- views */

static void tell_view(rbt_master *master, rbt_node to, rbt_env *env)
{
    rbt_message *view = say(master, env, RBT_MSG_VIEW, to);

    for (uint32_t m = 0; m < master->topology->workers; m++)
        rbt_array_push(&view->members, master->members[m]);
}

static void next_view(rbt_master *master, rbt_env *env)
{
    master->view++;
    for (uint32_t m = 0; m < master->topology->workers; m++)
        master->left[m] = master->members[m].state == RBT_MEMBER_RETIRED;
    for (rbt_node node = 1; node < rbt_topology_nodes(master->topology); node++)
        tell_view(master, node, env);
}

/* A worker is back under a new incarnation: everybody learns of it, it first of all through the view. */
static void handle_hello(rbt_master *master, const rbt_message *message, rbt_env *env)
{
    rbt_member *member = &master->members[message->worker];

    if (message->incarnation < member->incarnation)
        return;
    if (message->incarnation == member->incarnation) {
        tell_view(master, message->from, env);
    } else {
        member->incarnation = message->incarnation;
        member->state = RBT_MEMBER_LIVE;
        next_view(master, env);
    }
    if (master->stopping)
        say(master, env, RBT_MSG_STOP, message->from);
}

static void handle_lost(rbt_master *master, const rbt_message *message, rbt_env *env)
{
    rbt_member *member = &master->members[message->worker];

    if (message->incarnation != member->incarnation)
        return;
    if (member->state == RBT_MEMBER_RETIRED && !master->left[message->worker]) {
        next_view(master, env); /* it told us that it leaves, and perhaps not all servers */
        return;
    }
    if (member->state != RBT_MEMBER_LIVE)
        return;
    rbt_log_event(env->log, RBT_LOG_WARNING, "master", "worker %u was lost; %s", message->worker,
                  master->topology->lost_is_gone ? "the others go on without it" : "waiting for it to come back");
    member->state = master->topology->lost_is_gone ? RBT_MEMBER_RETIRED : RBT_MEMBER_AWAY;
    if (member->state == RBT_MEMBER_RETIRED)
        next_view(master, env);
}

/* -------------------------------------------------------------------------------- the stable version (dyn) */

static uint64_t least_of(const uint64_t *values, uint32_t count)
{
    uint64_t least = RBT_UNBOUNDED;

    for (uint32_t i = 0; i < count; i++)
        if (values[i] < least)
            least = values[i];
    return least;
}

/* Answers a worker that wants to pull, once every server has what the bound demands: then the lowest of their versions
 * contains it, on every block alike. */
static bool answer_if_ready(rbt_master *master, const rbt_message *ask, uint64_t held_ns, rbt_env *env)
{
    uint32_t servers = master->topology->servers;
    uint64_t stable = least_of(master->version, servers);
    rbt_message *answer;

    if (!rbt_ssp_may_read(ask->need, least_of(master->slowest, servers)))
        return false;
    answer = say(master, env, RBT_MSG_STABLE, ask->from);
    answer->worker = ask->worker;
    answer->request = ask->request;
    answer->held_ns = held_ns;
    answer->version = stable > ask->clock && stable != RBT_UNBOUNDED ? stable : ask->clock;
    return true;
}

static void answer_asking(rbt_master *master, rbt_env *env)
{
    size_t kept = 0;

    for (size_t i = 0; i < master->asking.count; i++) {
        rbt_message *ask = master->asking.at[i];
        uint64_t since = master->asking_since_ns.at[i];

        if (answer_if_ready(master, ask, env->now_ns - since, env)) {
            rbt_message_destroy(ask);
            continue;
        }
        master->asking.at[kept] = ask;
        master->asking_since_ns.at[kept++] = since;
    }
    master->asking.count = master->asking_since_ns.count = kept;
}

static void handle_ask(rbt_master *master, rbt_message *ask, rbt_env *env)
{
    if (answer_if_ready(master, ask, 0, env)) {
        rbt_message_destroy(ask);
        return;
    }
    for (size_t i = 0; i < master->asking.count; i++) /* one question per worker: the newest */
        if (master->asking.at[i]->from == ask->from) {
            rbt_message *older = ask->request > master->asking.at[i]->request ? master->asking.at[i] : ask;

            if (older != ask)
                master->asking.at[i] = ask;
            rbt_message_destroy(older);
            return;
        }
    rbt_array_push(&master->asking, ask);
    rbt_array_push(&master->asking_since_ns, env->now_ns);
}

/* Reports can be repeated out of order; both numbers only grow. */
static void handle_report(rbt_master *master, const rbt_message *message, rbt_env *env)
{
    uint32_t server = message->from - 1;

    if (message->from == RBT_MASTER || server >= master->topology->servers)
        return;
    if (message->slowest > master->slowest[server])
        master->slowest[server] = message->slowest;
    if (message->version > master->version[server])
        master->version[server] = message->version;
    answer_asking(master, env);
}

/* ------------------------------------------------------------------------------------------------ stopping */

static void stop(rbt_master *master, rbt_env *env)
{
    if (master->stopping)
        return;
    master->stopping = true;
    for (uint32_t m = 0; m < master->topology->workers; m++)
        say(master, env, RBT_MSG_STOP, rbt_node_of_worker(master->topology, m));
}

static void handle_metric(rbt_master *master, const rbt_message *message, rbt_env *env)
{
    if (!master->has_target || master->stopping || !(message->number <= master->target))
        return;
    master->reached_clock = message->clock;
    stop(master, env);
}

void rbt_master_handle(rbt_master *master, rbt_message *message, rbt_env *env)
{
    bool from_worker = message->worker < master->topology->workers;

    switch (message->type) {
    case RBT_MSG_ASK:
        handle_ask(master, message, env);
        return;
    case RBT_MSG_REPORT:
        handle_report(master, message, env);
        break;
    case RBT_MSG_HELLO:
        if (from_worker)
            handle_hello(master, message, env);
        break;
    case RBT_MSG_LOST:
        if (from_worker)
            handle_lost(master, message, env);
        break;
    case RBT_MSG_RETIRE:
        if (from_worker && message->incarnation == master->members[message->worker].incarnation)
            master->members[message->worker].state = RBT_MEMBER_RETIRED;
        break;
    case RBT_MSG_METRIC:
        handle_metric(master, message, env);
        break;
    case RBT_MSG_STOP:
        stop(master, env);
        break;
    default:
        break;
    }
    rbt_message_destroy(message);
}
