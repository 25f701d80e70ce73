/* Memory: allocation that cannot silently fail, growable arrays, arenas.
 *
 * Large allocations whose size comes from outside (data, tables, messages) use rbt_try_alloc and answer RBT_E_MEMORY.
 * Small bookkeeping uses rbt_alloc/rbt_realloc, which treat exhaustion as fatal (RBT_ASSERT): there is nothing sensible
 * left to do. Proved by tests/unit/test_mem.c.
 */
#ifndef RBT_BASE_MEM_H
#define RBT_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

/* Up to here memory comes from malloc, cleared: glibc's calloc does not know what the thread has just freed. */
#define RBT_SMALL_BYTES 1024

/* Zeroed memory for count * size bytes; never NULL (count or size may be 0). The product may not overflow. */
void *rbt_alloc(size_t count, size_t size);

/* The same, but NULL when the memory cannot be had or the product overflows; aligned to 64 bytes. Free with rbt_free.
 */
void *rbt_try_alloc(size_t count, size_t size);

/* The same with whatever bytes are there: for large arrays that are filled at once, perhaps by several threads, each of
 * which then touches its own part first. */
void *rbt_try_alloc_raw(size_t count, size_t size);

void *rbt_realloc(void *memory, size_t count, size_t size);
char *rbt_strdup(const char *text);
void rbt_free(void *memory);

/* A growable array of any type: declare it with RBT_ARRAY(type) name; zero-initialised is empty. */
#define RBT_ARRAY(type)                                                                                                \
    struct {                                                                                                           \
        type *at;                                                                                                      \
        size_t count;                                                                                                  \
        size_t room;                                                                                                   \
    }

void *rbt_array_grow(void *at, size_t *room, size_t need, size_t size);

#define rbt_array_reserve(array, need)                                                                                 \
    ((need) > (array)->room                                                                                            \
         ? (void)((array)->at = rbt_array_grow((array)->at, &(array)->room, (need), sizeof *(array)->at))              \
         : (void)0)
#define rbt_array_push(array, value)                                                                                   \
    (rbt_array_reserve((array), (array)->count + 1), (void)((array)->at[(array)->count++] = (value)))
#define rbt_array_free(array) (rbt_free((array)->at), (array)->at = NULL, (array)->count = (array)->room = 0)

/* An arena: many small allocations that end together. Zero-initialised is empty. */
typedef struct rbt_arena {
    struct rbt_arena_chunk *chunk;
} rbt_arena;

void *rbt_arena_alloc(rbt_arena *arena, size_t bytes); /* zeroed, aligned to 16 */
char *rbt_arena_strdup(rbt_arena *arena, const char *text);
void rbt_arena_deinit(rbt_arena *arena);

#endif
