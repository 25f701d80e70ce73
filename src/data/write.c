/* Text made in pieces by all cores and written in order. Contract in write.h; proved by tests/unit/test_write.c.
 *
 * Pieces are made in waves. While a wave is being made, one of the threads writes the wave before it: making and
 * writing overlap, and no lock is needed.
 */
#include "data/write.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/parallel.h"

#define PIECES_PER_THREAD 16 /* in a wave: few enough to stay in the cache, enough to even out the threads */

rbt_err rbt_buffer_reserve(rbt_buffer *buffer, size_t more, rbt_error *error)
{
    size_t need;
    if (!__builtin_add_overflow(buffer->n, more, &need) && need <= buffer->room)
        return RBT_OK;
    size_t room = buffer->room + buffer->room / 2 > need ? buffer->room + buffer->room / 2 : need;
    char *at = need >= more ? rbt_try_alloc_raw(room, 1) : NULL;
    if (at == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for %zu bytes of text; use shorter rows", need);
    if (buffer->n > 0)
        memcpy(at, buffer->at, buffer->n);
    rbt_free(buffer->at);
    buffer->at = at;
    buffer->room = room;
    return RBT_OK;
}

void rbt_buffer_deinit(rbt_buffer *buffer)
{
    rbt_free(buffer->at);
    *buffer = (rbt_buffer){0};
}

rbt_err rbt_writing_check(const rbt_writing *how, rbt_error *error)
{
    if (how->stop != NULL && atomic_load_explicit(how->stop, memory_order_relaxed))
        return rbt_fail(error, RBT_E_INTERRUPTED, "%s: interrupted; nothing was written", how->path);
    return RBT_OK;
}

unsigned rbt_writing_threads(const rbt_writing *how)
{
    return how->threads > 0 ? how->threads : rbt_parallel_threads();
}

/* ------------------------------------------------------------------------------------------------------- waves */

typedef struct slot {
    rbt_buffer text;
    rbt_err err;
    rbt_error error;
} slot;

typedef struct waves {
    const rbt_making *pieces;
    rbt_output *output;
    slot *making, *written;    /* the two halves of the slots */
    size_t first, made, ready; /* pieces first .. first + made - 1 are being made; so many are ready to be written */
    rbt_err err;               /* of writing */
    rbt_error *error;
} waves;

static void write_ready(waves *w)
{
    for (size_t i = 0; w->err == RBT_OK && i < w->ready; i++)
        if (w->written[i].text.n > 0)
            w->err = rbt_output_put(w->output, w->written[i].text.at, w->written[i].text.n, w->error);
}

/* Item 0 is the wave before this one, to be written; the others are to be made. */
static void work(void *context, size_t item)
{
    waves *w = context;
    if (item == 0) {
        write_ready(w);
        return;
    }
    slot *s = &w->making[item - 1];
    s->text.n = 0;
    s->err = w->pieces->make(w->pieces->context, w->first + item - 1, &s->text, &s->error);
}

/* The outcome of a wave; the made pieces become the ready ones. */
static rbt_err turn(waves *w)
{
    if (w->err != RBT_OK)
        return w->err;
    for (size_t i = 0; i < w->made; i++)
        if (w->making[i].err != RBT_OK)
            return rbt_fail(w->error, w->making[i].err, "%s", w->making[i].error.text);
    slot *other = w->making;
    w->making = w->written;
    w->written = other;
    w->ready = w->made;
    return RBT_OK;
}

rbt_err rbt_making_write(const rbt_making *pieces, const rbt_writing *how, rbt_output *output, rbt_error *error)
{
    unsigned threads = rbt_writing_threads(how);
    size_t wave = (size_t)threads * PIECES_PER_THREAD;
    wave = wave > RBT_WRITE_PIECES_MOST / 2 ? RBT_WRITE_PIECES_MOST / 2 : wave;
    wave = wave > pieces->count ? pieces->count : wave;
    slot *slots = rbt_alloc(2 * wave, sizeof *slots);
    waves w = {.pieces = pieces, .output = output, .making = slots, .written = slots + wave, .error = error};
    rbt_err err = RBT_OK;
    for (; err == RBT_OK && w.first < pieces->count; w.first += w.made) {
        w.made = pieces->count - w.first < wave ? pieces->count - w.first : wave;
        rbt_parallel_for(w.made + 1, threads, work, &w);
        err = turn(&w);
        if (err == RBT_OK)
            err = rbt_writing_check(how, error);
    }
    if (err == RBT_OK && pieces->end != NULL && w.ready > 0)
        err = pieces->end(pieces->context, &w.written[w.ready - 1].text, error);
    if (err == RBT_OK) {
        write_ready(&w);
        err = w.err;
    }
    for (size_t i = 0; i < 2 * wave; i++)
        rbt_buffer_deinit(&slots[i].text);
    rbt_free(slots);
    return err;
}

rbt_err rbt_making_write_file(const rbt_making *pieces, const rbt_writing *how, const rbt_buffer *head,
                              rbt_error *error)
{
    rbt_output output;
    rbt_err err = rbt_output_open(how->path, &output, error);
    if (err != RBT_OK)
        return err;
    if (head != NULL && head->n > 0)
        err = rbt_output_put(&output, head->at, head->n, error);
    if (err == RBT_OK)
        err = rbt_making_write(pieces, how, &output, error);
    if (err == RBT_OK)
        return rbt_output_finish(&output, false, error);
    rbt_output_abandon(&output);
    return err;
}
