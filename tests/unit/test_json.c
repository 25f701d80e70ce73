/* The JSON writer: structure, escaping, numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "report/json.h"

/* What a test writes lands in memory; `text` is there after `finish`. */
typedef struct sink {
    rbt_json json;
    char *text;
    size_t length;
} sink;

static void start(sink *s)
{
    *s = (sink){0};
    s->json.file = open_memstream(&s->text, &s->length);
    assert_non_null(s->json.file);
}

static void finish(sink *s, const char *expected)
{
    fclose(s->json.file);
    assert_string_equal(s->text, expected);
    free(s->text);
}

static void members_are_separated_and_levels_closed(void **state)
{
    sink s;

    (void)state;
    start(&s);
    rbt_json_object(&s.json, NULL);
    rbt_json_text(&s.json, "event", "done");
    rbt_json_array(&s.json, "list");
    rbt_json_count(&s.json, NULL, 1);
    rbt_json_count(&s.json, NULL, 2);
    rbt_json_object(&s.json, NULL);
    rbt_json_end(&s.json);
    rbt_json_end(&s.json);
    rbt_json_bool(&s.json, "yes", true);
    rbt_json_null(&s.json, "nothing");
    rbt_json_end(&s.json);
    finish(&s, "{\"event\":\"done\",\"list\":[1,2,{}],\"yes\":true,\"nothing\":null}\n");
}

static void text_is_escaped(void **state)
{
    sink s;

    (void)state;
    start(&s);
    rbt_json_array(&s.json, NULL);
    rbt_json_text(&s.json, NULL, "a\"b\\c\nd\te\x01\x7f");
    rbt_json_text(&s.json, NULL, "gr\xc3\xbc\xc3\x9f");
    rbt_json_end(&s.json);
    finish(&s, "[\"a\\\"b\\\\c\\nd\\te\\u0001\\u007f\",\"gr\xc3\xbc\xc3\x9f\"]\n");
}

static void what_is_not_utf8_is_replaced(void **state)
{
    sink s;

    (void)state;
    start(&s);
    rbt_json_array(&s.json, NULL);
    rbt_json_text(&s.json, NULL, "\xff");             /* no such byte */
    rbt_json_text(&s.json, NULL, "\xc3");             /* cut short */
    rbt_json_text(&s.json, NULL, "\xc0\xaf");         /* overlong */
    rbt_json_text(&s.json, NULL, "\xed\xa0\x80");     /* a surrogate */
    rbt_json_text(&s.json, NULL, "\xf0\x9f\x8e\xb5"); /* fine */
    rbt_json_end(&s.json);
    finish(&s, "[\"\\ufffd\",\"\\ufffd\",\"\\ufffd\\ufffd\",\"\\ufffd\\ufffd\\ufffd\",\"\xf0\x9f\x8e\xb5\"]\n");
}

static void numbers_are_exact_and_never_nan(void **state)
{
    sink s;

    (void)state;
    start(&s);
    rbt_json_array(&s.json, NULL);
    rbt_json_real(&s.json, NULL, 0.1);
    rbt_json_real(&s.json, NULL, 100);
    rbt_json_real(&s.json, NULL, 1.0 / 3);
    rbt_json_real(&s.json, NULL, (double)NAN);
    rbt_json_real(&s.json, NULL, -(double)INFINITY);
    rbt_json_count(&s.json, NULL, UINT64_MAX);
    rbt_json_integer(&s.json, NULL, INT64_MIN);
    rbt_json_hex(&s.json, NULL, 0xabc);
    rbt_json_end(&s.json);
    finish(&s,
           "[0.1,100,0.3333333333333333,null,null,18446744073709551615,-9223372036854775808,\"0000000000000abc\"]\n");
}

static void texts_that_are_numbers_or_truth_values_become_those(void **state)
{
    sink s;

    (void)state;
    start(&s);
    rbt_json_array(&s.json, NULL);
    rbt_json_guess(&s.json, NULL, "8");
    rbt_json_guess(&s.json, NULL, "-1.5e-3");
    rbt_json_guess(&s.json, NULL, "true");
    rbt_json_guess(&s.json, NULL, "007");
    rbt_json_guess(&s.json, NULL, "10%");
    rbt_json_guess(&s.json, NULL, "1.");
    rbt_json_guess(&s.json, NULL, "inf");
    rbt_json_guess(&s.json, NULL, "");
    rbt_json_end(&s.json);
    finish(&s, "[8,-1.5e-3,true,\"007\",\"10%\",\"1.\",\"inf\",\"\"]\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_separated_and_levels_closed),
        cmocka_unit_test(text_is_escaped),
        cmocka_unit_test(what_is_not_utf8_is_replaced),
        cmocka_unit_test(numbers_are_exact_and_never_nan),
        cmocka_unit_test(texts_that_are_numbers_or_truth_values_become_those),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
