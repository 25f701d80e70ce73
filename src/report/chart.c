/* A line chart as inline SVG; the contract stands in chart.h. */
#include "report/chart.h"

#include <math.h>
#include <stdint.h>

#include "base/error.h"
#include "report/text.h"

#define HEIGHT      380.0
#define LEFT        66.0
#define RIGHT       22.0
#define TOP         16.0
#define BOTTOM      52.0
#define POINTS_MOST 400  /* per curve: more cannot be told apart */
#define LOG_FROM    20.0 /* y spans more than this factor: logarithmic */
#define SPAN_LEAST  1e-6 /* of the values: what differs less is drawn as one height */
#define TICKS_MOST  20   /* on an axis; there are up to 13 */
#define STRAY_LIMIT 1.5  /* a diverged curve may stretch the axis to this many times the highest of the others */

typedef struct scale {
    double low, high; /* already logarithms when `log` */
    bool log;
    double width; /* of the chart */
} scale;

const char *rbt_chart_class(size_t i)
{
    static const char *const CLASSES[2 * RBT_CHART_COLOURS] = {"c0",        "c1",        "c2",        "c3",
                                                               "c4",        "c5",        "c0 dashed", "c1 dashed",
                                                               "c2 dashed", "c3 dashed", "c4 dashed", "c5 dashed"};

    return CLASSES[i % (2 * RBT_CHART_COLOURS)];
}

void rbt_html_escape(FILE *file, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '<':
            fputs("&lt;", file);
            break;
        case '>':
            fputs("&gt;", file);
            break;
        case '&':
            fputs("&amp;", file);
            break;
        case '"':
            fputs("&quot;", file);
            break;
        case '\'':
            fputs("&#39;", file);
            break;
        default:
            fputc(*text, file);
        }
    }
}

double rbt_chart_step(double span, double least)
{
    RBT_ASSERT(span > 0 && least > 0);
    double rough = span / least, power = pow(10, floor(log10(rough)));

    return rough >= 5 * power ? 5 * power : rough >= 2 * power ? 2 * power : power;
}

static double at(const scale *s, double value)
{
    return ((s->log ? log10(value) : value) - s->low) / (s->high - s->low);
}

static double x_of(const scale *s, double value)
{
    return LEFT + at(s, value) * (s->width - LEFT - RIGHT);
}

static double y_of(const scale *s, double value)
{
    double y = HEIGHT - BOTTOM - at(s, value) * (HEIGHT - TOP - BOTTOM);

    return y < -HEIGHT ? -HEIGHT : y > 2 * HEIGHT ? 2 * HEIGHT : y; /* the clip path hides the rest */
}

/* The lowest and highest y of the curves that decide the axis: strays only when there are no others. */
static bool y_range(const rbt_series *series, size_t n, bool strays, double *low, double *high)
{
    *low = INFINITY;
    *high = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < series[i].n && series[i].stray == strays; k++) {
            double y = series[i].y[k];
            if (!isfinite(y))
                continue;
            *low = fmin(*low, y);
            *high = fmax(*high, y);
        }
    }
    return *low <= *high;
}

static scale y_scale(const rbt_chart *chart, const rbt_series *series, size_t n)
{
    double low = 0, high = 1, stray_low = 0, stray_high = 0;
    bool some = y_range(series, n, false, &low, &high), strays = y_range(series, n, true, &stray_low, &stray_high);

    if (some && strays)
        high = fmax(high, fmin(stray_high, STRAY_LIMIT * high));
    else if (strays)
        low = stray_low, high = stray_high;
    else if (!some)
        low = 0, high = 1;
    if (chart->has_target) {
        low = fmin(low, chart->target);
        high = fmax(high, chart->target);
    }
    scale s = {low, high, low > 0 && high / low > LOG_FROM, chart->width};
    if (s.log) {
        s.low = log10(low);
        s.high = log10(high);
    }
    double size = fmax(fabs(s.low), fabs(s.high)), margin = 0.05 * (s.high - s.low);
    if (s.high - s.low <= SPAN_LEAST * size)
        margin = fmax(size * (s.high > s.low ? SPAN_LEAST : 0.05), 1e-9);
    s.low -= chart->has_target ? 2 * margin : margin; /* the target's name stands below its line, clear of the curves */
    s.high += margin;
    return s;
}

static scale x_scale(const rbt_chart *chart, const rbt_series *series, size_t n)
{
    scale s = {0, 0, false, chart->width};

    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < series[i].n; k++)
            if (isfinite(series[i].x[k]))
                s.high = fmax(s.high, series[i].x[k]);
    if (s.high <= 0)
        s.high = 1;
    return s;
}

static void x_axis(const rbt_chart *chart, const scale *s, FILE *file)
{
    static const struct {
        double from, seconds;
        const char *name;
    } UNITS[] = {{7200, 3600, "h"}, {300, 60, "min"}, {1, 1, "s"}, {1e-3, 1e-3, "ms"}, {0, 1e-6, "us"}};
    double unit = 1;
    const char *name = NULL;

    for (size_t i = 0; chart->x_is_time && name == NULL; i++) {
        if (s->high >= UNITS[i].from) {
            unit = UNITS[i].seconds;
            name = UNITS[i].name;
        }
    }
    double step = rbt_chart_step(s->high / unit, 4);
    for (int i = 0; i < TICKS_MOST && i * step <= s->high / unit * (1 + 1e-9); i++) {
        double x = x_of(s, i * step * unit);
        fprintf(file, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.0f\" y2=\"%.0f\"/>", x, x, TOP,
                HEIGHT - BOTTOM);
        fprintf(file, "<text class=\"tick\" x=\"%.1f\" y=\"%.0f\" text-anchor=\"middle\">%.10g</text>\n", x,
                HEIGHT - BOTTOM + 20, i * step);
    }
    fprintf(file, "<text class=\"axis\" x=\"%.0f\" y=\"%.0f\" text-anchor=\"middle\">",
            LEFT + (s->width - LEFT - RIGHT) / 2, HEIGHT - 8);
    rbt_html_escape(file, chart->x_label);
    if (name != NULL)
        fprintf(file, " (%s)", name);
    fputs("</text>\n", file);
}

