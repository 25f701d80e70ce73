/* Data read by many processes, each a part of it: what rbt_data_read_as reads, in pieces.
 *
 * Who hosts workers reads; standard input is rank 0's. The parts are equal in bytes, over all files one after the other,
 * and cut at the ends of rows; caches are cut by rows. What cannot be cut (compressed files, images, pipes, CSV text with
 * quotes, in which a newline need not end a row) is read whole by the process in whose part it begins. The lowest
 * process that reads looks up the files and tells the others, who open only those they need.
 *
 * With {rank} in the path every worker has files of its own: the path with its number in that place. They are read by
 * the worker's process.
 *
 * Called by src/job, on all processes of a crew at once, also on one that is alone. Always holds: the parts' rows, in the
 * order of ranks, are the rows of reading all files at once (with {rank}: worker after worker), with the same columns,
 * labels and names; or all return the same refusal, with its file:line, or with the host that does not see a file.
 * Proved by tests/unit/test_part_parallel.c. */
#ifndef RBT_DATA_PART_H
#define RBT_DATA_PART_H

#include "base/crew.h"

/* Which workers a process hosts: workers_of[r] from first_worker[r] on; in the order of ranks, every worker once. */
typedef struct rbt_hosting {
    const uint32_t *first_worker;
    const uint32_t *workers_of;
} rbt_hosting;

typedef struct rbt_data_part {
    rbt_data data;       /* the rows here; perhaps none */
    size_t *rows_of;     /* of each process's part */
    size_t *nnz_of;      /* likewise */
    size_t first;        /* the number of the first row here */
    size_t first_nnz;    /* likewise */
    size_t rows;         /* of all parts */
    size_t nnz;          /* likewise */
    rbt_ids *users;      /* of ratings, set by rbt_deal: those of all rows; else NULL */
    size_t *worker_rows; /* with {rank}: how many rows each of the workers here has; else NULL */
} rbt_data_part;

#define RBT_PATH_RANK "{rank}"

/* Does every worker have its own files? */
bool rbt_path_is_ranked(const char *path);

/* The reading's report is that of all parts. */
rbt_err rbt_data_part_read(rbt_data_part *part, const char *path, const rbt_reading *reading,
                           const rbt_hosting *hosting, rbt_crew *crew, rbt_error *error);

void rbt_data_part_deinit(rbt_data_part *part);

#endif
