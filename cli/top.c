/* rubato top: a running job in a terminal.
 *
 * The lead sends a picture about once a second (runtime/cluster/watch.h); here it becomes text: in place on a terminal,
 * block after block elsewhere, JSON lines with --json. Rates are over the last RECENT pictures. Proved by
 * tests/cluster/test_top.sh. */
#include "cli/cli.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/error.h"
#include "report/text.h"
#include "runtime/cluster/watch.h"

#define RECENT         6    /* pictures, about a second apart: a clock may take longer than one */
#define PATIENCE_MS    3000 /* for a lead that is not reached at once */
#define AROUND_WORKERS 8    /* lines of a terminal that are not about workers */
#define STATE_WIDTH    30   /* all the same: flush left */
#define WORKERS_LEAST  3    /* are shown in the smallest of windows */

typedef struct top {
    rbt_picture recent[RECENT]; /* the oldest first */
    size_t count;
    rbt_jsonlines lines;
    FILE *text; /* NULL: JSON alone */
    bool redraw;
    size_t drawn; /* lines on the terminal that the next picture replaces */
} top;

static const rbt_picture *now_of(const top *t)
{
    return &t->recent[t->count - 1];
}

static void keep(top *t, rbt_picture *picture)
{
    const rbt_picture *last = t->count > 0 ? now_of(t) : NULL;
    size_t drop = t->count == RECENT ? 1 : 0;

    if (last != NULL && last->phase != picture->phase) /* its numbers began anew */
        drop = t->count;
    for (size_t i = 0; i < drop; i++)
        rbt_picture_deinit(&t->recent[i]);
    memmove(t->recent, t->recent + drop, (t->count - drop) * sizeof *t->recent);
    t->count -= drop;
    t->recent[t->count++] = *picture;
}

/* -------------------------------------------------------------------------------------------------- reckoning */

static double seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

/* What grew from `before` to `now`, per second; since the beginning when there is only one picture. */
static double rate(const top *t, uint64_t before, uint64_t now)
{
    double elapsed = seconds(now_of(t)->elapsed_ns) - (t->count > 1 ? seconds(t->recent[0].elapsed_ns) : 0);

    if (t->count == 1)
        before = 0;
    return elapsed > 0 && now >= before ? (double)(now - before) / elapsed : 0;
}

static double rows_per_second(const top *t, uint32_t worker)
{
    const rbt_picture *first = &t->recent[0];
    uint64_t before = worker < first->workers.count ? first->workers.at[worker].rows : 0;

    return rate(t, before, now_of(t)->workers.at[worker].rows);
}

static double all_rows_per_second(const top *t)
{
    double sum = 0;

    for (uint32_t m = 0; m < now_of(t)->workers.count; m++)
        sum += rows_per_second(t, m);
    return sum;
}

/* A worker's time, with what it waits at the moment: compute, wait, communication. */
static void shares(const rbt_picture_worker *worker, double share[3])
{
    double wait = (double)worker->wait_ns + (double)worker->waiting_ns;
    double total = (double)worker->compute_ns + wait + (double)worker->communication_ns;

    share[0] = total > 0 ? (double)worker->compute_ns / total : NAN;
    share[1] = total > 0 ? wait / total : NAN;
    share[2] = total > 0 ? (double)worker->communication_ns / total : NAN;
}

static const char *state_word(const rbt_picture *picture, uint32_t worker)
{
    const rbt_picture_process *home = rbt_picture_home(picture, worker);

    if (home == NULL || home->state == RBT_PICTURE_LOST)
        return "lost";
    if (home->state == RBT_PICTURE_AWAY)
        return "away";
    if (home->state == RBT_PICTURE_DONE)
        return "done";
    return picture->workers.at[worker].waiting_ns > 0 ? "waits" : "works";
}

static bool is_at_work(const rbt_picture *picture, uint32_t worker)
{
    const char *word = state_word(picture, worker);

    return strcmp(word, "works") == 0 || strcmp(word, "waits") == 0;
}

/* ---------------------------------------------------------------------------------------------- who is shown */

typedef struct place {
    uint32_t worker;
    bool at_work;
    uint64_t clock;
    uint64_t waiting_ns;
} place;

static int by_clock(const void *a, const void *b)
{
    const place *x = a, *y = b;

    if (x->at_work != y->at_work)
        return x->at_work ? -1 : 1;
    if (x->clock != y->clock)
        return x->clock < y->clock ? -1 : 1;
    return x->worker < y->worker ? -1 : 1;
}

