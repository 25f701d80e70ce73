/* What train tells a person; the contract stands in summary.h. */
#include "report/summary.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "data/paths.h"
#include "job/options.h"
#include "job/text.h"
#include "report/text.h"

#define WORKERS_SHOWN    16 /* more workers than this: only the slowest, and all together */
#define SLOWEST_SHOWN    5
#define OBJECTIVES_MEANT 5 /* what minobj and varobj are over: RBT_LAST_OBJECTIVES of job/evaluate.h */
#define REDRAW_SECONDS   0.1
#define COLUMNS          80 /* of a terminal that does not say */

/* ------------------------------------------------------------------------------------------ configuration */

static void plural(char *text, size_t room, const char *number, const char *noun)
{
    snprintf(text, room, "%s %s%s", number, noun, strcmp(number, "1") == 0 ? "" : "s");
}

/* Prints "  name  value" when there is a value. */
static void line_of(FILE *file, const char *name, const char *value)
{
    if (value != NULL)
        fprintf(file, "  %-10s %s\n", name, value);
}

/* Peers without servers send each other their parameters. */
static bool among_peers(const rbt_recorder *run)
{
    const char *sync = rbt_recorder_setting(run, "sync", "");

    return strcmp(sync, "hop") == 0 || strcmp(sync, "adpsgd") == 0 || strcmp(sync, "allreduce") == 0;
}

/* Without servers there is no rule; without peers, too, nothing is sent, and nothing is stale. */
static bool in_shared_memory(const rbt_recorder *run)
{
    return run->settings.count > 0 && rbt_recorder_setting(run, "rule", NULL) == NULL && !among_peers(run);
}

/* "hop on ring-based, backup 1, max gap 5" */
static void peers_text(const rbt_recorder *run, char *text, size_t room)
{
    static const char *const NAMES[] = {"staleness", "backup", "max-gap", "skip"};
    size_t n;

    if (strcmp(rbt_recorder_setting(run, "sync", ""), "allreduce") == 0) {
        snprintf(text, room, "all-reduce around a ring");
        return;
    }
    if (strcmp(rbt_recorder_setting(run, "sync", ""), "adpsgd") == 0) {
        snprintf(text, room, "AD-PSGD on %.200s", rbt_recorder_setting(run, "graph", "ring"));
        return;
    }
    n = (size_t)snprintf(text, room, "hop on %.200s, %s order", rbt_recorder_setting(run, "graph", "ring-based"),
                         rbt_recorder_setting(run, "order", "parallel"));

    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0] && n < room; i++) {
        const char *value = rbt_recorder_setting(run, NAMES[i], "0");

        if (strcmp(value, "0") != 0)
            n += (size_t)snprintf(text + n, room - n, ", %s %s", NAMES[i], value);
    }
    if (n < room && strcmp(rbt_recorder_setting(run, "notify-ack", "false"), "true") == 0)
        snprintf(text + n, room - n, ", notify-ack");
}

static void protocol_text(const rbt_recorder *run, char *text, size_t room)
{
    const char *sync = rbt_recorder_setting(run, "sync", "?");
    const char *staleness = rbt_recorder_setting(run, "staleness", NULL);
    const char *rate = rbt_recorder_setting(run, "global-rate", NULL);
    const char *eager = rbt_recorder_setting(run, "eager", "off");
    const char *partition = rbt_recorder_setting(run, "partition-sync", "off");

    if (in_shared_memory(run)) {
        snprintf(text, room, "%s in shared memory", sync);
        return;
    }
    if (among_peers(run)) {
        peers_text(run, text, room);
        return;
    }
    snprintf(text, room, "%s%s%s, rule %s%s%s%s%s", sync, staleness != NULL ? " with staleness " : "",
             staleness != NULL ? staleness : "", rbt_recorder_setting(run, "rule", "?"),
             rate != NULL ? " with factor " : "", rate != NULL ? rate : "",
             strcmp(eager, "on") == 0 ? ", eager pushes" : "",
             strcmp(partition, "on") == 0 ? ", partition-synchronised" : "");
}

