/* How data was read. Contract in origin.h; proved by tests/unit/test_origin.c. */
#include "data/origin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define FIELDS_ROOM (size_t)32 /* of a line or two, a name aside */

static const char *const kind_names[] = {"label", "weight", "number", "words"};

/* "label NAME", or "label" alone where there was no header. */
static bool parse_column(rbt_origin *origin, const char *at, size_t n)
{
    for (unsigned kind = 0; kind < sizeof kind_names / sizeof kind_names[0]; kind++) {
        size_t length = strlen(kind_names[kind]);
        if (n < length || memcmp(at, kind_names[kind], length) != 0 || (n > length && at[length] != ' '))
            continue;
        bool named = n > length;
        if (origin->column.count > 0 && named != (origin->column.at[0].name != NULL))
            return false;
        if (named && n - length - 1 > RBT_ORIGIN_NAME_BYTES)
            return false;
        rbt_origin_column column = {(rbt_column_kind)kind, named ? at + length + 1 : NULL, named ? n - length - 1 : 0};
        rbt_array_push(&origin->column, column);
        return true;
    }
    return false;
}

static bool parse_line(rbt_origin *origin, const char *at, size_t n)
{
    if (n == 6 && memcmp(at, "base ", 5) == 0 && (at[5] == '0' || at[5] == '1')) {
        origin->base = at[5] == '0' ? RBT_BASE_0 : RBT_BASE_1;
        return true;
    }
    if (n >= 6 && n <= 7 && memcmp(at, "bits ", 5) == 0) {
        origin->bits = 0;
        for (size_t i = 5; i < n; i++) {
            if (at[i] < '0' || at[i] > '9')
                return false;
            origin->bits = origin->bits * 10 + (uint32_t)(at[i] - '0');
        }
        return origin->bits >= 1 && origin->bits <= RBT_BITS_LIMIT;
    }
    return parse_column(origin, at, n);
}

bool rbt_origin_parse(const char *text, rbt_origin *origin)
{
    *origin = (rbt_origin){.base = RBT_BASE_AUTO};
    for (const char *at = text; at != NULL && *at != '\0';) {
        const char *newline = strchr(at, '\n');
        if (newline == NULL || !parse_line(origin, at, (size_t)(newline - at))) {
            rbt_origin_deinit(origin);
            *origin = (rbt_origin){.base = RBT_BASE_AUTO};
            return false;
        }
        at = newline + 1;
    }
    return true;
}

void rbt_origin_deinit(rbt_origin *origin)
{
    rbt_array_free(&origin->column);
}

/* A name may have lines, a line may not. */
static char in_line(char c)
{
    return (unsigned char)c < ' ' ? ' ' : c;
}

bool rbt_origin_is_named(const rbt_origin_column *column, const char *name)
{
    size_t n = name != NULL ? strlen(name) : 0;
    n = n < RBT_ORIGIN_NAME_BYTES ? n : RBT_ORIGIN_NAME_BYTES;
    bool same = name != NULL && column->name != NULL && n == column->bytes;
    for (size_t i = 0; same && i < n; i++)
        same = in_line(name[i]) == column->name[i];
    return same;
}

char *rbt_origin_text(const rbt_origin *origin)
{
    size_t room = FIELDS_ROOM, n = 0;
    for (size_t i = 0; i < origin->column.count; i++)
        room += FIELDS_ROOM + origin->column.at[i].bytes;
    char *text = rbt_alloc(room, 1);
    if (origin->base != RBT_BASE_AUTO)
        n += (size_t)snprintf(text + n, room - n, "base %d\n", origin->base == RBT_BASE_0 ? 0 : 1);
    if (origin->bits > 0)
        n += (size_t)snprintf(text + n, room - n, "bits %u\n", origin->bits);
    for (size_t i = 0; i < origin->column.count; i++) {
        const rbt_origin_column *c = &origin->column.at[i];
        n += (size_t)snprintf(text + n, room - n, "%s%s", kind_names[c->kind], c->name != NULL ? " " : "");
        for (size_t k = 0; c->name != NULL && k < c->bytes && k < RBT_ORIGIN_NAME_BYTES; k++)
            text[n++] = in_line(c->name[k]);
        text[n++] = '\n';
    }
    return text;
}