static int by_waiting(const void *a, const void *b)
{
    const place *x = a, *y = b;

    if (x->at_work != y->at_work)
        return x->at_work ? -1 : 1;
    if (x->waiting_ns != y->waiting_ns)
        return x->waiting_ns > y->waiting_ns ? -1 : 1;
    return x->worker < y->worker ? -1 : 1;
}

/* Which workers are shown when there is room for `room`: all as they are numbered, or in turn the slowest and the one
 * that has waited longest. */
static size_t choose(const rbt_picture *picture, size_t room, uint32_t *chosen)
{
    size_t n = picture->workers.count, count = 0;
    place *slow = rbt_alloc(n, sizeof *slow), *waiting = rbt_alloc(n, sizeof *waiting);
    bool *is_chosen = rbt_alloc(n, sizeof *is_chosen);

    for (uint32_t m = 0; m < n; m++) {
        const rbt_picture_worker *worker = &picture->workers.at[m];

        slow[m] = waiting[m] = (place){m, is_at_work(picture, m), worker->clock, worker->waiting_ns};
        if (n <= room)
            chosen[count++] = m;
    }
    if (n > room) {
        qsort(slow, n, sizeof *slow, by_clock);
        qsort(waiting, n, sizeof *waiting, by_waiting);
    }
    for (size_t i = 0; i < 2 * n && count < room && n > room; i++) {
        uint32_t worker = (i % 2 == 0 ? slow : waiting)[i / 2].worker;

        if (!is_chosen[worker])
            chosen[count++] = worker;
        is_chosen[worker] = true;
    }
    rbt_free(slow);
    rbt_free(waiting);
    rbt_free(is_chosen);
    return count;
}

/* --------------------------------------------------------------------------------------------------- the text */

static void add_worker(const top *t, uint32_t m, rbt_grid *grid)
{
    const rbt_picture *picture = now_of(t);
    const rbt_picture_worker *worker = &picture->workers.at[m];
    const rbt_picture_process *home = rbt_picture_home(picture, m);
    const char *word = state_word(picture, m);
    uint32_t awaited = rbt_picture_awaited(picture);
    double share[3];
    char cell[RBT_CELL_ROOM], state[64 + RBT_CELL_ROOM], padded[64 + RBT_CELL_ROOM];

    snprintf(cell, sizeof cell, "%" PRIu32, m);
    rbt_grid_add(grid, cell);
    snprintf(cell, sizeof cell, "%td", home != NULL ? home - picture->processes.at : (ptrdiff_t)-1);
    rbt_grid_add(grid, home != NULL ? cell : "-");
    rbt_grid_add(grid, home != NULL && home->host[0] != '\0' ? home->host : "-");
    snprintf(cell, sizeof cell, "%" PRIu64, worker->clock);
    rbt_grid_add(grid, cell);
    rbt_grid_add(grid, rbt_show_count(cell, floor(rows_per_second(t, m))));
    shares(worker, share);
    for (size_t i = 0; i < 3; i++)
        rbt_grid_add(grid, rbt_show_percent(cell, share[i]));
    if (strcmp(word, "waits") != 0)
        snprintf(state, sizeof state, "%s", word);
    else if (awaited == UINT32_MAX || picture->workers.at[awaited].clock > worker->clock)
        snprintf(state, sizeof state, "waits %s for a server", rbt_show_seconds(cell, seconds(worker->waiting_ns)));
    else
        snprintf(state, sizeof state, "waits %s for worker %" PRIu32,
                 rbt_show_seconds(cell, seconds(worker->waiting_ns)), awaited);
    snprintf(padded, sizeof padded, "%-*s", STATE_WIDTH, state);
    rbt_grid_add(grid, padded);
}

static void print_workers(const top *t, size_t room, FILE *out)
{
    static const char *const HEADING[] = {"worker", "rank", "host", "clock", "rows/s", "compute", "wait", "comm.", ""};
    const rbt_picture *picture = now_of(t);
    uint32_t *chosen = rbt_alloc(picture->workers.count, sizeof *chosen);
    size_t count = choose(picture, room, chosen);
    rbt_grid grid = {.columns = sizeof HEADING / sizeof HEADING[0], .left = 3};

    for (size_t i = 0; i < grid.columns; i++)
        rbt_grid_add(&grid, HEADING[i]);
    for (size_t i = 0; i < count; i++)
        add_worker(t, chosen[i], &grid);
    rbt_grid_print(&grid, "  ", out);
    if (count < picture->workers.count)
        fprintf(out, "  and %zu more; these are the slowest, and those that have waited longest\n",
                picture->workers.count - count);
    rbt_grid_deinit(&grid);
    rbt_free(chosen);
}

