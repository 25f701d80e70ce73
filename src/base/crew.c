/* Steps in which all processes take part. Contract in crew.h; proved by tests/unit/test_crew_parallel.c.
 *
 * A message is the bytes themselves, or the words of a failure, and behind them one byte: the failure's code. Behind, so
 * that what came in can be handed on, and freed, as it is.
 */
#include "base/crew.h"

#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

static rbt_err swap_alone(rbt_crew *crew, const rbt_bytes *out, rbt_bytes *in, rbt_error *error)
{
    (void)crew;
    *in = (rbt_bytes){out->n > 0 ? rbt_try_alloc_raw(out->n, 1) : NULL, out->n};
    if (out->n > 0 && in->at == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for %zu bytes; use a larger machine", out->n);
    if (out->n > 0)
        memcpy(in->at, out->at, out->n);
    return RBT_OK;
}

rbt_crew rbt_crew_alone(void)
{
    return (rbt_crew){.rank = 0, .size = 1, .swap = swap_alone};
}

void rbt_crew_free(const rbt_crew *crew, rbt_bytes *all)
{
    for (uint32_t r = 0; r < crew->size; r++) {
        rbt_free(all[r].at);
        all[r] = (rbt_bytes){0};
    }
}

/* The bytes with how things went behind them; at is NULL when there is no memory. */
static rbt_bytes sealed(rbt_bytes from, rbt_err err)
{
    rbt_bytes to = {rbt_try_alloc_raw(from.n + 1, 1), from.n + 1};
    if (to.at == NULL)
        return to;
    if (from.n > 0)
        memcpy(to.at, from.at, from.n);
    to.at[from.n] = (uint8_t)err;
    return to;
}

static bool is_everybodys(const rbt_crew *crew, const rbt_bytes *in, rbt_bytes failure)
{
    for (uint32_t r = 0; r < crew->size; r++)
        if (in[r].n != failure.n || memcmp(in[r].at, failure.at, failure.n) != 0)
            return false;
    return true;
}

/* Takes the last byte off each; the first failure found is everybody's. */
static rbt_err unseal(rbt_crew *crew, rbt_bytes *in, rbt_error *error)
{
    rbt_error found = {RBT_OK, ""};
    uint32_t whose = crew->size;
    for (uint32_t r = 0; r < crew->size; r++) {
        if (in[r].n == 0 || in[r].at[in[r].n - 1] > RBT_E_LOST)
            return rbt_fail(error, RBT_E_PROTOCOL, "process %u sent %zu bytes that are no part of a common step", r,
                            in[r].n);
        rbt_err err = (rbt_err)in[r].at[in[r].n - 1];
        if (err != RBT_OK && found.code == RBT_OK) {
            whose = is_everybodys(crew, in, in[r]) ? crew->size : r;
            rbt_fail(&found, err, "%.*s", in[r].n <= 1024 ? (int)in[r].n - 1 : 1023, (const char *)in[r].at);
        }
    }
    for (uint32_t r = 0; r < crew->size; r++)
        in[r].n--;
    if (found.code != RBT_OK && crew->failed != NULL)
        crew->failed(crew, whose, &found);
    return found.code == RBT_OK ? RBT_OK : rbt_fail(error, found.code, "%s", found.text);
}

/* What goes out to each: the bytes, or in place of them the failure. */
static rbt_err seal_all(const rbt_crew *crew, rbt_err err, const rbt_error *why, const rbt_bytes *out,
                        rbt_bytes *messages)
{
    rbt_bytes words = {(uint8_t *)(uintptr_t)why->text, strlen(why->text)};
    for (uint32_t r = 0; r < crew->size; r++) {
        messages[r] = sealed(err == RBT_OK ? out[r] : words, err);
        if (messages[r].at == NULL)
            return RBT_E_MEMORY;
    }
    return RBT_OK;
}

rbt_err rbt_crew_swap(rbt_crew *crew, rbt_err err, const rbt_bytes *out, rbt_bytes *in, rbt_error *error)
{
    rbt_error why = {RBT_OK, ""};
    if (err != RBT_OK && error != NULL)
        why = *error;
    if (crew->size == 1 && err != RBT_OK)
        return err;
    rbt_bytes *messages = rbt_alloc(crew->size, sizeof *messages);
    if (seal_all(crew, err, &why, out, messages) != RBT_OK) {
        rbt_crew_free(crew, messages);
        err =
            rbt_fail(&why, RBT_E_MEMORY, "not enough memory to share data with other processes; use a larger machine");
        rbt_err sent = seal_all(crew, err, &why, out, messages); /* a sentence will fit */
        RBT_ASSERT(sent == RBT_OK);
    }
    memset(in, 0, crew->size * sizeof *in);
    err = crew->swap(crew, messages, in, error);
    if (err == RBT_OK)
        err = unseal(crew, in, error);
    if (err != RBT_OK)
        rbt_crew_free(crew, in);
    rbt_crew_free(crew, messages);
    rbt_free(messages);
    return err;
}

rbt_err rbt_crew_collect(rbt_crew *crew, rbt_err err, rbt_bytes mine, rbt_bytes *all, rbt_error *error)
{
    rbt_bytes *out = rbt_alloc(crew->size, sizeof *out);
    for (uint32_t r = 0; r < crew->size; r++)
        out[r] = mine;
    err = rbt_crew_swap(crew, err, out, all, error);
    rbt_free(out);
    return err;
}

rbt_err rbt_crew_share(rbt_crew *crew, rbt_err err, const void *mine, size_t bytes, void *all, rbt_error *error)
{
    if (crew->size == 1) {
        if (err == RBT_OK && bytes > 0)
            memcpy(all, mine, bytes);
        return err;
    }
    rbt_bytes *in = rbt_alloc(crew->size, sizeof *in);
    err = rbt_crew_collect(crew, err, (rbt_bytes){(uint8_t *)(uintptr_t)mine, bytes}, in, error);
    for (uint32_t r = 0; err == RBT_OK && r < crew->size; r++)
        if (in[r].n != bytes)
            err = rbt_fail(error, RBT_E_PROTOCOL,
                           "process %u shares %zu bytes, this one %zu: they are not at the same step; run the same "
                           "version of rubato everywhere",
                           r, in[r].n, bytes);
    for (uint32_t r = 0; err == RBT_OK && bytes > 0 && r < crew->size; r++)
        memcpy((uint8_t *)all + r * bytes, in[r].at, bytes);
    rbt_crew_free(crew, in);
    rbt_free(in);
    return err;
}

rbt_err rbt_crew_agree(rbt_crew *crew, rbt_err err, rbt_error *error)
{
    return rbt_crew_share(crew, err, NULL, 0, NULL, error);
}

rbt_err rbt_crew_travel(rbt_crew *crew, rbt_err err, void (*add)(void *context, void *sums), void *context, void *sums,
                        size_t bytes, rbt_error *error)
{
    rbt_bytes *out = rbt_alloc(crew->size, sizeof *out), *in = rbt_alloc(crew->size, sizeof *in);
    if (err == RBT_OK)
        memset(sums, 0, bytes);
    for (uint32_t turn = 0; turn < crew->size; turn++) {
        bool last = turn + 1 == crew->size;
        memset(out, 0, crew->size * sizeof *out);
        if (err == RBT_OK && crew->rank == turn)
            add(context, sums);
        for (uint32_t r = 0; crew->rank == turn && crew->size > 1 && r < crew->size; r++)
            if (last || r == turn + 1)
                out[r] = (rbt_bytes){sums, bytes};
        if (crew->size > 1)
            err = rbt_crew_swap(crew, err, out, in, error);
        if (err != RBT_OK)
            break;
        if (crew->size > 1 && crew->rank != turn && (last || crew->rank == turn + 1)) {
            if (in[turn].n == bytes)
                memcpy(sums, in[turn].at, bytes);
            else
                err = rbt_fail(error, RBT_E_PROTOCOL, "process %u passes on %zu bytes of sums, %zu are due", turn,
                               in[turn].n, bytes); /* told to all with the next step */
        }
        rbt_crew_free(crew, in);
    }
    rbt_free(out);
    rbt_free(in);
    return err;
}
