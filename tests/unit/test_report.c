/* Reports: numbers for people, tables, summary, comparison, JSON lines, the HTML page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/chart.h"
#include "report/compare.h"
#include "report/html.h"
#include "report/jsonlines.h"
#include "report/recorder.h"
#include "report/summary.h"
#include "report/text.h"

typedef struct sink {
    FILE *file;
    char *text;
    size_t length;
} sink;

/* What is written to s->file is in s->text once the file is closed. */
static void open_sink(sink *s)
{
    *s = (sink){0};
    s->file = open_memstream(&s->text, &s->length);
    assert_non_null(s->file);
}

static void contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("'%s' is not in:\n%s", part, text);
}

static void lacks(const char *text, const char *part)
{
    if (strstr(text, part) != NULL)
        fail_msg("'%s' is in:\n%s", part, text);
}

/* A run of `workers` workers whose last is three times slower, with `clocks` clocks. */
static void fill(rbt_recorder *run, const char *name, size_t workers, uint64_t clocks, double seconds)
{
    rbt_worker_report *reports = calloc(workers, sizeof *reports);
    char number[32];

    rbt_recorder_init(run, name);
    snprintf(number, sizeof number, "%zu", workers);
    rbt_recorder_add_setting(run, "model", "lr");
    rbt_recorder_add_setting(run, "data", "<a & b>.svm");
    rbt_recorder_add_setting(run, "runtime", "local");
    rbt_recorder_add_setting(run, "workers", number);
    rbt_recorder_add_setting(run, "servers", "1");
    rbt_recorder_add_setting(run, "sync", "ssp");
    rbt_recorder_add_setting(run, "staleness", "3");
    rbt_recorder_add_setting(run, "rule", "dyn");
    rbt_recorder_add_setting(run, "epochs", "10");
    rbt_recorder_add_setting(run, "batch", "10%");
    rbt_recorder_add_setting(run, "lr", "0.5");
    rbt_recorder_add_setting(run, "seed", "7");
    rbt_recorder_add_setting(run, "json", "out.json");
    for (uint64_t c = 1; c <= clocks; c++) {
        rbt_progress p = {.clock_min = c,
                          .clock_max = c + 1,
                          .seconds = seconds * (double)c / (double)clocks,
                          .loss = 0.2 + 0.5 / (double)c,
                          .updates = c * workers,
                          .samples_per_second = 12345,
                          .wait_fraction = 0.25,
                          .staleness_mean = 1.5,
                          .bytes_sent = 1000 * c};
        rbt_event event = {.kind = RBT_EVENT_CLOCK, .progress = &p};
        rbt_recorder_event(run, &event);
    }
    for (size_t i = 0; i < workers; i++)
        reports[i] = (rbt_worker_report){.compute_seconds = i + 1 == workers ? 3 : 1,
                                         .wait_seconds = i + 1 == workers ? 0 : 2,
                                         .communication_seconds = 0.5,
                                         .rows = 100,
                                         .clocks = clocks,
                                         .samples = 1000};
    rbt_result result = {.loss = 0.25,
                         .seconds = seconds,
                         .clocks = clocks,
                         .updates = clocks * workers,
                         .seconds_per_update = seconds / (double)(clocks * workers),
                         .wait_fraction = 0.25,
                         .staleness_histogram = {3, 0, 5},
                         .peak_versions = 4,
                         .version_bytes = 2048,
                         .parameter_bytes = 512,
                         .minobj = 0.24,
                         .varobj = 1e-6,
                         .param_hash = 0xabc,
                         .seed = 7,
                         .threads = 2,
                         .servers = 1,
                         .workers = workers,
                         .worker = reports};
    rbt_event done = {.kind = RBT_EVENT_DONE, .result = &result};
    rbt_recorder_event(run, &done);
    free(reports);
}

static void numbers_for_people_have_three_digits_and_a_unit(void **state)
{
    char cell[RBT_CELL_ROOM];

    (void)state;
    assert_string_equal(rbt_show_count(cell, 0), "0");
    assert_string_equal(rbt_show_count(cell, 9999), "9999");
    assert_string_equal(rbt_show_count(cell, 1234567), "1.23 M");
    assert_string_equal(rbt_show_count(cell, 999999), "1.00 M");
    assert_string_equal(rbt_show_count(cell, (double)NAN), "-");
    assert_string_equal(rbt_show_bytes(cell, 999), "999 B");
    assert_string_equal(rbt_show_bytes(cell, 3400000), "3.40 MB");
    assert_string_equal(rbt_show_seconds(cell, 0.0123), "12.3 ms");
    assert_string_equal(rbt_show_seconds(cell, 2.5e-7), "250 ns");
    assert_string_equal(rbt_show_seconds(cell, 754), "12 min 34 s");
    assert_string_equal(rbt_show_seconds(cell, 7384), "2 h 03 min");
    assert_string_equal(rbt_show_percent(cell, 0.0341), "3.4 %");
    assert_string_equal(rbt_show_real(cell, 1e-6), "1.00e-06");
}

