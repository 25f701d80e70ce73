/* The binary cache: an rbt_data in a file that is mapped instead of parsed. The format is docs/formats.md.
 *
 * Called by read.c (reading) and `rubato convert` (writing). Always holds: a file appears complete or not at all; any
 * damaged byte and any cut is detected; what is accepted keeps every promise of an rbt_data (data.h), whoever wrote it.
 * Reading checks all bytes once, in parallel, and copies none. Proved by tests/unit/test_datacache.c and
 * tests/fuzz/fuzz_cache.c.
 */
#ifndef RBT_DATA_CACHE_H
#define RBT_DATA_CACHE_H

#include "base/crew.h"
#include "data/file.h"

#define RBT_CACHE_VERSION      3
#define RBT_CACHE_HEADER_BYTES 64
#define RBT_CACHE_ALIGNMENT    64                   /* where every array begins, in the file and so in memory */
#define RBT_CACHE_BLOCK_BYTES  (size_t)(256 * 1024) /* hashed at a time, then looked at in a core's own cache */

/* Stands in every refusal of a cache before what is to be done: who does it anyway leaves out the rest. */
#define RBT_CACHE_REMEDY "; make it again"

/* Do the bytes begin like a cache? */
bool rbt_cache_recognise(const void *bytes, size_t n);

/* How many rows the cache that begins with these bytes says it has; 0 when it does not, or in another version. */
uint64_t rbt_cache_rows(const void *bytes, size_t n);

/* The names in a cache: of labels or, in one of ratings, of all users and then of all items; one after the other, each ended
 * by a zero. Behind them, ended likewise, how the data was read (origin.h). */
typedef struct rbt_cache_names {
    const char *at;
    size_t bytes;
    bool origin; /* it is there */
} rbt_cache_names;

/* Checks everything, and makes `view` and `names` point into the bytes, which must be aligned to 8 and outlive them. A view
 * owns nothing and is not for rbt_data_deinit; its label_count tells how many names of labels there are, and it has no names. */
rbt_err rbt_cache_decode(const void *bytes, size_t n, const char *name, rbt_data *view, rbt_cache_names *names,
                         rbt_error *error);

/* Makes data of a view own copies of the names and of the origin; those of ratings are found to be there once each. On failure the view is as
 * it was. */
rbt_err rbt_cache_names_take(rbt_cache_names names, const char *name, rbt_data *view, rbt_error *error);
void rbt_cache_names_drop(rbt_data *view);

/* For cache.c: are they as many as the view says, in the right order? And those of data, in new memory. */
bool rbt_cache_names_fit(rbt_cache_names names, const rbt_data *view);
rbt_err rbt_cache_names_write(const rbt_data *data, const char *path, rbt_bytes *out, rbt_error *error);

/* The same by several readers together, each of whom looks at a share of the bytes and at some rows, and all of whom hear
 * what the others have found. */
typedef struct rbt_cache_look {
    uint32_t part; /* which of how many shares */
    uint32_t parts;
    size_t first; /* which rows; as many as there are, if it is more */
    size_t rows;

    uint64_t *hashes; /* of all blocks, 0 for those of others; in memory of its own, also on failure */
    size_t blocks;
    uint64_t falls; /* how often an index is not larger than the one before it */
    uint64_t ends;  /* how often it need not be, because a row ends between them */
    bool wrong;
} rbt_cache_look;

/* Looks, and makes `view` and `names` point into the bytes as above. */
rbt_err rbt_cache_look_at(const void *bytes, size_t n, const char *name, rbt_cache_look *look, rbt_data *view,
                          rbt_cache_names *names, rbt_error *error);

/* Judges what all have found: the hashes put together, the counts added up. */
rbt_err rbt_cache_judge(const void *bytes, const char *name, const rbt_cache_look *look, rbt_error *error);

/* The cache in an input as data: the mapping goes over to the data when there is one (the input is then empty), else
 * the arrays are copied. On failure the input is as it was. */
rbt_err rbt_cache_take(rbt_input *input, rbt_data *data, rbt_error *error);

/* A cache as streamed data (data.h): also while it is checked, little of it is in memory at any time. */
rbt_err rbt_cache_read_streamed(const char *path, rbt_data *data, rbt_error *error);

/* Writes the data as a cache, synchronised to disk. A failure leaves no file. */
rbt_err rbt_cache_write(const rbt_data *data, const char *path, rbt_error *error);

/* The same for a cache that stands for a source (store.h), which a number tells apart from others; such a cache need not
 * survive a power failure. The number is in a file's first and last 64 bytes; 0 when they are no cache's, or of one that
 * was made for itself. */
rbt_err rbt_cache_write_of(const rbt_data *data, uint64_t source, const char *path, rbt_error *error);
uint64_t rbt_cache_source(const unsigned char header[RBT_CACHE_HEADER_BYTES],
                          const unsigned char end[RBT_CACHE_ALIGNMENT]);

/* Does the file have all its bytes, as far as its header tells? */
rbt_err rbt_cache_is_whole(const void *bytes, size_t n, const char *name, rbt_error *error);

/* For cache_build.c: a header for data of that many rows, columns, features and labels, with weights unless they are NULL;
 * the checksum that belongs into it, from the hashes of all blocks of all arrays; and putting it there. */
rbt_err rbt_cache_header(const rbt_data *data, size_t names_bytes, uint64_t source, const char *name,
                         unsigned char header[RBT_CACHE_HEADER_BYTES], rbt_error *error);
uint64_t rbt_cache_checksum_of(const unsigned char header[RBT_CACHE_HEADER_BYTES], const uint64_t *hashes, size_t n);
void rbt_cache_seal(unsigned char header[RBT_CACHE_HEADER_BYTES], uint64_t checksum);

/* The checksum that belongs at byte 56 of a header (whose first 56 bytes it covers) in front of this data, its names and
 * the source's number (NULL: none). */
uint64_t rbt_cache_checksum(const unsigned char header[RBT_CACHE_HEADER_BYTES], const rbt_data *data,
                            rbt_cache_names names, const uint64_t *source);

#endif
