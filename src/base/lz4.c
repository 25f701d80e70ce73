/* LZ4, or its absence; the contract is in lz4.h. */
#include "base/lz4.h"

#include "base/error.h"

#ifdef RBT_HAVE_LZ4
#include <lz4.h>

#include "base/library.h"

#define FUNCTIONS(F)                                                                                                   \
    F(LZ4_compress_default)                                                                                            \
    F(LZ4_decompress_safe)

RBT_LIBRARY_DECLARE(rbt_lz4, FUNCTIONS);
RBT_LIBRARY_DEFINE(rbt_lz4, FUNCTIONS, "liblz4.so.1", "messages packed by lz4 need its library", "liblz4-1");

rbt_err rbt_lz4_load(rbt_error *error)
{
    return rbt_library_load(&rbt_lz4_library, error);
}

size_t rbt_lz4_pack(const uint8_t *bytes, size_t n, uint8_t *out, size_t room)
{
    if (n > RBT_LZ4_INPUT_MOST || rbt_lz4_load(NULL) != RBT_OK)
        return 0;
    room = room < RBT_LZ4_INPUT_MOST ? room : RBT_LZ4_INPUT_MOST;
    int done = rbt_lz4.LZ4_compress_default((const char *)bytes, (char *)out, (int)n, (int)room);
    return done > 0 ? (size_t)done : 0;
}

bool rbt_lz4_unpack(const uint8_t *bytes, size_t n, uint8_t *out, size_t size)
{
    if (n > RBT_LZ4_INPUT_MOST || size > RBT_LZ4_INPUT_MOST || rbt_lz4_load(NULL) != RBT_OK)
        return false;
    return rbt_lz4.LZ4_decompress_safe((const char *)bytes, (char *)out, (int)n, (int)size) == (int)size;
}

#else

rbt_err rbt_lz4_load(rbt_error *error)
{
    return rbt_fail(error, RBT_E_UNSUPPORTED,
                    "messages packed by lz4 need the feature LZ4, which this build lacks; install liblz4-dev and build "
                    "again");
}

size_t rbt_lz4_pack(const uint8_t *bytes, size_t n, uint8_t *out, size_t room)
{
    (void)bytes, (void)n, (void)out, (void)room;
    return 0;
}

bool rbt_lz4_unpack(const uint8_t *bytes, size_t n, uint8_t *out, size_t size)
{
    (void)bytes, (void)n, (void)out, (void)size;
    return false;
}

#endif