static void columns_line_up(void **state)
{
    static const char *const CELLS[] = {"name", "n", "a", "100", "longer", "7"};
    rbt_grid grid = {.columns = 2, .left = 1};
    sink s;

    (void)state;
    open_sink(&s);
    for (size_t i = 0; i < 6; i++)
        rbt_grid_add(&grid, CELLS[i]);
    rbt_grid_print(&grid, "", s.file);
    fclose(s.file);
    assert_string_equal(s.text, "name      n\na       100\nlonger    7\n");
    rbt_grid_deinit(&grid);
    free(s.text);
}

static void the_recorder_copies_what_it_is_told(void **state)
{
    rbt_recorder run;

    (void)state;
    fill(&run, "ssp:3/dyn", 4, 5, 10);
    assert_int_equal(run.points.count, 5);
    assert_true(run.has_result && run.result.worker == run.workers && run.workers[3].compute_seconds == 3);
    assert_string_equal(rbt_recorder_setting(&run, "staleness", "-"), "3");
    assert_string_equal(rbt_recorder_setting(&run, "net", "-"), "-");
    rbt_recorder_deinit(&run);
}

static void stragglers_are_those_far_above_the_median(void **state)
{
    rbt_recorder run;
    bool is[4];

    (void)state;
    fill(&run, "x", 4, 5, 10);
    assert_int_equal(rbt_summary_stragglers(&run.result, is), 1);
    assert_true(is[3] && !is[0] && !is[1] && !is[2]);
    rbt_recorder_deinit(&run);
}

static void the_summary_names_stragglers_and_their_cost(void **state)
{
    rbt_recorder run;
    sink s;

    (void)state;
    open_sink(&s);
    fill(&run, "x", 4, 5, 10);
    rbt_summary_configuration(&run, s.file);
    rbt_summary_result(&run, s.file);
    fclose(s.file);
    contains(s.text, "lr on <a & b>.svm");
    contains(s.text, "ssp with staleness 3, rule dyn");
    contains(s.text, "10 epochs, batches of 10% of the rows, one pass per clock");
    contains(s.text, "stragglers worker 3; the slowest took 3.0x the median time per clock of the others");
    contains(s.text, "10.0 s for 5 clocks");
    contains(s.text, "updates    20, one per 500 ms, ");
    contains(s.text, "  loss       0.25 (mean of the last 5 evaluations 0.24, variance 1.00e-06)\n");
    contains(s.text, "the others waited for them 6.00 s, 42.9 % of all workers' time");
    contains(s.text, "4 alive at most, 2.05 KB on the server beside 512 B of parameters\n");
    contains(s.text, "0000000000000abc");
    contains(s.text, "mean of 4");
    free(s.text);
    rbt_recorder_deinit(&run);
}

/* The median of two would be their mean, which the slower one is never far above. */
static void of_two_workers_the_slower_is_compared_with_the_other(void **state)
{
    rbt_recorder run;
    sink s;

    (void)state;
    open_sink(&s);
    fill(&run, "x", 2, 5, 10);
    run.workers[1].compute_seconds = 6.1;
    rbt_summary_result(&run, s.file);
    fclose(s.file);
    contains(s.text, "stragglers worker 1; the slowest took 6.1x the median time per clock of the others");
    free(s.text);
    run.workers[1].compute_seconds = 1.29;
    bool is[2];
    assert_int_equal(rbt_summary_stragglers(&run.result, is), 0);
    run.result.workers = 1; /* alone, it is behind nobody */
    assert_int_equal(rbt_summary_stragglers(&run.result, is), 0);
    rbt_recorder_deinit(&run);
}

