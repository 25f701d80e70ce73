/* Key lists known by hash; the contract is in keys.h. */
#include "comm/keys.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

static void forget_all(rbt_keys *keys)
{
    for (uint32_t i = 0; keys->slots != NULL && i < RBT_KEYS_SLOTS; i++) {
        rbt_free(keys->slots[i].keys);
        keys->slots[i] = (rbt_key_list){0};
    }
    keys->bytes = 0;
}

void rbt_keys_deinit(rbt_keys *keys)
{
    forget_all(keys);
    rbt_free(keys->slots);
    *keys = (rbt_keys){0};
}

uint64_t rbt_keys_hash(const uint32_t *list, uint32_t count)
{
    return rbt_hash(list, count * sizeof *list, count);
}

const rbt_key_list *rbt_keys_find(const rbt_keys *keys, uint64_t hash, uint32_t count)
{
    const rbt_key_list *list;

    if (keys->slots == NULL || count == 0)
        return NULL;
    list = &keys->slots[hash % RBT_KEYS_SLOTS];
    return list->hash == hash && list->count == count ? list : NULL;
}

bool rbt_keys_note(rbt_keys *keys, uint64_t hash, uint32_t count, const uint32_t *list)
{
    size_t bytes = count * sizeof *list;
    rbt_key_list *slot;

    if (rbt_keys_find(keys, hash, count) != NULL)
        return true;
    if (keys->slots == NULL)
        keys->slots = rbt_alloc(RBT_KEYS_SLOTS, sizeof *keys->slots);
    slot = &keys->slots[hash % RBT_KEYS_SLOTS];
    keys->bytes -= slot->count * sizeof *list;
    rbt_free(slot->keys);
    *slot = (rbt_key_list){0};
    if (keys->bytes + bytes > RBT_KEYS_BYTES)
        forget_all(keys);
    slot->hash = hash;
    slot->count = count;
    keys->bytes += bytes;
    if (list == NULL)
        return true;
    slot->keys = rbt_try_alloc_raw(count, sizeof *list);
    if (slot->keys != NULL)
        memcpy(slot->keys, list, bytes);
    return slot->keys != NULL;
}
