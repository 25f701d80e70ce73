/* Proves src/base/log.c: events reach the caller's function, and nothing else happens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/log.h"

#include <string.h>

typedef struct heard {
    int events;
    rbt_log_level level;
    char source[32];
    char sentence[2048];
} heard;

static void hear(void *context, rbt_log_level level, const char *source, const char *sentence)
{
    heard *h = context;
    h->events++;
    h->level = level;
    strncpy(h->source, source, sizeof h->source - 1);
    strncpy(h->sentence, sentence, sizeof h->sentence - 1);
}

static void event_is_formatted_and_handed_over(void **state)
{
    (void)state;
    heard h = {0};
    rbt_log log = {hear, &h, RBT_LOG_DEBUG};
    rbt_log_event(&log, RBT_LOG_WARNING, "server 3", "worker %d is late", 7);
    assert_int_equal(h.events, 1);
    assert_int_equal(h.level, RBT_LOG_WARNING);
    assert_string_equal(h.source, "server 3");
    assert_string_equal(h.sentence, "worker 7 is late");
}

static void events_below_the_level_are_dropped(void **state)
{
    (void)state;
    heard h = {0};
    rbt_log log = {hear, &h, RBT_LOG_INFO};
    rbt_log_event(&log, RBT_LOG_DEBUG, "x", "quiet");
    assert_int_equal(h.events, 0);
    rbt_log_event(&log, RBT_LOG_INFO, "x", "loud");
    assert_int_equal(h.events, 1);
}

static void a_log_without_a_function_is_silent(void **state)
{
    (void)state;
    rbt_log log = {0};
    rbt_log_event(&log, RBT_LOG_WARNING, "x", "nobody hears");
    rbt_log_event(NULL, RBT_LOG_WARNING, "x", "nobody hears");
}

static void a_sentence_that_does_not_fit_is_cut(void **state)
{
    (void)state;
    char text[3000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    heard h = {0};
    rbt_log log = {hear, &h, RBT_LOG_DEBUG};
    rbt_log_event(&log, RBT_LOG_INFO, "x", "%s", text);
    assert_int_equal(h.events, 1);
    assert_string_equal(h.sentence + strlen(h.sentence) - 4, "x...");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(event_is_formatted_and_handed_over),
        cmocka_unit_test(events_below_the_level_are_dropped),
        cmocka_unit_test(a_log_without_a_function_is_silent),
        cmocka_unit_test(a_sentence_that_does_not_fit_is_cut),
    };
    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
