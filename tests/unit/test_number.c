/* Proves src/data/number.c and digits.h: parsing equals strtof, printing reads back, in every locale. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "data/digits.h"
#include "data/number.h"

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static void parses_like_strtof(const char *text)
{
    float ours = 77;
    size_t n = strlen(text);
    const char *stop = rbt_number_parse(text, text + n, &ours);
    if (stop != text + n || bits_of(ours) != bits_of(strtof(text, NULL)))
        fail_msg("'%s' gives %.9g, strtof %.9g", text, (double)ours, (double)strtof(text, NULL));
}

static void numbers_equal_strtof_on_random_text(void **state)
{
    (void)state;
    rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_TEST, 0);
    char text[128];
    for (int i = 0; i < 100000; i++) {
        size_t n = 0;
        if (rbt_rng_below(&rng, 4) == 0)
            text[n++] = "+-"[rbt_rng_below(&rng, 2)];
        size_t digits = 1 + (size_t)rbt_rng_below(&rng, i % 10 == 0 ? 60 : 20);
        size_t point = (size_t)rbt_rng_below(&rng, 2 * digits);
        for (size_t k = 0; k < digits; k++) {
            if (k == point)
                text[n++] = '.';
            text[n++] = (char)('0' + rbt_rng_below(&rng, 10));
        }
        text[n] = '\0';
        if (rbt_rng_below(&rng, 2) == 0)
            (void)snprintf(text + n, sizeof text - n, "e%d", (int)rbt_rng_below(&rng, 100) - 55);
        parses_like_strtof(text);
    }
}

/* The middle between two neighbouring floats, and a hair beside it: the worst case for any rounding. */
static void numbers_equal_strtof_between_two_floats(void **state)
{
    (void)state;
    rbt_rng rng = rbt_rng_stream(2, RBT_STREAM_TEST, 0);
    char text[256];
    for (int i = 0; i < 20000; i++) {
        uint32_t bits = (uint32_t)rbt_rng_below(&rng, 0x7f7fffff);
        if (i % 4 == 0)
            bits %= 0x01000000; /* denormal, or nearly */
        if (i % 4 == 1)
            bits = 0x3f000000 + bits % 0x08000000; /* ordinary sizes */
        float below, above;
        memcpy(&below, &bits, sizeof below);
        above = nextafterf(below, INFINITY);
        double middle = ((double)below + (double)above) / 2;
        int n = snprintf(text, sizeof text, "%.150g", middle);
        parses_like_strtof(text);
        if (strchr(text, 'e') == NULL && strchr(text, '.') != NULL) {
            (void)snprintf(text + n, sizeof text - (size_t)n, "%s", "000000000000000000000001");
            parses_like_strtof(text);
        }
        (void)snprintf(text, sizeof text, "%.*g", 6 + i % 14, middle);
        parses_like_strtof(text);
    }
}

/* A number as some program may have written it. */
static void draw_number(rbt_rng *rng, char *text, size_t room)
{
    uint32_t bits = (uint32_t)rbt_rng_u64(rng);
    float x;
    memcpy(&x, &bits, sizeof x);
    double any = isfinite(x) ? (double)x : 1.5, normal = rbt_rng_normal(rng);
    int digits = (int)rbt_rng_below(rng, 20);
    switch (rbt_rng_below(rng, 8)) {
    case 0: /* any float, in digits enough or not */
        (void)snprintf(text, room, "%.*g", digits, any);
        break;
    case 1: /* ordinary sizes */
        (void)snprintf(text, room, "%.*f", digits, normal * (double)(1 + bits % 1000));
        break;
    case 2: /* the middle between two floats */
        (void)snprintf(text, room, "%.*g", 30 + digits * 6, (any + (double)nextafterf((float)any, INFINITY)) / 2);
        break;
    case 3: /* a hair beside it */
        (void)snprintf(text, room, "%.16e", (any + (double)nextafterf((float)any, 0)) / 2);
        break;
    case 4: /* digits without sense, and an exponent */
        (void)snprintf(text, room, "%llu.%llue%d", (unsigned long long)(rbt_rng_u64(rng) >> (bits % 64)),
                       (unsigned long long)rbt_rng_u64(rng), (int)rbt_rng_below(rng, 120) - 70);
        break;
    case 5: /* whole numbers, most about where floats begin to skip some */
        (void)snprintf(text, room, "%llu", (unsigned long long)(rbt_rng_u64(rng) >> (64 - 1 - bits % 63)));
        break;
    case 6: /* very small: denormal, or nothing */
        (void)snprintf(text, room, "%s%.*ge-%d", bits % 2 == 0 ? "-" : "", digits, normal * normal,
                       36 + (int)(bits % 12));
        break;
    default: /* zeros before and after */
        (void)snprintf(text, room, "%s000%u.%.*s%u000", bits % 2 == 0 ? "+" : "-", bits % 100, digits,
                       "00000000000000000000", bits / 7);
        break;
    }
}

