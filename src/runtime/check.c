/* The checker; the contract is in check.h. */
#include "runtime/check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "rule/procedure.h"
#include "runtime/check_block.h"

#define TOLERANCE 1e-4 /* of f32 sums against double, relative to the largest value that went in */

/* A slice of a push that the server has accepted; under BSP it may wait for the others'. */
typedef struct shadow_push {
    uint64_t clock;
    rbt_message *message;
} shadow_push;

typedef struct shadow_worker {
    uint64_t taken;    /* clocks accepted */
    uint64_t applied;  /* clocks the server says it has applied */
    rbt_sliced sliced; /* of the next clock, as the server told it last: when it moves, a slice was accepted */
    uint32_t brought;  /* blocks of the next clock below this ordinal have been brought, in whatever life */
    RBT_ARRAY(shadow_push) waiting;
    RBT_ARRAY(shadow_push) early; /* early sends of the next clock that have been applied */
} shadow_worker;

typedef struct shadow_server {
    rbt_shadow *blocks; /* per ordinal */
    size_t count;
    shadow_worker *workers;
} shadow_server;

/* A pull that has reached its server: what the answer must meet. */
typedef struct shadow_pull {
    uint32_t server;
    uint32_t worker;
    uint64_t request;
    uint64_t need;
    uint64_t clock;
} shadow_pull;

struct rbt_checker {
    const rbt_topology *topology;
    RBT_ARRAY(shadow_pull) pulls;
    shadow_server *servers;
    rbt_message *handled; /* a copy of the message being handled, when it is a push */
    double *expected;     /* room for one block */
    size_t room;
    char broken[512];
};

rbt_checker *rbt_checker_create(const rbt_topology *topology)
{
    rbt_checker *checker = rbt_alloc(1, sizeof *checker);

    checker->topology = topology;
    checker->servers = rbt_alloc(topology->servers, sizeof *checker->servers);
    for (uint32_t s = 0; s < topology->servers; s++)
        checker->servers[s].workers = rbt_alloc(topology->workers, sizeof(shadow_worker));
    return checker;
}

static void drop_early(shadow_worker *worker)
{
    for (size_t i = 0; i < worker->early.count; i++)
        rbt_message_destroy(worker->early.at[i].message);
    worker->early.count = 0;
}

void rbt_checker_destroy(rbt_checker *checker)
{
    if (checker == NULL)
        return;
    for (uint32_t s = 0; s < checker->topology->servers; s++) {
        shadow_server *server = &checker->servers[s];

        for (size_t i = 0; i < server->count; i++)
            rbt_shadow_deinit(&server->blocks[i]);
        for (uint32_t m = 0; m < checker->topology->workers; m++) {
            for (size_t i = 0; i < server->workers[m].waiting.count; i++)
                rbt_message_destroy(server->workers[m].waiting.at[i].message);
            rbt_array_free(&server->workers[m].waiting);
            drop_early(&server->workers[m]);
            rbt_array_free(&server->workers[m].early);
        }
        rbt_free(server->blocks);
        rbt_free(server->workers);
    }
    rbt_array_free(&checker->pulls);
    rbt_free(checker->servers);
    rbt_free(checker->expected);
    rbt_message_destroy(checker->handled);
    rbt_free(checker);
}

void rbt_checker_report(rbt_checker *checker, const char *format, ...)
{
    va_list arguments;

    if (checker->broken[0] != 0)
        return;
    va_start(arguments, format);
    vsnprintf(checker->broken, sizeof checker->broken, format, arguments);
    va_end(arguments);
}

const char *rbt_checker_broken(const rbt_checker *checker)
{
    return checker->broken[0] != 0 ? checker->broken : NULL;
}

/* --------------------------------------------------------------------------------------- the second opinion */

static const rbt_rule_config *rule_of(const rbt_checker *checker, uint32_t table)
{
    return &checker->topology->rule[table];
}

/* For two blocks of that length. */
static double *room_for(rbt_checker *checker, size_t length)
{
    if (checker->room < 2 * length) {
        checker->room = 2 * length;
        checker->expected = rbt_realloc(checker->expected, checker->room, sizeof *checker->expected);
    }
    return checker->expected;
}

