/* Key lists known by hash: who sends a list of keys again sends its hash (--codec keys).
 *
 * Two of these stand at the ends of a line that brings every message once and in order: the sender's, which only remembers
 * which lists it has sent, and the receiver's, which has them. Both note the same lists in the same order and forget by the
 * same rule, so a list that one end finds the other has: nobody has to ask. A line that does not keep that promise any more
 * (another life at either end) begins with two new ones. docs/formats.md, section 3.
 *
 * What holds always: at most RBT_KEYS_BYTES of lists; a list has its place by its hash, and takes it from the one before;
 * when all would be too much, all are forgotten. Called by comm/squeeze.c. Proved by tests/unit/test_squeeze.c.
 */
#ifndef RBT_COMM_KEYS_H
#define RBT_COMM_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RBT_KEYS_SLOTS   1024u
#define RBT_KEYS_LEAST   8u     /* keys: shorter lists are sent as they are */
#define RBT_KEYS_LONGEST 65536u /* and longer ones */
#define RBT_KEYS_BYTES   ((size_t)4 << 20)

typedef struct rbt_key_list {
    uint64_t hash;
    uint32_t count; /* 0: none */
    uint32_t *keys; /* the receiver's */
} rbt_key_list;

/* Zero-initialised knows nothing. */
typedef struct rbt_keys {
    rbt_key_list *slots; /* NULL: none yet */
    size_t bytes;
} rbt_keys;

void rbt_keys_deinit(rbt_keys *keys); /* knows nothing again */

uint64_t rbt_keys_hash(const uint32_t *list, uint32_t count);

/* Is a list of that length one that may be noted? */
static inline bool rbt_keys_may(uint32_t count)
{
    return count >= RBT_KEYS_LEAST && count <= RBT_KEYS_LONGEST;
}

/* The list, or NULL. */
const rbt_key_list *rbt_keys_find(const rbt_keys *keys, uint64_t hash, uint32_t count);

/* Notes a list; `list` is copied, NULL at the sender. False: no memory for it, and the line is of no use any more. */
bool rbt_keys_note(rbt_keys *keys, uint64_t hash, uint32_t count, const uint32_t *list);

#endif
