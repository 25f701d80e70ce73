/* Feeds arbitrary bytes to what unsqueezes bodies of messages: behind a head that fits (blocks of which the first bytes decide the
 * forms, types and counts), and several times over one line, so that lists of keys that came before are named. What is
 * accepted keeps the promises of messages, and comes out again when it is squeezed and unsqueezed with every codec.
 * Run: fuzz_squeeze CORPUS_FOLDER. */
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "comm/squeeze.h"

#define BODY_MAX 100000
#define PARTS    3

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* A message whose head announces what two bytes a part say; its content does not matter. */
static rbt_message *make_message(rbt_unpack *in)
{
    rbt_message *m = rbt_message_create(RBT_MSG_PUSH, 3, 1);

    for (uint32_t i = 0; i < PARTS; i++) {
        uint8_t ask[2];
        rbt_snap *snap;
        rbt_type type;

        rbt_unpack_into(in, ask, sizeof ask);
        type = (rbt_type)(ask[0] % 3);
        if (ask[0] & 0x40)
            continue;
        snap = ask[0] & 0x80 ? rbt_snap_create_sparse(type, 100 + ask[1], ask[1] % 100) : rbt_snap_create(type, ask[1]);
        for (uint32_t k = 0; snap->index != NULL && k < snap->count; k++)
            snap->index[k] = k;
        rbt_array_push(&m->parts, ((rbt_part){.block = i, .snap = snap}));
    }
    return m;
}

static uint8_t *encode(const rbt_message *m, size_t *n)
{
    uint8_t *bytes = rbt_alloc(rbt_wire_size(m), 1);

    *n = rbt_wire_size(m);
    rbt_wire_encode(m, bytes);
    return bytes;
}

static void check_again(const rbt_message *m, const uint8_t *head, size_t head_n)
{
    size_t n, again_n;
    uint8_t *bytes = encode(m, &n), *again_bytes;

    for (unsigned codec = 1; codec < 32; codec++) {
        rbt_keys sent = {0}, received = {0};

        for (int round = 0; round < 2; round++) {
            rbt_pack body = {0};
            rbt_message *again = NULL;
            rbt_error error;

            if (rbt_squeeze(m, codec, &sent, &body)) {
                RBT_ASSERT(body.count < rbt_wire_body_size(m));
                RBT_ASSERT(rbt_unsqueeze(head, head_n, body.at, body.count, BODY_MAX, &received, &again, &error) ==
                           RBT_OK);
                again_bytes = encode(again, &again_n);
                RBT_ASSERT(again_n == n && memcmp(bytes, again_bytes, n) == 0);
                rbt_free(again_bytes);
                rbt_message_destroy(again);
            }
            rbt_array_free(&body);
        }
        rbt_keys_deinit(&sent);
        rbt_keys_deinit(&received);
    }
    rbt_free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    rbt_unpack in = rbt_unpack_of(bytes, n);
    rbt_keys keys = {0};

    while (in.at < in.end && !in.bad) {
        rbt_message *m = make_message(&in), *out = NULL;
        size_t head_n = rbt_wire_head_size(m), left = (size_t)(in.end - in.at), take;
        uint8_t *head = rbt_alloc(head_n, 1), *body, length[2], right;
        rbt_error error = {0};
        rbt_err err;

        rbt_wire_encode_head(m, head);
        rbt_unpack_into(&in, length, sizeof length);
        left = (size_t)(in.end - in.at);
        take = (size_t)length[0] | (size_t)(length[1] & 3) << 8;
        take = take < left ? take : left;
        right = length[1] & 0x80;
        body = rbt_alloc(take + 9, 1);
        if (take > 0)
            memcpy(body, in.at, take);
        in.at += take;
        if (right && take >= 9) { /* the length of the real body put right */
            uint64_t plain = rbt_wire_body_size(m);

            body[0] &= 3;
            memcpy(body + 1, &plain, sizeof plain);
        }
        err = rbt_unsqueeze(head, head_n, body, take, BODY_MAX, &keys, &out, &error);
        RBT_ASSERT(keys.bytes <= RBT_KEYS_BYTES);
        if (err == RBT_OK) {
            RBT_ASSERT(rbt_wire_check_body(out, &error) == RBT_OK && rbt_wire_size(out) == rbt_wire_size(m));
            check_again(out, head, head_n);
            rbt_message_destroy(out);
        } else {
            RBT_ASSERT(err == RBT_E_PROTOCOL && error.code == err && error.text[0] != '\0' && out == NULL);
        }
        rbt_free(head);
        rbt_free(body);
        rbt_message_destroy(m);
    }
    rbt_keys_deinit(&keys);
    return 0;
}
