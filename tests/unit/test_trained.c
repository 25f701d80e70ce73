/* Proves src/model/trained.c: model files are written whole or not at all, and any damage is detected. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/files.h"
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "model/trained.h"

static double minus_and_plus[] = {-1, 1}, zero_and_one[] = {0, 1};
static char base_0[] = "base 0\n";
static float weights[] = {0.5F, -2, 1e-40F, 3.4e38F};

static rbt_trained small(void)
{
    return (rbt_trained){.model = rbt_model_find("lr"),
                         .shape = {.cols = 3, .bias = true, .delta = 1, .classes = 2, .labels = minus_and_plus},
                         .n = 4,
                         .w = weights,
                         .origin = base_0};
}

/* The small model, byte by byte, as docs/formats.md describes it. */
#define SMALL_BYTES (96 + 2 * 8 + 4 * 4 + 7 + 8)
static const unsigned char golden[SMALL_BYTES] = {
    0x89, 'R',  'B',  'T',  '\r', '\n', 0x1a, '\n',                         /* magic */
    3,    0,    0,    0,    1,    0,    0,    0,                            /* version, flags: bias */
    3,    0,    0,    0,    0,    0,    0,    0,                            /* features */
    2,    0,    0,    0,    0,    0,    0,    0,                            /* classes */
    0,    0,    0,    0,    0,    0,    0,    0,                            /* bytes of names: labels are numbers */
    4,    0,    0,    0,    0,    0,    0,    0,                            /* parameters */
    'l',  'r',  0,    0,    0,    0,    0,    0,    0, 0, 0, 0, 0, 0, 0, 0, /* model's name */
    0,    0,    0,    0,    0,    0,    0,    0,    0, 0, 0, 0, 0, 0, 0, 0, /* and the rest of its room */
    0,    0,    0,    0,    0,    0,    0xf0, 0x3f,                         /* delta 1 */
    7,    0,    0,    0,    0,    0,    0,    0,                            /* bytes of the origin */
    0,    0,    0,    0,    0,    0,    0xf0, 0xbf,                         /* label -1 */
    0,    0,    0,    0,    0,    0,    0xf0, 0x3f,                         /* label 1 */
    0,    0,    0,    0x3f, 0,    0,    0,    0xc0,                         /* weights */
    0xc2, 0x16, 0x01, 0x00, 0x9e, 0xc9, 0x7f, 0x7f,                         /* and bias */
    'b',  'a',  's',  'e',  ' ',  '0',  '\n',                               /* features counted from 0 */
    0xb3, 0x22, 0x22, 0x31, 0x28, 0x02, 0x2d, 0xaa,                         /* XXH3 of the above */
};

/* And as it was in version 2. */
#define OLD_BYTES (88 + 2 * 8 + 4 * 4 + 8)
static const unsigned char golden_old[OLD_BYTES] = {
    0x89, 'R',  'B',  'T',  '\r', '\n', 0x1a, '\n',                         /* magic */
    2,    0,    0,    0,    1,    0,    0,    0,                            /* version, flags: bias */
    3,    0,    0,    0,    0,    0,    0,    0,                            /* features */
    2,    0,    0,    0,    0,    0,    0,    0,                            /* classes */
    0,    0,    0,    0,    0,    0,    0,    0,                            /* bytes of names: labels are numbers */
    4,    0,    0,    0,    0,    0,    0,    0,                            /* parameters */
    'l',  'r',  0,    0,    0,    0,    0,    0,    0, 0, 0, 0, 0, 0, 0, 0, /* model's name */
    0,    0,    0,    0,    0,    0,    0,    0,    0, 0, 0, 0, 0, 0, 0, 0, /* and the rest of its room */
    0,    0,    0,    0,    0,    0,    0xf0, 0x3f,                         /* delta 1 */
    0,    0,    0,    0,    0,    0,    0xf0, 0xbf,                         /* label -1 */
    0,    0,    0,    0,    0,    0,    0xf0, 0x3f,                         /* label 1 */
    0,    0,    0,    0x3f, 0,    0,    0,    0xc0,                         /* weights */
    0xc2, 0x16, 0x01, 0x00, 0x9e, 0xc9, 0x7f, 0x7f,                         /* and bias */
    0xb5, 0xf5, 0xb3, 0x43, 0xdc, 0x27, 0x5d, 0xe3,                         /* XXH3 of the above */
};