/* "rank 3 on host b, rank 4 on host b and 12 more", those in that state; false: there are none. */
static bool print_ranks(const rbt_picture *picture, const char *heading, rbt_picture_state state, bool servers,
                        FILE *out)
{
    size_t count = 0;

    for (size_t r = 1; r < picture->processes.count; r++) {
        const rbt_picture_process *process = &picture->processes.at[r];

        if (servers ? process->servers == 0 : process->state != state)
            continue;
        if (++count > 8)
            continue;
        fprintf(out, "%s%srank %zu", count == 1 ? heading : "", count == 1 ? " " : ", ", r);
        if (process->host[0] != '\0')
            fprintf(out, " on %s", process->host);
        if (servers && process->state == RBT_PICTURE_LOST)
            fprintf(out, " (lost)");
    }
    if (count > 8)
        fprintf(out, " and %zu more", count - 8);
    if (count > 0)
        fprintf(out, "\n");
    return count > 0;
}

static void print_head(const top *t, FILE *out)
{
    static const char *const PHASES[] = {"waiting for processes", "loading", "running", "over"};
    const rbt_picture *picture = now_of(t);
    char cell[RBT_CELL_ROOM];

    fprintf(out, "%s: %s for %s\n", picture->title, PHASES[picture->phase],
            rbt_show_seconds(cell, seconds(picture->elapsed_ns)));
}

static void print_running(const top *t, size_t room, FILE *out)
{
    const rbt_picture *picture = now_of(t);
    uint64_t least = UINT64_MAX, most = 0;
    char rows[RBT_CELL_ROOM], bytes[RBT_CELL_ROOM], all[RBT_CELL_ROOM], loss[RBT_CELL_ROOM] = "-";

    for (uint32_t m = 0; m < picture->workers.count; m++) {
        uint64_t clock = picture->workers.at[m].clock;

        if (strcmp(state_word(picture, m), "lost") != 0 && clock < least)
            least = clock;
        most = clock > most ? clock : most;
    }
    if (isfinite(picture->loss))
        snprintf(loss, sizeof loss, "%.6g", picture->loss);
    fprintf(out, "clock %" PRIu64 "-%" PRIu64 "  loss %s  %s rows/s  %s/s sent  %s in all\n",
            least != UINT64_MAX ? least : 0, most, loss, rbt_show_count(rows, floor(all_rows_per_second(t))),
            rbt_show_bytes(bytes, rate(t, t->recent[0].bytes, picture->bytes)),
            rbt_show_bytes(all, (double)picture->bytes));
    if (picture->workers.count > 0)
        print_workers(t, room, out);
    print_ranks(picture, "servers:", RBT_PICTURE_READY, true, out);
}

static void print_joining(const top *t, FILE *out)
{
    const rbt_picture *picture = now_of(t);
    size_t there = 0;

    for (size_t r = 1; r < picture->processes.count; r++)
        there +=
            picture->processes.at[r].state == RBT_PICTURE_JOINED || picture->processes.at[r].state == RBT_PICTURE_READY;
    fprintf(out, "%zu of %zu processes are there\n", there,
            picture->processes.count > 0 ? picture->processes.count - 1 : 0);
    print_ranks(picture, "missing:", RBT_PICTURE_MISSING, false, out);
    print_ranks(picture, "joined:", RBT_PICTURE_JOINED, false, out);
    print_ranks(picture, "ready:", RBT_PICTURE_READY, false, out);
    print_ranks(picture, "lost:", RBT_PICTURE_LOST, false, out);
}

/* Lines on a terminal must not be longer than it is wide: one picture must replace the other. */
static void put_lines(top *t, char *block, size_t width)
{
    if (t->redraw && t->drawn > 0)
        fprintf(t->text, "\033[%zuA\r\033[J", t->drawn);
    t->drawn = 0;
    for (char *line = block, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        size_t n = (size_t)(end - line);

        n = t->redraw && n > width ? width : n;
        while (n > 0 && line[n - 1] == ' ')
            n--;
        fprintf(t->text, "%.*s\n", (int)n, line);
        t->drawn++;
    }
    if (!t->redraw)
        fputc('\n', t->text);
    fflush(t->text);
}

