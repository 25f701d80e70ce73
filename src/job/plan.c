/* A method's plan. Contract in plan.h. */
#include "job/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "job/gradient.h"
#include "job/job_state.h"
#include "job/text.h"
#include "method/method.h"

#define FRACTION   1099511627776.0 /* 2^40: units of the fraction */
#define WHOLE_MOST 1e18            /* what may be told of one clock, in all */

/* -------------------------------------------------------------------------------------------------------- options */

/* A power of small whole numbers: 2^16. */
static bool parse_power(const char *text, double *value)
{
    unsigned base, exponent;
    char end;

    if (sscanf(text, "%3u^%3u%c", &base, &exponent, &end) != 2)
        return false;
    *value = pow(base, exponent);
    return true;
}

/* The value of an option from its text. */
static rbt_err parse_value(const rbt_method_option *o, const char *text, double *value, rbt_error *error)
{
    char what[80];
    rbt_err err;

    snprintf(what, sizeof what, "--%s", o->name);
    if (o->words != NULL) {
        unsigned place = 0;

        for (const char *at = o->words; *at != '\0'; place++) {
            size_t n = strcspn(at, "|");

            if (strlen(text) == n && strncmp(at, text, n) == 0) {
                *value = place;
                return RBT_OK;
            }
            at += n + (at[n] == '|');
        }
        return rbt_fail(error, RBT_E_USAGE, "%s '%.60s' is unknown; choose one of %s", what, text, o->words);
    }
    if (o->whole && parse_power(text, value))
        err = RBT_OK;
    else
        err = rbt_text_to_real(what, text, value, error);
    if (err == RBT_OK && (!(*value >= o->least && *value <= o->most) || (o->whole && *value != floor(*value))))
        err = rbt_fail(error, RBT_E_USAGE, "%s %.60s is out of range; give a %snumber from %g to %g", what, text,
                       o->whole ? "whole " : "", o->least, o->most);
    return err;
}

static size_t option_count(const rbt_method *method)
{
    size_t n = 0;

    while (method->options != NULL && method->options[n].name != NULL)
        n++;
    return n;
}

static rbt_err unknown_setting(const rbt_method *method, const char *name, rbt_error *error)
{
    rbt_nearest nearest = {.word = name};
    char known[256] = "none";
    size_t used = 0;

    for (size_t i = 0; i < option_count(method); i++)
        rbt_nearest_offer(&nearest, method->options[i].name);
    for (size_t i = 0; i < option_count(method) && used < sizeof known; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i > 0 ? ", " : "", method->options[i].name);
    if (rbt_method_find(method->name) != method) /* a shared object's: only --set has them */
        return rbt_fail(error, RBT_E_USAGE, "--set: %s has no option '%.60s'; it has %s", method->name, name, known);
    if (rbt_nearest_found(&nearest) != NULL)
        return rbt_fail(error, RBT_E_USAGE, "%s has no option '--%.60s'; did you mean '--%s'?", method->name, name,
                        rbt_nearest_found(&nearest));
    return rbt_fail(error, RBT_E_USAGE, "%s has no option '--%.60s'; leave it out, or see rubato train %s --help",
                    method->name, name, method->name);
}

rbt_err rbt_method_settings(const rbt_method *method, const char *settings, double *values, rbt_error *error)
{
    rbt_err err = RBT_OK;

    for (size_t i = 0; i < option_count(method); i++)
        values[i] = method->options[i].fallback;
    for (const char *at = settings != NULL ? settings : ""; err == RBT_OK && *at != '\0';) {
        size_t n = strcspn(at, ","), name = strcspn(at, "=");
        char text[RBT_OPTION_ROOM];
        const rbt_method_option *o;

        snprintf(text, sizeof text, "%.*s", (int)n, at);
        if (name >= n || name == 0)
            return rbt_fail(error, RBT_E_USAGE, "--set '%.60s' is not of the form NAME=VALUE", text);
        text[name] = '\0';
        o = rbt_method_option_find(method, text);
        err = o != NULL ? parse_value(o, text + name + 1, &values[o - method->options], error)
                        : unknown_setting(method, text, error);
        at += n + (at[n] == ',');
    }
    return err;
}