static int leave_folder(void **state)
{
    static const char *const names[] = {"m"};

    return remove_folder(state, names, sizeof names / sizeof names[0]);
}

/* Decodes a copy in memory of exactly that size: a sanitizer sees every read beyond it. */
static rbt_err decode(const unsigned char *bytes, size_t n, rbt_trained *trained, rbt_error *error)
{
    unsigned char *copy = malloc(n > 0 ? n : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, n);
    rbt_err err = rbt_trained_decode(copy, n, "mem", NULL, trained, error);
    free(copy);
    return err;
}

static void put(unsigned char *at, uint64_t x)
{
    for (int i = 0; i < 8; i++)
        at[i] = (unsigned char)(x >> (8 * i));
}

/* Sets the checksum right, so that what lies behind it is reached. */
static void seal(unsigned char *bytes, size_t n)
{
    uint64_t sum = rbt_hash(bytes, n - 8, 0);
    for (int i = 0; i < 8; i++)
        bytes[n - 8 + (size_t)i] = (unsigned char)(sum >> (8 * i));
}

static void a_saved_model_loads_as_the_same(void **state)
{
    (void)state;
    rbt_trained t = small(), back;
    rbt_error error;
    for (int bias = 0; bias < 2; bias++) {
        t.shape.bias = bias;
        t.n = 3 + (size_t)bias;
        assert_int_equal(rbt_trained_save(&t, "m", &error), RBT_OK);
        assert_int_equal(rbt_trained_load("m", &back, &error), RBT_OK);
        assert_ptr_equal(back.model, t.model);
        assert_int_equal(back.shape.cols, 3);
        assert_int_equal(back.shape.bias, bias);
        assert_true(back.shape.labels[0] == -1 && back.shape.labels[1] == 1);
        assert_int_equal(back.n, t.n);
        assert_memory_equal(back.w, weights, t.n * sizeof *weights);
        assert_string_equal(back.origin, "base 0\n");
        rbt_trained_deinit(&back);
        assert_null(back.w);
    }
}

static void a_large_model_loads_as_the_same(void **state)
{
    (void)state;
    size_t n = 300001;
    float *w = malloc(n * sizeof *w);
    assert_non_null(w);
    for (size_t i = 0; i < n; i++)
        w[i] = 1.0F / (float)(i + 1);
    rbt_trained t = {.model = rbt_model_find("lr"),
                     .shape = {.cols = n, .classes = 2, .labels = zero_and_one},
                     .n = n,
                     .w = w},
                back;
    assert_int_equal(rbt_trained_save(&t, "m", NULL), RBT_OK);
    assert_int_equal(rbt_trained_load("m", &back, NULL), RBT_OK);
    assert_memory_equal(back.w, w, n * sizeof *w);
    rbt_trained_deinit(&back);
    free(w);
}

static void the_bytes_are_those_of_the_format(void **state)
{
    (void)state;
    rbt_trained t = small();
    assert_int_equal(rbt_trained_save(&t, "m", NULL), RBT_OK);
    unsigned char bytes[SMALL_BYTES + 1];
    FILE *f = fopen("m", "rb");
    assert_non_null(f);
    assert_int_equal(fread(bytes, 1, sizeof bytes, f), SMALL_BYTES);
    assert_int_equal(fclose(f), 0);
    assert_memory_equal(bytes, golden, SMALL_BYTES);
}

/* A model with words as classes, and one that predicts numbers. */
static void names_of_classes_and_regression_load_as_the_same(void **state)
{
    (void)state;
    static char *names[] = {"cat", "dog", "zebra finch"};
    float w[9];
    for (size_t i = 0; i < 9; i++)
        w[i] = (float)i;
    rbt_trained t = {.model = rbt_model_find("softmax"),
                     .shape = {.cols = 2, .bias = true, .unit_rows = true, .classes = 3, .names = names},
                     .n = 9,
                     .w = w};
    rbt_trained back;
    assert_int_equal(rbt_trained_save(&t, "m", NULL), RBT_OK);
    assert_int_equal(rbt_trained_load("m", &back, NULL), RBT_OK);
    assert_ptr_equal(back.model, t.model);
    assert_true(back.shape.unit_rows && back.shape.bias && back.shape.classes == 3 && back.shape.labels == NULL);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(back.shape.names[i], names[i]);
    assert_memory_equal(back.w, w, sizeof w);
    rbt_trained_deinit(&back);
    t = (rbt_trained){.model = rbt_model_find("huber"), .shape = {.cols = 9, .delta = 0.25}, .n = 9, .w = w};
    assert_int_equal(rbt_trained_save(&t, "m", NULL), RBT_OK);
    assert_int_equal(rbt_trained_load("m", &back, NULL), RBT_OK);
    assert_true(back.shape.delta == 0.25 && back.shape.classes == 0 && !back.shape.bias);
    rbt_trained_deinit(&back);
}