static void y_tick(const scale *s, double value, FILE *file)
{
    double y = y_of(s, value);

    fprintf(file, "<line class=\"grid\" x1=\"%.0f\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\"/>", LEFT, s->width - RIGHT, y,
            y);
    fprintf(file, "<text class=\"tick\" x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">%.8g</text>\n", LEFT - 8, y + 4,
            value);
}

static void y_axis(const rbt_chart *chart, const scale *s, FILE *file)
{
    static const double WITHIN[] = {1, 2, 5};

    if (s->log) {
        bool wide = s->high - s->low > 3; /* more than three decades: only powers of ten */
        int every = (int)ceil((s->high - s->low) / 8);
        for (int p = (int)floor(s->low); p <= (int)ceil(s->high); p++)
            for (size_t k = 0; k < (wide ? 1u : 3u); k++)
                if (log10(WITHIN[k]) + p >= s->low && log10(WITHIN[k]) + p <= s->high && (!wide || p % every == 0))
                    y_tick(s, WITHIN[k] * pow(10, p), file);
    } else {
        double step = rbt_chart_step(s->high - s->low, 4), first = ceil(s->low / step);
        for (int i = 0; i < TICKS_MOST && (first + i) * step <= s->high; i++)
            y_tick(s, first + i == 0 ? 0 : (first + i) * step, file);
    }
    fprintf(file, "<text class=\"axis\" transform=\"translate(16 %.0f) rotate(-90)\" text-anchor=\"middle\">",
            TOP + (HEIGHT - TOP - BOTTOM) / 2);
    rbt_html_escape(file, chart->y_label);
    fprintf(file, "%s</text>\n", s->log ? " (log scale)" : "");
}

/* A curve: thinned, broken where it has gaps, with a dot at its end. */
static void curve(const rbt_chart *chart, const rbt_series *series, const char *class, const scale *xs, const scale *ys,
                  FILE *file)
{
    char after[RBT_CELL_ROOM];
    size_t every = series->n / POINTS_MOST + 1, last = SIZE_MAX;
    bool pen = false;

    fprintf(file, "<path class=\"curve %s\" d=\"", class);
    for (size_t i = 0; i < series->n; i++) {
        if (i % every != 0 && i + 1 != series->n)
            continue;
        double x = series->x[i], y = series->y[i];
        bool drawn = isfinite(x) && isfinite(y) && (!ys->log || y > 0);
        if (drawn) {
            fprintf(file, "%c%.1f %.1f", pen ? 'L' : 'M', x_of(xs, x), y_of(ys, y));
            last = i;
        }
        pen = drawn || (pen && !isfinite(y)); /* clocks without an evaluation do not break the line */
    }
    fputs("\"><title>", file);
    rbt_html_escape(file, series->name);
    fputs("</title></path>\n", file);
    if (last != SIZE_MAX) {
        fprintf(file, "<circle class=\"dot %s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"><title>", class,
                x_of(xs, series->x[last]), y_of(ys, series->y[last]));
        rbt_html_escape(file, series->name);
        fprintf(file, ": %.6g after ", series->y[last]);
        if (chart->x_is_time) {
            fputs(rbt_show_seconds(after, series->x[last]), file);
        } else {
            fprintf(file, "%.6g ", series->x[last]);
            rbt_html_escape(file, chart->x_label);
        }
        fputs("</title></circle>\n", file);
    }
}

void rbt_chart_write(const rbt_chart *chart, const rbt_series *series, size_t n, FILE *file)
{
    scale xs = x_scale(chart, series, n), ys = y_scale(chart, series, n);

    fprintf(file, "<svg class=\"chart\" viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"", chart->width, HEIGHT);
    rbt_html_escape(file, chart->title);
    fprintf(file, "\">\n<clipPath id=\"%s\"><rect x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%.0f\"/></clipPath>\n",
            chart->id, LEFT, TOP - 4, chart->width - LEFT - RIGHT + 5, HEIGHT - TOP - BOTTOM + 4);
    x_axis(chart, &xs, file);
    y_axis(chart, &ys, file);
    fprintf(file, "<path class=\"frame\" d=\"M%.0f %.0fV%.0fH%.0f\"/>\n", LEFT, TOP, HEIGHT - BOTTOM,
            chart->width - RIGHT);
    if (chart->has_target) {
        double y = y_of(&ys, chart->target);
        fprintf(file, "<line class=\"target\" x1=\"%.0f\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\"/>", LEFT,
                chart->width - RIGHT, y, y);
        fprintf(file, "<text class=\"tick\" x=\"%.0f\" y=\"%.1f\">target %.6g</text>\n", LEFT + 8,
                y + (y > HEIGHT - BOTTOM - 20 ? -6 : 15), chart->target);
    }
    fprintf(file, "<g clip-path=\"url(#%s)\">\n", chart->id);
    for (size_t i = 0; i < n; i++)
        curve(chart, &series[i], rbt_chart_class(i), &xs, &ys, file);
    fputs("</g>\n</svg>\n", file);
}