static void print_picture(top *t)
{
    struct winsize window = {.ws_row = 24, .ws_col = 80};
    size_t room = SIZE_MAX, n = 0;
    char *block = NULL;
    FILE *out;

    if (t->redraw && (ioctl(fileno(t->text), TIOCGWINSZ, &window) != 0 || window.ws_row == 0 || window.ws_col == 0))
        window = (struct winsize){.ws_row = 24, .ws_col = 80};
    if (t->redraw)
        room = window.ws_row > AROUND_WORKERS + WORKERS_LEAST ? window.ws_row - AROUND_WORKERS : WORKERS_LEAST;
    out = open_memstream(&block, &n);
    if (out == NULL)
        return;
    print_head(t, out);
    if (now_of(t)->phase < RBT_PICTURE_RUNNING)
        print_joining(t, out);
    else
        print_running(t, room, out);
    if (fclose(out) == 0)
        put_lines(t, block, window.ws_col);
    free(block); /* the C library's */
}

/* --------------------------------------------------------------------------------------------------- the JSON */

static void json_processes(const rbt_picture *picture, rbt_json *json)
{
    static const char *const STATES[] = {"missing", "joined", "ready", "lost", "done", "away"};

    rbt_json_array(json, "processes");
    for (size_t r = 0; r < picture->processes.count; r++) {
        const rbt_picture_process *process = &picture->processes.at[r];

        rbt_json_object(json, NULL);
        rbt_json_count(json, "rank", r);
        rbt_json_text(json, "host", process->host);
        rbt_json_text(json, "state", STATES[process->state]);
        rbt_json_count(json, "workers", process->workers);
        rbt_json_count(json, "servers", process->servers);
        rbt_json_end(json);
    }
    rbt_json_end(json);
}

static void json_workers(const top *t, rbt_json *json)
{
    const rbt_picture *picture = now_of(t);
    uint32_t awaited = rbt_picture_awaited(picture);

    rbt_json_array(json, "workers");
    for (uint32_t m = 0; m < picture->workers.count; m++) {
        const rbt_picture_worker *worker = &picture->workers.at[m];
        const rbt_picture_process *home = rbt_picture_home(picture, m);
        bool waits_for =
            worker->waiting_ns > 0 && awaited != UINT32_MAX && picture->workers.at[awaited].clock <= worker->clock;

        rbt_json_object(json, NULL);
        rbt_json_count(json, "worker", m);
        if (home != NULL)
            rbt_json_count(json, "rank", (uint64_t)(home - picture->processes.at));
        rbt_json_text(json, "state", state_word(picture, m));
        rbt_json_count(json, "clock", worker->clock);
        rbt_json_count(json, "rows", worker->rows);
        rbt_json_real(json, "rows_per_second", rows_per_second(t, m));
        rbt_json_real(json, "compute", seconds(worker->compute_ns));
        rbt_json_real(json, "wait", seconds(worker->wait_ns));
        rbt_json_real(json, "communication", seconds(worker->communication_ns));
        rbt_json_real(json, "waiting", seconds(worker->waiting_ns));
        if (waits_for)
            rbt_json_count(json, "waits_for", awaited);
        rbt_json_end(json);
    }
    rbt_json_end(json);
}

static void json_picture(top *t)
{
    static const char *const PHASES[] = {"joining", "loading", "running", "over"};
    const rbt_picture *picture = now_of(t);
    rbt_json *json = &t->lines.json;

    rbt_json_object(json, NULL);
    rbt_json_text(json, "event", "picture");
    rbt_json_text(json, "job", picture->title);
    rbt_json_text(json, "phase", PHASES[picture->phase]);
    rbt_json_real(json, "seconds", seconds(picture->elapsed_ns));
    rbt_json_real(json, "loss", picture->loss);
    rbt_json_count(json, "bytes_sent", picture->bytes);
    rbt_json_count(json, "messages", picture->messages);
    rbt_json_real(json, "bytes_per_second", rate(t, t->recent[0].bytes, picture->bytes));
    rbt_json_real(json, "rows_per_second", all_rows_per_second(t));
    json_processes(picture, json);
    json_workers(t, json);
    rbt_json_end(json);
    rbt_jsonlines_flush(&t->lines);
}

static void json_end(top *t, const rbt_picture *last)
{
    rbt_json *json = &t->lines.json;

    rbt_json_object(json, NULL);
    rbt_json_text(json, "event", "end");
    rbt_json_count(json, "exit_code", (uint64_t)rbt_err_exit_code(last->end.code));
    rbt_json_text(json, "reason", last->end.code == RBT_OK ? "" : last->end.text);
    rbt_json_end(json);
    rbt_jsonlines_flush(&t->lines);
}