/* RBT_NUMBERS=10000000 for more, by hand. */
static void numbers_equal_strtof_and_strtod_rounded_on_many_more(void **state)
{
    (void)state;
    const char *asked = getenv("RBT_NUMBERS");
    long count = asked != NULL ? atol(asked) : 200000;
    rbt_rng rng = rbt_rng_stream(4, RBT_STREAM_TEST, 0);
    char text[512];
    long twice_rounded = 0;
    for (long i = 0; i < count; i++) {
        draw_number(&rng, text, sizeof text);
        /* "%.0g" of an exponent's form ends in e-05e-38: what strtof makes of the first part is compared */
        float ours = 77, theirs = strtof(text, NULL);
        const char *stop = rbt_number_parse(text, text + strlen(text), &ours);
        if (stop == NULL || bits_of(ours) != bits_of(theirs))
            fail_msg("'%s' gives %.9g, strtof %.9g", text, (double)ours, (double)theirs);
        /* Rounding to double first differs only where a double lies exactly between two floats. */
        double wide = strtod(text, NULL);
        float narrow = (float)wide;
        if (bits_of(narrow) != bits_of(ours)) {
            twice_rounded++;
            double middle = ((double)ours + (double)nextafterf(ours, narrow)) / 2;
            if (isfinite(ours) && isfinite(narrow) && wide != middle)
                fail_msg("'%s' gives %.9g, strtod rounded %.9g", text, (double)ours, (double)narrow);
        }
    }
    print_message("%ld numbers; %ld lie so near the middle between two floats that strtod, rounded, is wrong\n", count,
                  twice_rounded);
}

static void numbers_equal_strtof_at_the_edges(void **state)
{
    (void)state;
    static const char *const edges[] = {"0",
                                        "-0",
                                        "0.0e5",
                                        "16777217",
                                        "16777219",
                                        "33554433",
                                        "3.4028234e38",
                                        "3.4028235e38",
                                        "3.4028235677973366e38",
                                        "3.4028236e38",
                                        "1e39",
                                        "1e-45",
                                        "7e-46",
                                        "7.1e-46",
                                        "1.17549435e-38",
                                        "1.17549428e-38",
                                        "1e-400",
                                        "1e400",
                                        "1e99999999999999999999",
                                        "1e-99999999999999999999",
                                        "0e99999999999999999999",
                                        "9999999999999999999",
                                        "99999999999999999999999999999999999999",
                                        "0.00000000000000000000000000000000000000000001",
                                        "1.00000005960464477539062500000000000000000000000000000000000000000001",
                                        "1.000000059604644775390625",
                                        "5.",
                                        ".5",
                                        "1000000000000000000000000e-24",
                                        "1e22",
                                        "1e23",
                                        "1e-22",
                                        "1e-23"};
    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++)
        parses_like_strtof(edges[i]);

    /* The middle between 1 and the next float, and a digit beyond all those that are kept. */
    char beyond[320];
    int n = snprintf(beyond, sizeof beyond, "1.000000059604644775390625%0*d", 200, 0);
    parses_like_strtof(beyond);
    (void)snprintf(beyond + n, sizeof beyond - (size_t)n, "1");
    parses_like_strtof(beyond);
    assert_true(strtof(beyond, NULL) > 1);

    /* Ten thousand zeros on either side of the point. */
    static char text[20100];
    memset(text, '0', 10010);
    text[1] = '.';
    (void)snprintf(text + 10010, sizeof text - 10010, "123e10010");
    parses_like_strtof(text);
    memset(text, '0', 10010);
    text[0] = '7';
    (void)snprintf(text + 10010, sizeof text - 10010, "e-10009");
    parses_like_strtof(text);
}

static void what_is_no_number_is_none(void **state)
{
    (void)state;
    static const char *const none[] = {"",    "+",   "-",        ".",   "-.", "e5", ".e5",
                                       "nan", "inf", "infinity", "+-1", " 1", "x"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        float value;
        assert_null(rbt_number_parse(none[i], none[i] + strlen(none[i]), &value));
    }
}

static void printed_numbers_read_back_as_the_same(void **state)
{
    (void)state;
    rbt_rng rng = rbt_rng_stream(3, RBT_STREAM_TEST, 0);
    for (int i = 0; i < 200000; i++) {
        uint32_t bits = (uint32_t)rbt_rng_u64(&rng);
        float x, back = 0;
        memcpy(&x, &bits, sizeof x);
        if (i % 2 == 0)
            x = (float)(rbt_rng_normal(&rng) * (double)(i % 1000));
        if (!isfinite(x) || x == 0)
            continue;
        char text[RBT_NUMBER_ROOM];
        size_t n = rbt_number_print(x, text);
        assert_int_equal(n, strlen(text));
        if (rbt_number_parse(text, text + n, &back) != text + n || bits_of(back) != bits_of(x))
            fail_msg("%.9g was printed as '%s'", (double)x, text);
    }
}

