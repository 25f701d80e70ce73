/* Decimal numbers to and from text. Contract in number.h; proved by tests/unit/test_number.c.
 *
 * Parsing: up to 19 significant digits make an integer m, so that the number is m * 10^e but for digits that weigh less
 * than 1e-18 of it. For |e| <= 22 the power is an exact double, hence m * 10^e as a double is wrong by less than 3
 * units in its last place (converting m, the operation, the dropped digits). Rounding that double to float gives the
 * correctly rounded float unless the double lies within those 3 units of the middle between two floats (Clinger 1990,
 * "How to read floating point numbers accurately", section 4, moved one precision up). Those and the extreme exponents
 * go to strtof.
 */
#include "data/number.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/digits.h"

#define FAST_DIGITS  19     /* 10^19 - 1 fits in 64 bits */
#define EXACT_DIGITS 128    /* no middle between two floats has more than 113 significant digits */
#define KEPT_ROOM    128    /* nobody calls a class by a longer number */
#define FAST_POWER   22     /* 10^22 is the largest power of ten that is an exact double */
#define FAST_LEAST   1e-13F /* from here to FAST_MOST a float times or over such a power has up to MOST_DIGITS digits */
#define FAST_MOST    1e22F
#define MOST_DIGITS  9        /* tell every float from all others */
#define HALF_WAY     0.499999 /* of the last digit: rounded to the even one, if `scaled` is so exact */
#define HUGE_POWER   100000
#define LIMIT_POWER  INT64_C(1000000000000000)

