/* Proves src/runtime/cluster/rsh.c: a real shell gives back every word as it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rng.h"
#include "runtime/cluster/rsh.h"

static void simple_words_stay_readable(void **state)
{
    const char *const words[] = {"rubato", "node", "--join", "10.0.0.1:7470", "--key", "-", "it's", "", "A=1", NULL};
    char *line = rbt_rsh_line("/data/my jobs", words);

    (void)state;
    assert_string_equal(line,
                        "cd '/data/my jobs' && exec rubato node --join 10.0.0.1:7470 --key - 'it'\\''s' '' 'A=1'");
    rbt_free(line);
    line = rbt_rsh_line(NULL, words + 8);
    assert_string_equal(line, "exec 'A=1'");
    rbt_free(line);
    line = rbt_rsh_line("-", words);
    assert_non_null(strstr(line, "cd ./- && exec rubato"));
    rbt_free(line);
}

/* Runs the line in sh, which prints the words one after the other with a bell behind each. */
static void shell_says(const char *line, char *out, size_t room)
{
    FILE *pipe = popen(line, "r");
    size_t n;

    assert_non_null(pipe);
    n = fread(out, 1, room - 1, pipe);
    out[n] = 0;
    assert_int_equal(pclose(pipe), 0);
}

static void a_shell_gives_every_word_back(void **state)
{
    static const char letters[] = "ab \t\n'\"\\$`!*?[]{}()<>|&;#~=%-\x80";
    rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_TEST, 0);
    char word[2][24];
    char expected[64];
    char out[64];

    (void)state;
    assert_int_equal(mkdir("a 'b' $c", 0700), 0);
    for (int i = 0; i < 100; i++) {
        const char *const words[] = {"printf", "%s\a%s\a", word[0], word[1], NULL};
        char *line;

        for (int w = 0; w < 2; w++) {
            size_t n = rbt_rng_below(&rng, sizeof word[w]);

            for (size_t k = 0; k < n; k++)
                word[w][k] = letters[rbt_rng_below(&rng, sizeof letters - 1)];
            word[w][n] = 0;
        }
        line = rbt_rsh_line("a 'b' $c", words);
        snprintf(expected, sizeof expected, "%s\a%s\a", word[0], word[1]);
        shell_says(line, out, sizeof out);
        assert_string_equal(out, expected);
        rbt_free(line);
    }
    assert_int_equal(rmdir("a 'b' $c"), 0);
}

static void the_remote_shell_is_ssh_that_never_asks_or_what_was_named(void **state)
{
    char **words = rbt_rsh_words(NULL, "b", "exec x");

    (void)state;
    assert_string_equal(words[0], "ssh");
    assert_string_equal(words[2], "-o");
    assert_string_equal(words[3], "BatchMode=yes");
    assert_string_equal(words[6], "b");
    assert_string_equal(words[7], "exec x");
    assert_null(words[8]);
    rbt_rsh_words_free(words);
    words = rbt_rsh_words("  ssh  -p 2222 ", "b", "exec x");
    assert_string_equal(words[0], "ssh");
    assert_string_equal(words[1], "-p");
    assert_string_equal(words[2], "2222");
    assert_string_equal(words[3], "b");
    rbt_rsh_words_free(words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(simple_words_stay_readable),
        cmocka_unit_test(a_shell_gives_every_word_back),
        cmocka_unit_test(the_remote_shell_is_ssh_that_never_asks_or_what_was_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
