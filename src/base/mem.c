/* Memory: the implementation of mem.h on top of the C library's allocator.
 *
 * Called by everything. Always: rbt_alloc, rbt_realloc and the arenas never return NULL; every size product is checked;
 * everything is freed with rbt_free. Proved by tests/unit/test_mem.c.
 */
#include "base/mem.h"

#include "base/error.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TRY_ALIGNMENT_BYTES   64 /* a cache line, and the widest vector register */
#define GIVEN_BACK_FROM_BYTES ((size_t)256 << 10)
#define HUGE_PAGE_BYTES       ((size_t)2 << 20)
#define HUGE_FROM_BYTES       (16 * HUGE_PAGE_BYTES) /* below that, what is taken in vain would count */
#define ARENA_ALIGNMENT_BYTES 16
#define ARENA_CHUNK_BYTES     16384
#define ARRAY_LEAST_ROOM      8

/* count * size, or false when no object can be that large. */
static bool product_bytes(size_t count, size_t size, size_t *bytes)
{
    return !__builtin_mul_overflow(count, size, bytes) && *bytes <= PTRDIFF_MAX - TRY_ALIGNMENT_BYTES;
}

void *rbt_alloc(size_t count, size_t size)
{
    size_t bytes;
    RBT_ASSERT(product_bytes(count, size, &bytes));
    bytes = bytes > 0 ? bytes : 1; /* malloc(0) may answer NULL */
    void *memory = bytes <= RBT_SMALL_BYTES ? malloc(bytes) : calloc(1, bytes);
    RBT_ASSERT(memory != NULL);
    if (bytes <= RBT_SMALL_BYTES) {
        __asm__ volatile("" : : "r"(memory) : "memory"); /* else the compiler makes a calloc of it again */
        memset(memory, 0, bytes);
    }
    return memory;
}

/* The bytes taken for so many, a multiple of the alignment as aligned_alloc wants it; false when there cannot be. */
static bool rounded_bytes(size_t count, size_t size, size_t *rounded)
{
    size_t bytes;
    if (!product_bytes(count, size, &bytes))
        return false;
    *rounded = (bytes / TRY_ALIGNMENT_BYTES + (bytes % TRY_ALIGNMENT_BYTES != 0)) * TRY_ALIGNMENT_BYTES;
    if (*rounded == 0)
        *rounded = TRY_ALIGNMENT_BYTES;
    return true;
}

/* Clears memory. Whole pages of much memory are given back instead, for empty ones when they are first written to: most have
 * never been there, and writing zeros would fetch them twice. */
static void clear(unsigned char *memory, size_t bytes)
{
    if (bytes >= GIVEN_BACK_FROM_BYTES) {
        size_t page = (size_t)sysconf(_SC_PAGESIZE), before = (size_t)(-(uintptr_t)memory % page);
        size_t whole = (bytes - before) / page * page;
        if (madvise(memory + before, whole, MADV_DONTNEED) == 0) {
            memset(memory, 0, before);
            memory += before + whole;
            bytes -= before + whole;
        }
    }
    memset(memory, 0, bytes);
}

void *rbt_try_alloc(size_t count, size_t size)
{
    size_t rounded;
    void *memory = rbt_try_alloc_raw(count, size);
    if (memory != NULL && rounded_bytes(count, size, &rounded))
        clear(memory, rounded);
    return memory;
}

void *rbt_try_alloc_raw(size_t count, size_t size)
{
    size_t rounded;
    if (!rounded_bytes(count, size, &rounded))
        return NULL;
    if (rounded < HUGE_FROM_BYTES)
        return aligned_alloc(TRY_ALIGNMENT_BYTES, rounded);
    void *memory = NULL;
    if (posix_memalign(&memory, HUGE_PAGE_BYTES, rounded) != 0)
        return NULL;
    (void)madvise(memory, rounded / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES, MADV_HUGEPAGE); /* refused, it is only slower */
    return memory;
}

void *rbt_realloc(void *memory, size_t count, size_t size)
{
    size_t bytes;
    RBT_ASSERT(product_bytes(count, size, &bytes));
    void *moved = realloc(memory, bytes > 0 ? bytes : 1);
    RBT_ASSERT(moved != NULL);
    return moved;
}

char *rbt_strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    return memcpy(rbt_alloc(bytes, 1), text, bytes);
}

void rbt_free(void *memory)
{
    free(memory);
}

void *rbt_array_grow(void *at, size_t *room, size_t need, size_t size)
{
    /* Half as much again keeps pushing amortised constant; need wins when a caller reserves ahead. */
    size_t grown = *room + *room / 2;
    if (grown < need)
        grown = need;
    if (grown < ARRAY_LEAST_ROOM)
        grown = ARRAY_LEAST_ROOM;
    at = rbt_realloc(at, grown, size);
    *room = grown;
    return at;
}

typedef struct rbt_arena_chunk {
    struct rbt_arena_chunk *next;
    size_t used;
    size_t room;
    alignas(ARENA_ALIGNMENT_BYTES) unsigned char bytes[];
} rbt_arena_chunk;

static rbt_arena_chunk *chunk_create(size_t room)
{
    rbt_arena_chunk *chunk = rbt_alloc(1, sizeof *chunk + room);
    chunk->room = room;
    return chunk;
}

void *rbt_arena_alloc(rbt_arena *arena, size_t bytes)
{
    RBT_ASSERT(bytes <= PTRDIFF_MAX / 2);
    size_t rounded = (bytes + ARENA_ALIGNMENT_BYTES - 1) / ARENA_ALIGNMENT_BYTES * ARENA_ALIGNMENT_BYTES;
    if (rounded == 0)
        rounded = ARENA_ALIGNMENT_BYTES; /* so that two allocations never share an address */

    rbt_arena_chunk *chunk = arena->chunk;
    if (chunk == NULL || chunk->room - chunk->used < rounded) {
        rbt_arena_chunk *fresh = chunk_create(rounded > ARENA_CHUNK_BYTES ? rounded : ARENA_CHUNK_BYTES);
        if (chunk != NULL && rounded > ARENA_CHUNK_BYTES) {
            /* A large piece fills its own chunk: keep the current one in front, it still has room. */
            fresh->next = chunk->next;
            chunk->next = fresh;
        } else {
            fresh->next = chunk;
            arena->chunk = fresh;
        }
        chunk = fresh;
    }
    void *memory = chunk->bytes + chunk->used;
    chunk->used += rounded;
    return memory;
}

char *rbt_arena_strdup(rbt_arena *arena, const char *text)
{
    size_t bytes = strlen(text) + 1;
    return memcpy(rbt_arena_alloc(arena, bytes), text, bytes);
}

void rbt_arena_deinit(rbt_arena *arena)
{
    rbt_arena_chunk *chunk = arena->chunk;
    while (chunk != NULL) {
        rbt_arena_chunk *next = chunk->next;
        rbt_free(chunk);
        chunk = next;
    }
    arena->chunk = NULL;
}
