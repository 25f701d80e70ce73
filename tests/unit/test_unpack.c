/* Proves src/data/unpack: what was compressed comes out again, and whatever is wrong with it is said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef RBT_HAVE_ZLIB
#include <zlib.h>
#endif
#ifdef RBT_HAVE_ZSTD
#include <zstd.h>
#endif

#include "base/library.h"
#include "base/mem.h"
#include "data/unpack.h"

#define TEXT_BYTES 1000000

typedef size_t (*packer)(const char *text, size_t n, char *out, size_t room);

#ifdef RBT_HAVE_ZLIB
static size_t pack_gzip(const char *text, size_t n, char *out, size_t room)
{
    z_stream stream = {0};
    assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = (Bytef *)(uintptr_t)text;
    stream.avail_in = (uInt)n;
    stream.next_out = (Bytef *)out;
    stream.avail_out = (uInt)room;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    size_t packed = stream.total_out;
    (void)deflateEnd(&stream);
    return packed;
}
#endif

#ifdef RBT_HAVE_ZSTD
static size_t pack_zstd(const char *text, size_t n, char *out, size_t room)
{
    /* With a checksum, so that damage is seen. */
    ZSTD_CCtx *context = ZSTD_createCCtx();
    (void)ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    size_t packed = ZSTD_compress2(context, out, room, text, n);
    (void)ZSTD_freeCCtx(context);
    assert_false(ZSTD_isError(packed));
    return packed;
}
#endif

#ifdef RBT_HAVE_ZSTD
/* As pzstd makes it: a frame that is skipped, with 4 bytes in it, before the text's. */
static size_t pack_skippable(const char *text, size_t n, char *out, size_t room)
{
    static const char skipped[] = "\x50\x2a\x4d\x18\x04\x00\x00\x00len!";
    size_t head = sizeof skipped - 1;
    memcpy(out, skipped, head);
    return head + pack_zstd(text, n, out + head, room - head);
}
#endif

static const packer packers[] = {
#ifdef RBT_HAVE_ZLIB
    pack_gzip,
#endif
#ifdef RBT_HAVE_ZSTD
    pack_zstd,
#endif
    NULL, /* the end; without either library there is nothing before it */
};

/* An input of a copy in memory of exactly that size: a sanitizer sees every read beyond it. */
static rbt_input input_of(const char *bytes, size_t n)
{
    char *copy = rbt_try_alloc_raw(n, 1);
    assert_non_null(copy);
    if (n > 0)
        memcpy(copy, bytes, n);
    return (rbt_input){.name = "mem", .bytes = copy, .n = n};
}

static void says(const rbt_error *error, const char *piece)
{
    if (strstr(error->text, piece) == NULL)
        fail_msg("'%s' is not in: %s", piece, error->text);
}

static void what_is_not_compressed_stays_as_it_is(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "1 1:1\n", "\x1f", "\x28\xb5\x2f", "\x5f\x2a\x4d", "\x60\x2a\x4d\x18"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        rbt_input in = input_of(texts[i], strlen(texts[i]));
        const char *before = in.bytes;
        assert_int_equal(rbt_input_unpack(&in, NULL), RBT_OK);
        assert_ptr_equal(in.bytes, before);
        rbt_input_close(&in);
    }
}

/* Text that packs well in its first half and not at all in its second. */
static char *make_text(void)
{
    char *text = malloc(TEXT_BYTES);
    assert_non_null(text);
    uint32_t x = 1;
    for (size_t i = 0; i < TEXT_BYTES; i++) {
        x = x * 1664525 + 1013904223;
        text[i] = i < TEXT_BYTES / 2 ? 'a' : (char)(x >> 24);
    }
    return text;
}

