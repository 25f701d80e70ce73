/* Numbers for people, and tables of text.
 *
 * "1.2 M" rather than 1234567, "3.4 MB", "12 ms"; columns that line up. Everything is ASCII, so that bytes are columns
 * on every terminal. Proved by tests/unit/test_report.c.
 */
#ifndef RBT_REPORT_TEXT_H
#define RBT_REPORT_TEXT_H

#include <stdio.h>

#include "base/mem.h"
#include "rubato.h"

#define RBT_CELL_ROOM 32 /* characters of a number for people, with the end */

/* Each fills `cell` (RBT_CELL_ROOM characters) and returns it. A value that is not a number is "-". */
const char *rbt_show_count(char *cell, double count);
const char *rbt_show_bytes(char *cell, double bytes);
const char *rbt_show_seconds(char *cell, double seconds);
const char *rbt_show_percent(char *cell, double fraction);
const char *rbt_show_real(char *cell, double value);   /* four significant digits */
const char *rbt_show_spread(char *cell, double value); /* two: a deviation */

/* A table: cells are added row after row; the first row is the heading. Zero-initialised but for `columns`. */
typedef struct rbt_grid {
    size_t columns;
    size_t left; /* that many columns from the left are flush left, the others flush right */
    RBT_ARRAY(char *) cells;
} rbt_grid;

void rbt_grid_add(rbt_grid *grid, const char *cell);
void rbt_grid_print(const rbt_grid *grid, const char *indent, FILE *file);
void rbt_grid_deinit(rbt_grid *grid);

#endif
