/* The --report page; the contract stands in html.h. */
#include "report/html.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/file.h"
#include "data/paths.h"
#include "job/options.h"
#include "report/chart.h"
#include "report/compare.h"
#include "report/text.h"

#define BARS_MOST 24     /* workers drawn per run; of more, the slowest */
#define WIDE      1100.0 /* a drawing over the page's whole width */
#define HALF      540.0  /* one of two side by side */

static const char STYLE[] =
    ":root{--bg:#fbfaf8;--card:#fff;--ink:#1d1f23;--soft:#6a6f78;--line:#e4e2dd;--frame:#a9a69f;"
    "--c0:#0072b2;--c1:#d55e00;--c2:#00875f;--c3:#b8538b;--c4:#b27a00;--c5:#4a4f58;"
    "--compute:#0072b2;--wait:#e69f00;--comm:#9aa0a8}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#15171b;--card:#1d2026;--ink:#eceae6;--soft:#9da3ad;--line:#30343c;"
    "--frame:#5b616b;--c0:#5aaee6;--c1:#ff8f4d;--c2:#2fc79a;--c3:#eba4cc;--c4:#f2bb45;--c5:#d5d9e0;"
    "--compute:#5aaee6;--wait:#f2bb45;--comm:#6b727d}}\n"
    "*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--ink);"
    "font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}\n"
    "main{max-width:1180px;margin:0 auto;padding:32px 24px 56px}h1{font-size:26px;margin:0 0 "
    "2px;letter-spacing:-.01em}\n"
    "h2{font-size:17px;margin:0 0 12px}.sub{color:var(--soft);margin:0 0 24px}\n"
    ".card{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:20px 22px;margin:0 0 20px}\n"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(124px,1fr));gap:12px;margin:0 0 20px}\n"
    ".tile{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:12px 14px}\n"
    ".tile b{display:block;font-size:21px;font-weight:600;font-variant-numeric:tabular-nums}"
    ".tile span{color:var(--soft);font-size:13px}\n"
    ".two{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(480px,100%),1fr));gap:20px;margin:0 0 20px}"
    ".two .card{margin:0}\n"
    ".scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}"
    "th,td{padding:7px 8px;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}"
    "th{font-weight:600;color:var(--soft);font-size:13px}th:first-child,td:first-child{text-align:left}"
    "tr:last-child td{border-bottom:0}td:first-child{font-weight:600}.kv "
    "td:nth-child(2){text-align:left;font-weight:400}\n"
    ".legend{display:flex;flex-wrap:wrap;gap:6px 18px;margin:0 0 10px;font-size:14px}"
    ".legend span{display:inline-flex;align-items:center;gap:7px}.legend svg{width:26px;height:10px}\n"
    ".chart,.bars{width:100%;height:auto;display:block}.grid{stroke:var(--line)}.frame{stroke:var(--frame);fill:none}"
    ".tick,.axis,.bar{fill:var(--soft);font-size:13px}.axis{fill:var(--ink)}.target{stroke:var(--soft);"
    "stroke-dasharray:2 4;stroke-width:1.5}\n"
    ".curve{fill:none;stroke-width:2.2;stroke-linejoin:round;stroke-linecap:round}.dashed{stroke-dasharray:7 5}"
    "\n"
    ".c0{stroke:var(--c0)}.c1{stroke:var(--c1)}.c2{stroke:var(--c2)}.c3{stroke:var(--c3)}.c4{stroke:var(--c4)}"
    ".c5{stroke:var(--c5)}.dot.c0{fill:var(--c0)}.dot.c1{fill:var(--c1)}.dot.c2{fill:var(--c2)}.dot.c3{fill:var(--c3)}"
    ".dot.c4{fill:var(--c4)}.dot.c5{fill:var(--c5)}.dot{stroke:none}\n"
    ".compute{fill:var(--compute)}.wait{fill:var(--wait)}.comm{fill:var(--comm)}.name{fill:var(--ink);font-size:13px}"
    "h3{font-size:15px;margin:0 0 8px}h3 .sub{font-weight:400}summary{cursor:pointer;font-weight:600}details "
    "table{margin-top:10px}\n";

