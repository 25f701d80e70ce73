/* Ratings. Contract in ratings.h, format in docs/formats.md; proved by tests/unit/test_ratings.c and
 * tests/fuzz/fuzz_ratings.c. */
#include "data/ratings.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/data.h"
#include "data/ids.h"
#include "data/number.h"
#include "data/parallel.h"

/* What stands between the parts of a line. */
typedef struct layout {
    char separator; /* ' ': one or more blanks */
    bool twice;     /* :: */
    bool pairs;     /* a user and an item are enough, where no rating is needed: it is 0 */
} layout;

/* What a chunk gathers: triples of its own numbers, and what those stand for. */
typedef struct gathered {
    rbt_triples triples;
    rbt_ids *ids[2]; /* users, items */
    uint32_t *map[2];
    char unquoted[2][RBT_RATINGS_NAME_MOST];
    const char *user; /* of the line before, which most have again: its text and number */
    size_t user_bytes;
    uint32_t user_number;
    uint64_t headers; /* first lines that are the columns' names */
} gathered;

static void close_gathered(void *own)
{
    gathered *g = own;
    rbt_triples_deinit(&g->triples);
    for (int i = 0; i < 2; i++) {
        rbt_ids_unref(g->ids[i]);
        rbt_free(g->map[i]);
    }
    rbt_free(g);
}

static void *open_gathered(const void *context, size_t lines)
{
    gathered *g = rbt_alloc(1, sizeof *g);
    (void)context;
    g->ids[0] = rbt_ids_create();
    g->ids[1] = rbt_ids_create();
    if (rbt_triples_init(&g->triples, lines) && g->ids[0] != NULL && g->ids[1] != NULL)
        return g;
    close_gathered(g);
    return NULL;
}

/* ------------------------------------------------------------------------------------------------------- fields */

static inline bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

typedef struct field {
    const char *at;
    size_t n;
} field;

/* The fields of a line, one after the other. */
typedef struct fields {
    const char *at; /* NULL: there are no more */
    const char *end;
    layout layout;
} fields;

static const char *find_separator(const fields *f, const char *at)
{
    if (f->layout.separator == ' ') {
        while (at < f->end && !is_blank(*at))
            at++;
        return at < f->end ? at : NULL;
    }
    while (at < f->end && (at = memchr(at, f->layout.separator, (size_t)(f->end - at))) != NULL) {
        if (!f->layout.twice || (f->end - at > 1 && at[1] == at[0]))
            return at;
        at++;
    }
    return NULL;
}

/* A field in quotes, without them; doubled ones inside are made one in `room`. False: they do not end, something else
 * follows, or there is not enough room. */
static bool next_quoted(fields *f, field *out, char *room)
{
    const char *at = f->at + 1;
    size_t n = 0;
    bool doubled = false;
    out->at = at;
    for (; at < f->end && (*at != '"' || (f->end - at > 1 && at[1] == '"')); at++) {
        if (*at == '"') {
            doubled = true;
            at++;
        }
        if (n < RBT_RATINGS_NAME_MOST)
            room[n] = *at;
        n++;
    }
    if (at == f->end || n > RBT_RATINGS_NAME_MOST)
        return false;
    out->n = n;
    if (doubled)
        out->at = room;
    at++;
    while (at < f->end && is_blank(*at) && *at != f->layout.separator)
        at++;
    if (at < f->end && *at != f->layout.separator)
        return false;
    f->at = at < f->end ? at + 1 : NULL;
    return true;
}

static bool next_field(fields *f, field *out, char *room)
{
    if (f->at == NULL)
        return false;
    while (f->at < f->end && is_blank(*f->at) && (f->layout.separator == ' ' || *f->at != f->layout.separator))
        f->at++;
    if (f->at < f->end && *f->at == '"' && f->layout.separator != ' ' && !f->layout.twice && room != NULL)
        return next_quoted(f, out, room);
    const char *stop = find_separator(f, f->at), *last = stop != NULL ? stop : f->end;
    while (last > f->at && is_blank(last[-1]))
        last--;
    *out = (field){f->at, (size_t)(last - f->at)};
    f->at = stop != NULL ? stop + (f->layout.twice ? 2 : 1) : NULL;
    return true;
}

