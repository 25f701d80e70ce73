/* What generators draw. Contract in draw.h; proved by tests/unit/test_generate.c. */
#include "data/draw.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "math/functions.h"

#define BATCH 64 /* ranks drawn before their items are looked at, so that the memory has time to answer */

/* -------------------------------------------------------------------------------------------------- popularity */

static bool even_logarithm(double skew)
{
    return fabs(1 - skew) < 1e-6;
}

/* The rank at u in [0, 1): the floor of x from the density x^-skew on [1, n + 1), by inverting its integral. */
static size_t rank_at(const rbt_popularity *p, double u)
{
    double x;
    if (even_logarithm(p->skew))
        x = rbt_exp(u * p->span);
    else
        x = rbt_exp(rbt_ln(1 + u * p->span) / (1 - p->skew));
    if (!(x < (double)p->n + 1))
        return p->n - 1;
    return x < 1 ? 0 : (size_t)x - 1;
}

void rbt_popularity_init(rbt_popularity *popularity, size_t n, double skew)
{
    double log_end = rbt_ln((double)n + 1);
    popularity->n = n;
    popularity->skew = skew;
    popularity->span = even_logarithm(skew) ? log_end : rbt_exp((1 - skew) * log_end) - 1;
    for (size_t cell = 0; cell <= RBT_POPULARITY_CELLS; cell++)
        popularity->guide[cell] = (uint32_t)rank_at(popularity, (double)cell / RBT_POPULARITY_CELLS);
}

size_t rbt_popularity_draw(const rbt_popularity *popularity, rbt_rng *rng)
{
    double u = rbt_rng_f64(rng);
    size_t cell = (size_t)(u * RBT_POPULARITY_CELLS);
    /* Most draws fall into a cell that belongs to one popular rank alone. */
    if (popularity->guide[cell] == popularity->guide[cell + 1])
        return popularity->guide[cell];
    return rank_at(popularity, u);
}

/* ---------------------------------------------------------------------------------------------------- distinct */

static size_t set_room(size_t n)
{
    size_t room = 8;
    while (room < 2 * n)
        room *= 2;
    return room;
}

rbt_err rbt_draw_init(rbt_draw *draw, size_t most, rbt_error *error)
{
    *draw = (rbt_draw){
        .most = most,
        .set = rbt_try_alloc_raw(set_room(most), sizeof *draw->set),
        .bucket = rbt_try_alloc_raw(most + 1, sizeof *draw->bucket),
        .sorted = rbt_try_alloc_raw(most, sizeof *draw->sorted),
    };
    if (draw->set != NULL && draw->bucket != NULL && draw->sorted != NULL)
        return RBT_OK;
    rbt_draw_deinit(draw);
    return rbt_fail(error, RBT_E_MEMORY, "not enough memory for rows of up to %zu items; use shorter rows", most);
}

void rbt_draw_deinit(rbt_draw *draw)
{
    rbt_free(draw->set);
    rbt_free(draw->bucket);
    rbt_free(draw->sorted);
    *draw = (rbt_draw){0};
}

void rbt_draw_begin(rbt_draw *draw, size_t n)
{
    RBT_ASSERT(n <= draw->most);
    draw->mask = set_room(n) - 1;
    memset(draw->set, 0, (draw->mask + 1) * sizeof *draw->set);
}

bool rbt_draw_add(rbt_draw *draw, uint32_t item)
{
    size_t at = (size_t)(((uint64_t)item * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & draw->mask;
    for (; draw->set[at] != 0; at = (at + 1) & draw->mask)
        if (draw->set[at] == item + 1)
            return false;
    draw->set[at] = item + 1;
    return true;
}

/* Each into the bucket where it should be, then the last steps by insertion. */
void rbt_draw_sort(rbt_draw *draw, uint32_t *out, size_t n, size_t limit)
{
    double scale = (double)n / (double)limit;
    uint32_t *bucket = draw->bucket, *sorted = draw->sorted;
    memset(bucket, 0, (n + 1) * sizeof *bucket);
    for (size_t i = 0; i < n; i++)
        bucket[(size_t)((double)out[i] * scale)]++; /* bucket n at most, by rounding */
    uint32_t sum = 0;
    for (size_t b = 0; b <= n; b++) {
        uint32_t count = bucket[b];
        bucket[b] = sum;
        sum += count;
    }
    for (size_t i = 0; i < n; i++)
        sorted[bucket[(size_t)((double)out[i] * scale)]++] = out[i];
    for (size_t i = 0; i < n; i++) {
        uint32_t moving = sorted[i];
        size_t j = i;
        for (; j > 0 && out[j - 1] > moving; j--)
            out[j] = out[j - 1];
        out[j] = moving;
    }
}

void rbt_draw_distinct(rbt_draw *draw, const rbt_popularity *popularity, const uint32_t *item, rbt_rng *rng,
                       uint32_t *out, size_t n)
{
    size_t have = 0, tries = 10 * n + 100, rank[BATCH];
    rbt_draw_begin(draw, n);
    while (have < n && tries > 0) {
        /* As many draws are needed in any case. */
        size_t batch = n - have < tries ? n - have : tries;
        batch = batch < BATCH ? batch : BATCH;
        for (size_t i = 0; i < batch; i++) {
            rank[i] = rbt_popularity_draw(popularity, rng);
            __builtin_prefetch(&item[rank[i]]);
        }
        for (size_t i = 0; i < batch; i++)
            if (rbt_draw_add(draw, item[rank[i]]))
                out[have++] = item[rank[i]];
        tries -= batch;
    }
    for (size_t k = 0; have < n; k++)
        if (rbt_draw_add(draw, item[k]))
            out[have++] = item[k];
    rbt_draw_sort(draw, out, n, popularity->n);
}

rbt_err rbt_draw_check_memory(double bytes, const char *what, rbt_error *error)
{
    double there = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if (there > 0 && bytes > there)
        return rbt_fail(error, RBT_E_MEMORY, "%s needs %.1f GB of memory, and this machine has %.1f GB; use fewer",
                        what, bytes / 1e9, there / 1e9);
    return RBT_OK;
}
