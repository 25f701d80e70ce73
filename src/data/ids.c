/* Lists of names. Contract in ids.h; proved by tests/unit/test_ratings.c.
 *
 * The names stand one after the other; a table of slots with open addressing finds them by their hash, of which a slot
 * has one half, so that almost every name that is compared is the right one. */
#include "data/ids.h"

#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"

#define SLOTS_LEAST 64

typedef struct slot {
    uint32_t tag;   /* the upper half of the hash */
    uint32_t which; /* plus 1; 0: empty */
} slot;

struct rbt_ids {
    atomic_uint refs;
    char *bytes;
    size_t used, room;
    size_t *start; /* of each name, and where the next one begins */
    size_t count, start_room;
    slot *slots;
    size_t slot_count; /* a power of 2, at most half of them taken */
};

rbt_ids *rbt_ids_create(void)
{
    rbt_ids *ids = rbt_try_alloc(1, sizeof *ids);
    if (ids != NULL)
        atomic_init(&ids->refs, 1);
    return ids;
}

rbt_ids *rbt_ids_ref(rbt_ids *ids)
{
    if (ids != NULL)
        atomic_fetch_add_explicit(&ids->refs, 1, memory_order_relaxed);
    return ids;
}

void rbt_ids_unref(rbt_ids *ids)
{
    if (ids == NULL || atomic_fetch_sub_explicit(&ids->refs, 1, memory_order_acq_rel) > 1)
        return;
    rbt_free(ids->bytes);
    rbt_free(ids->start);
    rbt_free(ids->slots);
    rbt_free(ids);
}

size_t rbt_ids_count(const rbt_ids *ids)
{
    return ids->count;
}

const char *rbt_ids_name(const rbt_ids *ids, size_t i)
{
    return ids->bytes + ids->start[i];
}

const char *rbt_ids_bytes(const rbt_ids *ids, size_t *n)
{
    *n = ids->used;
    return ids->bytes;
}

/* ------------------------------------------------------------------------------------------------------ looking */

/* Where the name is, or would be: the first empty slot. There is one. */
static slot *slot_of(const rbt_ids *ids, uint64_t hash, const char *name, size_t n)
{
    size_t mask = ids->slot_count - 1, i = (size_t)hash & mask;
    uint32_t tag = (uint32_t)(hash >> 32);
    for (;; i = (i + 1) & mask) {
        slot *s = &ids->slots[i];
        if (s->which == 0)
            return s;
        const size_t *start = &ids->start[s->which - 1];
        if (s->tag == tag && start[1] - start[0] == n + 1 && memcmp(ids->bytes + start[0], name, n) == 0)
            return s;
    }
}

uint32_t rbt_ids_look_up(const rbt_ids *ids, const char *name, size_t n)
{
    if (ids->count == 0)
        return RBT_IDS_ABSENT;
    return slot_of(ids, rbt_hash(name, n, 0), name, n)->which - 1; /* that of an empty one turns over */
}

size_t rbt_ids_find(const rbt_ids *ids, const char *name)
{
    uint32_t which = rbt_ids_look_up(ids, name, strlen(name));
    return which != RBT_IDS_ABSENT ? which : ids->count;
}

/* ------------------------------------------------------------------------------------------------------- adding */

/* Room for `need` elements, twice as much as before at least; false: no memory. */
static bool make_room(void **at, size_t used, size_t *room, size_t need, size_t size)
{
    if (need <= *room)
        return true;
    size_t larger = *room > SIZE_MAX / 2 || *room * 2 < need ? need : *room * 2;
    void *to = rbt_try_alloc_raw(larger, size);
    if (to == NULL)
        return false;
    if (used > 0)
        memcpy(to, *at, used * size);
    rbt_free(*at);
    *at = to;
    *room = larger;
    return true;
}

static bool make_slots(rbt_ids *ids)
{
    if (ids->count + 1 <= ids->slot_count / 2)
        return true;
    const rbt_ids old = {.slots = ids->slots, .slot_count = ids->slot_count};
    size_t more = old.slot_count > 0 ? old.slot_count * 2 : SLOTS_LEAST;
    slot *slots = rbt_try_alloc(more, sizeof *slots);
    if (slots == NULL)
        return false;
    for (size_t i = 0; i < ids->count; i++) {
        uint64_t hash = rbt_hash(ids->bytes + ids->start[i], ids->start[i + 1] - ids->start[i] - 1, 0);
        size_t k = (size_t)hash & (more - 1);
        while (slots[k].which != 0)
            k = (k + 1) & (more - 1);
        slots[k] = (slot){(uint32_t)(hash >> 32), (uint32_t)i + 1};
    }
    ids->slots = slots;
    ids->slot_count = more;
    rbt_free(old.slots);
    return true;
}

uint32_t rbt_ids_add(rbt_ids *ids, const char *name, size_t n)
{
    void *bytes, *start;
    if (!make_slots(ids))
        return RBT_IDS_ABSENT;
    uint64_t hash = rbt_hash(name, n, 0);
    slot *s = slot_of(ids, hash, name, n);
    if (s->which != 0)
        return s->which - 1;
    bytes = ids->bytes;
    start = ids->start;
    if (ids->count >= RBT_IDS_LIMIT || n >= SIZE_MAX / 4 - ids->used)
        return RBT_IDS_ABSENT;
    bool room = make_room(&bytes, ids->used, &ids->room, ids->used + n + 1, 1);
    ids->bytes = bytes;
    room =
        make_room(&start, ids->count > 0 ? ids->count + 1 : 0, &ids->start_room, ids->count + 2, sizeof *ids->start) &&
        room;
    ids->start = start;
    if (!room)
        return RBT_IDS_ABSENT;
    memcpy(ids->bytes + ids->used, name, n);
    ids->bytes[ids->used + n] = '\0';
    ids->start[ids->count] = ids->used;
    ids->used += n + 1;
    ids->start[++ids->count] = ids->used;
    *s = (slot){(uint32_t)(hash >> 32), (uint32_t)ids->count};
    return (uint32_t)ids->count - 1;
}

/* ------------------------------------------------------------------------------------------------------- copies */

rbt_ids *rbt_ids_select(const rbt_ids *ids, const uint32_t *which, size_t n)
{
    rbt_ids *out = rbt_ids_create();
    for (size_t i = 0; out != NULL && i < n; i++) {
        const size_t *start = &ids->start[which[i]];
        if (rbt_ids_add(out, ids->bytes + start[0], start[1] - start[0] - 1) != i) {
            rbt_ids_unref(out);
            return NULL;
        }
    }
    return out;
}

const char *rbt_ids_read(const char *at, const char *end, size_t count, rbt_ids **ids)
{
    *ids = rbt_ids_create();
    for (size_t i = 0; *ids != NULL && i < count; i++) {
        const char *zero = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;
        uint32_t which = zero != NULL ? rbt_ids_add(*ids, at, (size_t)(zero - at)) : 0;
        if (zero == NULL || which != i) {
            rbt_ids_unref(*ids);
            *ids = NULL;
            return NULL;
        }
        at = zero + 1;
    }
    return *ids != NULL ? at : NULL;
}
