/* The --json stream: one JSON object per line, flushed line by line so that another program can follow.
 *
 * Events: start (the effective options, flat, by their names), clock, eval, note, done; compare writes start, the
 * notes and one result per run, done. A write error is kept, and told by rbt_jsonlines_close; who writes looks at `failed` and ends
 * what nobody will read about. Where the output goes (--json, --report, --out, --quiet) is not part of a job and not written,
 * nor is wall time under the simulator: the same job under `sim` gives the same bytes. Proved by
 * tests/unit/test_report.c.
 */
#ifndef RBT_REPORT_JSONLINES_H
#define RBT_REPORT_JSONLINES_H

#include "report/json.h"
#include "report/recorder.h"

typedef struct rbt_jsonlines {
    rbt_json json;
    char *path; /* "-" = standard output */
    int failed; /* errno of the first write that failed, 0 = none */
} rbt_jsonlines;

rbt_err rbt_jsonlines_open(rbt_jsonlines *lines, const char *path, rbt_error *error);

/* RBT_E_PIPE: nobody reads the standard output any more. RBT_E_IO: a write failed otherwise. */
rbt_err rbt_jsonlines_close(rbt_jsonlines *lines, rbt_error *error);

/* Writes the event. The recorder has seen it before, and knows the settings. */
void rbt_jsonlines_event(rbt_jsonlines *lines, const rbt_recorder *run, const rbt_event *event);

/* The members of a result, without the braces around them; for compare's result objects. */
void rbt_jsonlines_result(rbt_json *json, const rbt_recorder *run);

/* The members of a run's settings. */
void rbt_jsonlines_settings(rbt_json *json, const rbt_recorder *run);

/* To be called after a line that was written by hand: flushes it and notes an error. */
void rbt_jsonlines_flush(rbt_jsonlines *lines);

#endif
