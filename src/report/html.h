/* The --report page: one self-contained HTML file, no scripts, nothing loaded from elsewhere.
 *
 * For one run: its figures, its loss over time (and on the validation data), and where each worker's time went. For
 * several: the table of compare, the curves of all over time and over updates, the split of each. Light and dark follow
 * the reader's setting; colours can be told apart by colour-blind readers, and past six curves by dashes. The file is
 * put in place when complete. Called by train and compare; proved by tests/unit/test_report.c.
 */
#ifndef RBT_REPORT_HTML_H
#define RBT_REPORT_HTML_H

#include <stdio.h>

#include "report/recorder.h"

rbt_err rbt_html_write(const char *path, const rbt_recorder *runs, size_t n, rbt_error *error);

/* The page's text, for tests and for other places than a file. */
void rbt_html_print(const rbt_recorder *runs, size_t n, FILE *file);

#endif