/* What fits the length and the checksum but no model: a classifier without classes, a regression with them. */
static void classes_that_do_not_fit_the_model_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        uint64_t classes, names;
        const char *piece;
    } bad[] = {{"softmax", 0, 0, "classes"}, {"softmax", 1, 0, "class"},  {"lr", 0, 0, "classes"},
               {"lr", 3, 0, "classes"},      {"linear", 2, 0, "classes"}, {"linear", 0, 4, "names"},
               {"softmax", 2, 3, "name"},    {"softmax", 2, 5, "names"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        size_t class_bytes = bad[i].names > 0 ? bad[i].names : 8 * bad[i].classes;
        size_t features = 4, params = features * (strcmp(bad[i].model, "softmax") == 0 ? bad[i].classes : 1);
        size_t n = 96 + class_bytes + 4 * params + 8;
        unsigned char bytes[256] = {0};
        memcpy(bytes, golden, 12);
        put(bytes + 16, features);
        put(bytes + 24, bad[i].classes);
        put(bytes + 32, bad[i].names);
        put(bytes + 40, params);
        memcpy(bytes + 48, bad[i].model, strlen(bad[i].model));
        memcpy(bytes + 96, "a\0b\0c", bad[i].names);
        for (size_t k = 0; bad[i].names == 0 && k < bad[i].classes; k++)
            put(bytes + 96 + 8 * k, UINT64_C(0x3ff0000000000000) + k);
        seal(bytes, n);
        rbt_trained t;
        rbt_error error;
        if (decode(bytes, n, &t, &error) != RBT_E_DATA)
            fail_msg("case %zu is taken", i);
        if (strstr(error.text, bad[i].piece) == NULL)
            fail_msg("'%s' is not in: %s", bad[i].piece, error.text);
    }
}

static void every_damaged_bit_is_detected(void **state)
{
    (void)state;
    for (size_t i = 0; i < SMALL_BYTES * 8; i++) {
        unsigned char bytes[SMALL_BYTES];
        memcpy(bytes, golden, sizeof bytes);
        bytes[i / 8] ^= (unsigned char)(1u << i % 8);
        rbt_trained t;
        rbt_error error;
        rbt_err err = decode(bytes, sizeof bytes, &t, &error);
        assert_true(err == RBT_E_DATA || err == RBT_E_UNSUPPORTED);
        assert_int_equal(strncmp(error.text, "mem: ", 5), 0);
    }
}

static void every_truncation_and_every_addition_is_detected(void **state)
{
    (void)state;
    unsigned char bytes[SMALL_BYTES + 16] = {0};
    memcpy(bytes, golden, SMALL_BYTES);
    for (size_t n = 0; n <= sizeof bytes; n++) {
        rbt_trained t;
        rbt_err err = decode(bytes, n, &t, NULL);
        if (n == SMALL_BYTES) {
            assert_int_equal(err, RBT_OK);
            rbt_trained_deinit(&t);
        } else {
            assert_int_equal(err, RBT_E_DATA);
        }
    }
}