/* What printf makes of it in the fewest of 6 to 9 digits that strtof reads back; whole numbers below 1e9 are in full. */
static void prints_the_fewest_digits(float x)
{
    char ours[RBT_NUMBER_ROOM], theirs[RBT_NUMBER_ROOM];
    for (int digits = 6; digits <= 9; digits++) {
        (void)snprintf(theirs, sizeof theirs, "%.*g", digits, (double)x);
        if (strtof(theirs, NULL) == x)
            break;
    }
    float a = fabsf(x);
    if (a < 1e9F && a == floorf(a))
        (void)snprintf(theirs, sizeof theirs, "%.0f", a == 0 ? 0 : (double)x);
    size_t n = rbt_number_print(x, ours);
    if (n != strlen(ours) || strcmp(ours, theirs) != 0)
        fail_msg("%.9g is printed as '%s', where '%s' is enough", (double)x, ours, theirs);
}

static void printed_numbers_have_the_fewest_digits(void **state)
{
    (void)state;
    rbt_rng rng = rbt_rng_stream(11, RBT_STREAM_TEST, 0);
    for (int i = 0; i < 400000; i++) {
        uint32_t bits = (uint32_t)rbt_rng_u64(&rng), more = (uint32_t)rbt_rng_u64(&rng);
        float x;
        memcpy(&x, &bits, sizeof x);
        if (i % 4 == 1) /* as somebody wrote it, in few digits */
            x = (float)((double)(more % 10000000) * pow(10, (int)(bits % 80) - 48));
        if (i % 4 == 2) /* ordinary sizes */
            x = (float)(rbt_rng_normal(&rng) * pow(10, (int)(bits % 14) - 5));
        if (i % 4 == 3) /* at a power of ten, or a few floats beside it */
            for (x = (float)pow(10, (int)(bits % 84) - 45); more % 4 > 0; more--)
                x = nextafterf(x, bits % 2 == 0 ? 0 : INFINITY);
        if (isfinite(x))
            prints_the_fewest_digits(x);
    }
}

static void printed_numbers_are_short(void **state)
{
    (void)state;
    static const struct {
        float x;
        const char *text;
    } known[] = {{0, "0"},
                 {-0.0F, "0"},
                 {1, "1"},
                 {-1, "-1"},
                 {0.5F, "0.5"},
                 {0.1F, "0.1"},
                 {-123.25F, "-123.25"},
                 {1e6F, "1000000"},
                 {16777216, "16777216"},
                 {1e-4F, "0.0001"},
                 {0.001F, "0.001"},
                 {999999.5F, "999999.5"},
                 {1e-5F, "1e-05"},
                 {-3e-5F, "-3e-05"},
                 {1e-6F, "1e-06"},
                 {1.25e-7F, "1.25e-07"},
                 {9.99999e-5F, "9.99999e-05"},
                 {1e-13F, "1e-13"},
                 {1e-30F, "1e-30"},
                 {1e-45F, "1.4013e-45"},
                 {FLT_MAX, "3.4028235e+38"},
                 {1e9F, "1e+09"},
                 {-2.5e9F, "-2.5e+09"},
                 {1e21F, "1e+21"},
                 {1.5e23F, "1.5e+23"},
                 {1e30F, "1e+30"},
                 {123456784, "123456784"}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        char text[RBT_NUMBER_ROOM];
        (void)rbt_number_print(known[i].x, text);
        assert_string_equal(text, known[i].text);
    }
}

static void rounded_numbers_are_those_of_printf(void **state)
{
    (void)state;
    rbt_rng rng = rbt_rng_stream(4, RBT_STREAM_TEST, 0);
    static const double edges[] = {0,          -0.0, 1,     -1,      1e-4,         9.99999999e-5,
                                   99999999.5, 1e8,  1e300, -1e-300, 0.9999999996, 0.1};
    for (int i = 0; i < 200000; i++) {
        double x = i < 12 ? edges[i] : rbt_rng_normal(&rng) * (i % 3 == 0 ? 1e-3 : i % 3 == 1 ? 1 : 1e5), a, b;
        char text[RBT_NUMBER_ROOM], by_library[RBT_NUMBER_ROOM];
        size_t n = rbt_number_print_rounded(x, text);
        assert_int_equal(n, strlen(text));
        (void)snprintf(by_library, sizeof by_library, "%.9g", x == 0 ? 0 : x);
        a = strtod(text, NULL);
        b = strtod(by_library, NULL);
        if (strcmp(text, by_library) != 0 &&
            fabs(a - b) > 1.1e-8 * fabs(b)) /* half-way cases may differ in the last digit */
            fail_msg("%.17g was printed as '%s'", x, text);
    }
}