size_t rbt_origin_first(const rbt_origin *origin)
{
    bool hashes = origin->bits > 0 && origin->column.count == 0;
    return origin->base == RBT_BASE_0 || (origin->base == RBT_BASE_AUTO && hashes) ? 0 : 1;
}

rbt_base rbt_reading_base(const rbt_reading *reading)
{
    rbt_origin origin;
    if (reading->base != RBT_BASE_AUTO || !rbt_origin_parse(reading->origin, &origin))
        return reading->base;
    rbt_origin_deinit(&origin);
    return origin.base;
}

uint32_t rbt_origin_bits(const char *text)
{
    rbt_origin origin;
    if (rbt_origin_parse(text, &origin))
        rbt_origin_deinit(&origin);
    return origin.bits;
}

uint32_t rbt_reading_bits(const rbt_reading *reading)
{
    uint32_t bits = reading->bits != 0 ? reading->bits : rbt_origin_bits(reading->origin);
    return bits != 0 ? bits : RBT_BITS_DEFAULT;
}

/* The next column of features. */
static const rbt_origin_column *next_feature(const rbt_origin *origin, size_t *i)
{
    while (*i < origin->column.count && origin->column.at[*i].kind != RBT_COLUMN_NUMBER &&
           origin->column.at[*i].kind != RBT_COLUMN_WORDS)
        ++*i;
    return *i < origin->column.count ? &origin->column.at[(*i)++] : NULL;
}

static bool same_column(const rbt_origin_column *a, const rbt_origin_column *b)
{
    return a->kind == b->kind &&
           (a->name == NULL || b->name == NULL || (a->bytes == b->bytes && memcmp(a->name, b->name, a->bytes) == 0));
}

/* From which column on are the features of b not those of a? 0: from none. *name: its own, or NULL. `places`: columns without names
 * are the same only in the same places. */
static size_t columns_part(const rbt_origin *a, const rbt_origin *b, bool places, const rbt_origin_column **name)
{
    size_t i = 0, k = 0;
    bool more = a->column.count > 0 && b->column.count > 0,
         named = more && a->column.at[0].name && b->column.at[0].name;
    while (more) {
        const rbt_origin_column *x = next_feature(a, &i), *y = next_feature(b, &k);
        more = x != NULL && y != NULL;
        if (more ? same_column(x, y) && (named || !places || i == k) : x == y)
            continue;
        *name = y != NULL && y->name != NULL ? y : NULL;
        return k;
    }
    return 0;
}

#define SHOWN_BYTES (size_t)60 /* of a column's name, in messages */

static int shown_bytes(const rbt_origin_column *column)
{
    return column == NULL ? 0 : (int)(column->bytes < SHOWN_BYTES ? column->bytes : SHOWN_BYTES);
}

static int base_number(rbt_base base)
{
    return base == RBT_BASE_0 ? 0 : 1;
}

/* Columns as `rubato convert` writes them, f1, f2, ...: the features of any text, by number. */
static bool is_converted(const rbt_origin *o)
{
    size_t n = 0, i = 0;
    char name[24];
    for (const rbt_origin_column *c = next_feature(o, &i); c != NULL; c = next_feature(o, &i)) {
        (void)snprintf(name, sizeof name, "f%zu", ++n);
        if (!rbt_origin_is_named(c, name))
            return false;
    }
    return n > 0;
}

/* The text whose way of numbering features it is; RBT_KIND_AUTO: it is not known. */
static rbt_kind numbering_of(const rbt_origin *o)
{
    if (o->column.count > 0)
        return is_converted(o) ? RBT_KIND_LIBSVM : RBT_KIND_CSV;
    return o->base != RBT_BASE_AUTO ? RBT_KIND_LIBSVM : o->bits != 0 ? RBT_KIND_VW : RBT_KIND_AUTO;
}

static const char *text_name(rbt_kind kind)
{
    return kind == RBT_KIND_LIBSVM ? "LIBSVM text" : kind == RBT_KIND_VW ? "Vowpal Wabbit text" : "CSV";
}