/* A right checksum does not make a hostile file right. */
static void every_field_is_checked_behind_a_right_checksum(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        uint64_t value; /* 8 bytes */
        rbt_err code;
        const char *piece;
    } bad[] = {
        {12, 5, RBT_E_UNSUPPORTED, "flags"},
        {16, 4, RBT_E_DATA, "parameters"},
        {16, UINT64_MAX, RBT_E_LIMIT, "features"},
        {16, UINT32_MAX, RBT_E_LIMIT, "features"},
        {24, 1, RBT_E_DATA, "promises 1 classes"},
        {24, UINT64_MAX, RBT_E_DATA, "promises"},
        {24, 0x1000000000000002, RBT_E_DATA, "promises"}, /* times eight it would fit */
        {32, 16, RBT_E_DATA, "name of class"},            /* the labels' bytes as names: they do not ascend */
        {32, UINT64_MAX, RBT_E_DATA, "promises"},
        {88, 8, RBT_E_DATA, "promises"},
        {88, UINT64_MAX, RBT_E_DATA, "promises"},
        {96, 0x7ff8000000000000, RBT_E_DATA, "labels"},  /* NaN */
        {104, 0x7ff0000000000000, RBT_E_DATA, "labels"}, /* infinity */
        {96, 0x3ff0000000000000, RBT_E_DATA, "labels"},  /* both the same */
        {80, 0x7ff8000000000000, RBT_E_DATA, "byte 80"}, /* delta NaN */
        {80, 0xbff0000000000000, RBT_E_DATA, "byte 80"}, /* delta below zero */
        {40, 5, RBT_E_DATA, "5 parameters"},
        {40, UINT64_MAX, RBT_E_DATA, "promises"},
        {40, UINT64_C(0x4000000000000004), RBT_E_DATA, "promises"}, /* times four it would fit */
        {48, 'l', RBT_E_UNSUPPORTED, "kind"},
        {48, 0, RBT_E_UNSUPPORTED, "kind"},
        {48, UINT64_C(0x7800000000726c), RBT_E_DATA, "byte 54 should be zero"},
        {112, 0x7f800000, RBT_E_DATA, "parameter 0 is not finite"},
        {127, UINT64_C(0x0a32206573616200), RBT_E_DATA, "how its data was read"}, /* base 2 */
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        unsigned char bytes[SMALL_BYTES];
        memcpy(bytes, golden, sizeof bytes);
        put(bytes + bad[i].at, bad[i].value);
        if (bad[i].at == 12)
            put(bytes + 16, 3);
        seal(bytes, sizeof bytes);
        rbt_trained t;
        rbt_error error;
        assert_int_equal(decode(bytes, sizeof bytes, &t, &error), bad[i].code);
        if (strstr(error.text, bad[i].piece) == NULL)
            fail_msg("'%s' is not in: %s", bad[i].piece, error.text);
    }
    unsigned char bytes[SMALL_BYTES + 3] = {0};
    rbt_trained t;
    memcpy(bytes, golden, SMALL_BYTES);
    memset(bytes + 48, 'x', 32); /* a name without an end */
    seal(bytes, SMALL_BYTES);
    assert_int_equal(decode(bytes, SMALL_BYTES, &t, NULL), RBT_E_DATA);
    memcpy(bytes, golden, SMALL_BYTES);
    seal(bytes, SMALL_BYTES + 3); /* parts of a parameter */
    assert_int_equal(decode(bytes, SMALL_BYTES + 3, &t, NULL), RBT_E_DATA);
}

static void a_newer_version_is_told_apart_from_damage(void **state)
{
    (void)state;
    unsigned char bytes[SMALL_BYTES];
    rbt_trained t;
    rbt_error error;
    memcpy(bytes, golden, sizeof bytes);
    bytes[8] = 4;
    assert_int_equal(decode(bytes, sizeof bytes, &t, &error), RBT_E_UNSUPPORTED);
    assert_non_null(strstr(error.text, "format version 4"));
}

static void an_old_version_is_still_read(void **state)
{
    (void)state;
    rbt_trained t;
    rbt_error error;
    assert_int_equal(decode(golden_old, OLD_BYTES, &t, &error), RBT_OK);
    assert_true(t.shape.labels[0] == -1 && t.shape.labels[1] == 1 && t.n == 4);
    assert_memory_equal(t.w, weights, sizeof weights);
    assert_null(t.origin);
    rbt_trained_deinit(&t);
    for (size_t i = 0; i < (size_t)OLD_BYTES * 8; i++) {
        unsigned char bytes[OLD_BYTES];
        memcpy(bytes, golden_old, sizeof bytes);
        bytes[i / 8] ^= (unsigned char)(1u << i % 8);
        assert_int_not_equal(decode(bytes, sizeof bytes, &t, &error), RBT_OK);
    }
    for (size_t n = 0; n < OLD_BYTES; n++)
        assert_int_equal(decode(golden_old, n, &t, &error), RBT_E_DATA);
}