static void packed_text_comes_out_again(void **state)
{
    (void)state;
    char *text = make_text(), *packed = malloc(3 * TEXT_BYTES);
    assert_non_null(packed);
    for (size_t k = 0; packers[k] != NULL; k++) {
        /* Twice in a row, as `cat a.gz b.gz` makes it, and nothing as a third. */
        size_t n = packers[k](text, TEXT_BYTES, packed, 3 * TEXT_BYTES);
        n += packers[k](text, 1000, packed + n, 3 * TEXT_BYTES - n);
        n += packers[k](text, 0, packed + n, 3 * TEXT_BYTES - n);
        rbt_input in = input_of(packed, n);
        assert_int_equal(rbt_input_unpack(&in, NULL), RBT_OK);
        assert_int_equal(in.n, TEXT_BYTES + 1000);
        assert_memory_equal(in.bytes, text, TEXT_BYTES);
        assert_memory_equal(in.bytes + TEXT_BYTES, text, 1000);
        rbt_input_close(&in);
    }
    free(packed);
    free(text);
}

static void a_cut_anywhere_is_said(void **state)
{
    (void)state;
    static const char text[] = "1 1:1\n-1 2:0.25 3:7\n1 1:1\n-1 2:0.25 3:7\n";
    char packed[512];
    rbt_error error;
    for (size_t k = 0; packers[k] != NULL; k++) {
        size_t whole = packers[k](text, sizeof text - 1, packed, sizeof packed);
        for (size_t n = 4; n < whole; n++) {
            rbt_input in = input_of(packed, n);
            assert_int_equal(rbt_input_unpack(&in, &error), RBT_E_DATA);
            says(&error, "mem: the compressed file is cut short");
            assert_int_equal(in.n, n);
            rbt_input_close(&in);
        }
    }
}

static void damage_is_said_or_harmless(void **state)
{
    (void)state;
    static const char text[] = "1 1:1\n-1 2:0.25 3:7\n1 1:1\n-1 2:0.25 3:7\n";
    char packed[512];
    rbt_error error;
    for (size_t k = 0; packers[k] != NULL; k++) {
        size_t n = packers[k](text, sizeof text - 1, packed, sizeof packed);
        for (size_t i = 0; i < n; i++) {
            rbt_input in = input_of(packed, n);
            ((char *)(uintptr_t)in.bytes)[i] ^= 0x40;
            rbt_err err = rbt_input_unpack(&in, &error);
            /* gzip's head has fields that nothing depends on, such as the time. */
            if (err == RBT_OK && i >= 10)
                assert_memory_equal(in.bytes, text, sizeof text - 1);
            else if (err != RBT_OK)
                assert_int_equal(err, RBT_E_DATA);
            rbt_input_close(&in);
        }
        memcpy(packed + n, "more", 4);
        rbt_input in = input_of(packed, n + 4);
        assert_int_equal(rbt_input_unpack(&in, &error), RBT_E_DATA);
        says(&error, "mem: the compressed file is damaged near byte");
        rbt_input_close(&in);
    }
}

/* Its checksum tells a change in the last block; a step that fails does not say what it has taken. */
static void damage_is_told_near_its_place(void **state)
{
    (void)state;
#ifdef RBT_HAVE_ZSTD
    char *text = make_text(), *packed = malloc(3 * TEXT_BYTES);
    ZSTD_CCtx *zstd = ZSTD_createCCtx();
    assert_true(packed != NULL && zstd != NULL);
    assert_false(ZSTD_isError(ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 1)));
    size_t n = ZSTD_compress2(zstd, packed, 3 * TEXT_BYTES, text, TEXT_BYTES), place = 0;
    assert_false(ZSTD_isError(n));
    packed[n - 40] ^= 1;
    rbt_input in = input_of(packed, n);
    rbt_error error;
    assert_int_equal(rbt_input_unpack(&in, &error), RBT_E_DATA);
    assert_int_equal(sscanf(error.text, "mem: the compressed file is damaged near byte %zu", &place), 1);
    assert_true(place <= n && n - place < (size_t)129 * 1024); /* a block is 128 KiB at most */
    rbt_input_close(&in);
    ZSTD_freeCCtx(zstd);
    free(packed);
    free(text);
#endif
}

