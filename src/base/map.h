/* A hash map from 64-bit keys to 64-bit values, open addressing. Zero-initialised is empty. Iteration order is
 * a function of the insertions alone, never of addresses. Proved by tests/unit/test_map.c. */
#ifndef RBT_BASE_MAP_H
#define RBT_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rbt_map {
    struct rbt_map_slot *slots;
    size_t count;
    size_t room;
    size_t gone; /* slots whose entry was removed */
} rbt_map;

uint64_t *rbt_map_put(rbt_map *map, uint64_t key,
                      bool *is_new);                     /* the value's place, 0 when new; valid until next put */
uint64_t *rbt_map_get(const rbt_map *map, uint64_t key); /* NULL when absent */
bool rbt_map_remove(rbt_map *map, uint64_t key);
/* Walks over all entries: start with *cursor = 0; false at the end. */
bool rbt_map_next(const rbt_map *map, size_t *cursor, uint64_t *key, uint64_t *value);
void rbt_map_deinit(rbt_map *map);

#endif