static rbt_err compare_kinds(const rbt_reading *reading, const rbt_origin *before, rbt_kind kind, const char *name,
                             rbt_error *error)
{
    rbt_kind like = numbering_of(before);
    bool columns = kind == RBT_KIND_CSV && before->column.count > 0; /* which are compared one by one */
    bool told = kind == RBT_KIND_LIBSVM && reading->base != RBT_BASE_AUTO;
    if (like == RBT_KIND_AUTO || like == kind || columns || told)
        return RBT_OK;
    return rbt_fail(error, RBT_E_DATA,
                    "%s: is %s, and the training data was %s, whose features are numbered in another way; give data in "
                    "that format%s",
                    name, text_name(kind), text_name(like),
                    kind == RBT_KIND_LIBSVM ? ", or, if the indices are those features, say with --base whether the "
                                              "first is 0 or 1"
                                            : "");
}

rbt_err rbt_origin_kind_fits(const rbt_reading *reading, rbt_kind kind, const char *name, rbt_error *error)
{
    rbt_origin before;
    if ((kind != RBT_KIND_LIBSVM && kind != RBT_KIND_VW && kind != RBT_KIND_CSV) ||
        !rbt_origin_parse(reading->origin, &before))
        return RBT_OK;
    rbt_err err = compare_kinds(reading, &before, kind, name, error);
    rbt_origin_deinit(&before);
    return err;
}

rbt_err rbt_origin_check(const rbt_reading *reading, const rbt_data *data, const char *name, rbt_error *error)
{
    rbt_origin a, b;
    rbt_err err = RBT_OK;
    const rbt_origin_column *column = NULL;
    if (reading->origin == NULL || data->origin == NULL || strcmp(reading->origin, data->origin) == 0)
        return RBT_OK;
    (void)rbt_origin_parse(reading->origin, &a);
    (void)rbt_origin_parse(data->origin, &b);
    size_t part = columns_part(&a, &b, false, &column);
    if (numbering_of(&b) != RBT_KIND_AUTO && !is_converted(&b))
        err = compare_kinds(reading, &a, numbering_of(&b), name, error);
    if (err != RBT_OK)
        goto deinit;
    if (reading->base == RBT_BASE_AUTO && a.base != RBT_BASE_AUTO && b.base != RBT_BASE_AUTO && a.base != b.base)
        err = rbt_fail(error, RBT_E_DATA,
                       "%s: its features count from %d, those of the training data from %d; make it again with --base "
                       "%d, or give --base %d if its first feature is that of the training data",
                       name, base_number(b.base), base_number(a.base), base_number(a.base), base_number(b.base));
    else if (a.bits != 0 && b.bits != 0 && a.bits != b.bits)
        err = rbt_fail(error, RBT_E_DATA,
                       "%s: was hashed to 2^%u columns, the training data to 2^%u; make it again with --bits %u", name,
                       b.bits, a.bits, a.bits);
    else if (part != 0)
        err = rbt_fail(error, RBT_E_DATA,
                       "%s: its columns are not those of the training data from column %zu on ('%.*s'); give the "
                       "text that it was made from, or train with data like it",
                       name, part, shown_bytes(column), column != NULL ? column->name : "");
deinit:
    rbt_origin_deinit(&a);
    rbt_origin_deinit(&b);
    return err;
}

/* Is that column, named or numbered as in an option, the one of this kind? "none" is, where no column is. */
static bool is_role(const rbt_origin *origin, rbt_column_kind kind, const char *option)
{
    size_t i = 0, digits = strspn(option, "0123456789");
    while (i < origin->column.count && origin->column.at[i].kind != kind)
        i++;
    if (i == origin->column.count)
        return i > 0 && strcmp(option, "none") == 0;
    bool number = digits > 0 && digits < 19 && option[digits] == '\0';
    return rbt_origin_is_named(&origin->column.at[i], option) || (number && strtoull(option, NULL, 10) == i + 1);
}