/* ------------------------------------------------------------------------------------------------- the command */

static void show(top *t)
{
    if (t->lines.json.file != NULL)
        json_picture(t);
    if (t->text != NULL)
        print_picture(t);
}

static void tell_end(top *t, const rbt_picture *last)
{
    if (t->lines.json.file != NULL)
        json_end(t, last);
    if (t->text == NULL)
        return;
    if (last->end.code == RBT_OK)
        fprintf(t->text, "the job is done\n");
    else
        fprintf(t->text, "the job has ended: %s\n", last->end.text);
}

/* Follows the job; `once`: shows it once, with rates, which need two pictures of a job that runs. */
static rbt_err follow(top *t, rbt_watch *watch, bool once, rbt_error *error)
{
    for (;;) {
        rbt_picture picture;
        rbt_err err = rbt_watch_next(watch, &picture, error);

        if (err != RBT_OK)
            return err;
        if (picture.phase == RBT_PICTURE_OVER) {
            if (once && t->count > 0)
                show(t);
            tell_end(t, &picture);
            rbt_picture_deinit(&picture);
            return RBT_OK;
        }
        keep(t, &picture);
        if (!once || t->count > 1 || now_of(t)->phase != RBT_PICTURE_RUNNING)
            show(t);
        else
            continue;
        if (once || t->lines.failed != 0 || (t->text != NULL && ferror(t->text))) /* nobody reads it: main() says so */
            return RBT_OK;
    }
}

static rbt_err watch_job(const rbt_session_config *config, const char *address, const char *json, bool once,
                         rbt_error *error)
{
    top t = {.text = json != NULL && strcmp(json, "-") == 0 ? NULL : stdout};
    rbt_error late = {RBT_OK, ""};
    rbt_watch *watch = NULL;
    rbt_err err = json != NULL ? rbt_jsonlines_open(&t.lines, json, error) : RBT_OK;

    if (err != RBT_OK)
        return err;
    t.redraw = t.text != NULL && isatty(fileno(t.text)) != 0 && !once;
    err = rbt_watch_open(config, address, &watch, error);
    if (err == RBT_OK)
        err = follow(&t, watch, once, error);
    rbt_watch_close(watch);
    for (size_t i = 0; i < t.count; i++)
        rbt_picture_deinit(&t.recent[i]);
    if (rbt_jsonlines_close(&t.lines, &late) != RBT_OK && err == RBT_OK) {
        *error = late;
        err = late.code;
    }
    return err == RBT_E_INTERRUPTED ? RBT_OK : err; /* Ctrl-C is how one stops looking */
}

int cli_top(const cli_command *command, int argc, char **argv)
{
    const char *key = NULL, *once = NULL, *json = NULL, *insecure = NULL, *address = NULL;
    const cli_option own[] = {
        {"key", "FILE", "The job's key.", &key},
        {"once", NULL, "Shows the job once and ends.", &once},
        {"json", "FILE", "One JSON object per picture; - = standard output, instead of the text.", &json},
        {"insecure", NULL, "The job was started with --insecure.", &insecure},
    };
    cli_arguments arguments = {.own = own, .own_count = sizeof own / sizeof own[0], .words = &address, .words_room = 1};
    rbt_session_config config = {.join_timeout_ms = PATIENCE_MS};
    rbt_error error = {RBT_OK, ""};
    rbt_err err = cli_parse(&arguments, argc, argv, &error);

    if (err == RBT_OK && arguments.help) {
        cli_help(command, &arguments);
        return 0;
    }
    if (err == RBT_OK && address == NULL)
        err = rbt_fail(&error, RBT_E_USAGE,
                       "which job? give the address of its lead, HOST:PORT, as `rubato launch "
                       "--listen` prints it");
    key = cli_key_file(key);
    if (err == RBT_OK)
        err = cli_keep_apart(key, json, &error);
    if (err == RBT_OK && key != NULL) {
        err = rbt_key_read(key, &config.key, &error);
        config.has_key = err == RBT_OK;
    }
    config.insecure = insecure != NULL;
    config.interrupted = cli_stop_flag();
    if (err == RBT_OK)
        err = watch_job(&config, address, json, once != NULL, &error);
    rbt_key_wipe(&config.key);
    return err == RBT_OK ? 0 : cli_fail(command, &error);
}