/* The server says it has applied this push. */
static void fold(rbt_checker *checker, const rbt_server *server, const rbt_message *push)
{
    shadow_server *mine = &checker->servers[server->id];

    for (size_t i = 0; i < push->parts.count; i++) {
        const rbt_part *part = &push->parts.at[i];
        rbt_shadow *block = &mine->blocks[server->ordinal[part->table][part->block]];

        rbt_shadow_push(block, rule_of(checker, part->table), push->clock, part, room_for(checker, block->length));
    }
}

static void compare(rbt_checker *checker, const rbt_server *server, uint32_t table, uint32_t number,
                    const rbt_snap *snap, uint64_t below, const char *where)
{
    rbt_shadow *block = &checker->servers[server->id].blocks[server->ordinal[table][number]];
    double *expected = room_for(checker, block->length), *found = expected + block->length, scale;

    if (!rbt_shadow_is_checkable(rule_of(checker, table)))
        return;
    rbt_shadow_expect(block, rule_of(checker, table), below, expected);
    rbt_shadow_spread(snap, found);
    scale = block->adarev != NULL ? rbt_shadow_adarev_scale(block->adarev) : block->scale;
    for (uint32_t k = 0; k < block->length; k++)
        if (!(fabs(found[k] - expected[k]) <= TOLERANCE * (scale + fabs(expected[k])))) {
            rbt_checker_report(checker, "server %u, table %u, block %u, element %u %s is %.9g, must be %.9g",
                               server->id, table, number, k, where, found[k], expected[k]);
            return;
        }
}

/* ------------------------------------------------------------------------------------------ around an event */

static void init_server(rbt_checker *checker, const rbt_server *server)
{
    shadow_server *mine = &checker->servers[server->id];

    if (mine->blocks != NULL)
        return;
    mine->count = server->cells.count;
    mine->blocks = rbt_alloc(mine->count + 1, sizeof *mine->blocks);
    for (size_t i = 0; i < mine->count; i++) {
        const rbt_server_cell *cell = &server->cells.at[i];

        rbt_shadow_init(&mine->blocks[i], rule_of(checker, cell->table), cell->cell.value->length);
    }
}

void rbt_checker_before(rbt_checker *checker, const rbt_server *server, const rbt_message *message)
{
    init_server(checker, server);
    rbt_message_destroy(checker->handled);
    checker->handled =
        message->type == RBT_MSG_PUSH || message->type == RBT_MSG_EARLY ? rbt_message_copy(message) : NULL;
    if (message->type == RBT_MSG_PULL) {
        shadow_pull pull = {.server = server->id,
                            .worker = message->worker,
                            .request = message->request,
                            .need = message->need,
                            .clock = message->clock};

        rbt_array_push(&checker->pulls, pull);
    }
}

static bool has_moved(const rbt_sliced *a, const rbt_sliced *b)
{
    return a->slice != b->slice || a->taken != b->taken || a->incarnation != b->incarnation;
}

/* Only blocks that had not come yet may count; how far the push has come with this slice. */
static void bring_blocks(const rbt_server *server, shadow_worker *worker, rbt_message *slice)
{
    uint32_t before = worker->brought;
    size_t kept = 0;

    for (size_t i = 0; i < slice->parts.count; i++) {
        rbt_part part = slice->parts.at[i];
        uint32_t ordinal = server->ordinal[part.table][part.block];

        if (ordinal < before) {
            rbt_snap_unref(part.snap);
            continue;
        }
        slice->parts.at[kept++] = part;
        if (ordinal >= worker->brought)
            worker->brought = ordinal + 1;
    }
    slice->parts.count = kept;
}

/* Adds early sends to blocks that have not been brought whole, or takes them away. */
static void fold_early(rbt_checker *checker, const rbt_server *server, const rbt_message *message, uint32_t brought,
                       double sign)
{
    for (size_t i = 0; i < message->parts.count; i++) {
        const rbt_part *part = &message->parts.at[i];
        uint32_t ordinal = server->ordinal[part->table][part->block];
        rbt_shadow *block = &checker->servers[server->id].blocks[ordinal];
        double *values = room_for(checker, block->length), *sum = rbt_shadow_version_of(block, 0)->sum;

        if (ordinal < brought)
            continue;
        rbt_shadow_spread(part->snap, values);
        for (uint32_t k = 0; k < block->length; k++) {
            values[k] *= sign;
            sum[k] += values[k];
            block->scale = fabs(values[k]) > block->scale ? fabs(values[k]) : block->scale;
        }
        if (block->adarev != NULL) /* what is taken away has missed nothing */
            rbt_shadow_adarev_push(block->adarev, (double)checker->topology->rule[part->table].rate,
                                   sign > 0 ? part->version : RBT_UNBOUNDED, values);
    }
}

