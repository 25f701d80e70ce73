/* LZ4, or its absence; the contract is in lz4.h. */
#include "base/lz4.h"

#ifdef RBT_HAVE_LZ4
#include <lz4.h>

bool rbt_lz4_is_there(void)
{
    return true;
}

size_t rbt_lz4_pack(const uint8_t *bytes, size_t n, uint8_t *out, size_t room)
{
    int done;

    if (n > RBT_LZ4_INPUT_MOST)
        return 0;
    room = room < RBT_LZ4_INPUT_MOST ? room : RBT_LZ4_INPUT_MOST;
    done = LZ4_compress_default((const char *)bytes, (char *)out, (int)n, (int)room);
    return done > 0 ? (size_t)done : 0;
}

bool rbt_lz4_unpack(const uint8_t *bytes, size_t n, uint8_t *out, size_t size)
{
    if (n > RBT_LZ4_INPUT_MOST || size > RBT_LZ4_INPUT_MOST)
        return false;
    return LZ4_decompress_safe((const char *)bytes, (char *)out, (int)n, (int)size) == (int)size;
}

#else

bool rbt_lz4_is_there(void)
{
    return false;
}

size_t rbt_lz4_pack(const uint8_t *bytes, size_t n, uint8_t *out, size_t room)
{
    (void)bytes;
    (void)n;
    (void)out;
    (void)room;
    return 0;
}

bool rbt_lz4_unpack(const uint8_t *bytes, size_t n, uint8_t *out, size_t size)
{
    (void)bytes;
    (void)n;
    (void)out;
    (void)size;
    return false;
}

#endif
