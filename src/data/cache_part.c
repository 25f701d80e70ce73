/* Rows of a cache that several processes read together. Contract in cache_part.h; proved by
 * tests/unit/test_part_parallel.c. */
#include "data/cache_part.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/cache.h"
#include "data/data.h"
#include "data/names.h"

/* A cache being read, and what was found in it. */
typedef struct seen {
    rbt_cache_look look;
    rbt_data view;
    rbt_cache_names names;
} seen;

/* What a process tells of a cache; the hashes of its blocks follow. */
typedef struct told {
    uint64_t file;
    uint64_t blocks;
    uint64_t falls;
    uint64_t ends;
    uint64_t wrong;
} told;

static rbt_bytes tell(const rbt_cache_piece *pieces, const seen *s, size_t count)
{
    rbt_bytes out = {0};
    for (size_t i = 0; i < count; i++)
        out.n += sizeof(told) + s[i].look.blocks * sizeof *s[i].look.hashes;
    out.at = rbt_alloc(out.n, 1);
    uint8_t *at = out.at;
    for (size_t i = 0; i < count; i++) {
        const rbt_cache_look *look = &s[i].look;
        const told t = {pieces[i].file, look->blocks, look->falls, look->ends, look->wrong};
        memcpy(at, &t, sizeof t);
        at += sizeof t;
        if (look->blocks > 0)
            memcpy(at, look->hashes, look->blocks * sizeof *look->hashes);
        at += look->blocks * sizeof *look->hashes;
    }
    return out;
}

/* Adds what a process tells of caches that are read here, too. */
static rbt_err hear(rbt_bytes in, const rbt_cache_piece *pieces, seen *s, size_t count, rbt_error *error)
{
    while (in.n > 0) {
        told t = {0};
        if (in.n >= sizeof t)
            memcpy(&t, in.at, sizeof t);
        if (in.n < sizeof t || t.blocks > (in.n - sizeof t) / sizeof(uint64_t))
            return rbt_fail(error, RBT_E_PROTOCOL, "another process tells nonsense about a cache");
        for (size_t i = 0; i < count; i++) {
            rbt_cache_look *look = &s[i].look;
            if (pieces[i].file != t.file)
                continue;
            look->falls += t.falls;
            look->ends += t.ends;
            look->wrong |= t.wrong != 0 || t.blocks != look->blocks;
            for (size_t b = 0; b < t.blocks && b < look->blocks; b++) {
                uint64_t hash;
                memcpy(&hash, in.at + sizeof t + b * sizeof hash, sizeof hash);
                look->hashes[b] |= hash;
            }
        }
        in.at += sizeof t + t.blocks * sizeof(uint64_t);
        in.n -= sizeof t + t.blocks * sizeof(uint64_t);
    }
    return RBT_OK;
}

static rbt_err copy_rows(const rbt_cache_piece *piece, seen *s, rbt_data *data, rbt_error *error)
{
    rbt_err err = rbt_cache_judge(piece->input->bytes, piece->input->name, &s->look, error);
    if (err != RBT_OK)
        return err;
    if (s->look.first != piece->first || s->look.rows != piece->rows)
        return rbt_fail(error, RBT_E_DATA, "%s: the cache has changed while it was read; start again",
                        piece->input->name);
    err = rbt_cache_names_take(s->names, piece->input->name, &s->view, error);
    if (err != RBT_OK)
        return err;
    err = rbt_data_slice(&s->view, piece->first, piece->rows, data, error);
    rbt_cache_names_drop(&s->view);
    return err;
}

rbt_err rbt_cache_pieces_read(const rbt_cache_piece *pieces, size_t count, rbt_crew *crew, rbt_err err, rbt_data *data,
                              rbt_error *error)
{
    seen *s = rbt_alloc(count + 1, sizeof *s);
    rbt_bytes *all = rbt_alloc(crew->size, sizeof *all), mine = {0};
    size_t done = 0;
    for (size_t i = 0; err == RBT_OK && i < count; i++) {
        const rbt_cache_piece *p = &pieces[i];
        s[i].look = (rbt_cache_look){.part = p->part, .parts = p->parts, .first = p->first, .rows = p->rows};
        err =
            rbt_cache_look_at(p->input->bytes, p->input->n, p->input->name, &s[i].look, &s[i].view, &s[i].names, error);
    }
    if (err == RBT_OK)
        mine = tell(pieces, s, count);
    err = rbt_crew_collect(crew, err, mine, all, error);
    for (uint32_t r = 0; err == RBT_OK && r < crew->size; r++)
        if (r != crew->rank)
            err = hear(all[r], pieces, s, count, error);
    while (err == RBT_OK && done < count) {
        err = copy_rows(&pieces[done], &s[done], &data[done], error);
        done += err == RBT_OK;
    }
    for (size_t i = 0; err != RBT_OK && i < done; i++)
        rbt_data_deinit(&data[i]);
    for (size_t i = 0; i < count; i++)
        rbt_free(s[i].look.hashes);
    rbt_crew_free(crew, all);
    rbt_free(all);
    rbt_free(mine.at);
    rbt_free(s);
    return err;
}
