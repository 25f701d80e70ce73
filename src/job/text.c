/* Numbers and names as people type them; the contract stands in text.h. */
#include "job/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define WORD_LIMIT      40     /* longer words are not compared: nobody misspells that much */
#define EXACT_IN_DOUBLE 0x1p53 /* above it a double no longer holds every whole number */

/* strtod takes more than we do: blanks in front, hexadecimal, words. */
static bool looks_like_number(const char *text)
{
    return text[0] != '\0' && text[strspn(text, "0123456789.eE+-")] == '\0';
}

static bool parse_double(const char *text, double *value)
{
    char *end = NULL;

    if (!looks_like_number(text))
        return false;
    errno = 0;
    double parsed = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(parsed))
        return false;
    *value = parsed;
    return true;
}

static bool is_digits(const char *text)
{
    return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
}

static bool parse_u64(const char *text, uint64_t *value)
{
    char *end = NULL;
    double real = 0;

    if (is_digits(text)) {
        errno = 0;
        unsigned long long parsed = strtoull(text, &end, 10);
        if (errno != 0)
            return false;
        *value = parsed;
        return true;
    }
    if (!parse_double(text, &real) || real < 0 || real > EXACT_IN_DOUBLE || real != floor(real))
        return false;
    *value = (uint64_t)real;
    return true;
}

rbt_err rbt_text_to_count(const char *what, const char *text, uint64_t min, uint64_t max, uint64_t *value,
                          rbt_error *error)
{
    uint64_t parsed = 0;

    bool known = parse_u64(text, &parsed);
    if (!known && is_digits(text))
        return rbt_fail(error, RBT_E_USAGE, "%s %.60s is too large; give at most %llu", what, text,
                        (unsigned long long)max);
    double real = 0;
    bool negative = !known && parse_double(text, &real) && real < 0 && real == floor(real);
    if (!known && !negative)
        return rbt_fail(error, RBT_E_USAGE, "%s '%s' is not a whole number; give one like 8 or 1e5", what, text);
    if (negative || parsed < min || parsed > max) {
        if (max == UINT64_MAX)
            return rbt_fail(error, RBT_E_USAGE, "%s %s is too small; give at least %llu", what, text,
                            (unsigned long long)min);
        return rbt_fail(error, RBT_E_USAGE, "%s %s is out of range; give a number from %llu to %llu", what, text,
                        (unsigned long long)min, (unsigned long long)max);
    }
    *value = parsed;
    return RBT_OK;
}

rbt_err rbt_text_to_real(const char *what, const char *text, double *value, rbt_error *error)
{
    if (!parse_double(text, value))
        return rbt_fail(error, RBT_E_USAGE, "%s '%s' is not a number; give one like 0.5 or 1e-4", what, text);
    return RBT_OK;
}

const char *rbt_text_from_loss(double loss, char text[RBT_REAL_ROOM])
{
    if (isnan(loss))
        snprintf(text, RBT_REAL_ROOM, "not a number");
    else if (isinf(loss))
        snprintf(text, RBT_REAL_ROOM, loss > 0 ? "infinite" : "infinite, below 0");
    else
        snprintf(text, RBT_REAL_ROOM, "%.6g", loss);
    return text;
}

void rbt_text_from_real(double value, char *text, size_t room)
{
    RBT_ASSERT(room >= RBT_REAL_ROOM);
    if (isnan(value)) {
        snprintf(text, room, "nan");
        return;
    }
    if (fabs(value) < 1e15 && value == floor(value)) { /* 10, not 1e+01 */
        snprintf(text, room, "%.0f", value);
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, room, "%.*g", digits, value);
        if (isinf(value) || strtod(text, NULL) == value)
            return;
    }
}

/* The number of letters to insert, drop, change or swap with a neighbour to turn one word into the other. */
static size_t distance(const char *a, const char *b)
{
    size_t rows[3][WORD_LIMIT + 1];
    size_t n = strlen(a), m = strlen(b);

    if (n > WORD_LIMIT || m > WORD_LIMIT)
        return SIZE_MAX;
    for (size_t j = 0; j <= m; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *row = rows[i % 3], *above = rows[(i - 1) % 3], *above2 = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = above[j - 1] + (a[i - 1] != b[j - 1]);
            if (above[j] + 1 < best)
                best = above[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && above2[j - 2] + 1 < best)
                best = above2[j - 2] + 1;
            row[j] = best;
        }
    }
    return rows[n % 3][m];
}

void rbt_nearest_offer(rbt_nearest *nearest, const char *candidate)
{
    size_t d = distance(nearest->word, candidate);

    if (nearest->best == NULL || d < nearest->distance) {
        nearest->best = candidate;
        nearest->distance = d;
    }
}

const char *rbt_nearest_found(const rbt_nearest *nearest)
{
    size_t length = strlen(nearest->word);
    size_t allowed = length < 4 ? 1 : length < 6 ? 2 : 3;

    return nearest->best != NULL && nearest->distance <= allowed && nearest->distance < length ? nearest->best : NULL;
}