static void length_text(const rbt_recorder *run, char *text, size_t room)
{
    const char *clocks = rbt_recorder_setting(run, "clocks", NULL);
    const char *batches = rbt_recorder_setting(run, "batches-per-clock", "pass");
    const char *size = rbt_recorder_setting(run, "batch", "?");
    char length[64], per_clock[64], batch[64];

    const char *tolerance = rbt_recorder_setting(run, "tolerance", "0");

    plural(length, sizeof length, clocks != NULL ? clocks : rbt_recorder_setting(run, "epochs", "?"),
           clocks != NULL ? "clock" : "epoch");
    if (in_shared_memory(run)) {
        bool ends = strcmp(tolerance, "0") != 0;
        snprintf(text, room, "%s%s%s%s", ends ? "until about " : "", ends ? tolerance : "",
                 ends ? " from the optimum, at most " : "", length);
        return;
    }
    snprintf(batch, sizeof batch, "%.40s%s", size, strchr(size, '%') != NULL ? " of the" : "");
    if (strcmp(batches, "pass") == 0)
        snprintf(per_clock, sizeof per_clock, "one pass");
    else if (strcmp(batches, "1") == 0)
        snprintf(per_clock, sizeof per_clock, "1 batch");
    else
        snprintf(per_clock, sizeof per_clock, "%.40s batches", batches);
    if (strcmp(size, "auto") == 0) /* a method, which cuts its passes into clocks as it sees fit */
        snprintf(text, room, "%s", length);
    else if (rbt_recorder_setting(run, "set", NULL) != NULL) /* likewise, in batches */
        snprintf(text, room, "%s, batches of %s rows", length, batch);
    else
        snprintf(text, room, "%s, batches of %s row%s, %s per clock", length, batch, strcmp(size, "1") == 0 ? "" : "s",
                 per_clock);
}

/* A setting that is a number, with few digits: what was worked out from the data has many. */
static const char *few_digits(const rbt_recorder *run, const char *name, char text[RBT_CELL_ROOM])
{
    const char *value = rbt_recorder_setting(run, name, "0");
    char *end = NULL;
    double number = strtod(value, &end);

    if (end == value || *end != '\0')
        return value;
    snprintf(text, RBT_CELL_ROOM, "%.4g", number);
    return text;
}

static void learning_text(const rbt_recorder *run, char *text, size_t room)
{
    const char *rate = rbt_recorder_setting(run, "lr", NULL), *l1 = rbt_recorder_setting(run, "l1", NULL);
    const char *normalize = rbt_recorder_setting(run, "normalize", NULL);
    const char *classes = rbt_recorder_setting(run, "class-weight", NULL);
    char digits[RBT_CELL_ROOM], l2[RBT_CELL_ROOM], steps[160] = "";

    if (rate != NULL)
        snprintf(steps, sizeof steps, ", step size %.40s, decay %.40s", few_digits(run, "lr", digits),
                 rbt_recorder_setting(run, "decay", "none"));
    snprintf(text, room, "%s%s, l2 %s%s%s%s%s%s%.200s%s", rbt_recorder_setting(run, "optimizer", "sgd"), steps,
             few_digits(run, "l2", l2), l1 != NULL ? ", l1 " : "", l1 != NULL ? l1 : "",
             normalize != NULL ? ", normalised: " : "", normalize != NULL ? normalize : "",
             classes != NULL ? ", class weights " : "", classes != NULL ? classes : "",
             strcmp(rbt_recorder_setting(run, "no-bias", "false"), "true") == 0 ? ", no bias" : "");
}

/* What a method learns by: its own options, and those of all jobs that it was given or has settled. */
static void settings_text(const rbt_recorder *run, const char *settings, char *text, size_t room)
{
    static const char *const NAMES[] = {"lr", "l1", "l2"};
    size_t used = (size_t)snprintf(text, room, "%.300s", settings);

    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0] && used < room; i++) {
        const char *value = rbt_recorder_setting(run, NAMES[i], "auto");
        if (strcmp(value, "auto") != 0)
            used += (size_t)snprintf(text + used, room - used, "%s%s=%.40s", used > 0 ? "," : "", NAMES[i], value);
    }
    if (used < room && strcmp(rbt_recorder_setting(run, "no-bias", "false"), "true") == 0)
        snprintf(text + used, room - used, ",no-bias");
}

