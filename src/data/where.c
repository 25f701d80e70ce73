/* Where a row stands. Contract in where.h; proved by tests/unit/test_where.c. */
#include "data/where.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "data/csv_layout.h"
#include "data/paths.h"
#include "data/read.h"
#include "data/unpack.h"

/* The texts, opened. */
typedef struct texts {
    rbt_paths paths;
    RBT_ARRAY(rbt_input) inputs;
    RBT_ARRAY(rbt_text) list;
    rbt_kind kind;
} texts;

static bool open_texts(const char *path, const rbt_reading *reading, texts *t)
{
    struct stat status;
    bool well = rbt_reading_kind(reading, &t->kind, NULL) == RBT_OK && rbt_paths_list(path, &t->paths, NULL) == RBT_OK;
    for (size_t i = 0; well && i < t->paths.count; i++) {
        rbt_input input = {0};
        well = stat(t->paths.at[i], &status) == 0 && S_ISREG(status.st_mode) &&
               rbt_input_open(t->paths.at[i], &input, NULL) == RBT_OK;
        if (!well)
            break;
        rbt_array_push(&t->inputs, input);
        well = rbt_input_unpack(&t->inputs.at[i], NULL) == RBT_OK;
        input = t->inputs.at[i];
        if (well && t->kind == RBT_KIND_AUTO && input.n > 0)
            t->kind = rbt_kind_of(&input, reading->expect);
        rbt_text text = {.name = input.name, .bytes = input.bytes, .n = input.n};
        rbt_array_push(&t->list, text);
    }
    return well && (t->kind == RBT_KIND_LIBSVM || t->kind == RBT_KIND_VW || t->kind == RBT_KIND_CSV);
}

static void close_texts(texts *t)
{
    for (size_t i = 0; i < t->inputs.count; i++)
        rbt_input_close(&t->inputs.at[i]);
    rbt_array_free(&t->inputs);
    rbt_array_free(&t->list);
    rbt_paths_free(&t->paths);
}

/* The line of the row that comes after `skip` others; 0, and *skip counts down, when the text has fewer. */
static size_t line_in_text(const rbt_text *text, rbt_kind kind, uint64_t *skip)
{
    const char *at = text->bytes, *end = at + text->n;
    at += rbt_mark_bytes(at, text->n);
    for (size_t line = 1; at < end; line++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline != NULL ? newline : end;
        while (at < stop && (*at == ' ' || *at == '\t' || *at == '\r'))
            at++;
        bool row = at < stop && !(kind == RBT_KIND_LIBSVM && *at == '#');
        if (row && *skip == 0)
            return line;
        *skip -= row;
        at = newline != NULL ? newline + 1 : end;
    }
    return 0;
}

static size_t line_in_csv(const rbt_csv_layout *l, const rbt_text *text, uint64_t *skip)
{
    rbt_cells c = {.at = text->bytes, .end = text->bytes + text->n, .delimiter = l->delimiter};
    const char *counted = text->bytes;
    size_t line = 1;
    c.at += rbt_mark_bytes(c.at, text->n);
    for (; rbt_csv_layout_next_row(l, &c); --*skip) {
        for (; *skip == 0 && counted < c.at; counted++)
            line += *counted == '\n';
        if (*skip == 0)
            return line;
        c.at = rbt_cells_row_end(l->delimiter, c.at, c.at + 1, c.end);
    }
    return 0;
}

/* "FILE:LINE" of a row, from 0; false: nobody knows. */
static bool locate(const texts *t, const rbt_reading *reading, uint64_t row, char *out, size_t room)
{
    const rbt_source source = {t->list.at, t->list.count, "", rbt_cut_default(), NULL};
    rbt_csv_layout layout = {0};
    size_t line = 0;
    if (t->kind == RBT_KIND_CSV && rbt_csv_layout_init(&layout, &source, 1, reading, NULL) != RBT_OK)
        return false;
    for (size_t i = 0; i < t->list.count && line == 0; i++) {
        line = t->kind == RBT_KIND_CSV ? line_in_csv(&layout, &t->list.at[i], &row)
                                       : line_in_text(&t->list.at[i], t->kind, &row);
        if (line > 0)
            (void)snprintf(out, room, "%s:%zu", t->list.at[i].name, line);
    }
    rbt_csv_layout_deinit(&layout);
    return line > 0;
}

/* What a "row N" is replaced with; false: it stays. */
typedef bool namer(const void *context, uint64_t row, char *out, size_t room);

/* `first` follows what the message begins with. */
static void rename_rows(rbt_error *error, namer *name, const void *context, const char *first)
{
    char text[sizeof error->text], where[sizeof error->text];
    const char *at = error->text, *found;
    size_t n = 0;
    while ((found = strstr(at, "row ")) != NULL && n < sizeof text) {
        char *end;
        unsigned long long row = strtoull(found + 4, &end, 10);
        bool begins = found == error->text;
        n += (size_t)snprintf(text + n, sizeof text - n, "%.*s", (int)(found - at), at);
        bool known =
            row > 0 && (begins || found[-1] == ' ' || found[-1] == '(') && name(context, row, where, sizeof where);
        at = known ? end : found + 4;
        if (n < sizeof text)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", known ? where : "row ",
                                  known && begins ? first : "");
    }
    if (n < sizeof text)
        (void)snprintf(text + n, sizeof text - n, "%s", at);
    memcpy(error->text, text, sizeof text);
}

typedef struct locating {
    texts texts;
    const rbt_reading *reading;
} locating;

static bool name_place(const void *context, uint64_t row, char *out, size_t room)
{
    const locating *l = context;
    return locate(&l->texts, l->reading, row - 1, out, room);
}

void rbt_where_rows(const char *path, const rbt_reading *reading, rbt_error *error)
{
    locating l = {.texts = {.kind = RBT_KIND_AUTO}, .reading = reading};
    if (strstr(error->text, "row ") != NULL && reading->skip_bad == 0 && open_texts(path, reading, &l.texts))
        rename_rows(error, name_place, &l, ": the row");
    close_texts(&l.texts);
}

static bool name_number(const void *context, uint64_t row, char *out, size_t room)
{
    const uint64_t *before = context;
    unsigned long long number = row + *before;
    (void)snprintf(out, room, "row %llu", number);
    return true;
}

void rbt_where_count_on(uint64_t before, rbt_error *error)
{
    rename_rows(error, name_number, &before, "");
}
