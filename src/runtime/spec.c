/* Texts of keys and values, and the simulator's options in that form; the contract is in spec.h. */
#include "runtime/spec.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "comm/budget.h"
#include "runtime/sim.h"

#define SHOWN 40 /* bytes of a wrong text that a message quotes */

/* ------------------------------------------------------------------------------------------------- numbers */

#define EXACT_DIGITS 15 /* whole numbers of that many digits are exact doubles */
#define EXACT_POWER  22 /* and so are powers of ten up to here: one operation, one rounding */

static bool is_digit(const char *at, const char *end)
{
    return at < end && *at >= '0' && *at <= '9';
}

/* Takes one more digit into the mantissa; false when it has too many. Leading zeros do not count. */
static bool take_digit(uint64_t *mantissa, int *digits, char digit)
{
    *mantissa = *mantissa * 10 + (uint64_t)(digit - '0');
    if (*mantissa > 0)
        (*digits)++;
    return *digits <= EXACT_DIGITS;
}

/* The exponent of e[+-]digits; leaves `at` alone when there is none. */
static const char *take_exponent(const char *at, const char *end, int *exponent)
{
    const char *digit = at + 1;
    bool negative = false;
    int value = 0;

    if (at >= end || (*at != 'e' && *at != 'E'))
        return at;
    if (digit < end && (*digit == '+' || *digit == '-'))
        negative = *digit++ == '-';
    if (!is_digit(digit, end))
        return at;
    for (; is_digit(digit, end); digit++)
        value = value > EXACT_POWER ? value : value * 10 + (*digit - '0');
    *exponent += negative ? -value : value;
    return digit;
}

const char *rbt_spec_number(const char *at, const char *end, double *value)
{
    uint64_t mantissa = 0;
    int digits = 0, exponent = 0, written = 0;
    double power = 1;

    for (; is_digit(at, end); at++, written++)
        if (!take_digit(&mantissa, &digits, *at))
            return NULL;
    if (at < end && *at == '.')
        for (at++; is_digit(at, end); at++, written++, exponent--)
            if (!take_digit(&mantissa, &digits, *at))
                return NULL;
    if (written == 0)
        return NULL;
    at = take_exponent(at, end, &exponent);
    if (mantissa == 0)
        exponent = 0;
    if (exponent < -EXACT_POWER || exponent > EXACT_POWER)
        return NULL;
    for (int i = exponent < 0 ? -exponent : exponent; i > 0; i--)
        power *= 10;
    *value = exponent < 0 ? (double)mantissa / power : (double)mantissa * power;
    return at;
}

/* --------------------------------------------------------------------------------------------------- units */

static const struct unit {
    rbt_spec_kind kind;
    const char *name;
    double worth;
} units[] = {
    {RBT_SPEC_DURATION, "ns", 1},  {RBT_SPEC_DURATION, "us", 1e3}, {RBT_SPEC_DURATION, "ms", 1e6},
    {RBT_SPEC_DURATION, "s", 1e9}, {RBT_SPEC_RATE, "bit", 1},      {RBT_SPEC_RATE, "Kbit", 1e3},
    {RBT_SPEC_RATE, "Mbit", 1e6},  {RBT_SPEC_RATE, "Gbit", 1e9},
};

#define UNITS (sizeof units / sizeof units[0])

static bool same(const char *text, size_t n, const char *word)
{
    return strlen(word) == n && memcmp(text, word, n) == 0;
}

/* What the letters behind a number make of it: 0 when they are no unit of this kind. */
static double worth_of(rbt_spec_kind kind, const char *unit, size_t n, double number)
{
    if (n == 0 && (number == 0 || (kind != RBT_SPEC_DURATION && kind != RBT_SPEC_RATE)))
        return 1;
    for (size_t i = 0; i < UNITS; i++)
        if (units[i].kind == kind && same(unit, n, units[i].name))
            return units[i].worth;
    return 0;
}

static const char *expected(rbt_spec_kind kind)
{
    switch (kind) {
    case RBT_SPEC_NUMBER:
        return "a number";
    case RBT_SPEC_COUNT:
        return "a whole number";
    case RBT_SPEC_CHANCE:
        return "a chance from 0 to 1";
    case RBT_SPEC_DURATION:
        return "a time with its unit (ns, us, ms, s)";
    case RBT_SPEC_RATE:
        return "a rate with its unit (bit, Kbit, Mbit, Gbit, per second)";
    case RBT_SPEC_TEXT:
        break;
    }
    return "a text";
}

/* -------------------------------------------------------------------------------------------------- parsing */