static layout layout_of(const char *at, const char *end)
{
    static const char known[] = "\t,;";
    const fields all = {.at = at, .end = end, .layout = {.separator = ':', .twice = true}};
    if (find_separator(&all, at) != NULL)
        return all.layout;
    for (size_t i = 0; i < sizeof known - 1; i++)
        if (memchr(at, known[i], (size_t)(end - at)) != NULL)
            return (layout){.separator = known[i]};
    return (layout){.separator = ' '};
}

bool rbt_ratings_recognise(const char *at, const char *end)
{
    fields f = {.at = at, .end = end, .layout = {.separator = ':', .twice = true}};
    field user, item, rating;
    float value;
    if (!next_field(&f, &user, NULL) || !next_field(&f, &item, NULL) || !next_field(&f, &rating, NULL))
        return false;
    return user.n > 0 && item.n > 0 && rating.n > 0 &&
           rbt_number_parse(rating.at, rating.at + rating.n, &value) == rating.at + rating.n;
}

/* -------------------------------------------------------------------------------------------------------- lines */

static rbt_err refuse(const rbt_reader *r, const char *stop, const char *expected)
{
    char shown[RBT_TOKEN_ROOM];
    return rbt_fail(r->error, RBT_E_DATA, "%s:%zu: '%s': expected %s", r->name, r->line,
                    rbt_text_shown(r->at, stop, shown), expected);
}

/* A name that can be kept. */
static bool is_name(const field *f)
{
    return f->n > 0 && f->n <= RBT_RATINGS_NAME_MOST && memchr(f->at, '\0', f->n) == NULL;
}

/* All that is wrong is found before anything is gathered. */
static rbt_err gather(rbt_reader *r, const field part[2], float value)
{
    gathered *g = r->own;
    if (g->user == NULL || g->user_bytes != part[0].n || memcmp(g->user, part[0].at, part[0].n) != 0) {
        g->user_number = rbt_ids_add(g->ids[0], part[0].at, part[0].n);
        bool kept = part[0].at != g->unquoted[0];
        g->user = kept ? part[0].at : NULL;
        g->user_bytes = part[0].n;
    }
    uint32_t item = rbt_ids_add(g->ids[1], part[1].at, part[1].n);
    if (g->user_number == RBT_IDS_ABSENT || item == RBT_IDS_ABSENT)
        return rbt_fail(r->error, RBT_E_MEMORY, "%s:%zu: not enough memory for another name", r->name, r->line);
    g->triples.at[g->triples.count++] = (rbt_triple){g->user_number, item, value};
    r->rows++;
    return RBT_OK;
}

static bool is_number(const field *f)
{
    float ignored;
    return f->n > 0 && rbt_number_parse(f->at, f->at + f->n, &ignored) == f->at + f->n;
}

/* Can a line without a rating be that of the columns' names? Not if user and item are numbers, or the rating is no finite one. */
static bool is_header(const rbt_reader *r, const field part[3])
{
    static const char *const odd[] = {"nan", "inf", "infinity"};
    if (r->line != 1 || part[2].n == 0 || !isalpha((unsigned char)part[2].at[0]) ||
        (is_number(&part[0]) && is_number(&part[1])))
        return false;
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
        if (part[2].n == strlen(odd[i]) && strncasecmp(part[2].at, odd[i], part[2].n) == 0)
            return false;
    return true;
}

/* The first of two columns' names, as it is usually called; any other word may be a user. */
static bool is_header_of_pairs(const rbt_reader *r, const field *user)
{
    static const char *const known[] = {"user", "userid", "user_id", "user id"};
    for (size_t i = 0; r->line == 1 && i < sizeof known / sizeof known[0]; i++)
        if (user->n == strlen(known[i]) && strncasecmp(user->at, known[i], user->n) == 0)
            return true;
    return false;
}

