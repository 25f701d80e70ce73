/* Lists of names that each stand for a number: the users and items of ratings (rubato.h declares the type).
 *
 * Made by ratings.c, cache.c, part.c and deal.c, shared by all data that has the same names. Always holds: name i is what
 * was added i-th of those that were not there before, it ends with a zero and holds no other; a list that more than one
 * has is not changed any more. Memory: the names' bytes, and at most 36 for each. Proved by tests/unit/test_ratings.c.
 */
#ifndef RBT_DATA_IDS_H
#define RBT_DATA_IDS_H

#include "base/crew.h"

#define RBT_IDS_LIMIT  UINT32_C(4294967294) /* names in a list, at most: as many as there can be columns */
#define RBT_IDS_ABSENT UINT32_MAX           /* no name's number */

/* NULL: no memory. */
rbt_ids *rbt_ids_create(void);
rbt_ids *rbt_ids_ref(rbt_ids *ids); /* NULL for NULL */
void rbt_ids_unref(rbt_ids *ids);   /* NULL is fine */

/* The number of a name of n bytes, none of which is zero, which is put at the end unless it is there; RBT_IDS_ABSENT: no
 * memory, or too many. */
uint32_t rbt_ids_add(rbt_ids *ids, const char *name, size_t n);

/* The same of a name that must be there; RBT_IDS_ABSENT: it is not. */
uint32_t rbt_ids_look_up(const rbt_ids *ids, const char *name, size_t n);

/* The names of these numbers as a list of their own; NULL: no memory, or one is there twice. */
rbt_ids *rbt_ids_select(const rbt_ids *ids, const uint32_t *which, size_t n);

/* All bytes of the names, each with its zero, in order. */
const char *rbt_ids_bytes(const rbt_ids *ids, size_t *n);

/* `count` names from these bytes on, all before `end`; where they end. NULL, and no list: there are not that many, one is
 * there twice, or there is no memory. */
const char *rbt_ids_read(const char *at, const char *end, size_t count, rbt_ids **ids);

#endif