static void print_value(const rbt_method_option *o, double value, char *text, size_t room)
{
    const char *word = o->words;

    if (word == NULL) {
        rbt_text_from_real(value, text, room);
        return;
    }
    for (unsigned i = 0; i < (unsigned)value; i++)
        word += strcspn(word, "|") + 1;
    snprintf(text, room, "%.*s", (int)strcspn(word, "|"), word);
}

char *rbt_planned_settings(const rbt_planned *planned, const rbt_plan *plan)
{
    char text[RBT_OPTION_ROOM] = "";
    size_t used = 0;

    for (size_t i = 0; i < option_count(plan->method) && used < sizeof text; i++) {
        const rbt_method_option *o = &plan->method->options[i];
        char value[64];

        print_value(o, planned->values[i], value, sizeof value);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s=%s", i > 0 ? "," : "", o->name, value);
    }
    return rbt_strdup(text);
}

double rbt_plan_option(const rbt_plan *plan, const char *name)
{
    const rbt_method_option *o = rbt_method_option_find(plan->method, name);

    return o != NULL ? plan->job->values[o - plan->method->options] : NAN;
}

/* ------------------------------------------------------------------------------------------------ rows and clocks */

static void count_clocks(rbt_planned *p, const rbt_method *method)
{
    const rbt_options *o = p->options;

    p->clocks = o->clocks > 0 ? o->clocks : (uint64_t)ceil(o->epochs * (double)p->pass_clocks - 1e-9);
    if (!rbt_options_shared(o) && !rbt_options_peers(o)) /* there a clock is a pass; or there are no tables to set up */
        p->clocks += method->opening + method->closing;
}

/* How many clocks a pass takes: as many as the worker with most rows needs for batches of the size asked for. */
static void cut_into_clocks(rbt_planned *p, const rbt_method *method, size_t rows, const rbt_options *o)
{
    size_t most = o->workers > 0 ? (rows + o->workers - 1) / o->workers : rows;
    double whole = (double)most / (method->parts > 0 ? method->parts : 1);
    double step = o->batch == 0 ? whole : o->batch_percent ? (double)most * o->batch / 100 : o->batch;

    if (o->batches_per_clock > 1)
        step *= (double)o->batches_per_clock;
    p->pass_rows = most > 0 ? most : 1;
    p->pass_clocks =
        step >= (double)p->pass_rows ? 1 : (uint64_t)ceil((double)p->pass_rows / (step < 1 ? 1 : step) - 1e-9);
    count_clocks(p, method);
}

rbt_err rbt_planned_init(rbt_planned *planned, rbt_plan *plan, const rbt_options *options, rbt_error *error)
{
    const rbt_method *method = plan->method;

    *planned = (rbt_planned){.options = options, .values = rbt_alloc(option_count(method) + 1, sizeof(double))};
    plan->job = planned;
    plan->path = options->data;
    plan->workers = options->workers;
    plan->seed = options->seed;
    plan->lr = options->lr;
    plan->l1 = options->l1;
    plan->l2 = options->l2;
    plan->bias = !options->no_bias;
    plan->staleness = options->staleness;
    plan->skip_bad = options->skip_bad;
    plan->shared = rbt_options_shared(options);
    plan->peers = rbt_options_peers(options);
    plan->takes_gradients = rbt_options_adaptive(options);
    return rbt_method_settings(method, options->settings, planned->values, error);
}

rbt_err rbt_planned_deal(rbt_planned *planned, rbt_plan *plan, rbt_error *error)
{
    const rbt_options *options = planned->options;
    rbt_err err = RBT_OK;

    plan->workers = options->workers;
    if (plan->data->rows > 0)
        err = rbt_shards_create(plan->data, options->workers, options->seed, &planned->shards, error);
    if (err == RBT_OK)
        cut_into_clocks(planned, plan->method, plan->data->rows, options);
    return err;
}