/* What is sent, when it is not just everything at the end of a clock. */
static void sending_text(const rbt_recorder *run, char *text, size_t room)
{
    static const char *const NAMES[] = {"budget", "priority", "filter", "codec"};
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0] && used < room; i++) {
        const char *value = rbt_recorder_setting(run, NAMES[i], NULL);
        if (value != NULL && strcmp(value, "threshold=1e-06") != 0) /* what dyn always leaves out */
            used += (size_t)snprintf(text + used, room - used, "%s%s %.80s", used > 0 ? ", " : "", NAMES[i], value);
    }
}

void rbt_summary_configuration(const rbt_recorder *run, FILE *file)
{
    const char *settings = rbt_recorder_setting(run, "set", NULL); /* of a method */
    const char *valid = rbt_recorder_setting(run, "valid", NULL);
    const char *net = rbt_recorder_setting(run, "net", NULL);
    char workers[64], servers[64], text[512], data[RBT_OPTION_ROOM], validated[RBT_OPTION_ROOM];

    rbt_paths_title(rbt_recorder_setting(run, "data", "?"), data, sizeof data);
    rbt_paths_title(valid != NULL ? valid : "", validated, sizeof validated);
    fprintf(file, "  %-10s %s on %s%s%s\n", "job", rbt_recorder_setting(run, "model", "?"), data,
            valid != NULL ? ", validated on " : "", validated);
    plural(workers, sizeof workers, rbt_recorder_setting(run, "workers", "?"), "worker");
    if (in_shared_memory(run) || among_peers(run))
        snprintf(servers, sizeof servers, "no servers");
    else
        plural(servers, sizeof servers, rbt_recorder_setting(run, "servers", "?"), "server");
    fprintf(file, "  %-10s %s, %s, %s%s%s\n", "runtime", rbt_recorder_setting(run, "runtime", "?"), workers, servers,
            net != NULL ? ", " : "", net != NULL ? net : "");
    protocol_text(run, text, sizeof text);
    line_of(file, "protocol", text);
    length_text(run, text, sizeof text);
    line_of(file, "length", text);
    if (settings == NULL)
        learning_text(run, text, sizeof text);
    else
        settings_text(run, settings, text, sizeof text);
    line_of(file, "learning", text);
    sending_text(run, text, sizeof text);
    line_of(file, "sending", text[0] != '\0' ? text : NULL);
    line_of(file, "speed", rbt_recorder_setting(run, "speed", NULL));
    line_of(file, "cluster", rbt_recorder_setting(run, "cluster", NULL));
    line_of(file, "stragglers", rbt_recorder_setting(run, "straggler", NULL));
    line_of(file, "faults", rbt_recorder_setting(run, "faults", NULL));
    line_of(file, "target", rbt_recorder_setting(run, "target-loss", NULL));
    line_of(file, "seed", rbt_recorder_setting(run, "seed", NULL));
}

/* ----------------------------------------------------------------------------------------- progress line */

void rbt_progress_line_init(rbt_progress_line *line, FILE *file, bool redraw)
{
    *line = (rbt_progress_line){.file = file, .redraw = redraw, .next = 1, .drawn = -1};
}

void rbt_progress_line_clear(rbt_progress_line *line)
{
    if (line->dirty)
        fputs("\r\033[K", line->file);
    line->dirty = false;
    fflush(line->file);
}

/* How many characters a line may have that is drawn over itself: one that goes on in the next row would stay there. */
static size_t columns(FILE *file)
{
    struct winsize window = {.ws_col = 0};

    if (ioctl(fileno(file), TIOCGWINSZ, &window) != 0 || window.ws_col == 0)
        window.ws_col = COLUMNS;
    return window.ws_col - 1U;
}