/* ------------------------------------------------------------------------------------------------- curves */

static void series_deinit(rbt_series *series, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        rbt_free(series[i].x);
        rbt_free(series[i].y);
    }
    rbt_free(series);
}

static rbt_series series_of_points(const rbt_recorder *run, const char *name, bool over_updates)
{
    rbt_series s = {name, run->points.count, NULL, NULL, run->error.code == RBT_E_DIVERGED};

    s.x = rbt_alloc(s.n, sizeof *s.x);
    s.y = rbt_alloc(s.n, sizeof *s.y);
    for (size_t i = 0; i < s.n; i++) {
        s.x[i] = over_updates ? (double)run->points.at[i].updates : run->points.at[i].seconds;
        s.y[i] = run->points.at[i].loss;
    }
    return s;
}

/* Without the best once more, which --patience tells at the end: a curve does not go back in time. */
static rbt_series series_of_evaluations(const rbt_recorder *run)
{
    size_t n = run->evaluations.count;

    if (n > 1 && run->evaluations.at[n - 1].seconds < run->evaluations.at[n - 2].seconds)
        n--;
    rbt_series s = {"validation loss", n, NULL, NULL, run->error.code == RBT_E_DIVERGED};

    s.x = rbt_alloc(s.n, sizeof *s.x);
    s.y = rbt_alloc(s.n, sizeof *s.y);
    for (size_t i = 0; i < s.n; i++) {
        s.x[i] = run->evaluations.at[i].seconds;
        s.y[i] = run->evaluations.at[i].loss;
    }
    return s;
}

static void legend(const rbt_series *series, size_t n, FILE *file)
{
    if (n < 2)
        return;
    fputs("<div class=\"legend\">", file);
    for (size_t i = 0; i < n; i++) {
        fprintf(file,
                "<span><svg viewBox=\"0 0 26 10\" aria-hidden=\"true\"><path class=\"curve %s\" d=\"M1 5H25\"/></svg>",
                rbt_chart_class(i));
        rbt_html_escape(file, series[i].name);
        fputs("</span>\n", file);
    }
    fputs("</div>\n", file);
}

static void chart_card(const rbt_recorder *runs, size_t n, const rbt_chart *chart, rbt_series *series, size_t curves,
                       FILE *file)
{
    rbt_chart with_target = *chart;

    with_target.has_target = n > 0 && rbt_recorder_setting(&runs[0], "target-loss", NULL) != NULL;
    if (with_target.has_target)
        with_target.target = strtod(rbt_recorder_setting(&runs[0], "target-loss", "0"), NULL);
    fputs("<section class=\"card\"><h2>", file);
    rbt_html_escape(file, chart->title);
    fputs("</h2>\n", file);
    legend(series, curves, file);
    rbt_chart_write(&with_target, series, curves, file);
    fputs("</section>\n", file);
    series_deinit(series, curves);
}

#define OBJECTIVE "objective (with penalty)"

/* Is the loss of training more than what validation measures? */
static bool penalised(const rbt_recorder *runs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (runs[i].result.penalty > 0)
            return true;
    return false;
}

static void curves_of_one(const rbt_recorder *run, FILE *file)
{
    rbt_chart chart = {.id = "clip-time",
                       .title = "Loss over time",
                       .x_label = "training time",
                       .y_label = penalised(run, 1) ? OBJECTIVE : "loss",
                       .x_is_time = true,
                       .width = WIDE};
    rbt_series *series;
    size_t n = 0;

    if (isnan(run->result.loss)) /* a method may have none */
        return;
    series = rbt_alloc(2, sizeof *series);
    series[n++] = series_of_points(run, penalised(run, 1) ? OBJECTIVE : "training loss", false);
    if (run->evaluations.count > 0)
        series[n++] = series_of_evaluations(run);
    chart_card(run, 1, &chart, series, n, file);
}