/* Quotes no more than fits a message. */
static int shown(size_t n)
{
    return n > SHOWN ? SHOWN : (int)n;
}

static rbt_err parse_value(const char *what, rbt_spec_key *key, const char *text, size_t n, rbt_error *error)
{
    const char *end = text + n, *unit;
    double number = 0, worth;

    key->text = text;
    key->text_bytes = n;
    if (key->kind == RBT_SPEC_TEXT && n > 0)
        return RBT_OK;
    unit = key->kind == RBT_SPEC_TEXT ? NULL : rbt_spec_number(text, end, &number);
    worth = unit == NULL ? 0 : worth_of(key->kind, unit, (size_t)(end - unit), number);
    if (worth == 0 || (key->kind == RBT_SPEC_COUNT && number != floor(number)))
        return rbt_fail(error, RBT_E_USAGE, "%s: %s is '%.*s', but it takes %s; give for example %s", what, key->name,
                        shown(n), text, expected(key->kind), key->example);
    number *= worth;
    if (number < key->least || number > key->most) {
        const char *scale = key->kind == RBT_SPEC_DURATION ? " ns" : key->kind == RBT_SPEC_RATE ? " bit" : "";

        return rbt_fail(error, RBT_E_USAGE,
                        "%s: %s is '%.*s', but it must lie between %.15g%s and %.15g%s; give for example %s", what,
                        key->name, shown(n), text, key->least, scale, key->most, scale, key->example);
    }
    key->number = number;
    return RBT_OK;
}

static rbt_err refuse_key(const char *what, const char *text, size_t n, const rbt_spec_key *keys, size_t key_count,
                          rbt_error *error)
{
    char known[256] = "";
    size_t used = 0;

    for (size_t i = 0; i < key_count && used < sizeof known; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i > 0 ? ", " : "", keys[i].name);
    return rbt_fail(error, RBT_E_USAGE, "%s: '%.*s' is not a key; the keys are %s; give for example %s", what, shown(n),
                    text, known, keys[0].example);
}

/* One "key=value". */
static rbt_err parse_item(const char *what, const char *text, size_t n, rbt_spec_key *keys, size_t key_count,
                          rbt_error *error)
{
    const char *equals = memchr(text, '=', n);
    size_t name_bytes = equals != NULL ? (size_t)(equals - text) : 0;
    rbt_spec_key *key = NULL;
    rbt_err err;

    if (equals == NULL)
        return rbt_fail(error, RBT_E_USAGE, "%s: '%.*s' is not of the form key=value; give for example %s", what,
                        shown(n), text, keys[0].example);
    for (size_t i = 0; i < key_count && key == NULL; i++)
        if (same(text, name_bytes, keys[i].name))
            key = &keys[i];
    if (key == NULL)
        return refuse_key(what, text, name_bytes, keys, key_count, error);
    if (key->given)
        return rbt_fail(error, RBT_E_USAGE, "%s: %s is given twice, the second time as '%.*s'; give it once", what,
                        key->name, shown(n), text);
    err = parse_value(what, key, equals + 1, n - name_bytes - 1, error);
    key->given = err == RBT_OK;
    return err;
}

rbt_err rbt_spec_parse(const char *what, const char *text, size_t n, rbt_spec_key *keys, size_t key_count,
                       rbt_error *error)
{
    const char *end = text + n;

    RBT_ASSERT(key_count > 0);
    for (size_t i = 0; i < key_count; i++)
        keys[i].given = false;
    if (n > RBT_SPEC_TEXT_MAX)
        return rbt_fail(error, RBT_E_LIMIT, "%s: the text has %zu bytes, more than %d; give a shorter one", what, n,
                        RBT_SPEC_TEXT_MAX);
    for (;;) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        const char *stop = comma != NULL ? comma : end;
        rbt_err err = parse_item(what, text, (size_t)(stop - text), keys, key_count, error);

        if (err != RBT_OK || comma == NULL)
            return err;
        text = comma + 1;
    }
}

/* ------------------------------------------------------------------------------------ the simulator's options */

#define TIME(name, example)                                                                                            \
    {                                                                                                                  \
        name, RBT_SPEC_DURATION, 0, RBT_SPEC_DURATION_MAX, example, false, 0, NULL, 0                                  \
    }
#define CHANCE(name, example)                                                                                          \
    {                                                                                                                  \
        name, RBT_SPEC_CHANCE, 0, 1, example, false, 0, NULL, 0                                                        \
    }
#define COUNT(name, example)                                                                                           \
    {                                                                                                                  \
        name, RBT_SPEC_COUNT, 0, RBT_SPEC_COUNT_MAX, example, false, 0, NULL, 0                                        \
    }

