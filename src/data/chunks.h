/* Texts of rows, parsed in parallel: what the readers of LIBSVM, Vowpal Wabbit and CSV text share.
 *
 * The texts are cut into chunks between two rows. One pass counts each chunk's lines and separators: that bounds the
 * memory, gives each chunk a place of its own in the arrays, and numbers its first line. A second pass has the format's
 * own function parse each chunk to its place, row after row; what was left empty between the chunks is closed up. Both
 * take the chunks in parallel. Pages of a mapped text are given back as soon as a pass is done with them, so that the
 * text never stands in memory beside the data.
 *
 * Called by libsvm.c, vw.c, csv.c, ratings.c and docs.c; the tests choose their own cuts. Always holds: the result, or the refusal with its
 * file:line, is the same whatever the cut, the number of threads and the number of processes that have portions of it; a
 * bad row that is left out leaves no trace. Proved by tests/unit/test_libsvm_parallel.c, test_vw.c, test_csv.c,
 * test_reading.c and test_part_parallel.c.
 */
#ifndef RBT_DATA_CHUNKS_H
#define RBT_DATA_CHUNKS_H

#include "base/crew.h"
#include "rubato.h"

#define RBT_TOKEN_ROOM 32 /* how much of an offending text a message shows */

#define RBT_EXPECTED_FLOAT "a number that a 32-bit float holds" /* all formats say so of 1e39 */

/* One file's text. A last line that does not end, ends with the text. */
typedef struct rbt_text {
    const char *name; /* stands before the line number in messages */
    const char *bytes;
    size_t n;
    bool mapped; /* a file's pages, which come back when they are looked at again */
} rbt_text;

/* How the work is divided. */
typedef struct rbt_cut {
    size_t chunk_bytes; /* at least 1; a chunk ends with the row in which it has become this long */
    unsigned threads;
} rbt_cut;

/* What suits this machine. */
rbt_cut rbt_cut_default(void);

/* The texts are only a portion of what is read: the processes of a crew have one each, in the order of their ranks, and
 * all read at the same time. What is decided over all rows is then decided over all portions, and a refusal is the one
 * of reading everything at once. A portion may have no texts. */
typedef struct rbt_portion {
    rbt_crew *crew;
    size_t first;  /* the number, among all files, of the first text's; the others follow it */
    bool middle;   /* the first text begins in the middle of its file, where a row begins */
    size_t beyond; /* behind the last text lie so many more bytes of its file, which others read */
    size_t *rows;  /* set: how many rows each text has; NULL: not wanted */
} rbt_portion;

/* The texts that make one data set. `name` names the whole in messages that are about no single text. */
typedef struct rbt_source {
    const rbt_text *texts;
    size_t count;
    const char *name;
    rbt_cut cut;
    const rbt_portion *portion; /* NULL: the texts are all there is */
} rbt_source;

/* What the rows of a chunk, and in the end of all, showed. */
typedef struct rbt_seen {
    uint64_t largest;    /* index as written (libsvm) */
    bool zero_based;     /* an index 0 was seen (libsvm) */
    bool weighted;       /* a weight was given (vw) */
    uint64_t unlabelled; /* rows without a label */
} rbt_seen;

/* Parsing one chunk. A format's function moves `at` and `line` on, writes a row to its place and counts it. */
typedef struct rbt_reader {
    const char *at;
    const char *end;
    const char *name;
    size_t text; /* which of the source's, from 0 */
    size_t line;
    const void *context; /* the format's */
    void *own;           /* the chunk's, by the format's open */
    rbt_data *data;      /* whose rows and nnz are those of all chunks; not touched while chunks are parsed */
    size_t rows;         /* where the next row and the next feature go */
    size_t nnz;
    rbt_seen seen;
    void *scratch; /* rbt_reader_merge's */
    size_t scratch_bytes;
    rbt_error *error; /* NULL: only the code is wanted */
} rbt_reader;

