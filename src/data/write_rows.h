/* Rows as text or as a cache: what `rubato convert` and `rubato gen` write. The formats are docs/formats.md.
 *
 * Called by the commands and generate.c. Always holds: what is written reads back as the same data, and what a format
 * cannot hold is refused with the reason before a file appears. Proved by tests/unit/test_write.c.
 */
#ifndef RBT_DATA_WRITE_ROWS_H
#define RBT_DATA_WRITE_ROWS_H

#include "data/write.h"

typedef enum rbt_format {
    RBT_FORMAT_LIBSVM,
    RBT_FORMAT_CSV, /* of ratings: user,item,rating */
    RBT_FORMAT_VW,
    RBT_FORMAT_CACHE,
    RBT_FORMAT_RATINGS, /* these two from data of that content only, and rbt_data_write only */
    RBT_FORMAT_DOCWORD
} rbt_format;

#define RBT_CSV_COLS_MOST (size_t)100000 /* CSV has all columns in every row */

/* The format of that name ("libsvm", "csv", "vw", "cache", "ratings", "docword"), or a refusal that lists those for rows
 * of features or, with `sets`, all. */
rbt_err rbt_format_find(const char *name, bool sets, rbt_format *format, rbt_error *error);

/* The format that the name of a file ends like (rbt_kind_of_name), else `otherwise`; refuses names of compressed files and of text
 * with tabs, which nobody writes here. */
rbt_err rbt_format_of_path(const char *path, rbt_format otherwise, rbt_format *format, rbt_error *error);

/* Refuses a name that ends like another format, as which the file would be read. Caches are known by their first bytes. */
rbt_err rbt_format_check_path(rbt_format format, const char *path, rbt_error *error);

/* Can the format hold that many columns? */
rbt_err rbt_format_check_cols(rbt_format format, size_t cols, const char *path, rbt_error *error);

/* The line before the rows (CSV only; the others have none) for data like this. */
rbt_err rbt_rows_print_head(rbt_format format, const rbt_data *like, rbt_buffer *out, rbt_error *error);

/* Rows first .. end - 1, a line each, in a format that is text. */
rbt_err rbt_rows_print(rbt_format format, const rbt_data *data, size_t first, size_t end, rbt_buffer *out,
                       rbt_error *error);

/* LIBSVM text whose rows do not use the last column says so at its end: adds ":0" for it to the last line. */
rbt_err rbt_rows_print_width(size_t cols, rbt_buffer *last, rbt_error *error);

/* Writes the data. A failure leaves no file. */
rbt_err rbt_data_write(const rbt_data *data, rbt_format format, const rbt_writing *how, rbt_error *error);

#endif