/* What has become of a worker's early sends? They are taken in order, each once, and from its present life; a clock that
 * has ended keeps them; else they can only go all at once. */
static void check_early(rbt_checker *checker, const rbt_server *server, uint32_t m)
{
    shadow_worker *worker = &checker->servers[server->id].workers[m];
    rbt_message *handled = checker->handled;
    uint64_t count = server->ahead[m].count;

    if (worker->early.count > 0 && worker->early.at[0].clock < server->clocks.value[m])
        drop_early(worker);
    if (handled != NULL && handled->type == RBT_MSG_EARLY && handled->worker == m && count == worker->early.count + 1) {
        shadow_push early = {.clock = handled->clock, .message = handled};

        if (handled->clock != server->clocks.value[m] || handled->slice != worker->early.count ||
            handled->incarnation < server->incarnation[m])
            rbt_checker_report(checker, "server %u took early send %llu of clock %llu of worker %u, out of turn",
                               server->id, (unsigned long long)handled->slice, (unsigned long long)handled->clock, m);
        fold_early(checker, server, handled, worker->brought, 1);
        rbt_array_push(&worker->early, early);
        checker->handled = NULL;
    }
    if (count == worker->early.count)
        return;
    if (count != 0)
        rbt_checker_report(checker, "server %u has %llu early sends of worker %u, must have %zu", server->id,
                           (unsigned long long)count, m, worker->early.count);
    for (size_t i = 0; i < worker->early.count; i++)
        fold_early(checker, server, worker->early.at[i].message, worker->brought, -1);
    drop_early(worker);
}

/* Has the server accepted the slice it just handled? It must be of the worker's next clock, and from its present life;
 * the last one, and no other, makes the clock count. */
static void check_acceptance(rbt_checker *checker, const rbt_server *server)
{
    rbt_message *push = checker->handled;
    shadow_worker *worker = &checker->servers[server->id].workers[push->worker];
    const rbt_sliced *sliced = &server->sliced[push->worker];
    uint64_t taken = server->clocks.value[push->worker] + server->early_count[push->worker];
    shadow_push waiting = {.clock = push->clock, .message = push};

    if (taken == worker->taken && !has_moved(sliced, &worker->sliced))
        return;
    if (taken != worker->taken + (push->more == 0) || push->clock != worker->taken)
        rbt_checker_report(checker, "server %u has %llu clocks of worker %u after its push of clock %llu, had %llu",
                           server->id, (unsigned long long)taken, push->worker, (unsigned long long)push->clock,
                           (unsigned long long)worker->taken);
    if (push->incarnation < server->incarnation[push->worker])
        rbt_checker_report(checker, "server %u took a push of a former life of worker %u", server->id, push->worker);
    bring_blocks(server, worker, push);
    worker->taken = taken;
    worker->sliced = *sliced;
    if (push->more == 0)
        worker->brought = 0;
    rbt_array_push(&worker->waiting, waiting);
    checker->handled = NULL;
}

/* The worker whose slice was applied first of those that wait: one event applies several only under BSP, clock by clock
 * and in worker order; otherwise a slice is, when it comes. NULL: none has been applied. */
static shadow_worker *next_applied(rbt_checker *checker, const rbt_server *server)
{
    bool at_once = checker->topology->staleness != 0;
    shadow_worker *first = NULL;

    for (uint32_t m = 0; m < checker->topology->workers; m++) {
        shadow_worker *worker = &checker->servers[server->id].workers[m];

        worker->applied = server->clocks.value[m];
        if (worker->waiting.count > 0 && (at_once || worker->waiting.at[0].clock < worker->applied) &&
            (first == NULL || worker->waiting.at[0].clock < first->waiting.at[0].clock))
            first = worker;
    }
    return first;
}