static void the_summary_tells_the_penalty_and_whose_versions(void **state)
{
    rbt_recorder run;
    sink s;

    (void)state;
    open_sink(&s);
    fill(&run, "x", 2, 1, 10);
    run.result.penalty = 0.05;
    run.result.servers = 2;
    rbt_summary_result(&run, s.file);
    fclose(s.file);
    contains(s.text, "10.0 s for 1 clock (");
    contains(s.text, "  loss       0.25, of which 0.05 is the penalty\n");
    contains(s.text, "2.05 KB on the server with most of them; 512 B of parameters on all servers\n");
    free(s.text);
    rbt_recorder_deinit(&run);
}

static void the_summary_says_when_nobody_waited(void **state)
{
    rbt_recorder run;
    sink s;

    (void)state;
    open_sink(&s);
    fill(&run, "x", 4, 5, 10);
    run.result.wait_fraction = 0.01;
    rbt_summary_result(&run, s.file);
    fclose(s.file);
    contains(s.text, "nobody waited for them: the bound on staleness left them behind (1.0 %");
    free(s.text);
    rbt_recorder_deinit(&run);
}

/* Losses that went astray are told in words, as the C library's names differ and say little (-nan). */
static void losses_that_are_no_numbers_are_words(void **state)
{
    rbt_recorder run;
    rbt_progress p = {.loss = 0.5, .clock_min = 1};
    rbt_event clock = {.kind = RBT_EVENT_CLOCK, .progress = &p},
              eval = {.kind = RBT_EVENT_EVAL, .eval_loss = -NAN, .eval_accuracy = NAN, .eval_rmse = INFINITY};
    rbt_progress_line line;
    rbt_grid grid;
    sink s;

    (void)state;
    open_sink(&s);
    fill(&run, "x", 2, 5, 10);
    rbt_recorder_add_setting(&run, "folds", "4");
    run.result.folds = 4;
    run.result.folds_of_numbers = true;
    run.result.fold_loss = INFINITY;
    run.result.fold_loss_deviation = run.result.fold_score = run.result.fold_score_deviation = -NAN;
    rbt_recorder_event(&run, &eval);
    rbt_summary_result(&run, s.file);
    rbt_progress_line_init(&line, s.file, false);
    rbt_progress_line_event(&line, &eval, "", 0);
    rbt_progress_line_event(&line, &clock, "", 0);
    rbt_compare_grid(&run, 1, &grid);
    rbt_grid_print(&grid, "", s.file);
    rbt_grid_deinit(&grid);
    fclose(s.file);
    contains(s.text, "  folds      4: loss infinite +- -, rmse not a number +- - on the rows left out");
    contains(s.text, "  validation loss not a number, rmse infinite\n");
    contains(s.text, "  valid not a number\n");
    lacks(s.text, "- +- -\n");
    lacks(s.text, "nan");
    lacks(s.text, "inf ");
    free(s.text);
    rbt_recorder_deinit(&run);
}

/* Whatever the model is called: it may be one of the user's own. */
static void the_summary_says_what_the_folds_measured(void **state)
{
    static const char *const says[] = {
        "  folds      4: loss 0.5 +- 0.1, accuracy 75.0 % +- 20.0 % on the rows left out "
        "(mean +- standard deviation)\n",
        "  folds      4: loss 0.5 +- 0.1, rmse 0.75 +- 0.2 on the rows left out "
        "(mean +- standard deviation)\n"};

    (void)state;
    for (int numbers = 0; numbers < 2; numbers++) {
        rbt_recorder run;
        sink s;

        open_sink(&s);
        fill(&run, "x", 2, 5, 10);
        run.result.folds = 4;
        run.result.folds_of_numbers = numbers;
        run.result.fold_loss = 0.5;
        run.result.fold_loss_deviation = 0.1;
        run.result.fold_score = 0.75;
        run.result.fold_score_deviation = 0.2;
        rbt_summary_result(&run, s.file);
        fclose(s.file);
        contains(s.text, says[numbers]);
        free(s.text);
        rbt_recorder_deinit(&run);
    }
}

static void of_many_workers_only_the_slowest_are_listed(void **state)
{
    rbt_recorder run;
    sink s;
    size_t lines = 0;

    (void)state;
    open_sink(&s);
    fill(&run, "x", 40, 5, 10);
    rbt_summary_result(&run, s.file);
    fclose(s.file);
    const char *table = strstr(s.text, "  worker ");
    assert_non_null(table);
    for (const char *c = table; *c != '\0'; c++)
        lines += *c == '\n';
    assert_int_equal(lines, 1 + 5 + 1);
    contains(table, "\n  39 ");
    contains(table, "mean of 40");
    free(s.text);
    rbt_recorder_deinit(&run);
}