static double value_or(const rbt_spec_key *key, double otherwise)
{
    return key->given ? key->number : otherwise;
}

static rbt_err parse_net(rbt_net *net, const char *text, rbt_error *error)
{
    rbt_spec_key keys[] = {{"bw", RBT_SPEC_RATE, 1, RBT_SPEC_RATE_MAX, "bw=1Gbit", false, 0, NULL, 0},
                           TIME("lat", "lat=200us"),
                           TIME("jitter", "jitter=50us")};
    rbt_err err = text == NULL ? RBT_OK : rbt_spec_parse("--net", text, strlen(text), keys, 3, error);

    if (err == RBT_OK)
        *net = (rbt_net){.bits_per_second = value_or(&keys[0], 1e9),
                         .latency_ns = (uint64_t)value_or(&keys[1], 100e3),
                         .jitter_ns = (uint64_t)value_or(&keys[2], 0)};
    return err;
}

static rbt_err parse_cost(rbt_cost *cost, const char *text, rbt_error *error)
{
    rbt_spec_key keys[] = {TIME("sample", "sample=100ns"), TIME("nnz", "nnz=2ns"), TIME("byte", "byte=0.1ns"),
                           TIME("message", "message=1us")};
    rbt_err err = text == NULL ? RBT_OK : rbt_spec_parse("--cost", text, strlen(text), keys, 4, error);

    if (err == RBT_OK)
        *cost = (rbt_cost){.sample_ns = value_or(&keys[0], 100),
                           .nonzero_ns = value_or(&keys[1], 2),
                           .byte_ns = value_or(&keys[2], 0.1),
                           .message_ns = value_or(&keys[3], 1e3)};
    return err;
}

static rbt_err parse_faults(rbt_faults *faults, const char *text, rbt_error *error)
{
    rbt_spec_key keys[] = {
        CHANCE("drop", "drop=0.01"), CHANCE("dup", "dup=0.01"),         CHANCE("delay", "delay=0.05"),
        COUNT("crash", "crash=2"),   COUNT("partition", "partition=1"), TIME("within", "within=500ms"),
    };
    rbt_err err = text == NULL ? RBT_OK : rbt_spec_parse("--faults", text, strlen(text), keys, 6, error);

    if (err == RBT_OK)
        *faults = (rbt_faults){.drop = value_or(&keys[0], 0),
                               .duplicate = value_or(&keys[1], 0),
                               .delay = value_or(&keys[2], 0),
                               .crashes = (uint32_t)value_or(&keys[3], 0),
                               .partitions = (uint32_t)value_or(&keys[4], 0),
                               .within_ns = (uint64_t)value_or(&keys[5], 1e9)};
    return err;
}

rbt_err rbt_budget_parse(const char *text, uint64_t *bytes_per_second, uint64_t *burst_bytes, rbt_error *error)
{
    rbt_spec_key keys[] = {{"rate", RBT_SPEC_RATE, 8, RBT_SPEC_RATE_MAX, "200Mbit", false, 0, NULL, 0},
                           TIME("burst", "burst=10ms")};
    char all[RBT_SPEC_TEXT_MAX + 8];
    int n = snprintf(all, sizeof all, "rate=%s", text);
    rbt_err err;

    if (n < 0 || (size_t)n >= sizeof all)
        return rbt_fail(error, RBT_E_USAGE, "--budget is too long; give a rate like 200Mbit");
    err = rbt_spec_parse("--budget", all, (size_t)n, keys, 2, error);
    if (err != RBT_OK)
        return err;
    *bytes_per_second = (uint64_t)(keys[0].number / 8);
    *burst_bytes =
        keys[1].given ? (uint64_t)((double)*bytes_per_second * keys[1].number / 1e9) : rbt_burst_of(*bytes_per_second);
    if (*burst_bytes < RBT_BURST_MIN)
        *burst_bytes = RBT_BURST_MIN;
    return RBT_OK;
}

rbt_err rbt_sim_options_parse(rbt_sim_options *options, const char *net, const char *cost, const char *faults,
                              rbt_error *error)
{
    rbt_sim_options parsed = *options; /* the seed and the checker are the caller's */
    rbt_err err = parse_net(&parsed.net, net, error);

    if (err == RBT_OK)
        err = parse_cost(&parsed.cost, cost, error);
    if (err == RBT_OK)
        err = parse_faults(&parsed.faults, faults, error);
    if (err == RBT_OK)
        *options = parsed;
    return err;
}
