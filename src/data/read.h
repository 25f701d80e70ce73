/* Reading data, whatever it is: which files a path stands for, what they hold, and who reads that.
 *
 * Called through rbt_data_read and rbt_data_read_as (rubato.h), by part.c and by `rubato info`. Proved by tests/unit/test_data.c,
 * test_reading.c and tests/cli/test_formats.sh.
 */
#ifndef RBT_DATA_READ_H
#define RBT_DATA_READ_H

#include "data/chunks.h"
#include "data/file.h"

struct rbt_rating_list; /* ratings.h */

/* Does the path name no file and hold one of * ? [, so that rbt_data_read looks for files that match it? */
bool rbt_data_is_pattern(const char *path);

/* What rbt_data_read_as does with one file, for the caller who has opened it to see what it is. The input is used up,
 * whatever comes of it. */
rbt_err rbt_data_take(rbt_input *input, const rbt_reading *reading, rbt_data *data, rbt_error *error);

/* rbt_data_read_as with all of the text in memory, if need be: for stream.c, which is asked first for what cannot be mapped. */
rbt_err rbt_data_read_whole(const char *path, const rbt_reading *reading, rbt_data *data, rbt_error *error);

/* rbt_data_read_as for whoever answers in the order of the lines: ratings in text become a list, and the data stays empty; the
 * list stays empty otherwise (rows are in order). The reading's names are not heeded then. */
rbt_err rbt_data_read_listed(const char *path, const rbt_reading *reading, rbt_data *data, struct rbt_rating_list *list,
                             rbt_error *error);

/* Ratings by the reading's names (rubato.h), and its report; for data that was not read with it. On failure the data is
 * gone. */
rbt_err rbt_data_rename(rbt_data *data, const rbt_reading *reading, const char *name, rbt_error *error);

/* A sentence about what was left out or filled in; false when nothing was. */
#define RBT_READ_NOTE_ROOM 1536
bool rbt_read_note(const rbt_read_report *report, char note[RBT_READ_NOTE_ROOM]);

typedef enum rbt_kind {
    RBT_KIND_AUTO,
    RBT_KIND_LIBSVM,
    RBT_KIND_VW,
    RBT_KIND_CSV,
    RBT_KIND_IDX,
    RBT_KIND_RATINGS,
    RBT_KIND_DOCWORD,
    RBT_KIND_LDAC,
    RBT_KIND_CACHE
} rbt_kind;

/* Does a row's text stand in many places of its files, so that all of them have to be read by one? */
static inline bool rbt_kind_is_scattered(rbt_kind kind)
{
    return kind == RBT_KIND_RATINGS || kind == RBT_KIND_DOCWORD;
}

/* What was asked for, and whether there is such a thing; RBT_KIND_AUTO: nothing. */
rbt_err rbt_reading_kind(const rbt_reading *reading, rbt_kind *kind, rbt_error *error);

/* Refuses what makes no sense for text of that kind; what a cache says to it, rbt_origin_fits tells. */
rbt_err rbt_reading_fits(const rbt_reading *reading, rbt_kind kind, const char *name, rbt_error *error);

/* The rows of texts of that kind; of images and their labels, which are looked for; the refusal of several files of these. */
rbt_err rbt_texts_parse(const rbt_source *source, rbt_kind kind, const rbt_reading *reading, rbt_data *data,
                        rbt_error *error);
rbt_err rbt_images_read(const rbt_input *images, const rbt_reading *reading, rbt_data *data, rbt_error *error);
rbt_err rbt_images_refuse(const char *name, size_t count, rbt_error *error);

/* What a file holds by the end of its name, whatever was packed around it; RBT_KIND_AUTO: that says nothing. What reads files and
 * what names those that are written go by it. And the end of a name that says how it was packed (".gz"); NULL: none. */
rbt_kind rbt_kind_of_name(const char *name);
const char *rbt_name_packing(const char *name);

/* What an unpacked file holds: by its first bytes, then by its name, then by its first lines, of which the one that is
 * expected is taken if they may be several. LIBSVM when nothing tells. */
rbt_kind rbt_kind_of(const rbt_input *input, rbt_content expect);

/* Has the text a line that is neither empty nor a comment, by which rbt_kind_of tells what it is, but for documents? */
bool rbt_kind_has_row(const char *text, size_t n);

/* Somebody gave a model in the place of data, or a file whose first bytes are damaged: it is told apart, not parsed. */
rbt_err rbt_kind_refuse_model(const rbt_input *input, rbt_error *error);

#endif