static void draw(rbt_progress_line *line, const rbt_progress *p, const char *prefix)
{
    char clocks[64], loss[RBT_REAL_ROOM], rate[RBT_CELL_ROOM], wait[RBT_CELL_ROOM], bytes[RBT_CELL_ROOM], eval[96] = "";
    char sent[64] = "", text[512];

    if (p->clock_min == p->clock_max)
        snprintf(clocks, sizeof clocks, "%" PRIu64, p->clock_min);
    else
        snprintf(clocks, sizeof clocks, "%" PRIu64 "-%" PRIu64, p->clock_min, p->clock_max);
    if (line->eval_shown.name != NULL)
        snprintf(eval, sizeof eval, "  valid %.32s %.5g", line->eval_shown.name, line->eval_shown.value);
    else if (line->evaluated && !isfinite(line->eval_loss))
        snprintf(eval, sizeof eval, "  valid %s", rbt_text_from_loss(line->eval_loss, loss));
    else if (line->evaluated && isnan(line->eval_accuracy))
        snprintf(eval, sizeof eval, "  valid %.5f (rmse %.5g)", line->eval_loss, line->eval_rmse);
    else if (line->evaluated)
        snprintf(eval, sizeof eval, "  valid %.5f (%.2f %%)", line->eval_loss, 100 * line->eval_accuracy);
    if (isfinite(p->loss))
        snprintf(loss, sizeof loss, "%.6g", p->loss);
    else
        snprintf(loss, sizeof loss, "-");
    if (p->bytes_sent > 0)
        snprintf(sent, sizeof sent, "  stale %4.1f  sent %8s", isfinite(p->staleness_mean) ? p->staleness_mean : 0,
                 rbt_show_bytes(bytes, (double)p->bytes_sent));
    snprintf(text, sizeof text, "%.128sclock %-9s loss %-9s %8s rows/s  wait %6s%s%s", prefix, clocks, loss,
             rbt_show_count(rate, p->samples_per_second), rbt_show_percent(wait, p->wait_fraction), sent, eval);
    if (line->redraw)
        fprintf(line->file, "\r%.*s\033[K", (int)columns(line->file), text);
    else
        fprintf(line->file, "%s\n", text);
    line->dirty = line->redraw;
    fflush(line->file);
}

void rbt_progress_line_event(rbt_progress_line *line, const rbt_event *event, const char *prefix, double now)
{
    switch (event->kind) {
    case RBT_EVENT_CLOCK:
        if (line->redraw ? now - line->drawn >= REDRAW_SECONDS : event->progress->clock_min >= line->next) {
            draw(line, event->progress, prefix);
            line->drawn = now;
            line->next = event->progress->clock_min + 1 + event->progress->clock_min / 10;
        }
        break;
    case RBT_EVENT_EVAL:
        line->evaluated = true;
        line->eval_loss = event->eval_loss;
        line->eval_accuracy = event->eval_accuracy;
        line->eval_rmse = event->eval_rmse;
        if (event->eval_figures > 0)
            line->eval_shown = *rbt_figure_shown(event->eval_figure, event->eval_figures);
        break;
    case RBT_EVENT_NOTE:
        rbt_progress_line_clear(line);
        fprintf(line->file, "%snote: %s\n", prefix, event->note);
        fflush(line->file); /* who reads the log of a job that waits must see why */
        break;
    case RBT_EVENT_START:
    case RBT_EVENT_DONE:
        break;
    }
}

/* ------------------------------------------------------------------------------------------------ summary */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double pace(const rbt_worker_report *w)
{
    return w->clocks > 0 ? w->compute_seconds / (double)w->clocks : 0;
}

/* The seconds per clock of all workers, ascending; to be freed. */
static double *sorted_paces(const rbt_result *r)
{
    double *paces = rbt_alloc(r->workers, sizeof *paces);

    for (size_t i = 0; i < r->workers; i++)
        paces[i] = pace(&r->worker[i]);
    qsort(paces, r->workers, sizeof *paces, ascending);
    return paces;
}

/* The median of the n sorted paces without one that is `own`: of two workers it is the other one's. Infinite: there is no
 * other. */
static double median_of_others(const double *paces, size_t n, double own)
{
    const double *mine = bsearch(&own, paces, n, sizeof *paces, ascending);
    size_t at = mine != NULL ? (size_t)(mine - paces) : n, low = (n - 2) / 2, high = (n - 1) / 2;

    return n < 2 ? INFINITY : (paces[low + (low >= at)] + paces[high + (high >= at)]) / 2;
}

size_t rbt_summary_stragglers(const rbt_result *result, bool *is)
{
    double *paces = sorted_paces(result);
    size_t n = 0;

    for (size_t i = 0; i < result->workers; i++) {
        double own = pace(&result->worker[i]);
        is[i] = own > RBT_STRAGGLER_FACTOR * median_of_others(paces, result->workers, own);
        n += is[i];
    }
    rbt_free(paces);
    return n;
}