static void a_log_gets_ever_fewer_progress_lines(void **state)
{
    rbt_progress_line line;
    rbt_progress p = {.loss = 0.5};
    rbt_event event = {.kind = RBT_EVENT_CLOCK, .progress = &p};
    sink s;
    size_t lines = 0;

    (void)state;
    open_sink(&s);
    rbt_progress_line_init(&line, s.file, false);
    for (p.clock_min = 1; p.clock_min <= 10000; p.clock_min++) {
        p.clock_max = p.clock_min + 2;
        rbt_progress_line_event(&line, &event, "", 0);
    }
    fclose(s.file);
    for (const char *c = s.text; *c != '\0'; c++)
        lines += *c == '\n';
    assert_true(lines > 20 && lines < 100);
    contains(s.text, "clock 1-3 ");
    free(s.text);
}

/* A stream that is no terminal has no width; 80 columns are then taken for granted. */
static void a_line_that_is_drawn_over_itself_stays_within_one_row(void **state)
{
    rbt_progress_line line;
    rbt_progress p = {.loss = 0.123456, .clock_min = 1000, .clock_max = 2000, .bytes_sent = 1 << 30};
    const rbt_event clock = {.kind = RBT_EVENT_CLOCK, .progress = &p},
                    eval = {.kind = RBT_EVENT_EVAL, .eval_loss = 0.5, .eval_accuracy = 0.75};
    sink s;

    (void)state;
    open_sink(&s);
    rbt_progress_line_init(&line, s.file, true);
    rbt_progress_line_event(&line, &eval, "[1/2] ssp ", 0);
    rbt_progress_line_event(&line, &clock, "[1/2] ssp ", 1);
    fclose(s.file);
    contains(s.text, "\r[1/2] ssp clock 1000-2000 loss 0.123456 ");
    assert_int_equal(strlen(s.text), 1 + 79 + strlen("\033[K"));
    contains(s.text + 1 + 79, "\033[K");
    free(s.text);
}

static void the_better_run_reaches_the_target_sooner_or_ends_lower(void **state)
{
    rbt_recorder a, b;

    (void)state;
    fill(&a, "a", 2, 5, 10);
    fill(&b, "b", 2, 5, 20);
    a.result.loss = 0.3;
    assert_false(rbt_compare_better(&a, &b));
    a.result.has_target = b.result.has_target = true;
    a.result.reached = b.result.reached = true;
    assert_true(rbt_compare_better(&a, &b));
    a.result.reached = false;
    assert_true(rbt_compare_better(&b, &a));
    b.error.code = RBT_E_DIVERGED;
    assert_true(rbt_compare_better(&a, &b));
    assert_false(rbt_compare_better(&b, &a));
    rbt_recorder_deinit(&a);
    rbt_recorder_deinit(&b);
}

static void the_table_shows_speed_up_and_failed_runs(void **state)
{
    rbt_recorder runs[3];
    rbt_grid grid;
    sink s;

    (void)state;
    open_sink(&s);
    fill(&runs[0], "bsp", 2, 5, 10);
    fill(&runs[1], "ssp:3/dyn", 2, 5, 4);
    fill(&runs[2], "asp/sum", 2, 5, 4);
    runs[2].error.code = RBT_E_DIVERGED;
    rbt_compare_grid(runs, 3, &grid);
    rbt_grid_print(&grid, "", s.file);
    rbt_json json = {.file = s.file};
    rbt_json_object(&json, NULL);
    rbt_compare_json(runs, 3, &json, "table");
    rbt_json_end(&json);
    fclose(s.file);
    contains(s.text, "2.50x");
    contains(s.text, "diverged");
    contains(s.text, "\"speed_up\":2.5}");
    contains(s.text, "\"state\":\"diverged\",\"seconds_to_target\":null");
    rbt_grid_deinit(&grid);
    free(s.text);
    for (size_t i = 0; i < 3; i++)
        rbt_recorder_deinit(&runs[i]);
}

/* Everything a file holds. */
static void slurp(const char *path, char *text, size_t room)
{
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    text[fread(text, 1, room - 1, file)] = '\0';
    fclose(file);
}