/* It says 266 bytes and has an empty block: unpacked in one go or in pieces, it is damaged. */
static void a_frame_with_less_text_than_it_says_is_damaged(void **state)
{
    (void)state;
#ifdef RBT_HAVE_ZSTD
    static const char frame[] = "\x28\xb5\x2f\xfd\x40\x0a\x00\x00\x01\x00\x00";
    size_t n = sizeof frame - 1;
    rbt_input in = input_of(frame, n);
    rbt_error error;
    assert_int_equal(rbt_input_unpack(&in, &error), RBT_E_DATA);
    says(&error, "mem: the compressed file is damaged");
    for (size_t piece = 1; piece <= n; piece++) { /* also such as cut its head */
        rbt_unpacker *u;
        rbt_err err = RBT_OK;
        size_t taken = 0, given = 1;
        char out;
        assert_int_equal(rbt_unpacker_create("mem", frame, n, &u, &error), RBT_OK);
        for (size_t done = 0; err == RBT_OK && (done < n || given > 0); done += taken)
            err = rbt_unpacker_step(u, frame + done, n - done < piece ? n - done : piece, &taken, &out, 1, &given,
                                    &error);
        assert_int_equal(err, RBT_E_DATA);
        says(&error, "a frame has less text than it says");
        rbt_unpacker_destroy(u);
    }
    rbt_input_close(&in);
#endif
}

/* Frames that are skipped, with and without bytes in them, wherever they stand and however they come. */
static void frames_that_are_skipped_have_no_text(void **state)
{
    (void)state;
#ifdef RBT_HAVE_ZSTD
    static const char empty[] = "\x5f\x2a\x4d\x18\0\0\0", text[] = "1 1:1\n-1 2:0.25 3:7\n";
    char packed[512];
    size_t n = 0;
    for (int i = 0; i < 2; i++) {
        memcpy(packed + n, empty, sizeof empty);
        n += sizeof empty;
        n += pack_skippable(text, sizeof text - 1, packed + n, sizeof packed - n);
    }
    memcpy(packed + n, empty, sizeof empty);
    n += sizeof empty;
    for (size_t piece = 1; piece <= n; piece++) {
        rbt_unpacker *u;
        rbt_error error;
        size_t taken = 0, given = 1, got = 0;
        char out[sizeof text * 2];
        assert_int_equal(rbt_unpacker_create("mem", packed, n, &u, &error), RBT_OK);
        for (size_t done = 0; done < n || given > 0; done += taken, got += given)
            assert_int_equal(rbt_unpacker_step(u, packed + done, n - done < piece ? n - done : piece, &taken, out + got,
                                               sizeof out - got, &given, &error),
                             RBT_OK);
        assert_int_equal(rbt_unpacker_end(u, &error), RBT_OK);
        assert_int_equal(got, 2 * (sizeof text - 1));
        assert_memory_equal(out, text, sizeof text - 1);
        assert_memory_equal(out + sizeof text - 1, text, sizeof text - 1);
        rbt_unpacker_destroy(u);
    }
#endif
}

/* Its head says that 256 MiB of text may have to be remembered. */
static void a_window_that_is_too_large_is_no_damage(void **state)
{
    (void)state;
#ifdef RBT_HAVE_ZSTD
    static const char frame[] = "\x28\xb5\x2f\xfd\x00\x90\x01\x00\x00";
    rbt_input in = input_of(frame, sizeof frame - 1);
    rbt_error error;
    assert_int_equal(rbt_input_unpack(&in, &error), RBT_E_LIMIT);
    says(&error, "mem: was packed by zstd with a window larger than 128 MiB; unpack it with zstd -d --long=31");
    rbt_input_close(&in);
    char *smaller = (char *)(uintptr_t)(in = input_of(frame, sizeof frame - 1)).bytes;
    smaller[5] = '\x88'; /* 128 MiB */
    assert_int_equal(rbt_input_unpack(&in, &error), RBT_OK);
    assert_int_equal(in.n, 0);
    rbt_input_close(&in);
#endif
}

/* Who types a row is not asked for more than tells it apart. */
static void few_bytes_tell_what_is_not_compressed(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        bool undecided;
    } known[] = {{"", true},       {"\x1f", true},     {"\x1f\x8b", false}, {"\x1f\n", false},
                 {"(", true},      {"(\n", false},     {"\x28\xb5", true},  {"P", true},
                 {"_", true},      {"P\n", false},     {"P*", true},        {"P*M", true},
                 {"P*M\n", false}, {"P*M\x18", false}, {"`", false},        {"1", false}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        assert_int_equal(rbt_unpack_is_undecided(known[i].bytes, strlen(known[i].bytes)), known[i].undecided);
}