/* How many times the median of the others the slowest took; 0: that is not known. */
static double slowest_factor(const rbt_result *r)
{
    double *paces = sorted_paces(r), slowest = r->workers > 0 ? paces[r->workers - 1] : 0;
    double others = median_of_others(paces, r->workers, slowest);

    rbt_free(paces);
    return others > 0 ? slowest / others : 0;
}

/* `nonzeros`: there are any to show. */
static void worker_row(rbt_grid *grid, const char *name, const rbt_worker_report *w, bool nonzeros, double share)
{
    char cell[RBT_CELL_ROOM];
    double total = w->compute_seconds + w->wait_seconds + w->communication_seconds;

    rbt_grid_add(grid, name);
    rbt_grid_add(grid, rbt_show_count(cell, (double)w->clocks / share));
    rbt_grid_add(grid, rbt_show_count(cell, (double)w->rows / share));
    if (nonzeros)
        rbt_grid_add(grid, rbt_show_count(cell, (double)w->nonzeros / share));
    rbt_grid_add(grid, rbt_show_seconds(cell, w->compute_seconds / share));
    rbt_grid_add(grid, rbt_show_seconds(cell, w->wait_seconds / share));
    rbt_grid_add(grid, rbt_show_seconds(cell, w->communication_seconds / share));
    rbt_grid_add(grid, rbt_show_percent(cell, total > 0 ? w->wait_seconds / total : 0));
    rbt_grid_add(grid, w->clocks > 0 ? rbt_show_seconds(cell, w->compute_seconds / (double)w->clocks) : "-");
}

static rbt_worker_report all_workers(const rbt_result *r)
{
    rbt_worker_report all = {0};

    for (size_t i = 0; i < r->workers; i++) {
        all.compute_seconds += r->worker[i].compute_seconds;
        all.wait_seconds += r->worker[i].wait_seconds;
        all.communication_seconds += r->worker[i].communication_seconds;
        all.clocks += r->worker[i].clocks;
        all.rows += r->worker[i].rows;
        all.nonzeros += r->worker[i].nonzeros;
    }
    return all;
}

/* The workers in the table: all when they are few, else the slowest, slowest first; and their mean. */
static void worker_table(const rbt_result *r, FILE *file)
{
    static const char *const HEADING[] = {"worker", "clocks", "rows",   "non-zeros", "compute",
                                          "wait",   "comm.",  "wait %", "per clock"};
    rbt_worker_report all = all_workers(r);
    bool nonzeros = all.nonzeros > 0;
    rbt_grid grid = {.columns = sizeof HEADING / sizeof HEADING[0] - !nonzeros, .left = 1};
    bool *shown = rbt_alloc(r->workers, sizeof *shown);
    char name[32];

    for (size_t i = 0; i < sizeof HEADING / sizeof HEADING[0]; i++)
        if (nonzeros || strcmp(HEADING[i], "non-zeros") != 0)
            rbt_grid_add(&grid, HEADING[i]);
    for (size_t k = 0; k < r->workers && (r->workers <= WORKERS_SHOWN || k < SLOWEST_SHOWN); k++) {
        size_t pick = k;
        if (r->workers > WORKERS_SHOWN) {
            pick = r->workers;
            for (size_t i = 0; i < r->workers; i++)
                if (!shown[i] && (pick == r->workers || pace(&r->worker[i]) > pace(&r->worker[pick])))
                    pick = i;
            shown[pick] = true;
        }
        snprintf(name, sizeof name, "%zu", pick);
        worker_row(&grid, name, &r->worker[pick], nonzeros, 1);
    }
    if (r->workers > 1) {
        snprintf(name, sizeof name, "mean of %zu", r->workers);
        worker_row(&grid, name, &all, nonzeros, (double)r->workers);
    }
    rbt_grid_print(&grid, "  ", file);
    rbt_grid_deinit(&grid);
    rbt_free(shown);
}