typedef struct rbt_row_format {
    const char *row;     /* what a row looks like, for the refusal of a text without any */
    char separators[2];  /* a row has at most as many features as it has of these; the second may be 0 */
    bool one_more;       /* and one */
    bool weighted;       /* rows may have weights: data->weight is there to be written */
    const void *context; /* for the functions below */

    /* Where the first row ends (behind its newline) that reaches `least`, for rows that begin at `from`; NULL: at the
     * first newline from least - 1 on. */
    const char *(*row_end)(const void *context, const char *from, const char *least, const char *end);

    /* One row, or a line without one, and the newline that ends it. Called with at < end. After a failure it does not
     * matter what was changed in the reader. */
    rbt_err (*parse)(rbt_reader *reader);

    /* How many rows are lost with one that was refused, which is [row, end): at least 1; NULL: 1. */
    uint64_t (*lost)(const void *context, const char *row, const char *end);

    /* For lines that are not rows of data: what they hold is gathered in a memory of each chunk's own, which open makes,
     * empty, for that many lines at most (NULL: no memory; also for a chunk that is parsed once more) and close ends. There
     * are no arrays then, and the data stays empty; parse counts reader->rows for each line that it takes. A line that is
     * refused must not have been gathered. Both NULL: rows are rows. */
    void *(*open)(const void *context, size_t lines);
    void (*close)(void *own);
} rbt_row_format;

/* The texts, cut. They must outlive it. */
typedef struct rbt_chunks rbt_chunks;
rbt_chunks *rbt_chunks_create(const rbt_source *source, const rbt_row_format *format);
void rbt_chunks_destroy(rbt_chunks *chunks);

/* Looks at all chunks without making data, in parallel; for formats that must know all rows before the first is parsed. */
void rbt_chunks_survey(rbt_chunks *chunks, void (*look)(void *context, const char *at, const char *end), void *context);

/* What was gathered of each chunk, in the order of the texts; it stays the chunks'. */
size_t rbt_chunks_count(const rbt_chunks *chunks);
void *rbt_chunks_own(const rbt_chunks *chunks, size_t i);

/* The rows of all texts, in order, by the format the chunks were created with. A text without rows is refused only when
 * none has any. When more than reading->skip_bad rows are bad, the first refusal in the order of the texts and rows is the
 * one reported. What was left out is written to the reading's report. data->cols is left to the caller. Once only. */
rbt_err rbt_chunks_parse(rbt_chunks *chunks, const rbt_reading *reading, rbt_data *data, rbt_seen *seen,
                         rbt_error *error);

/* All of it, for a format that needs no survey. */
rbt_err rbt_source_parse(const rbt_source *source, const rbt_row_format *format, const rbt_reading *reading,
                         rbt_data *data, rbt_seen *seen, rbt_error *error);

/* The same of a text that is a piece out of the middle of a longer one (for stream.c): `line` is the number of its
 * first line, and there may be no rows in it. The reading's report goes on: it says what the pieces before came to,
 * nothing at first, and skip_bad is of all pieces. */
rbt_err rbt_source_parse_piece(const rbt_source *source, size_t line, const rbt_row_format *format,
                               const rbt_reading *reading, rbt_data *data, rbt_seen *seen, rbt_error *error);

/* Puts the features of the row under way (from `first` to reader->nnz) in ascending order of their indices, adds up what
 * has the same index and drops what is zero then. The order of addition is that of the text. */
rbt_err rbt_reader_merge(rbt_reader *reader, size_t first);

/* Refuses the label [at, end), which was parsed as `value`, when that is another number: it tells a class apart. */
rbt_err rbt_reader_check_class(const rbt_reader *reader, const char *at, const char *end, float value);

/* Ends the row under way: its features are those written since the row before. */
static inline void rbt_reader_end_row(rbt_reader *reader)
{
    reader->rows++;
    reader->data->start[reader->rows] = reader->nnz;
}

/* [at, end) for a message: cut, and free of what a terminal might act upon. */
const char *rbt_text_shown(const char *at, const char *end, char out[RBT_TOKEN_ROOM]);

#endif
