/* Command lines for other hosts: see rsh.h. */
#include "runtime/cluster/rsh.h"

#include <ctype.h>
#include <string.h>

#include "base/mem.h"

typedef RBT_ARRAY(char) text;

static void add(text *t, const char *s, size_t n)
{
    rbt_array_reserve(t, t->count + n + 1);
    memcpy(t->at + t->count, s, n);
    t->count += n;
    t->at[t->count] = 0;
}

static bool is_plain(char c)
{
    return isalnum((unsigned char)c) || strchr("-_./:,@%+", c) != NULL; /* '=' is not: a first word could assign */
}

static void add_word(text *t, const char *word)
{
    bool plain = *word != 0;

    for (const char *c = word; plain && *c; c++)
        plain = is_plain(*c);
    if (plain) {
        add(t, word, strlen(word));
        return;
    }
    add(t, "'", 1);
    for (const char *c = word; *c; c++)
        if (*c == '\'')
            add(t, "'\\''", 4);
        else
            add(t, c, 1);
    add(t, "'", 1);
}

char *rbt_rsh_line(const char *directory, const char *const *words)
{
    text t = {0};

    if (directory) {
        add(&t, "cd ", 3);
        if (*directory == '-') /* "cd -" is the folder before */
            add(&t, "./", 2);
        add_word(&t, directory);
        add(&t, " && ", 4);
    }
    add(&t, "exec", 4);
    for (; *words; words++) {
        add(&t, " ", 1);
        add_word(&t, *words);
    }
    return t.at;
}

char **rbt_rsh_words(const char *command, const char *host, const char *line)
{
    RBT_ARRAY(char *) words = {0};

    for (const char *at = command ? command : RBT_RSH; *at;) {
        size_t n = strcspn(at, " ");
        char *word;

        if (n > 0) {
            word = rbt_alloc(n + 1, 1);
            memcpy(word, at, n);
            rbt_array_push(&words, word);
        }
        at += n + (at[n] == ' ');
    }
    rbt_array_push(&words, rbt_strdup(host));
    rbt_array_push(&words, rbt_strdup(line));
    rbt_array_push(&words, NULL);
    return words.at;
}

void rbt_rsh_words_free(char **words)
{
    for (size_t i = 0; words && words[i]; i++)
        rbt_free(words[i]);
    rbt_free(words);
}
