/* Feeds arbitrary bytes to the message decoder, as they are and with the head set right so that every type's fields are
 * reached. What it accepts must encode to the very same bytes, and its blocks must keep what rbt_snap promises.
 * Run: fuzz_codec CORPUS_FOLDER. */
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "wire/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void check_blocks(const rbt_message *message)
{
    for (size_t i = 0; i < message->parts.count; i++) {
        const rbt_snap *snap = message->parts.at[i].snap;

        if (snap == NULL)
            continue;
        RBT_ASSERT(snap->type <= RBT_I64 && snap->length <= RBT_WIRE_LENGTH_MAX && snap->count <= snap->length);
        RBT_ASSERT((snap->form == RBT_SPARSE) == (snap->index != NULL));
        RBT_ASSERT(snap->form == RBT_SPARSE || snap->count == snap->length);
        for (uint32_t k = 0; snap->index != NULL && k < snap->count; k++)
            RBT_ASSERT(snap->index[k] < snap->length && (k == 0 || snap->index[k - 1] < snap->index[k]));
    }
}

static void try_decode(const uint8_t *bytes, size_t n)
{
    rbt_message *message = NULL;
    rbt_error error = {0};
    rbt_err err = rbt_wire_decode(bytes, n, &message, &error);
    uint8_t *again;

    if (err != RBT_OK) {
        RBT_ASSERT(err == RBT_E_PROTOCOL && error.code == err && message == NULL);
        return;
    }
    check_blocks(message);
    RBT_ASSERT(rbt_wire_size(message) == n);
    again = rbt_alloc(n, 1);
    rbt_wire_encode(message, again);
    RBT_ASSERT(memcmp(again, bytes, n) == 0);
    rbt_free(again);
    rbt_message_destroy(message);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    uint8_t *copy;

    try_decode(bytes, n);
    if (n < 4)
        return 0;
    copy = rbt_alloc(n, 1);
    memcpy(copy, bytes, n);
    copy[0] = (uint8_t)(1 + bytes[0] % (RBT_MSG_TYPES - 1));
    copy[1] = RBT_WIRE_VERSION;
    copy[2] = copy[3] = 0;
    try_decode(copy, n);
    rbt_free(copy);
    return 0;
}