static void a_build_without_the_library_names_the_package(void **state)
{
    (void)state;
#ifndef RBT_HAVE_ZLIB
    rbt_input gz = input_of("\x1f\x8b..", 4);
    rbt_error gz_error;
    assert_int_equal(rbt_input_unpack(&gz, &gz_error), RBT_E_UNSUPPORTED);
    says(&gz_error, "zlib1g-dev");
    rbt_input_close(&gz);
#endif
#ifndef RBT_HAVE_ZSTD
    rbt_input zst = input_of("\x28\xb5\x2f\xfd", 4);
    rbt_error zst_error;
    assert_int_equal(rbt_input_unpack(&zst, &zst_error), RBT_E_UNSUPPORTED);
    says(&zst_error, "libzstd-dev");
    rbt_input_close(&zst);
#endif
}

#ifdef RBT_HAVE_ZLIB
extern rbt_library rbt_zlib_library;

static int begun;

static int begin_badly(z_streamp stream, int window_bits, const char *version, int size)
{
    (void)stream, (void)window_bits, (void)version, (void)size;
    return begun;
}

/* The place of inflateInit2_ among the library's pointers. */
static char *place_of_begin(void)
{
    size_t i = 0;
    assert_int_equal(rbt_library_load(&rbt_zlib_library, NULL), RBT_OK);
    while (i < rbt_zlib_library.count && strcmp(rbt_zlib_library.names[i], "inflateInit2_") != 0)
        i++;
    assert_true(i < rbt_zlib_library.count);
    return (char *)rbt_zlib_library.functions + i * sizeof(void *);
}
#endif

static void a_library_that_does_not_begin_is_told_by_its_cause(void **state)
{
    (void)state;
#ifdef RBT_HAVE_ZLIB
    static const struct {
        int status;
        rbt_err err;
        const char *pieces[2];
    } known[] = {
        {Z_MEM_ERROR, RBT_E_MEMORY, {"mem: not enough memory to unpack it", "use a larger machine"}},
        {Z_VERSION_ERROR, RBT_E_UNSUPPORTED, {"mem: zlib here is version", "(its interface is another one); install"}},
        {Z_STREAM_ERROR, RBT_E_UNSUPPORTED, {"mem: zlib here is version", "(it calls what it is asked for invalid)"}},
        {Z_ERRNO, RBT_E_UNSUPPORTED, {"mem: zlib here is version", "or unpack it with gunzip"}},
    };
    static int (*const ours)(z_streamp, int, const char *, int) = begin_badly;
    char *place = place_of_begin(), before[sizeof(void *)];
    memcpy(before, place, sizeof before);
    memcpy(place, &ours, sizeof ours);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        rbt_input in = input_of("\x1f\x8b\x08", 3);
        rbt_error error;
        begun = known[i].status;
        assert_int_equal(rbt_input_unpack(&in, &error), known[i].err);
        for (size_t k = 0; k < 2; k++)
            says(&error, known[i].pieces[k]);
        rbt_input_close(&in);
    }
    memcpy(place, before, sizeof before);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_compressed_stays_as_it_is),
        cmocka_unit_test(packed_text_comes_out_again),
        cmocka_unit_test(a_cut_anywhere_is_said),
        cmocka_unit_test(damage_is_said_or_harmless),
        cmocka_unit_test(damage_is_told_near_its_place),
        cmocka_unit_test(a_frame_with_less_text_than_it_says_is_damaged),
        cmocka_unit_test(frames_that_are_skipped_have_no_text),
        cmocka_unit_test(a_window_that_is_too_large_is_no_damage),
        cmocka_unit_test(few_bytes_tell_what_is_not_compressed),
        cmocka_unit_test(a_build_without_the_library_names_the_package),
        cmocka_unit_test(a_library_that_does_not_begin_is_told_by_its_cause),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