static const double power_of_ten[FAST_POWER + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static inline bool is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

/* m * 10^e as the correctly rounded float; false when only exact arithmetic can tell. */
static bool float_from_decimal(uint64_t m, int64_t e, float *value)
{
    if (m == 0) {
        *value = 0;
        return true;
    }
    if (e < -FAST_POWER || e > FAST_POWER)
        return false;
    double d = e < 0 ? (double)m / power_of_ten[-e] : (double)m * power_of_ten[e];
    if (!(d >= 0x1p-126 && d <= 0x1.fffffep127))
        return false;
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    int64_t from_middle = (int64_t)(bits & 0x1fffffff) - 0x10000000; /* a float keeps all but the last 29 bits */
    if (from_middle >= -4 && from_middle <= 4)
        return false;
    *value = (float)d;
    return true;
}

/* The exact way, for the unsigned number [at, end) whose power of ten (after the e) is `power`: its first 128
 * significant digits as an integer, a last 1 when any digit beyond them is not zero, an exponent; then strtof. */
static float float_from_text(const char *at, const char *end, int64_t power)
{
    char text[EXACT_DIGITS + 32];
    size_t n = 0;
    bool fraction = false, more = false;
    for (; at < end && *at != 'e' && *at != 'E'; at++) {
        if (*at == '.') {
            fraction = true;
            continue;
        }
        power -= fraction;
        if (n == 0 && *at == '0')
            continue;
        if (n < EXACT_DIGITS) {
            text[n++] = *at;
            continue;
        }
        more |= *at != '0';
        power++;
    }
    if (n == 0)
        return 0;
    if (more) {
        text[n++] = '1';
        power--;
    }
    power = power > HUGE_POWER ? HUGE_POWER : power < -HUGE_POWER ? -HUGE_POWER : power;
    (void)snprintf(text + n, sizeof text - n, "e%d", (int)power);
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    RBT_ASSERT(c != (locale_t)0);
    float value = strtof_l(text, NULL, c);
    freelocale(c);
    return value;
}

/* The exponent after a number's digits, if one is there: "e", a sign, digits. */
static const char *parse_power(const char *at, const char *end, int64_t *power)
{
    const char *p = at;
    *power = 0;
    if (p == end || (*p != 'e' && *p != 'E'))
        return at;
    p++;
    bool minus = false;
    if (p < end && (*p == '+' || *p == '-'))
        minus = *p++ == '-';
    if (p == end || !is_digit(*p))
        return at;
    int64_t e = 0;
    for (; p < end && is_digit(*p); p++)
        if (e < LIMIT_POWER)
            e = e * 10 + (*p - '0');
    *power = minus ? -e : e;
    return p;
}

static inline size_t count_digits(uint64_t m)
{
    size_t n = 1;
    for (; m >= 10000; m /= 10000)
        n += 4;
    return n + (m >= 10) + (m >= 100) + (m >= 1000);
}

/* Eight digits at a time, as long as that many are there and m has room for them. Returns where it stopped. */
static inline const char *parse_eights(const char *at, const char *end, uint64_t *m, int *kept)
{
    uint32_t eight;
    while (*kept + 8 <= FAST_DIGITS && end - at >= 8 && rbt_digits_parse(rbt_digits_load(at), 8, &eight)) {
        *kept = *m != 0 ? *kept + 8 : eight != 0 ? (int)count_digits(eight) : 0;
        *m = *m * 100000000 + eight;
        at += 8;
    }
    return at;
}

const char *rbt_number_parse(const char *at, const char *end, float *value)
{
    const char *p = at;
    bool minus = false;
    if (p < end && (*p == '-' || *p == '+'))
        minus = *p++ == '-';

    const char *digits = p;
    uint64_t m = 0;
    int kept = 0;    /* significant digits in m */
    int64_t e = 0;   /* the number is m * 10^e */
    size_t seen = 0; /* digits of any kind */
    for (; p < end && is_digit(*p); p++, seen++) {
        if (kept < FAST_DIGITS) {
            m = m * 10 + (uint64_t)(*p - '0');
            kept += m != 0;
        } else {
            e++;
        }
    }
    if (p < end && *p == '.') {
        p++;
        const char *stop = parse_eights(p, end, &m, &kept);
        seen += (size_t)(stop - p);
        e -= stop - p;
        p = stop;
        for (; p < end && is_digit(*p); p++, seen++) {
            if (kept < FAST_DIGITS) {
                m = m * 10 + (uint64_t)(*p - '0');
                kept += m != 0;
                e--;
            }
        }
    }
    if (seen == 0)
        return NULL;
    int64_t power;
    const char *stop = parse_power(p, end, &power);
    float result;
    if (!float_from_decimal(m, e + power, &result))
        result = float_from_text(digits, stop, power);
    *value = minus ? -result : result;
    return stop;
}

size_t rbt_number_print_count(uint64_t count, char *out)
{
    size_t n = count_digits(count);
    size_t i = n;
    for (; count > UINT32_MAX; count /= 10)
        out[--i] = (char)('0' + count % 10);
    for (uint32_t m = (uint32_t)count; i > 0; m /= 10) /* shorter divisions */
        out[--i] = (char)('0' + m % 10);
    return n;
}

/* value = m / 10^decimals as text; trailing zeros of the fraction are left out. */
static size_t print_decimal(bool minus, uint32_t m, int decimals, char *out)
{
    while (decimals > 0 && m % 10 == 0) {
        m /= 10;
        decimals--;
    }
    size_t length = minus;
    if (minus)
        out[0] = '-';
    size_t n = count_digits(m), fraction = (size_t)decimals;
    size_t whole = n > fraction ? n - fraction : 1;
    char *point = out + length + whole;
    for (size_t i = fraction; i > 0; m /= 10)
        point[i--] = (char)('0' + m % 10);
    for (size_t i = whole; i > 0; m /= 10)
        out[length + --i] = (char)('0' + m % 10);
    length += whole;
    if (fraction > 0) {
        *point = '.';
        length += 1 + fraction;
    }
    out[length] = '\0';
    return length;
}

/* m / 10^decimals as printf's %g writes what is very large or small: 1.25e-05. */
static size_t print_power(bool minus, uint32_t m, int decimals, char *out)
{
    int power = (int)count_digits(m) - 1 - decimals;
    size_t length = print_decimal(minus, m, (int)count_digits(m) - 1, out);
    out[length++] = 'e';
    out[length++] = power < 0 ? '-' : '+';
    power = abs(power);
    out[length++] = (char)('0' + power / 10);
    out[length++] = (char)('0' + power % 10);
    out[length] = '\0';
    return length;
}

/* Half of the distance between floats of this size. */
static double half_step(float a)
{
    uint32_t bits;
    memcpy(&bits, &a, sizeof bits);
    uint64_t wide = (uint64_t)((bits >> 23) + (1023 - 127 - 24)) << 52;
    double half;
    memcpy(&half, &wide, sizeof half);
    return half;
}

/* The exponent of a's first digit, for 1e-4 <= a < 1e9. */
static int leading_digit(double a)
{
    static const double from[] = {1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8};
    int leading = -4; /* a >= 10^leading */
    while (leading < 8 && a >= from[leading + 4])
        leading++;
    return leading;
}

/* The same beyond that range, where a division may round up to the next power of ten: as the number is printed, too. */
static int leading_power(double a)
{
    int leading = 9, below = 5;
    if (a < 1) {
        while (below < FAST_POWER && a * power_of_ten[below] < 1)
            below++;
        return -below;
    }
    while (leading < FAST_POWER && a / power_of_ten[leading] >= 10)
        leading++;
    return leading;
}

/* a * 10^decimals; exact where both are small, else rounded once. */
static inline double shift(double a, int decimals)
{
    return decimals < 0 ? a / power_of_ten[-decimals] : a * power_of_ten[decimals];
}

/* The fewest digits, 6 to 9, that read back as `a`, for FAST_LEAST <= a < FAST_MOST; 0 when only the library can tell
 * them. */
static size_t print_short(bool minus, float a, char *out)
{
    bool ordinary = a >= 1e-4F && a < 1e9F;
    int leading = ordinary ? leading_digit((double)a) : leading_power((double)a);
    double half = half_step(a);
    for (int precision = ordinary && leading >= 6 ? leading + 1 : 6; precision <= 9; precision++) {
        int decimals = precision - 1 - leading;
        double scaled = shift((double)a, decimals);
        uint32_t m = (uint32_t)(scaled + 0.5);
        /* Further away than half a step, and a little for the roundings: it reads back as another float. */
        double away = fabs((double)m - scaled);
        if (away > shift(half, decimals) * (1 + 0x1p-20))
            continue;
        float back;
        if (away > HALF_WAY || !float_from_decimal(m, -decimals, &back))
            return 0;
        if (back == a)
            return ordinary ? print_decimal(minus, m, decimals, out) : print_power(minus, m, decimals, out);
    }
    return 0;
}

/* In as many significant digits, from `least` on, as `value` needs to be read back as the same float, but 9 at most. */
static size_t print_by_library(double value, int least, char out[RBT_NUMBER_ROOM])
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    RBT_ASSERT(c != (locale_t)0);
    locale_t before = uselocale(c); /* of this thread only */
    int n = 0;
    for (int precision = least; precision <= MOST_DIGITS; precision++) {
        n = snprintf(out, RBT_NUMBER_ROOM, "%.*g", precision, value);
        if (precision < MOST_DIGITS && strtof(out, NULL) == (float)value)
            break;
    }
    (void)uselocale(before);
    freelocale(c);
    return (size_t)n;
}