static void curves_of_many(const rbt_recorder *runs, size_t n, FILE *file)
{
    rbt_chart over_time = {.id = "clip-time",
                           .title = "Loss over time",
                           .x_label = "training time",
                           .y_label = penalised(runs, n) ? OBJECTIVE : "loss",
                           .x_is_time = true,
                           .width = HALF};
    rbt_chart over_updates = {.id = "clip-updates",
                              .title = "Loss over updates",
                              .x_label = "updates of all workers",
                              .y_label = penalised(runs, n) ? OBJECTIVE : "loss",
                              .width = HALF};

    fputs("<div class=\"two\">\n", file);
    for (int over = 0; over < 2; over++) {
        rbt_series *series = rbt_alloc(n, sizeof *series);
        for (size_t i = 0; i < n; i++)
            series[i] = series_of_points(&runs[i], runs[i].name, over == 1);
        chart_card(runs, n, over == 0 ? &over_time : &over_updates, series, n, file);
    }
    fputs("</div>\n", file);
}

/* ------------------------------------------------------------------------------------------- worker bars */

static double total_of(const rbt_worker_report *w)
{
    return w->compute_seconds + w->wait_seconds + w->communication_seconds;
}

/* The i-th worker to be drawn: in order when they are few, else by computing time per clock, slowest first. */
static int by_pace(const void *a, const void *b)
{
    const rbt_worker_report *const *x = a, *const *y = b;
    double px = (*x)->compute_seconds / (double)((*x)->clocks + 1),
           py = (*y)->compute_seconds / (double)((*y)->clocks + 1);

    return px > py ? -1 : px < py ? 1 : (*x > *y) - (*x < *y);
}

static void bar_part(FILE *file, const char *class, double *x, double y, double width, const char *name, double seconds)
{
    char cell[RBT_CELL_ROOM];

    if (width < 0.05)
        return;
    fprintf(file, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"12\"><title>%s %s</title></rect>",
            class, *x, y, width, name, rbt_show_seconds(cell, seconds));
    *x += width;
}

/* `longest` is the worker's time that fills the width: the same for all runs, so that they can be compared. */
static void bars(const rbt_recorder *run, double longest, double width, FILE *file)
{
    const double left = 44, right = 84, pitch = 18;
    const rbt_result *r = &run->result;
    const rbt_worker_report **order = rbt_alloc(r->workers, sizeof *order);
    size_t shown = r->workers < BARS_MOST ? r->workers : BARS_MOST;
    char cell[RBT_CELL_ROOM];

    for (size_t i = 0; i < r->workers; i++)
        order[i] = &r->worker[i];
    if (shown < r->workers)
        qsort(order, r->workers, sizeof *order, by_pace);
    fprintf(file, "<svg class=\"bars\" viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"each worker's time\">\n",
            width, 4 + pitch * (double)shown);
    for (size_t i = 0; i < shown; i++) {
        const rbt_worker_report *w = order[i];
        double y = 2 + pitch * (double)i, x = left, unit = longest > 0 ? (width - left - right) / longest : 0;
        fprintf(file, "<text class=\"bar\" x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">%zu</text>", left - 8, y + 11,
                (size_t)(w - r->worker));
        bar_part(file, "compute", &x, y, w->compute_seconds * unit, "computing", w->compute_seconds);
        bar_part(file, "wait", &x, y, w->wait_seconds * unit, "waiting", w->wait_seconds);
        bar_part(file, "comm", &x, y, w->communication_seconds * unit, "communication", w->communication_seconds);
        fprintf(file, "<text class=\"bar\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", x + 7, y + 11,
                rbt_show_seconds(cell, total_of(w)));
    }
    fputs("</svg>\n", file);
    if (shown < r->workers)
        fprintf(file, "<p class=\"sub\">the %zu slowest of %zu workers, by computing time per clock</p>\n", shown,
                r->workers);
    rbt_free(order);
}