/* Folds in what the server says it has applied since the last event. */
static void fold_applied(rbt_checker *checker, const rbt_server *server)
{
    shadow_worker *worker;

    while ((worker = next_applied(checker, server)) != NULL) {
        fold(checker, server, worker->waiting.at[0].message);
        rbt_message_destroy(worker->waiting.at[0].message);
        worker->waiting.count--;
        for (size_t i = 0; i < worker->waiting.count; i++)
            worker->waiting.at[i] = worker->waiting.at[i + 1];
    }
}

/* adarev: what is kept is within the limit, and the sum of gradients is the sum of all gradients. */
static void check_adarev(rbt_checker *checker, const rbt_server *server, const rbt_server_cell *cell)
{
    const rbt_rule_config *rule = &checker->topology->rule[cell->table];
    const rbt_shadow *block = &checker->servers[server->id].blocks[server->ordinal[cell->table][cell->block]];
    const double *sum = rbt_shadow_adarev_sum(block->adarev);

    if (cell->cell.kept.count > rbt_most_kept(rule))
        rbt_checker_report(checker, "server %u keeps %zu versions of block %u, at most %u may be", server->id,
                           cell->cell.kept.count, cell->block, rbt_most_kept(rule));
    for (uint32_t k = 0; k < block->length; k++)
        if (!(fabs((double)cell->cell.memory[k] - sum[k]) <= TOLERANCE * (block->scale + fabs(sum[k]))))
            rbt_checker_report(checker, "server %u, block %u, element %u: the sum of gradients is %.9g, must be %.9g",
                               server->id, cell->block, k, (double)cell->cell.memory[k], sum[k]);
}

static void check_cells(rbt_checker *checker, const rbt_server *server)
{
    uint64_t staleness = checker->topology->staleness;

    for (size_t i = 0; i < server->cells.count; i++) {
        const rbt_server_cell *cell = &server->cells.at[i];
        const rbt_rule_config *rule = &checker->topology->rule[cell->table];
        uint64_t version;
        rbt_snap *all = rbt_cell_read(&cell->cell, rule, RBT_UNBOUNDED, &version);

        compare(checker, server, cell->table, cell->block, all, RBT_UNBOUNDED, "stored");
        rbt_snap_unref(all);
        if (rule_of(checker, cell->table)->rule == &rbt_rule_adarev)
            check_adarev(checker, server, cell);
        if (staleness != RBT_UNBOUNDED && cell->cell.versions.count > staleness + 1)
            rbt_checker_report(checker, "server %u keeps %zu versions of block %u, staleness is %llu", server->id,
                               cell->cell.versions.count, cell->block, (unsigned long long)staleness);
    }
}

/* An answer must meet what was asked, for whoever asked: the bound, and the asker's own clocks. */
static void check_asked(rbt_checker *checker, const rbt_server *server, const rbt_message *answer)
{
    bool is_worker = answer->worker < checker->topology->workers;

    for (size_t i = 0; i < checker->pulls.count; i++) {
        shadow_pull pull = checker->pulls.at[i];

        if (pull.server != server->id || pull.worker != answer->worker || pull.request != answer->request)
            continue;
        if (answer->slowest < pull.need || (is_worker && answer->included < pull.clock))
            rbt_checker_report(
                checker,
                "server %u answers worker %u with slowest %llu and %llu of its clocks, asked were %llu and %llu",
                server->id, answer->worker, (unsigned long long)answer->slowest, (unsigned long long)answer->included,
                (unsigned long long)pull.need, (unsigned long long)pull.clock);
        checker->pulls.at[i] = checker->pulls.at[--checker->pulls.count];
        return;
    }
    rbt_checker_report(checker, "server %u answers worker %u, which did not ask (request %llu)", server->id,
                       answer->worker, (unsigned long long)answer->request);
}

/* Does the answer say what is in it of a worker's clocks, also of the one whose push is still arriving? */
static void check_said(rbt_checker *checker, const rbt_server *server, const rbt_part *part, uint32_t m,
                       rbt_applied said)
{
    const shadow_worker *worker = &checker->servers[server->id].workers[m];
    bool is_ahead = checker->topology->staleness != 0 && server->ordinal[part->table][part->block] < worker->brought;
    uint64_t clocks = rbt_applied_to(said, part->table, part->block);

    if (clocks != worker->applied + is_ahead)
        rbt_checker_report(checker, "server %u says that table %u, block %u has %llu clocks of worker %u, it has %llu",
                           server->id, part->table, part->block, (unsigned long long)clocks, m,
                           (unsigned long long)worker->applied + is_ahead);
    if (!is_ahead && said.early != worker->early.count)
        rbt_checker_report(checker, "server %u says that it has %llu early sends of worker %u, it has %zu", server->id,
                           (unsigned long long)said.early, m, worker->early.count);
}