static void json_lines_have_the_promised_fields(void **state)
{
    static const char *const FIELDS[] = {"loss",
                                         "seconds",
                                         "load_seconds",
                                         "clocks",
                                         "updates",
                                         "seconds_per_update",
                                         "bytes_sent",
                                         "wait_fraction",
                                         "max_gap",
                                         "staleness_histogram",
                                         "peak_versions",
                                         "version_bytes",
                                         "samples_per_second",
                                         "minobj",
                                         "varobj",
                                         "reached",
                                         "param_hash",
                                         "seed",
                                         "workers",
                                         "threads",
                                         "servers"};
    char path[] = "/tmp/rubato-test-XXXXXX", wanted[64];
    static char text[16384];
    rbt_recorder run;
    rbt_jsonlines lines;
    rbt_error error;
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    fill(&run, "x", 2, 3, 10);
    assert_int_equal(rbt_jsonlines_open(&lines, path, &error), RBT_OK);
    rbt_event note = {.kind = RBT_EVENT_NOTE, .note = "a \"note\""};
    rbt_event clock = {.kind = RBT_EVENT_CLOCK, .progress = &run.points.at[0]};
    rbt_event eval = {
        .kind = RBT_EVENT_EVAL, .eval_clock = 2, .eval_seconds = 1, .eval_loss = 0.5, .eval_accuracy = 0.75};
    rbt_event number = {.kind = RBT_EVENT_EVAL, .eval_loss = 2, .eval_accuracy = NAN, .eval_rmse = 1.5};
    rbt_event start = {.kind = RBT_EVENT_START}, done = {.kind = RBT_EVENT_DONE, .result = &run.result};
    rbt_jsonlines_event(&lines, &run, &start);
    rbt_jsonlines_event(&lines, &run, &clock);
    rbt_jsonlines_event(&lines, &run, &eval);
    rbt_jsonlines_event(&lines, &run, &number);
    rbt_jsonlines_event(&lines, &run, &note);
    rbt_jsonlines_event(&lines, &run, &done);
    assert_int_equal(rbt_jsonlines_close(&lines, &error), RBT_OK);
    slurp(path, text, sizeof text);
    unlink(path);
    contains(text, "{\"event\":\"start\",\"version\":\"");
    contains(text, "\"data\":\"<a & b>.svm\"");
    contains(text, "\"workers\":2,\"servers\":1,\"sync\":\"ssp\",\"staleness\":3");
    lacks(text, "out.json"); /* where output goes is no part of the job */
    contains(text, "{\"event\":\"clock\",\"clock_min\":1,\"clock_max\":2,");
    contains(text, "{\"event\":\"eval\",\"clock\":2,\"seconds\":1,\"loss\":0.5,\"accuracy\":0.75}");
    contains(text, "\"loss\":2,\"rmse\":1.5}"); /* a model that predicts numbers */
    contains(text, "{\"event\":\"note\",\"note\":\"a \\\"note\\\"\"}");
    const char *last = strstr(text, "{\"event\":\"done\"");
    assert_non_null(last);
    for (size_t i = 0; i < sizeof FIELDS / sizeof FIELDS[0]; i++) {
        snprintf(wanted, sizeof wanted, "\"%s\":", FIELDS[i]);
        contains(last, wanted);
    }
    contains(last, "\"staleness_histogram\":[3,0,5]");
    contains(last, "\"param_hash\":\"0000000000000abc\"");
    contains(last, "{\"worker\":1,\"compute\":3,\"wait\":0,\"communication\":0.5,");
    rbt_recorder_deinit(&run);
}

static void a_json_file_that_cannot_be_written_is_reported(void **state)
{
    rbt_jsonlines lines;
    rbt_recorder run;
    rbt_error error;
    rbt_event done = {.kind = RBT_EVENT_DONE};

    (void)state;
    assert_int_equal(rbt_jsonlines_open(&lines, "/nowhere/x.json", &error), RBT_E_IO);
    contains(error.text, "/nowhere/x.json: No such file or directory");
    fill(&run, "x", 2, 3, 10);
    assert_int_equal(rbt_jsonlines_open(&lines, "/dev/full", &error), RBT_OK);
    rbt_jsonlines_event(&lines, &run, &done);
    assert_int_equal(rbt_jsonlines_close(&lines, &error), RBT_E_IO);
    contains(error.text, "No space left on device");
    rbt_recorder_deinit(&run);
}