rbt_err rbt_planned_close(rbt_planned *planned, rbt_plan *plan, rbt_error *error)
{
    const rbt_table_spec told = {
        .name = "told", .rows = planned->clocks, .cols = RBT_TOLD_COLS, .type = RBT_I64, .block_rows = RBT_TOLD_BLOCK};
    double epochs = planned->options->epochs;

    if (epochs != floor(epochs) && planned->pass_clocks == 1)
        return rbt_fail(
            error, RBT_E_USAGE,
            "--epochs %g makes no sense where a clock is a pass over the data; give a whole number%s", epochs,
            rbt_method_unheeds(plan->method, "batch") ? "" : ", or make clocks shorter, as with --batch 10%");
    return rbt_plan_table(plan, &told, &planned->told, error);
}

void rbt_planned_deinit(rbt_planned *planned)
{
    for (size_t t = 0; t < planned->tables.count; t++)
        rbt_free((char *)planned->tables.at[t].name);
    rbt_array_free(&planned->tables);
    rbt_shards_destroy(&planned->shards);
    rbt_free(planned->values);
    *planned = (rbt_planned){0};
}

rbt_err rbt_plan_table(rbt_plan *plan, const rbt_table_spec *spec, rbt_table *table, rbt_error *error)
{
    rbt_table_spec copy = *spec;
    rbt_layout trial;
    rbt_err err = spec->name != NULL && spec->type <= RBT_I64
                      ? rbt_layout_init(&trial, spec, 1, 0, error)
                      : rbt_fail(error, RBT_E_USAGE, "a table of %s needs a name and a type", plan->method->name);

    if (err != RBT_OK)
        return err;
    rbt_layout_deinit(&trial);
    copy.name = rbt_strdup(spec->name);
    *table = (rbt_table)plan->job->tables.count;
    rbt_array_push(&plan->job->tables, copy);
    return RBT_OK;
}

const uint32_t *rbt_plan_rows_of(const rbt_plan *plan, uint32_t worker, size_t *n)
{
    const rbt_shards *shards = &plan->job->shards;

    *n = shards->workers > 0 ? shards->shard[worker].n : 0;
    return *n > 0 ? shards->shard[worker].rows : NULL;
}

const uint32_t *rbt_plan_rows(const rbt_plan *plan, const rbt_worker *worker, size_t *n)
{
    return rbt_plan_rows_of(plan, rbt_worker_id(worker), n);
}

uint64_t rbt_plan_pass_clocks(const rbt_plan *plan)
{
    return plan->job->pass_clocks;
}

uint64_t rbt_plan_clocks(const rbt_plan *plan)
{
    return plan->job->clocks;
}

void rbt_plan_set_pass_clocks(rbt_plan *plan, uint64_t clocks)
{
    plan->job->pass_clocks = clocks > 0 ? clocks : 1;
    count_clocks(plan->job, plan->method);
}

/* Which of so many rows the clock of that number, counted from the first batch's, is for. */
static void cut_batch(const rbt_planned *p, uint64_t clock, size_t rows, size_t *first, size_t *n)
{
    uint64_t place = clock % p->pass_clocks;
    size_t end =
        place + 1 == p->pass_clocks ? rows : (size_t)((double)rows * (double)(place + 1) / (double)p->pass_clocks);

    *first = (size_t)((double)rows * (double)place / (double)p->pass_clocks);
    *n = end - *first;
}