static void worker_cards(const rbt_recorder *runs, size_t n, FILE *file)
{
    double longest = 0;
    char cell[RBT_CELL_ROOM];

    for (size_t i = 0; i < n; i++)
        for (size_t w = 0; runs[i].has_result && w < runs[i].result.workers; w++)
            longest = fmax(longest, total_of(&runs[i].result.worker[w]));

    fputs(
        "<section class=\"card\"><h2>Where each worker's time went</h2>\n<div class=\"legend\">"
        "<span><svg viewBox=\"0 0 26 10\"><rect class=\"compute\" width=\"26\" height=\"10\" "
        "rx=\"2\"/></svg>computing</span>"
        "<span><svg viewBox=\"0 0 26 10\"><rect class=\"wait\" width=\"26\" height=\"10\" rx=\"2\"/></svg>waiting for "
        "others</span><span><svg viewBox=\"0 0 26 10\"><rect class=\"comm\" width=\"26\" height=\"10\" rx=\"2\"/></svg>"
        "communication</span></div>\n<div class=\"two\">\n",
        file);
    for (size_t i = 0; i < n; i++) {
        if (!runs[i].has_result || runs[i].result.workers == 0)
            continue;
        fputs("<div>", file);
        if (n > 1) {
            fputs("<h3>", file);
            rbt_html_escape(file, runs[i].name);
            fprintf(file, " <span class=\"sub\">waiting %s</span></h3>\n",
                    rbt_show_percent(cell, runs[i].result.wait_fraction));
        }
        bars(&runs[i], longest, n > 1 ? HALF : WIDE, file);
        fputs("</div>\n", file);
    }
    fputs("</div></section>\n", file);
}

/* --------------------------------------------------------------------------------------- tables and tiles */

static void table(const rbt_recorder *runs, size_t n, FILE *file)
{
    rbt_grid grid;

    rbt_compare_grid(runs, n, &grid);
    RBT_ASSERT(grid.columns > 0);
    fputs("<section class=\"card\"><h2>Comparison</h2><div class=\"scroll\"><table>\n", file);
    for (size_t i = 0; i < grid.cells.count; i++) {
        const char *tag = i < grid.columns ? "th" : "td";
        fprintf(file, "%s<%s>", i % grid.columns == 0 ? "<tr>" : "", tag);
        rbt_html_escape(file, grid.cells.at[i]);
        fprintf(file, "</%s>%s", tag, (i + 1) % grid.columns == 0 ? "</tr>\n" : "");
    }
    fputs("</table></div></section>\n", file);
    rbt_grid_deinit(&grid);
}

static void tile(FILE *file, const char *value, const char *name)
{
    fprintf(file, "<div class=\"tile\"><b>%s</b><span>%s</span></div>\n", value, name);
}

static void tiles(const rbt_recorder *run, FILE *file)
{
    const rbt_result *r = &run->result;
    char cell[RBT_CELL_ROOM];

    fputs("<div class=\"tiles\">\n", file);
    if (!isnan(r->loss))
        tile(file, rbt_show_real(cell, r->loss), "final loss");
    if (run->evaluations.count > 0) {
        const rbt_evaluation *e = &run->evaluations.at[run->evaluations.count - 1];
        const rbt_figure *shown = rbt_figure_shown(e->figure, e->figures);

        if (shown != NULL) {
            char name[64];

            snprintf(name, sizeof name, "validation %.40s", shown->name);
            tile(file, rbt_show_real(cell, shown->value), name);
        } else if (isnan(e->accuracy))
            tile(file, rbt_show_real(cell, e->rmse), "validation rmse");
        else
            tile(file, rbt_show_percent(cell, e->accuracy), "validation accuracy");
    }
    tile(file, rbt_show_seconds(cell, r->seconds), r->reached ? "time to the target" : "training time");
    tile(file, rbt_show_count(cell, (double)r->updates), "updates");
    tile(file, rbt_show_seconds(cell, r->seconds_per_update), "per update");
    tile(file, rbt_show_count(cell, r->samples_per_second), "rows per second");
    tile(file, rbt_show_percent(cell, r->wait_fraction), "of it spent waiting");
    tile(file, rbt_show_bytes(cell, (double)r->bytes_sent), "sent");
    fputs("</div>\n", file);
}