static void numbers_that_floats_round_are_told_apart(void **state)
{
    (void)state;
    static const char *const kept[] = {
        "1",         "-1",         "+1.0",         "16777216",    "16777218",       "33554432",
        "0.1",       "3.14159",    "1e30",         "1e-5",        "123456000",      "1.000000000000000000e+00",
        "-16777215", "4294967296", "000000000001", "0.000000123", "2147483648.000", "1.2345678e-5"};
    static const char *const lost[] = {"16777217",   "123456789",  "987654321",
                                       "1.00000001", "-16777217",  "0.12345678901",
                                       "4294967297", "1234567000", "10000000000000000000000000000000000001"};
    for (int i = 0; i < 2; i++) {
        const char *const *texts = i == 0 ? kept : lost;
        size_t n = i == 0 ? sizeof kept / sizeof kept[0] : sizeof lost / sizeof lost[0];
        for (size_t k = 0; k < n; k++) {
            float value = 0;
            const char *end = texts[k] + strlen(texts[k]);
            assert_ptr_equal(rbt_number_parse(texts[k], end, &value), end);
            if (rbt_number_is_kept(texts[k], end, value) != (i == 0))
                fail_msg("%s is %skept", texts[k], i == 0 ? "not " : "");
        }
    }
}

/* A locale with a decimal comma, when the machine has one, changes nothing. */
/* The first of several, amid bytes that differ from it in one bit, and bytes of all values. */
static void bytes_are_found_and_digits_are_read_a_word_at_a_time(void **state)
{
    (void)state;
    rbt_rng rng = rbt_rng_stream(10, RBT_STREAM_TEST, 0);
    for (int round = 0; round < 100000; round++) {
        static const char some[] = ":.: \n;*\xba\x3b\0"
                                   "0123456789";
        char text[9] = "";
        uint32_t number = 0;
        for (int i = 0; i < 8; i++)
            text[i] = rbt_rng_below(&rng, 4) > 0 ? some[rbt_rng_below(&rng, sizeof some - 1)]
                                                 : (char)rbt_rng_below(&rng, 256);
        const char *found = memchr(text, ':', 8);
        assert_int_equal(rbt_digits_find(rbt_digits_load(text), ':'), found != NULL ? found - text : 8);
        for (unsigned n = 1; n <= 8; n++) {
            bool digits = true;
            unsigned long expected = 0;
            for (unsigned i = 0; i < n; i++) {
                digits = digits && text[i] >= '0' && text[i] <= '9';
                expected = expected * 10 + (unsigned long)(text[i] - '0');
            }
            assert_int_equal(rbt_digits_parse(rbt_digits_load(text), n, &number), digits);
            if (digits)
                assert_int_equal(number, expected);
        }
    }
}

static void the_locale_does_not_matter(void **state)
{
    (void)state;
    static const char *const comma[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "fr_FR.utf8"};
    const char *found = NULL;
    for (size_t i = 0; found == NULL && i < sizeof comma / sizeof comma[0]; i++)
        found = setlocale(LC_ALL, comma[i]);
    float value = 0;
    char text[RBT_NUMBER_ROOM];
    const char *hard = "1.5e-40"; /* takes the way through the C library */
    assert_ptr_equal(rbt_number_parse(hard, hard + strlen(hard), &value), hard + strlen(hard));
    assert_true(value == 1.5e-40F);
    (void)rbt_number_print(1.5e-30F, text);
    assert_null(strchr(text, ','));
    (void)setlocale(LC_ALL, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_equal_strtof_on_random_text),
        cmocka_unit_test(numbers_equal_strtof_between_two_floats),
        cmocka_unit_test(numbers_equal_strtof_and_strtod_rounded_on_many_more),
        cmocka_unit_test(numbers_equal_strtof_at_the_edges),
        cmocka_unit_test(what_is_no_number_is_none),
        cmocka_unit_test(printed_numbers_read_back_as_the_same),
        cmocka_unit_test(printed_numbers_have_the_fewest_digits),
        cmocka_unit_test(printed_numbers_are_short),
        cmocka_unit_test(rounded_numbers_are_those_of_printf),
        cmocka_unit_test(numbers_that_floats_round_are_told_apart),
        cmocka_unit_test(bytes_are_found_and_digits_are_read_a_word_at_a_time),
        cmocka_unit_test(the_locale_does_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
