/* A hash map with open addressing and linear probing.
 *
 * Called wherever keys are sparse: tables, caches, the exactly-once memory of servers. Always: at most three quarters
 * of the slots are not empty, so every probe ends; removing leaves a tombstone, so that a value's place stays valid
 * until the next put and entries may be removed while walking. Proved by tests/unit/test_map.c.
 */
#include "base/map.h"

#include "base/error.h"
#include "base/mem.h"

#define LEAST_ROOM 16

typedef enum slot_state { SLOT_EMPTY, SLOT_USED, SLOT_GONE } slot_state;

typedef struct rbt_map_slot {
    uint64_t key;
    uint64_t value;
    slot_state state;
} rbt_map_slot;

/* Keys are often small consecutive numbers or numbers that differ in high bits only: mix before masking. */
static size_t home_of(const rbt_map *map, uint64_t key)
{
    key = (key ^ (key >> 32)) * 0x9e3779b97f4a7c15u;
    key = (key ^ (key >> 29)) * 0xbf58476d1ce4e5b9u;
    return (size_t)(key ^ (key >> 32)) & (map->room - 1);
}

static rbt_map_slot *find(const rbt_map *map, uint64_t key)
{
    if (map->room == 0)
        return NULL;
    for (size_t i = home_of(map, key);; i = (i + 1) & (map->room - 1)) {
        rbt_map_slot *slot = &map->slots[i];
        if (slot->state == SLOT_EMPTY)
            return NULL;
        if (slot->state == SLOT_USED && slot->key == key)
            return slot;
    }
}

/* Takes a slot for a key that is known to be absent, reusing the first tombstone on its way. */
static rbt_map_slot *claim(rbt_map *map, uint64_t key)
{
    size_t i = home_of(map, key);
    while (map->slots[i].state == SLOT_USED)
        i = (i + 1) & (map->room - 1);
    rbt_map_slot *slot = &map->slots[i];
    if (slot->state == SLOT_GONE)
        map->gone--;
    *slot = (rbt_map_slot){.key = key, .value = 0, .state = SLOT_USED};
    map->count++;
    return slot;
}

/* Makes room for one more: doubles, or only sweeps the tombstones out when it is they that fill the map. */
static void rehash(rbt_map *map)
{
    size_t room = map->room == 0 ? LEAST_ROOM : map->room;
    while ((map->count + 1) * 2 > room) {
        RBT_ASSERT(room <= SIZE_MAX / 2);
        room *= 2;
    }
    rbt_map fresh = {.slots = rbt_alloc(room, sizeof(rbt_map_slot)), .room = room};
    for (size_t i = 0; i < map->room; i++)
        if (map->slots[i].state == SLOT_USED)
            claim(&fresh, map->slots[i].key)->value = map->slots[i].value;
    rbt_free(map->slots);
    *map = fresh;
}

uint64_t *rbt_map_put(rbt_map *map, uint64_t key, bool *is_new)
{
    rbt_map_slot *slot = find(map, key);
    if (is_new != NULL)
        *is_new = slot == NULL;
    if (slot == NULL) {
        if ((map->count + map->gone + 1) > map->room / 4 * 3)
            rehash(map);
        slot = claim(map, key);
    }
    return &slot->value;
}

uint64_t *rbt_map_get(const rbt_map *map, uint64_t key)
{
    rbt_map_slot *slot = find(map, key);
    return slot == NULL ? NULL : &slot->value;
}

bool rbt_map_remove(rbt_map *map, uint64_t key)
{
    rbt_map_slot *slot = find(map, key);
    if (slot == NULL)
        return false;
    slot->state = SLOT_GONE;
    map->count--;
    map->gone++;
    return true;
}

bool rbt_map_next(const rbt_map *map, size_t *cursor, uint64_t *key, uint64_t *value)
{
    while (*cursor < map->room) {
        const rbt_map_slot *slot = &map->slots[(*cursor)++];
        if (slot->state == SLOT_USED) {
            *key = slot->key;
            *value = slot->value;
            return true;
        }
    }
    return false;
}

void rbt_map_deinit(rbt_map *map)
{
    rbt_free(map->slots);
    *map = (rbt_map){0};
}