static void settings(const rbt_recorder *run, const char *title, FILE *file)
{
    fprintf(file, "<section class=\"card\"><details><summary>%s</summary><table class=\"kv\">\n", title);
    for (size_t i = 0; i < run->settings.count; i++) {
        fputs("<tr><td>", file);
        rbt_html_escape(file, run->settings.at[i].name);
        fputs("</td><td>", file);
        rbt_html_escape(file, run->settings.at[i].value);
        fputs("</td></tr>\n", file);
    }
    fputs("</table></details></section>\n", file);
}

static void heading(const rbt_recorder *runs, size_t n, FILE *file)
{
    const rbt_recorder *run = &runs[0];
    const char *straggler = rbt_recorder_setting(run, "straggler", NULL);
    char data[RBT_OPTION_ROOM];
    const char *workers = rbt_recorder_setting(run, "workers", "?"),
               *servers = rbt_recorder_setting(run, "servers", "no"); /* in shared memory, and peers */

    fputs("<h1>", file);
    rbt_html_escape(file, rbt_recorder_setting(run, "model", "model"));
    fputs(" on ", file);
    rbt_paths_title(rbt_recorder_setting(run, "data", "data"), data, sizeof data);
    rbt_html_escape(file, data);
    fprintf(file, "</h1>\n<p class=\"sub\">");
    if (n == 1) {
        rbt_html_escape(file, run->name);
        fputs(" &middot; ", file);
    } else {
        fprintf(file, "%zu protocols &middot; ", n);
    }
    fprintf(file, "%s worker%s, %s server%s &middot; runtime %s", workers, strcmp(workers, "1") == 0 ? "" : "s",
            servers, strcmp(servers, "1") == 0 ? "" : "s", rbt_recorder_setting(run, "runtime", "?"));
    if (straggler != NULL) {
        fputs(" &middot; stragglers ", file);
        rbt_html_escape(file, straggler);
    }
    fprintf(file, " &middot; seed %s</p>\n", rbt_recorder_setting(run, "seed", "?"));
}

void rbt_html_print(const rbt_recorder *runs, size_t n, FILE *file)
{
    RBT_ASSERT(n > 0);
    fputs("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
          "<meta name=\"color-scheme\" content=\"light dark\"><title>Rubato: ",
          file);
    rbt_html_escape(file, rbt_recorder_setting(&runs[0], "model", "report"));
    fprintf(file, "</title>\n<style>\n%s</style></head>\n<body><main>\n", STYLE);
    heading(runs, n, file);
    if (n == 1) {
        tiles(&runs[0], file);
        curves_of_one(&runs[0], file);
    } else {
        table(runs, n, file);
        curves_of_many(runs, n, file);
    }
    worker_cards(runs, n, file);
    settings(&runs[0], n == 1 ? "Effective options" : "Effective options of the first run", file);
    fprintf(file, "<p class=\"sub\">rubato %s</p>\n</main></body></html>\n", rbt_version());
}

rbt_err rbt_html_write(const char *path, const rbt_recorder *runs, size_t n, rbt_error *error)
{
    char *text = NULL;
    size_t length = 0;
    FILE *memory = open_memstream(&text, &length);
    rbt_err err = RBT_OK;

    if (memory == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for the report %s", path);
    rbt_html_print(runs, n, memory);
    if (fclose(memory) != 0) {
        err = rbt_fail(error, RBT_E_MEMORY, "not enough memory for the report %s", path);
        goto free_text;
    }
    err = rbt_output_whole(path, text, length, false, error);
free_text:
    free(text);
    return err;
}