static void files_that_are_no_models_are_named(void **state)
{
    (void)state;
    rbt_trained t;
    rbt_error error;
    assert_int_equal(rbt_trained_load("missing", &t, &error), RBT_E_IO);
    assert_non_null(strstr(error.text, "missing: cannot be opened: No such file"));
    FILE *f = fopen("m", "wb");
    assert_non_null(f);
    assert_int_equal(fputs("+1 1:1\n", f) < 0, 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(rbt_trained_load("m", &t, &error), RBT_E_DATA);
    assert_non_null(strstr(error.text, "m: is not a Rubato model"));
}

static void a_full_device_is_an_error_and_stays_a_device(void **state)
{
    (void)state;
    struct stat status;
    if (stat("/dev/full", &status) != 0)
        skip();
    rbt_trained t = small();
    rbt_error error;
    assert_int_equal(rbt_trained_save(&t, "/dev/full", &error), RBT_E_IO);
    assert_non_null(strstr(error.text, "/dev/full: cannot be written: No space left on device"));
    assert_int_equal(stat("/dev/full", &status), 0);
    assert_true(S_ISCHR(status.st_mode));
}

static void a_model_that_does_not_fit_leaves_the_old_one(void **state)
{
    (void)state;
    size_t n = 200000;
    float *w = calloc(n, sizeof *w);
    assert_non_null(w);
    rbt_trained old = small(), back;
    rbt_trained t = {
        .model = rbt_model_find("lr"), .shape = {.cols = n, .classes = 2, .labels = zero_and_one}, .n = n, .w = w};
    assert_int_equal(rbt_trained_save(&old, "m", NULL), RBT_OK);
    struct rlimit before, tight;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    tight = before;
    tight.rlim_cur = 500000;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    rbt_error error;
    rbt_err err = rbt_trained_save(&t, "m", &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, handler);
    assert_int_equal(err, RBT_E_IO);
    assert_non_null(strstr(error.text, "m: cannot be written: File too large"));
    assert_int_equal(rbt_trained_load("m", &back, &error), RBT_OK);
    assert_int_equal(back.n, 4);
    rbt_trained_deinit(&back);
    free(w);
}

static void models_that_make_no_sense_are_not_saved(void **state)
{
    (void)state;
    rbt_trained t = small();
    rbt_error error;
    t.n = 3;
    assert_int_equal(rbt_trained_save(&t, "m", &error), RBT_E_USAGE);
    float broken[] = {1, 2, NAN, 4};
    t = small();
    t.w = broken;
    assert_int_equal(rbt_trained_save(&t, "m", &error), RBT_E_DIVERGED);
    assert_non_null(strstr(error.text, "parameter 2"));
    rbt_model named = *t.model;
    named.name = "a name that is longer than the file has room for";
    t = small();
    t.model = &named;
    assert_int_equal(rbt_trained_save(&t, "m", &error), RBT_E_LIMIT);
    t = small();
    assert_int_equal(rbt_trained_save(&t, "no/such/folder", &error), RBT_E_IO);
    assert_int_not_equal(access("m", F_OK), 0);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_saved_model_loads_as_the_same),
        IN_FOLDER(a_large_model_loads_as_the_same),
        IN_FOLDER(the_bytes_are_those_of_the_format),
        IN_FOLDER(names_of_classes_and_regression_load_as_the_same),
        cmocka_unit_test(classes_that_do_not_fit_the_model_are_refused),
        cmocka_unit_test(every_damaged_bit_is_detected),
        cmocka_unit_test(every_truncation_and_every_addition_is_detected),
        cmocka_unit_test(every_field_is_checked_behind_a_right_checksum),
        cmocka_unit_test(a_newer_version_is_told_apart_from_damage),
        cmocka_unit_test(an_old_version_is_still_read),
        IN_FOLDER(files_that_are_no_models_are_named),
        IN_FOLDER(a_full_device_is_an_error_and_stays_a_device),
        IN_FOLDER(a_model_that_does_not_fit_leaves_the_old_one),
        IN_FOLDER(models_that_make_no_sense_are_not_saved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
