/* A small JSON writer; the contract stands in json.h. */
#include "report/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "job/text.h"

/* The length of the UTF-8 sequence at `s`, 0 when it is none (RFC 3629: no overlong forms, no surrogates). */
static size_t utf8_length(const unsigned char *s)
{
    size_t n = s[0] < 0x80                   ? 1
               : s[0] >= 0xc2 && s[0] < 0xe0 ? 2
               : (s[0] & 0xf0) == 0xe0       ? 3
               : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
                                             : 0;

    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
        (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

static void write_string(FILE *file, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;

    fputc('"', file);
    while (*s != '\0') {
        size_t n = utf8_length(s);
        if (n == 0)
            fputs("\\ufffd", file);
        else if (*s == '"' || *s == '\\')
            fprintf(file, "\\%c", *s);
        else if (*s == '\n')
            fputs("\\n", file);
        else if (*s == '\t')
            fputs("\\t", file);
        else if (*s < 0x20 || *s == 0x7f)
            fprintf(file, "\\u%04x", *s);
        else
            fwrite(s, 1, n, file);
        s += n == 0 ? 1 : n;
    }
    fputc('"', file);
}

/* What stands before a value: the comma and the key. */
static void begin(rbt_json *json, const char *key)
{
    if (json->depth > 0) {
        if (json->some[json->depth - 1])
            fputc(',', json->file);
        json->some[json->depth - 1] = true;
        RBT_ASSERT((key != NULL) == (json->close[json->depth - 1] == '}'));
    }
    if (key != NULL) {
        write_string(json->file, key);
        fputc(':', json->file);
    }
}

static void open_level(rbt_json *json, const char *key, char open, char close)
{
    begin(json, key);
    RBT_ASSERT(json->depth < RBT_JSON_DEPTH);
    fputc(open, json->file);
    json->some[json->depth] = false;
    json->close[json->depth] = close;
    json->depth++;
}

void rbt_json_object(rbt_json *json, const char *key)
{
    open_level(json, key, '{', '}');
}

void rbt_json_array(rbt_json *json, const char *key)
{
    open_level(json, key, '[', ']');
}

void rbt_json_end(rbt_json *json)
{
    RBT_ASSERT(json->depth > 0);
    json->depth--;
    fputc(json->close[json->depth], json->file);
    if (json->depth == 0)
        fputc('\n', json->file);
}

void rbt_json_text(rbt_json *json, const char *key, const char *text)
{
    begin(json, key);
    write_string(json->file, text);
}

void rbt_json_real(rbt_json *json, const char *key, double value)
{
    char text[RBT_REAL_ROOM];

    if (!isfinite(value)) {
        rbt_json_null(json, key);
        return;
    }
    begin(json, key);
    rbt_text_from_real(value, text, sizeof text);
    fputs(text, json->file);
}

void rbt_json_count(rbt_json *json, const char *key, uint64_t value)
{
    begin(json, key);
    fprintf(json->file, "%" PRIu64, value);
}

void rbt_json_integer(rbt_json *json, const char *key, int64_t value)
{
    begin(json, key);
    fprintf(json->file, "%" PRId64, value);
}

void rbt_json_bool(rbt_json *json, const char *key, bool value)
{
    begin(json, key);
    fputs(value ? "true" : "false", json->file);
}

void rbt_json_null(rbt_json *json, const char *key)
{
    begin(json, key);
    fputs("null", json->file);
}

void rbt_json_hex(rbt_json *json, const char *key, uint64_t value)
{
    begin(json, key);
    fprintf(json->file, "\"%016" PRIx64 "\"", value);
}

/* JSON's own grammar of numbers: -? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)? */
static bool is_number(const char *s)
{
    static const char DIGITS[] = "0123456789";
    size_t n = 0;

    s += *s == '-';
    n = strspn(s, DIGITS);
    if (n == 0 || (n > 1 && *s == '0'))
        return false;
    s += n;
    if (*s == '.') {
        n = strspn(s + 1, DIGITS);
        if (n == 0)
            return false;
        s += 1 + n;
    }
    if (*s == 'e' || *s == 'E') {
        s += 1 + (s[1] == '+' || s[1] == '-');
        n = strspn(s, DIGITS);
        if (n == 0)
            return false;
        s += n;
    }
    return *s == '\0';
}

void rbt_json_guess(rbt_json *json, const char *key, const char *text)
{
    if (!is_number(text) && strcmp(text, "true") != 0 && strcmp(text, "false") != 0) {
        rbt_json_text(json, key, text);
        return;
    }
    begin(json, key);
    fputs(text, json->file);
}
