/* What train tells a person: the effective configuration, the progress line, the summary.
 *
 * Made from a recorder; written to the stream the command chose. On a terminal the progress line is redrawn, at most
 * ten times a second; in a log it is a plain line for each clock at first and then ever fewer (each a tenth further
 * on), a function of the clocks alone. Proved by tests/unit/test_report.c.
 */
#ifndef RBT_REPORT_SUMMARY_H
#define RBT_REPORT_SUMMARY_H

#include <stdio.h>

#include "report/recorder.h"

#define RBT_STRAGGLER_FACTOR 1.3  /* a straggler takes that many times the median time per clock of the others */
#define RBT_WAIT_NOTHING     0.02 /* less waiting than this share is none to speak of */

void rbt_summary_configuration(const rbt_recorder *run, FILE *file);
void rbt_summary_result(const rbt_recorder *run, FILE *file);

typedef struct rbt_progress_line {
    FILE *file;
    bool redraw;    /* a terminal */
    bool dirty;     /* the terminal's line holds text */
    uint64_t next;  /* log: the clock from which the next line is due */
    double drawn;   /* terminal: when it was last drawn, monotonic seconds */
    bool evaluated; /* there is a last evaluation: */
    double eval_loss;
    double eval_accuracy; /* NaN: the model predicts numbers */
    double eval_rmse;
    rbt_figure eval_shown; /* a method's; no name: none */
} rbt_progress_line;

void rbt_progress_line_init(rbt_progress_line *line, FILE *file, bool redraw);

/* Shows CLOCK, EVAL and NOTE. `prefix` says which of several runs it is, "" for one. `now` is in monotonic seconds. */
void rbt_progress_line_event(rbt_progress_line *line, const rbt_event *event, const char *prefix, double now);
void rbt_progress_line_clear(rbt_progress_line *line);

/* The workers that took more than RBT_STRAGGLER_FACTOR times the median time per clock of the others: fills `is` (one per
 * worker) and returns how many. */
size_t rbt_summary_stragglers(const rbt_result *result, bool *is);

#endif