static rbt_err parse_rating(rbt_reader *r, const char *stop)
{
    const layout *l = r->context;
    gathered *g = r->own;
    fields f = {.at = r->at, .end = stop, .layout = *l};
    field part[3] = {{0}};
    char none[RBT_RATINGS_NAME_MOST];
    float value = 0;
    for (int i = 0; i < 3; i++)
        if (!next_field(&f, &part[i], i < 2 ? g->unquoted[i] : none) && !(l->pairs && i == 2 && f.at == NULL))
            return refuse(r, stop,
                          l->twice               ? "a rating as user::item::rating"
                          : l->separator == ' '  ? "a rating as user item rating, with blanks between them"
                          : l->separator == '\t' ? "a rating as user, item, rating, with tabs between them"
                                                 : "a rating as user,item,rating; a quote inside of quotes is doubled");
    if (!is_name(&part[0]) || !is_name(&part[1]))
        return refuse(r, stop, "a user and an item of 1 to 1000 bytes, none of them zero, before the rating");
    if (l->pairs && part[2].n == 0) {
        if (!is_header_of_pairs(r, &part[0]))
            return gather(r, part, 0);
        g->headers++;
        return RBT_OK;
    }
    const char *end = part[2].at + part[2].n;
    if (rbt_number_parse(part[2].at, end, &value) == end && part[2].n > 0 && isfinite(value))
        return gather(r, part, value);
    if (is_header(r, part)) {
        g->headers++;
        return RBT_OK;
    }
    bool large = rbt_number_parse(part[2].at, end, &value) == end && part[2].n > 0;
    return refuse(r, stop,
                  large ? "a rating that a 32-bit float holds"
                        : "a rating in the third place: one finite number such as 4 or 3.5");
}

static rbt_err parse_line(rbt_reader *r)
{
    const char *newline = memchr(r->at, '\n', (size_t)(r->end - r->at)), *stop = newline != NULL ? newline : r->end;
    const char *last = stop;
    while (last > r->at && is_blank(last[-1]))
        last--;
    rbt_err err = last > r->at ? parse_rating(r, last) : RBT_OK;
    r->at = newline != NULL ? newline + 1 : r->end;
    r->line += newline != NULL;
    return err;
}

/* ------------------------------------------------------------------------------------------------------- numbering */

/* The numbers of all chunks, users and items each by itself. */
typedef struct numbering {
    const rbt_chunks *chunks;
    rbt_ids *ids[2];
    bool failed[2];
} numbering;

static void number_names(void *context, size_t which)
{
    numbering *all = context;
    all->ids[which] = rbt_ids_create();
    all->failed[which] = all->ids[which] == NULL;
    for (size_t c = 0; c < rbt_chunks_count(all->chunks) && !all->failed[which]; c++) {
        gathered *g = rbt_chunks_own(all->chunks, c);
        size_t n = rbt_ids_count(g->ids[which]);
        uint32_t *map = rbt_try_alloc_raw(n + 1, sizeof *map);
        all->failed[which] = map == NULL;
        for (size_t i = 0; i < n && !all->failed[which]; i++) {
            const char *name = rbt_ids_name(g->ids[which], i);
            map[i] = rbt_ids_add(all->ids[which], name, strlen(name));
            all->failed[which] = map[i] == RBT_IDS_ABSENT;
        }
        g->map[which] = map;
        rbt_ids_unref(g->ids[which]);
        g->ids[which] = NULL;
    }
}

static rbt_err make_rows(const rbt_chunks *chunks, const rbt_source *source, rbt_data *data, uint64_t *repeated,
                         rbt_error *error)
{
    size_t count = rbt_chunks_count(chunks);
    numbering all = {.chunks = chunks};
    rbt_triples **lists = rbt_alloc(count + 1, sizeof *lists);
    rbt_err err = RBT_OK;
    rbt_parallel_for(2, source->cut.threads, number_names, &all);
    for (size_t c = 0; c < count; c++) {
        gathered *g = rbt_chunks_own(chunks, c);
        g->triples.row_map = g->map[0];
        g->triples.col_map = g->map[1];
        lists[c] = &g->triples;
    }
    if (all.failed[0] || all.failed[1])
        err = rbt_fail(error, RBT_E_MEMORY, "%s: not enough memory for the names of its users and items", source->name);
    else
        err = rbt_triples_gather(lists, count, rbt_ids_count(all.ids[0]), rbt_ids_count(all.ids[1]), RBT_MERGE_LAST,
                                 source->cut.threads, source->name, data, repeated, error);
    rbt_free(lists);
    if (err == RBT_OK) {
        data->content = RBT_CONTENT_RATINGS;
        data->row_names = all.ids[0];
        data->col_names = all.ids[1];
        return RBT_OK;
    }
    rbt_ids_unref(all.ids[0]);
    rbt_ids_unref(all.ids[1]);
    return err;
}

