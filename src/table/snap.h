/* Snapshots: the reference-counted values of a block, an update or a version.
 *
 * One type serves the server's blocks, the worker's cached copies, the updates under way and the versions of dyn: so
 * reading, sending, replicating and checkpointing are all "take a reference". A snapshot that others hold is never
 * written: rbt_snap_add and rbt_snap_writable copy first (copy-on-write).
 *
 * A snapshot covers `length` elements of one type, dense (all stored) or sparse (those not zero, indices ascending).
 * Values of a freshly created dense snapshot are zero. Proved by tests/unit/test_snap.c.
 */
#ifndef RBT_TABLE_SNAP_H
#define RBT_TABLE_SNAP_H

#include <stdatomic.h>

#include "rubato.h"

typedef enum rbt_form { RBT_DENSE, RBT_SPARSE } rbt_form;

typedef struct rbt_snap {
    atomic_uint refs;
    rbt_type type;
    rbt_form form;
    uint32_t length; /* elements the snapshot stands for */
    uint32_t count;  /* elements stored: `length` when dense */
    uint32_t *index; /* sparse: which ones, ascending; NULL when dense */
    union {
        void *value;
        float *f32;
        int32_t *i32;
        int64_t *i64;
    };
} rbt_snap;

size_t rbt_type_size(rbt_type type);

rbt_snap *rbt_snap_create(rbt_type type, uint32_t length);                        /* dense, zero */
rbt_snap *rbt_snap_create_sparse(rbt_type type, uint32_t length, uint32_t count); /* caller fills index and value */

/* With whatever values (and indices) are there, to be filled at once; NULL when there is no memory for it. */
rbt_snap *rbt_snap_try_create(rbt_type type, rbt_form form, uint32_t length, uint32_t count);

rbt_snap *rbt_snap_ref(rbt_snap *snap);
void rbt_snap_unref(rbt_snap *snap); /* NULL is fine */

/* Does nobody else hold it? Then its values may be written. */
bool rbt_snap_is_mine(const rbt_snap *snap);

/* A new snapshot of `length` values without those that are zero or smaller than `threshold` (f32 only): sparse when
 * less than half is left, else dense. */
rbt_snap *rbt_snap_pack(rbt_type type, uint32_t length, const void *values, float threshold);

/* A reference to the snapshot, or to a new sparse one with the same values when that is smaller. */
rbt_snap *rbt_snap_thin(rbt_snap *snap);

/* Makes *snap one that only the caller holds, dense. */
void rbt_snap_writable(rbt_snap **snap);

/* *to += factor * from, whatever their forms; integer types take only factor 1. A *to that others hold is copied first.
 */
void rbt_snap_add(rbt_snap **to, const rbt_snap *from, float factor);

/* A new snapshot with (a - b) / divisor over the elements stored in either; f32 only. `b` may be NULL (zero). */
rbt_snap *rbt_snap_difference(const rbt_snap *a, const rbt_snap *b, float divisor);

/* Those elements of `from` that `values`, which is sparse, stores, as a new sparse snapshot; of two sparse ones the elements of `base`,
 * but those that `values` stores as they are there. */
rbt_snap *rbt_snap_where(const rbt_snap *from, const rbt_snap *values);
rbt_snap *rbt_snap_replace(const rbt_snap *base, const rbt_snap *values);

/* Copies elements first .. first + n - 1 to `out` (zeros where nothing is stored), or adds them to it. */
void rbt_snap_read(const rbt_snap *snap, uint32_t first, uint32_t n, void *out);
void rbt_snap_read_add(const rbt_snap *snap, uint32_t first, uint32_t n, void *out);

/* Bytes of memory the values take: what Theorem 3 of DynSGD counts. */
size_t rbt_snap_bytes(const rbt_snap *snap);

#endif