/* Names up to eight stragglers, and says what the others paid for them. */
static void straggler_lines(const rbt_recorder *run, FILE *file)
{
    const rbt_result *r = &run->result;
    bool *is = rbt_alloc(r->workers, sizeof *is);
    size_t n = rbt_summary_stragglers(r, is), named = 0;
    double waited = 0, total = 0;
    const char *sync = rbt_recorder_setting(run, "sync", "ssp");
    char cell[RBT_CELL_ROOM], share[RBT_CELL_ROOM];

    for (size_t i = 0; i < r->workers; i++) {
        const rbt_worker_report *w = &r->worker[i];
        if (!is[i])
            waited += w->wait_seconds;
        total += w->compute_seconds + w->wait_seconds + w->communication_seconds;
    }
    if (n > 0) {
        fprintf(file, "  stragglers worker%s", n == 1 ? "" : "s");
        for (size_t i = 0; i < r->workers && named < 8; i++)
            if (is[i])
                fprintf(file, "%s %zu", named++ == 0 ? "" : ",", i);
        if (n > named)
            fprintf(file, " and %zu more", n - named);
        fprintf(file, "; the slowest took %.1fx the median time per clock of the others\n", slowest_factor(r));
    } else if (r->workers > 1) {
        fprintf(file, "  stragglers none: no worker took more than %.1fx the median time per clock of the others\n",
                RBT_STRAGGLER_FACTOR);
    }
    if (r->workers > 1 && r->wait_fraction < RBT_WAIT_NOTHING)
        fprintf(file, "  cost       %s (%s of the workers' time)\n",
                strcmp(sync, "ssp") == 0   ? (n > 0 ? "nobody waited for them: the bound on staleness left them behind"
                                                    : "staleness did not help here: nobody was slow and nobody waited")
                : strcmp(sync, "asp") == 0 ? "nobody waited: asp never does"
                : in_shared_memory(run)    ? "nobody waited"
                                           : "nobody waited: staleness would not help here",
                rbt_show_percent(cell, r->wait_fraction));
    else if (r->workers > 1)
        fprintf(file, "  cost       %s %s, %s of all workers' time\n",
                n > 0 ? "the others waited for them" : "workers waited for each other", rbt_show_seconds(cell, waited),
                rbt_show_percent(share, total > 0 ? waited / total : 0));
    rbt_free(is);
}

static void target_line(const rbt_recorder *run, FILE *file)
{
    const rbt_result *r = &run->result;
    char cell[RBT_CELL_ROOM];

    if (!r->has_target)
        return;
    if (r->reached)
        fprintf(file, "  target     loss %s reached after %s and %" PRIu64 " updates\n",
                rbt_recorder_setting(run, "target-loss", "?"), rbt_show_seconds(cell, r->seconds), r->updates);
    else
        fprintf(file, "  target     loss %s not reached\n", rbt_recorder_setting(run, "target-loss", "?"));
}

/* The loss at the end, and how calm it was: over the evaluations that minobj and varobj are of. */
static void loss_line(const rbt_recorder *run, FILE *file)
{
    const rbt_result *r = &run->result;
    char mean[RBT_CELL_ROOM], variance[RBT_CELL_ROOM], penalty[RBT_CELL_ROOM], loss[RBT_REAL_ROOM];
    size_t n = 0;

    for (size_t i = 0; i < run->points.count && n < OBJECTIVES_MEANT; i++)
        n += isfinite(run->points.at[i].loss);
    fprintf(file, "  loss       %s", rbt_text_from_loss(r->loss, loss));
    if (r->penalty > 0)
        fprintf(file, ", of which %s is the penalty", rbt_show_real(penalty, r->penalty));
    if (n > 1)
        fprintf(file, " (mean of the last %zu evaluations %s, variance %s)", n, rbt_show_real(mean, r->minobj),
                rbt_show_real(variance, r->varobj));
    fputc('\n', file);
}

static void folds_line(const rbt_recorder *run, FILE *file)
{
    const rbt_result *r = &run->result;

    char a[RBT_CELL_ROOM], b[RBT_CELL_ROOM], loss[RBT_REAL_ROOM];

    fprintf(file, "  folds      %u: loss %s +- %s, ", r->folds, rbt_text_from_loss(r->fold_loss, loss),
            rbt_show_spread(b, r->fold_loss_deviation));
    if (r->folds_of_numbers)
        fprintf(file, "rmse %s +- %s", rbt_text_from_loss(r->fold_score, loss),
                rbt_show_spread(b, r->fold_score_deviation));
    else
        fprintf(file, "accuracy %s +- %s", rbt_show_percent(a, r->fold_score),
                rbt_show_percent(b, r->fold_score_deviation));
    fprintf(file, " on the rows left out (mean +- standard deviation)\n");
}

