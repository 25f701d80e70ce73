/* A line chart as inline SVG: axes with round ticks, up to a dozen curves, an optional target line.
 *
 * Colours come from CSS classes (c0 .. c5, repeated dashed), so that the page decides light and dark. The y axis is
 * logarithmic when the values span more than a factor of twenty. Curves are thinned to what a screen can show. Used by
 * html.c alone; proved by tests/unit/test_report.c.
 */
#ifndef RBT_REPORT_CHART_H
#define RBT_REPORT_CHART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define RBT_CHART_COLOURS 6

typedef struct rbt_series {
    const char *name;
    size_t n;
    double *x;
    double *y;  /* not finite: a gap */
    bool stray; /* diverged: does not decide how far the axis goes */
} rbt_series;

typedef struct rbt_chart {
    const char *id; /* unique in the page */
    const char *title;
    const char *x_label; /* "time" gets a unit appended when x_is_time */
    const char *y_label;
    bool x_is_time;
    double width; /* in units of which a letter is 13 high: as wide as it will be shown, so that text keeps its size */
    bool has_target;
    double target;
} rbt_chart;

void rbt_chart_write(const rbt_chart *chart, const rbt_series *series, size_t n, FILE *file);

/* The CSS class of curve i, e.g. "c1 dashed". */
const char *rbt_chart_class(size_t i);

/* Text with <, >, & and quotes made harmless. */
void rbt_html_escape(FILE *file, const char *text);

/* The largest "round" step (1, 2 or 5 times a power of ten) that gives at least `least` steps over the span. */
double rbt_chart_step(double span, double least);

#endif