bool rbt_plan_batch(const rbt_plan *plan, const rbt_worker *worker, size_t *first, size_t *n)
{
    const rbt_planned *p = plan->job;
    uint64_t clock = rbt_worker_clock(worker);
    size_t rows;

    RBT_ASSERT(clock >= plan->method->opening);
    if (clock >= p->clocks - plan->method->closing || rbt_worker_should_stop(worker))
        return false;
    (void)rbt_plan_rows(plan, worker, &rows);
    cut_batch(p, clock - plan->method->opening, rows, first, n);
    return true;
}

rbt_err rbt_plan_update(rbt_plan *plan, const rbt_worker *worker, rbt_scratch *scratch, rbt_clock_work *work,
                        rbt_error *error)
{
    uint64_t clock = rbt_worker_clock(worker);
    rbt_told told = {0};
    size_t rows, first, n;
    const uint32_t *mine = rbt_plan_rows(plan, worker, &rows);
    rbt_err err;

    cut_batch(plan->job, clock, rows, &first, &n);
    err =
        plan->method->update(plan, rbt_worker_id(worker), clock, mine + first, n, scratch->w, scratch->u, &told, error);
    *work = (rbt_clock_work){.loss = told.sum, .samples = told.weight, .nonzeros = told.nonzeros};
    return err;
}

double rbt_plan_rate_at(const rbt_plan *plan, uint64_t clock, double lr)
{
    rbt_options options = *plan->job->options;

    if (!(options.lr > 0))
        options.lr = lr;
    return rbt_training_rate(&options, clock);
}

double rbt_plan_rate(const rbt_plan *plan, const rbt_worker *worker, double lr)
{
    uint64_t clock = rbt_worker_clock(worker);

    return rbt_plan_rate_at(plan, clock > plan->method->opening ? clock - plan->method->opening : 0, lr);
}

/* ---------------------------------------------------------------------------------------------------- the objective */

rbt_err rbt_plan_tell(const rbt_plan *plan, rbt_worker *worker, double sum, uint64_t weight, rbt_error *error)
{
    uint64_t clock = rbt_worker_clock(worker);
    int64_t told[RBT_TOLD_COLS];
    char text[RBT_REAL_ROOM];

    if (!(fabs(sum) < WHOLE_MOST)) /* also what is no number */
        return rbt_fail(error, RBT_E_DIVERGED,
                        "training diverged: worker %u's share of the objective (%s) became %s in clock %llu; %s",
                        rbt_worker_id(worker), plan->method->objective != NULL ? plan->method->objective : "none",
                        rbt_text_from_loss(sum, text), (unsigned long long)clock,
                        rbt_method_unheeds(plan->method, "lr") ? "make the values of the data smaller"
                                                               : "use a smaller --lr, or other options");
    if (clock >= plan->job->clocks)
        return RBT_OK;
    told[RBT_TOLD_WHOLE] = (int64_t)floor(sum);
    told[RBT_TOLD_FRACTION] = (int64_t)((sum - floor(sum)) * FRACTION);
    told[RBT_TOLD_WEIGHT] = (int64_t)weight;
    return rbt_inc_row(worker, plan->job->told, clock, told, error);
}

double rbt_planned_objective(const int64_t told[RBT_TOLD_COLS])
{
    if (told[RBT_TOLD_WEIGHT] <= 0)
        return NAN;
    return ((double)told[RBT_TOLD_WHOLE] + (double)told[RBT_TOLD_FRACTION] / FRACTION) / (double)told[RBT_TOLD_WEIGHT];
}

/* ------------------------------------------------------------------------------------------------------ the outcome */

rbt_err rbt_plan_read(const rbt_plan *plan, rbt_table table, uint64_t row, uint64_t col, uint64_t n, void *out,
                      rbt_error *error)
{
    const rbt_planned *p = plan->job;

    if (p->contents == NULL || table >= p->tables.count)
        return rbt_fail(error, RBT_E_USAGE, "table %u of %s cannot be read: %s", table, plan->method->name,
                        p->contents == NULL ? "the job has not been run" : "there is no such table");
    return rbt_table_copy(&p->layouts[table], p->contents[table], table, row, col, n, out, error);
}
