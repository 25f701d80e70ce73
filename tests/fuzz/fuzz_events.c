/* Feeds arbitrary bytes to the reader of events, under options from the first two: batches of any size give the same keys or the same
 * refusal, and parts of the file have the keys of the whole, each once. Run: fuzz_events CORPUS_FOLDER. */
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "data/events.h"
#include "data/unpack.h"
#include "memory_file.h"

#define KEYS_AT_ONCE 16

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* What a reader has had: how many keys, and their hashes in their order, or in none; how many lines were left out. */
typedef struct had {
    uint64_t count, in_order, in_any, left_out;
    rbt_err err;
    rbt_error error;
} had;

static void read_all(const char *path, const rbt_events_options *options, size_t room, had *h)
{
    rbt_event_key keys[KEYS_AT_ONCE];
    rbt_events *events = NULL;
    size_t count = 1;

    h->err = rbt_events_open(path, options, &events, &h->error);
    while (h->err == RBT_OK && count > 0) {
        h->err = rbt_events_next(events, keys, room, &count, &h->error);
        for (size_t i = 0; h->err == RBT_OK && i < count; i++) {
            RBT_ASSERT(keys[i].hash == rbt_hash(keys[i].text, keys[i].n, 0) && (keys[i].n > 0 || options->empty));
            RBT_ASSERT(memchr(keys[i].text, '\n', keys[i].n) == NULL);
            h->count++;
            h->in_order = h->in_order * 31 + keys[i].hash;
            h->in_any += keys[i].hash;
        }
    }
    if (events != NULL) {
        rbt_read_report report = {0};

        rbt_events_report(events, &report);
        h->left_out += report.skipped;
    }
    rbt_events_close(events);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    char path[MEMORY_FILE_ROOM];
    had whole = {0}, again = {0}, parts = {0};

    if (n < 2)
        return 0;
    rbt_events_options options = {.column = bytes[0] % 4,
                                  .separator = bytes[0] & 4 ? ' ' : '\0',
                                  .skip_bad = bytes[0] / 8 % 4,
                                  .empty = bytes[0] % 4 == 0 && bytes[0] & 32,
                                  .piece = 1 + bytes[1] / 4u};
    memory_file(bytes + 2, n - 2, path);
    read_all(path, &options, KEYS_AT_ONCE, &whole);
    read_all(path, &options, 1, &again);
    RBT_ASSERT(whole.err == again.err && whole.count == again.count && whole.in_order == again.in_order);
    if (whole.err != RBT_OK)
        RBT_ASSERT(strncmp(whole.error.text, path, strlen(path)) == 0 &&
                   strcmp(whole.error.text, again.error.text) == 0);
    options.parts = 2 + bytes[1] % 4;
    for (options.part = 0; options.part < options.parts && parts.err == RBT_OK; options.part++)
        read_all(path, &options, KEYS_AT_ONCE, &parts);
    if (parts.err != RBT_OK) /* one alone has too many bad lines, or is the first to find damage */
        RBT_ASSERT(whole.err == parts.err &&
                   (rbt_unpack_recognise(bytes + 2, n - 2) || strcmp(whole.error.text, parts.error.text) == 0));
    else if (whole.err != RBT_OK) /* together they have; who adds them up says so */
        RBT_ASSERT(parts.left_out > options.skip_bad);
    else
        RBT_ASSERT(whole.count == parts.count && whole.in_any == parts.in_any && whole.left_out == parts.left_out);
    return 0;
}