/* What stands between the parts, by the first line that is not empty. */
static layout layout_of_texts(const rbt_source *source)
{
    for (size_t i = 0; i < source->count; i++) {
        const char *at = source->texts[i].bytes, *end = at + source->texts[i].n;
        while (at < end) {
            const char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline != NULL ? newline : end;
            for (const char *c = at; c < stop; c++)
                if (!is_blank(*c))
                    return layout_of(at, stop);
            at = newline != NULL ? newline + 1 : end;
        }
    }
    return (layout){.separator = ' '};
}

/* What the texts hold, gathered chunk by chunk; `make` makes something of it. */
static rbt_err parse_chunks(const rbt_source *source, const rbt_reading *reading,
                            rbt_err (*make)(const rbt_chunks *chunks, const rbt_source *source, void *out,
                                            rbt_error *error),
                            void *out, rbt_error *error)
{
    layout l = layout_of_texts(source);
    const rbt_row_format format = {.row = "user item rating (or with ::, tabs or commas between them)",
                                   .separators = "\n",
                                   .context = &l,
                                   .parse = parse_line,
                                   .open = open_gathered,
                                   .close = close_gathered};
    l.pairs = reading->unlabelled;
    rbt_data none = {0};
    rbt_seen seen;
    rbt_chunks *chunks = rbt_chunks_create(source, &format);
    rbt_err err = rbt_chunks_parse(chunks, reading, &none, &seen, error);
    for (size_t c = 0; err == RBT_OK && reading->report != NULL && c < rbt_chunks_count(chunks); c++)
        reading->report->headers += ((const gathered *)rbt_chunks_own(chunks, c))->headers;
    if (err == RBT_OK) {
        err = make(chunks, source, out, error);
        if (source->portion != NULL)
            err = rbt_crew_agree(source->portion->crew, err, error);
    }
    rbt_chunks_destroy(chunks);
    rbt_data_deinit(&none);
    return err;
}

/* Data, and how many ratings were not taken into it. */
typedef struct rows_made {
    rbt_data data;
    uint64_t repeated;
} rows_made;

static rbt_err make_data(const rbt_chunks *chunks, const rbt_source *source, void *out, rbt_error *error)
{
    rows_made *made = out;
    return make_rows(chunks, source, &made->data, &made->repeated, error);
}

rbt_err rbt_ratings_parse(const rbt_source *source, const rbt_reading *reading, rbt_data *data, rbt_error *error)
{
    rows_made made = {.repeated = 0};
    rbt_err err = parse_chunks(source, reading, make_data, &made, error);
    if (err != RBT_OK) {
        rbt_data_deinit(&made.data);
        return err;
    }
    if (reading->report != NULL)
        reading->report->repeated = made.repeated;
    *data = made.data;
    return RBT_OK;
}

/* ----------------------------------------------------------------------------------------------- in their own order */

static rbt_err make_list(const rbt_chunks *chunks, const rbt_source *source, void *out, rbt_error *error)
{
    rbt_rating_list *list = out;
    numbering all = {.chunks = chunks};
    size_t count = rbt_chunks_count(chunks), n = 0;
    for (size_t c = 0; c < count; c++)
        n += ((const gathered *)rbt_chunks_own(chunks, c))->triples.count;
    rbt_parallel_for(2, source->cut.threads, number_names, &all);
    list->users = all.ids[0];
    list->items = all.ids[1];
    list->at = rbt_try_alloc_raw(n + 1, sizeof *list->at);
    if (all.failed[0] || all.failed[1] || list->at == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "%s: not enough memory for its %zu ratings", source->name, n);
    for (size_t c = 0; c < count; c++) {
        const gathered *g = rbt_chunks_own(chunks, c);
        for (size_t i = 0; i < g->triples.count; i++) {
            const rbt_triple *t = &g->triples.at[i];
            list->at[list->n++] = (rbt_triple){g->map[0][t->row], g->map[1][t->col], t->value};
        }
    }
    return RBT_OK;
}

rbt_err rbt_ratings_list(const rbt_source *source, const rbt_reading *reading, rbt_rating_list *list, rbt_error *error)
{
    rbt_rating_list l = {0};
    rbt_err err = parse_chunks(source, reading, make_list, &l, error);
    if (err != RBT_OK)
        rbt_rating_list_deinit(&l);
    else
        *list = l;
    return err;
}

void rbt_rating_list_deinit(rbt_rating_list *list)
{
    rbt_ids_unref(list->users);
    rbt_ids_unref(list->items);
    rbt_free(list->at);
    *list = (rbt_rating_list){0};
}