static rbt_err refuse_option(const char *option, const char *value, const char *name, rbt_error *error)
{
    return rbt_fail(error, RBT_E_USAGE,
                    "--%s %s makes no sense for %s, which is a cache and stays as it was read when it was made; leave "
                    "it out, or make the cache again with it",
                    option, value, name);
}

rbt_err rbt_origin_fits(const rbt_reading *reading, const rbt_data *data, const char *name, rbt_error *error)
{
    rbt_origin o;
    rbt_err err = RBT_OK;
    char bits[16];
    (void)snprintf(bits, sizeof bits, "%u", reading->bits);
    (void)rbt_origin_parse(data->origin, &o);
    if (reading->label != NULL && !is_role(&o, RBT_COLUMN_LABEL, reading->label))
        err = refuse_option("label", reading->label, name, error);
    else if (reading->weight != NULL && !is_role(&o, RBT_COLUMN_WEIGHT, reading->weight))
        err = refuse_option("weight", reading->weight, name, error);
    else if (reading->base != RBT_BASE_AUTO && reading->base != o.base)
        err = refuse_option("base", reading->base == RBT_BASE_0 ? "0" : "1", name, error);
    else if (reading->bits != 0 && reading->bits != o.bits)
        err = refuse_option("bits", bits, name, error);
    rbt_origin_deinit(&o);
    return err;
}

/* ------------------------------------------------------------------------------------------------- several caches */

/* What those before tell, and which of them does. */
typedef struct known {
    rbt_origin origin;
    const char *base, *bits, *columns;
} known;

static rbt_err compare(const known *k, const rbt_origin *o, const char *name, rbt_error *error)
{
    const rbt_origin_column *column = NULL;
    size_t part = columns_part(&k->origin, o, true, &column);
    if (k->base != NULL && o->base != RBT_BASE_AUTO && o->base != k->origin.base)
        return rbt_fail(
            error, RBT_E_DATA, "%s: its features count from %d, those of %s from %d; make %s again with --base 0", name,
            base_number(o->base), k->base, base_number(k->origin.base), o->base == RBT_BASE_0 ? k->base : name);
    if (k->bits != NULL && o->bits != 0 && o->bits != k->origin.bits)
        return rbt_fail(error, RBT_E_DATA, "%s: was hashed to 2^%u columns, %s to 2^%u; make it again with --bits %u",
                        name, o->bits, k->bits, k->origin.bits, k->origin.bits);
    if (part != 0)
        return rbt_fail(error, RBT_E_DATA,
                        "%s: its columns are not those of %s from column %zu on ('%.*s'); make it again from text with "
                        "the same columns in the same order, or leave it out",
                        name, k->columns, part, shown_bytes(column), column != NULL ? column->name : "");
    return RBT_OK;
}

/* Adds what nobody has told before; the columns are moved. */
static void learn(known *k, rbt_origin *o, const char *name)
{
    if (k->base == NULL && o->base != RBT_BASE_AUTO) {
        k->base = name;
        k->origin.base = o->base;
    }
    if (k->bits == NULL && o->bits != 0) {
        k->bits = name;
        k->origin.bits = o->bits;
    }
    if (k->columns == NULL && o->column.count > 0) {
        k->columns = name;
        rbt_origin_deinit(&k->origin);
        memcpy(&k->origin.column, &o->column, sizeof o->column);
        memset(&o->column, 0, sizeof o->column);
    }
}

rbt_err rbt_origins_agree(const rbt_origin_of *all, size_t count, rbt_error *error)
{
    known k = {.origin = {.base = RBT_BASE_AUTO}};
    rbt_err err = RBT_OK;
    for (size_t i = 0; err == RBT_OK && i < count; i++) {
        rbt_origin o;
        if (i > 0 && all[i].text != NULL && all[i - 1].text != NULL && strcmp(all[i].text, all[i - 1].text) == 0)
            continue;
        (void)rbt_origin_parse(all[i].text, &o);
        err = compare(&k, &o, all[i].name, error);
        learn(&k, &o, all[i].name);
        rbt_origin_deinit(&o);
    }
    rbt_origin_deinit(&k.origin);
    return err;
}
