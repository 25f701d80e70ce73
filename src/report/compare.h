/* Several runs side by side: the table of compare, as text, as JSON and as cells for the HTML page.
 *
 * A row is a run (a recorder). Times count up to the target when one was given; the speed-up is relative to the first
 * run. A run that failed is a row that says why. Proved by tests/unit/test_report.c.
 */
#ifndef RBT_REPORT_COMPARE_H
#define RBT_REPORT_COMPARE_H

#include "report/json.h"
#include "report/recorder.h"
#include "report/text.h"

/* Is run a better than run b: by time to the target, or by final loss when there is none? A failed run is never better.
 */
bool rbt_compare_better(const rbt_recorder *a, const rbt_recorder *b);

/* How the run ended, in a word: "reached", "done", "not reached", "diverged", "interrupted", "failed". */
const char *rbt_compare_state(const rbt_recorder *run);

/* Fills the grid: a heading, then a row per run. Deinit it afterwards. */
void rbt_compare_grid(const rbt_recorder *runs, size_t n, rbt_grid *grid);

/* The table as a JSON array of objects under `key`. */
void rbt_compare_json(const rbt_recorder *runs, size_t n, rbt_json *json, const char *key);

#endif
