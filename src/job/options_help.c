/* The help of options, from their table: one sentence each, wrapped. The contract stands in options.h. Proved by
 * tests/unit/test_options.c and tests/cli/test_usage.sh. */
#include "job/options.h"

#include <stdio.h>
#include <string.h>

#include "job/options_table.h"
#include "job/text.h"
#include "method/method.h"

/* One line "  --name VALUE   sentence", the sentence wrapped. */
void rbt_options_help_line(const char *name, const char *syntax, const char *text,
                           void (*write)(void *context, const char *line), void *context)
{
    enum { INDENT = 31, WIDTH = 100 };
    char left[96], line[256];
    const char *rest = text;

    snprintf(left, sizeof left, "  --%s%s%s", name, syntax != NULL ? " " : "", syntax != NULL ? syntax : "");
    if (strlen(left) >= INDENT) {
        write(context, left);
        left[0] = '\0';
    }
    do {
        size_t n = strlen(rest);
        if (n > WIDTH - INDENT)
            for (n = WIDTH - INDENT; n > 1 && rest[n] != ' '; n--)
                ;
        snprintf(line, sizeof line, "%-*s%.*s", INDENT, left, (int)n, rest);
        write(context, line);
        left[0] = '\0';
        rest += n + strspn(rest + n, " ");
    } while (*rest != '\0');
}

/* One option's help: its sentence, [default], (only with ...). */
static void help_of(const rbt_option *o, void (*write)(void *context, const char *line), void *context)
{
    bool shown = o->fallback != NULL && o->kind != RBT_OPTION_FLAG;
    char text[512];

    snprintf(text, sizeof text, "%s%s%s%s%s%s%s", o->help, o->when != NULL ? " Only with " : "",
             o->when != NULL ? o->when : "", o->when != NULL ? "." : "", shown ? " [" : "", shown ? o->fallback : "",
             shown ? "]" : "");
    rbt_options_help_line(o->name, o->syntax, text, write, context);
}

void rbt_options_help_method(const rbt_method *method, void (*write)(void *context, const char *line), void *context)
{
    bool built_in = rbt_method_find(method->name) == method; /* others' have no --NAME of their own */

    for (const rbt_method_option *o = method->options; o != NULL && o->name != NULL; o++) {
        const char *syntax = o->words != NULL ? o->words : o->whole ? "N" : "X";
        char text[512], fallback[64], setting[128];

        snprintf(fallback, sizeof fallback, "%.*s", o->words != NULL ? (int)strcspn(o->words, "|") : 0,
                 o->words != NULL ? o->words : "");
        if (o->words == NULL)
            rbt_text_from_real(o->fallback, fallback, sizeof fallback);
        snprintf(text, sizeof text, "%s [%s]", o->about != NULL ? o->about : "", fallback);
        snprintf(setting, sizeof setting, "%s=%s", o->name, syntax);
        rbt_options_help_line(built_in ? o->name : "set", built_in ? syntax : setting, text, write, context);
    }
}

/* Is the name among those, the last of which is NULL? */
static bool is_among(const char *name, const char *const *names)
{
    while (names != NULL && *names != NULL)
        if (strcmp(*names++, name) == 0)
            return true;
    return false;
}

void rbt_options_help(const char *const *without, void (*write)(void *context, const char *line), void *context)
{
    const rbt_option *o = NULL;
    const char *group = "";

    for (size_t i = 0; (o = rbt_option_at(i)) != NULL; i++) {
        if (is_among(o->name, without))
            continue;
        if (strcmp(group, o->group) != 0) {
            char title[64];
            group = o->group;
            snprintf(title, sizeof title, "%s:", group);
            write(context, title);
        }
        help_of(o, write, context);
    }
    write(context, "Of one model alone:");
    for (size_t i = 0; rbt_method_at(i) != NULL; i++)
        rbt_options_help_method(rbt_method_at(i), write, context);
}