size_t rbt_number_print(float value, char out[RBT_NUMBER_ROOM])
{
    bool minus = value < 0;
    float a = fabsf(value);
    if (a < 1e9F && a == (float)(uint32_t)a)
        return print_decimal(minus, (uint32_t)a, 0, out);
    size_t length = a >= FAST_LEAST && a < FAST_MOST ? print_short(minus, a, out) : 0;
    if (length > 0)
        return length;
    return print_by_library((double)value, FLT_DIG, out);
}

size_t rbt_number_print_rounded(double value, char out[RBT_NUMBER_ROOM])
{
    double a = fabs(value);
    if (!(a >= 1e-4 && a < 1e8))
        return a == 0 ? print_decimal(false, 0, 0, out) : print_by_library(value, MOST_DIGITS, out);
    int decimals = 8 - leading_digit(a);
    return print_decimal(value < 0, (uint32_t)(a * power_of_ten[decimals] + 0.5), decimals, out);
}

/* The digits between the first and the last that are not zero. */
static size_t significant_digits(const char *at, const char *end)
{
    size_t digits = 0, zeros = 0;
    for (; at < end && *at != 'e' && *at != 'E'; at++) {
        if (is_digit(*at) && *at != '0') {
            digits += zeros + 1;
            zeros = 0;
        } else if (*at == '0' && digits > 0) {
            zeros++;
        }
    }
    return digits;
}

/* Has it digits alone, and perhaps a sign? */
static bool is_whole(const char *at, const char *end)
{
    at += at < end && (*at == '-' || *at == '+');
    while (at < end && is_digit(*at))
        at++;
    return at == end;
}

bool rbt_number_is_kept(const char *at, const char *end, float value)
{
    char printed[RBT_NUMBER_ROOM], given[KEPT_ROOM] = "";
    if (significant_digits(at, end) <= FLT_DIG)
        return true;
    if ((size_t)(end - at) >= sizeof given)
        return false;
    memcpy(given, at, (size_t)(end - at));
    (void)rbt_number_print(value, printed);
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    RBT_ASSERT(c != (locale_t)0);
    double was = strtod_l(given, NULL, c);
    bool same = was == (double)value || (!is_whole(at, end) && was == strtod_l(printed, NULL, c));
    freelocale(c);
    return same;
}