/* Elements that a reader is told of ahead of time: they are what they must be, and it is said what is in them. */
static void check_rows(rbt_checker *checker, const rbt_server *server, const rbt_message *rows)
{
    rbt_applied own = rbt_message_applied(rows);

    if (rows->slowest != server->clocks.least)
        rbt_checker_report(checker, "server %u tells worker %u of rows with slowest %llu, it is %llu", server->id,
                           rows->worker, (unsigned long long)rows->slowest, (unsigned long long)server->clocks.least);
    for (size_t i = 0; i < rows->parts.count; i++) {
        const rbt_part *part = &rows->parts.at[i];
        const rbt_shadow *block = &checker->servers[server->id].blocks[server->ordinal[part->table][part->block]];
        double *expected = room_for(checker, block->length);

        check_said(checker, server, part, rows->worker, own);
        if (rbt_has_tags(checker->topology, part->table)) { /* a whole block */
            compare(checker, server, part->table, part->block, part->snap, RBT_UNBOUNDED, "among rows");
            continue;
        }
        rbt_shadow_expect(block, rule_of(checker, part->table), RBT_UNBOUNDED, expected);
        for (uint32_t k = 0; k < part->snap->count; k++) {
            double must = expected[part->snap->index[k]], is = rbt_shadow_value(part->snap, k);

            if (!(fabs(is - must) <= TOLERANCE * (block->scale + fabs(must))))
                rbt_checker_report(checker,
                                   "server %u, table %u, block %u, element %u among rows is %.9g, must be %.9g",
                                   server->id, part->table, part->block, part->snap->index[k], is, must);
        }
    }
}

static void check_answer(rbt_checker *checker, const rbt_server *server, const rbt_message *answer)
{
    rbt_applied own = rbt_message_applied(answer);
    bool is_worker = answer->worker < checker->topology->workers;
    uint32_t first = is_worker ? rbt_process_first(checker->topology, answer->worker) : 0; /* an observer: of all */
    uint64_t slowest = RBT_UNBOUNDED;

    for (uint32_t m = 0; m < checker->topology->workers; m++)
        if (!server->clocks.gone[m] && server->clocks.value[m] < slowest)
            slowest = server->clocks.value[m];
    if (answer->slowest > slowest)
        rbt_checker_report(
            checker, "server %u tells worker %u that the slowest has finished %llu clocks, it has finished %llu",
            server->id, answer->worker, (unsigned long long)answer->slowest, (unsigned long long)slowest);
    if (answer->request != 0)
        check_asked(checker, server, answer);
    for (size_t i = 0; i < answer->parts.count; i++) {
        const rbt_part *part = &answer->parts.at[i];
        bool whole = !checker->topology->rule[part->table].partition_sync;

        /* Under BSP one event can apply several clocks' pushes and answer in between: only the last state is compared.
         */
        if (answer->slowest != slowest)
            continue;
        if (is_worker)
            check_said(checker, server, part, answer->worker, own);
        for (uint32_t k = 0; k < answer->applied.count; k++)
            check_said(checker, server, part, first + k, answer->applied.at[k]);
        compare(checker, server, part->table, part->block, part->snap, whole ? RBT_UNBOUNDED : part->version,
                "in an answer");
    }
}

void rbt_checker_after(rbt_checker *checker, const rbt_server *server, const rbt_outbox *said)
{
    if (checker->handled != NULL && checker->handled->type == RBT_MSG_PUSH &&
        checker->handled->worker < checker->topology->workers)
        check_acceptance(checker, server);
    for (uint32_t m = 0; m < checker->topology->workers; m++)
        check_early(checker, server, m);
    fold_applied(checker, server);
    check_cells(checker, server);
    for (const rbt_message *message = said->first; message != NULL; message = message->next)
        if (message->type == RBT_MSG_BLOCKS)
            check_answer(checker, server, message);
        else if (message->type == RBT_MSG_ROWS)
            check_rows(checker, server, message);
}