static void the_page_is_whole_and_loads_nothing(void **state)
{
    rbt_recorder runs[12];
    rbt_error error;

    (void)state;
    for (size_t n = 1; n <= 12; n += 11) {
        sink s;
        open_sink(&s);
        for (size_t i = 0; i < n; i++)
            fill(&runs[i], i == 1 ? "<script>" : "ssp:3/dyn", 3, i == 2 ? 0 : 1000, 10 + (double)i);
        if (n > 3)
            runs[3].error.code = RBT_E_DIVERGED;
        rbt_html_print(runs, n, s.file);
        fclose(s.file);
        contains(s.text, "<!doctype html>");
        contains(s.text, "</html>");
        contains(s.text, "lr on &lt;a &amp; b&gt;.svm");
        contains(s.text, "prefers-color-scheme:dark");
        contains(s.text, "training time (s)");
        lacks(s.text, "<script");
        lacks(s.text, "http");
        lacks(s.text, "nan");
        assert_true(s.length < 600000);
        free(s.text);
        assert_int_equal(rbt_html_write("/nowhere/page.html", runs, n, &error), RBT_E_IO);
        for (size_t i = 0; i < n; i++)
            rbt_recorder_deinit(&runs[i]);
    }
}

static void charts_survive_odd_values(void **state)
{
    double x[] = {0, 1, 2, 3}, y[] = {(double)NAN, 1, (double)INFINITY, 1}, huge[] = {1, 1e10, 1e30, 1e300};
    rbt_chart chart = {.id = "c", .title = "t", .x_label = "x", .y_label = "y", .width = 500};
    rbt_series series[] = {{"gaps", 4, x, y, false}, {"stray", 4, x, huge, true}, {"none", 0, x, y, false}};
    sink s;

    (void)state;
    open_sink(&s);
    rbt_chart_write(&chart, series, 3, s.file);
    rbt_chart_write(&chart, series, 1, s.file);
    rbt_chart_write(&chart, series + 1, 1, s.file);
    rbt_chart_write(&chart, series + 2, 1, s.file);
    fclose(s.file);
    lacks(s.text, "nan");
    lacks(s.text, "inf");
    free(s.text);
}

/* So do the losses of a run that begins at the optimum. */
static void values_that_differ_in_their_last_bits_have_few_ticks(void **state)
{
    double x[] = {0, 1, 2}, y[] = {0.0836, nextafter(0.0836, 1), nextafter(0.0836, 0)};
    rbt_chart chart = {.id = "c", .title = "t", .x_label = "x", .y_label = "y", .width = 500};
    rbt_series series = {"flat", 3, x, y, false};
    size_t ticks = 0;
    sink s;

    (void)state;
    open_sink(&s);
    rbt_chart_write(&chart, &series, 1, s.file);
    fclose(s.file);
    contains(s.text, "flat: 0.0836 after 2 x</title>");
    for (const char *at = s.text; (at = strstr(at, "text-anchor=\"end\"")) != NULL; at++)
        ticks++;
    assert_in_range(ticks, 2, 20);
    free(s.text);
}

static void axis_steps_are_round(void **state)
{
    (void)state;
    assert_true(rbt_chart_step(10, 4) == 2);
    assert_true(rbt_chart_step(3.4, 4) == 0.5);
    assert_true(fabs(rbt_chart_step(0.07, 4) - 0.01) < 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_for_people_have_three_digits_and_a_unit),
        cmocka_unit_test(columns_line_up),
        cmocka_unit_test(the_recorder_copies_what_it_is_told),
        cmocka_unit_test(stragglers_are_those_far_above_the_median),
        cmocka_unit_test(the_summary_names_stragglers_and_their_cost),
        cmocka_unit_test(of_two_workers_the_slower_is_compared_with_the_other),
        cmocka_unit_test(the_summary_tells_the_penalty_and_whose_versions),
        cmocka_unit_test(the_summary_says_when_nobody_waited),
        cmocka_unit_test(the_summary_says_what_the_folds_measured),
        cmocka_unit_test(losses_that_are_no_numbers_are_words),
        cmocka_unit_test(of_many_workers_only_the_slowest_are_listed),
        cmocka_unit_test(a_log_gets_ever_fewer_progress_lines),
        cmocka_unit_test(a_line_that_is_drawn_over_itself_stays_within_one_row),
        cmocka_unit_test(the_better_run_reaches_the_target_sooner_or_ends_lower),
        cmocka_unit_test(the_table_shows_speed_up_and_failed_runs),
        cmocka_unit_test(json_lines_have_the_promised_fields),
        cmocka_unit_test(a_json_file_that_cannot_be_written_is_reported),
        cmocka_unit_test(the_page_is_whole_and_loads_nothing),
        cmocka_unit_test(charts_survive_odd_values),
        cmocka_unit_test(values_that_differ_in_their_last_bits_have_few_ticks),
        cmocka_unit_test(axis_steps_are_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