static void figures_line(const rbt_evaluation *e, FILE *file)
{
    char text[RBT_REAL_ROOM];

    fprintf(file, "  validation ");
    for (size_t i = 0; i < e->figures; i++)
        fprintf(file, "%s%s %s", i > 0 ? ", " : "", e->figure[i].name, rbt_text_from_loss(e->figure[i].value, text));
    fputc('\n', file);
}

void rbt_summary_result(const rbt_recorder *run, FILE *file)
{
    const rbt_result *r = &run->result;
    bool sim = strcmp(rbt_recorder_setting(run, "runtime", ""), "sim") == 0;
    char a[RBT_CELL_ROOM], b[RBT_CELL_ROOM], c[RBT_CELL_ROOM], d[RBT_CELL_ROOM];
    char loss[RBT_REAL_ROOM], rmse[RBT_REAL_ROOM];

    if (!run->has_result)
        return;
    fprintf(file, "%s\n", r->interrupted ? "interrupted; so far:" : "done:");
    fprintf(file, "  time       %s%s for %" PRIu64 " clock%s", rbt_show_seconds(a, r->seconds), sim ? " virtual" : "",
            r->clocks, r->clocks == 1 ? "" : "s");
    if (sim) /* wall time has no place in a run in virtual time */
        fputs("\n", file);
    else
        fprintf(file, " (and %s to load)\n", rbt_show_seconds(b, r->load_seconds));
    if (r->ended != NULL)
        fprintf(file, "  ended      because %s\n", r->ended);
    fprintf(file, "  updates    %" PRIu64 ", one per %s, %s rows/s\n", r->updates,
            rbt_show_seconds(a, r->seconds_per_update), rbt_show_count(b, r->samples_per_second));
    if (!in_shared_memory(run) && r->bytes_plain > r->bytes_sent)
        fprintf(file, "  sent       %s in %s messages, %s without a codec\n", rbt_show_bytes(a, (double)r->bytes_sent),
                rbt_show_count(b, (double)r->messages), rbt_show_bytes(c, (double)r->bytes_plain));
    else if (!in_shared_memory(run))
        fprintf(file, "  sent       %s in %s messages\n", rbt_show_bytes(a, (double)r->bytes_sent),
                rbt_show_count(b, (double)r->messages));
    if (!isnan(r->loss)) /* a method may have none */
        loss_line(run, file);
    if (run->evaluations.count > 0) {
        const rbt_evaluation *e = &run->evaluations.at[run->evaluations.count - 1];

        if (e->figures > 0)
            figures_line(e, file);
        else if (isnan(e->accuracy))
            fprintf(file, "  validation loss %s, rmse %s\n", rbt_text_from_loss(e->loss, loss),
                    rbt_text_from_loss(e->rmse, rmse));
        else
            fprintf(file, "  validation loss %s, accuracy %s\n", rbt_text_from_loss(e->loss, loss),
                    rbt_show_percent(a, e->accuracy));
    }
    if (r->folds > 0)
        folds_line(run, file);
    if (r->has_peers)
        fprintf(file, "  spread     %s: how far the peers are from their mean%s%s%s\n", rbt_show_real(c, r->spread),
                r->skipped > 0 ? "; " : "", r->skipped > 0 ? rbt_show_count(d, (double)r->skipped) : "",
                r->skipped > 0 ? " iterations were jumped over" : "");
    if (!in_shared_memory(run) && !r->has_peers)
        fprintf(file, "  clock gap  %" PRIu64 " at most\n", r->max_gap);
    if (r->peak_versions > 0)
        fprintf(file, "  versions   %" PRIu64 " alive at most, %s %s %s of parameters%s\n", r->peak_versions,
                rbt_show_bytes(c, (double)r->version_bytes),
                r->servers > 1 ? "on the server with most of them;" : "on the server beside",
                rbt_show_bytes(d, (double)r->parameter_bytes), r->servers > 1 ? " on all servers" : "");
    target_line(run, file);
    straggler_lines(run, file);
    fprintf(file, "  parameters hash %016" PRIx64 "\n\n", r->param_hash);
    worker_table(r, file);
    fflush(file);
}
