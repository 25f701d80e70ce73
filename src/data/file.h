/* Whole files in, whole files out: the only place of data and model that opens files.
 *
 * Called by read.c, libsvm.c, cache.c and src/model/trained.c. Always holds: a file that could not be written completely leaves
 * nothing behind, and what stood at its path before stays as it was; every failure names the path and the system's
 * reason. Proved by tests/unit/test_file.c, test_libsvm.c and test_trained.c (full device, file size limit, missing folder).
 */
#ifndef RBT_DATA_FILE_H
#define RBT_DATA_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "rubato.h"

/* A file's bytes: mapped when it is a regular file, read whole when it is a pipe or a device. "-" is the standard
 * input. A mapped file must not be cut short by someone else while it is being read (the system would raise SIGBUS). */
typedef struct rbt_input {
    const char *name; /* for messages: the caller's path, or "standard input" */
    const char *bytes;
    size_t n;
    bool mapped;
} rbt_input;

rbt_err rbt_input_open(const char *path, rbt_input *input, rbt_error *error);
void rbt_input_close(rbt_input *input);

/* That a file cannot be read, for the system's reason: an errno. */
rbt_err rbt_input_failed(const char *name, int reason, rbt_error *error);

/* Some bytes of a mapped file are not needed for now: they leave this process's memory, with what the system mapped
 * around them. Touched again, they are read again. */
void rbt_mapping_release(const void *mapping, size_t mapping_bytes, const void *at, size_t bytes);

/* A file being written: without a name where the file system can, so that even a killed process leaves nothing behind; when it
 * is complete it becomes PATH.tmp-PID, under which name others are written, and is renamed to PATH. "-" is the standard output; that and whatever
 * exists and is no regular file (a device, a pipe) is written to directly. */
typedef struct rbt_output {
    const char *name; /* for messages */
    char *path;       /* where the file goes; NULL when written to directly */
    char *temporary;
    int fd;
    bool nameless; /* `temporary` is not there yet */
    bool ours;     /* the descriptor is ours to close */
    size_t used;
    unsigned char *buffer;
} rbt_output;

rbt_err rbt_output_open(const char *path, rbt_output *output, rbt_error *error);
rbt_err rbt_output_put(rbt_output *output, const void *bytes, size_t n, rbt_error *error);

/* Puts printf-style text of at most RBT_OUTPUT_PRINT_MAX characters. */
#define RBT_OUTPUT_PRINT_MAX 512
rbt_err rbt_output_print(rbt_output *output, rbt_error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Hands on what was put so far. */
rbt_err rbt_output_flush(rbt_output *output, rbt_error *error);

/* Overwrites bytes put before, in a regular file that is being made (a header that is known last). */
rbt_err rbt_output_patch(rbt_output *output, size_t at, const void *bytes, size_t n, rbt_error *error);

/* Ends the file: writes what is left, asks the disk to keep it when `durable`, puts it in place. On failure nothing is
 * left behind. Either way the output is gone afterwards. */
rbt_err rbt_output_finish(rbt_output *output, bool durable, rbt_error *error);

/* A file of these bytes, all at once. */
rbt_err rbt_output_whole(const char *path, const void *bytes, size_t n, bool durable, rbt_error *error);

/* Ends the file without putting it in place: for the caller who met a failure. */
void rbt_output_abandon(rbt_output *output);

/* How many bytes of a text are the byte-order mark that some editors begin it with: 3 or 0. */
size_t rbt_mark_bytes(const void *text, size_t n);

#endif
