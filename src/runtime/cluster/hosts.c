/* Lists of hosts: see hosts.h. */
#include "runtime/cluster/hosts.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

#define EXPECTED "expected names like a,b:4,c or n[01-16]"

/* One list while it is read. */
typedef struct reading {
    const char *what;
    const char *text; /* all of it, for messages */
    rbt_hosts *hosts;
    rbt_error *error;
} reading;

/* Reads digits; NULL when there are none or they make more than `most`. */
static const char *digits_read(const char *at, const char *end, uint64_t most, uint64_t *value)
{
    const char *start = at;

    *value = 0;
    for (; at < end && isdigit((unsigned char)*at); at++) {
        *value = *value * 10 + (uint64_t)(*at - '0');
        if (*value > most)
            return NULL;
    }
    return at == start ? NULL : at;
}

rbt_err rbt_hosts_number(const char *what, const char *text, uint64_t least, uint64_t most, uint64_t *value,
                         rbt_error *error)
{
    const char *end = text + strlen(text);
    uint64_t number;

    if (digits_read(text, end, most, &number) != end || number < least)
        return rbt_fail(error, RBT_E_USAGE, "%s is \"%.80s\": expected a whole number from %llu to %llu", what, text,
                        (unsigned long long)least, (unsigned long long)most);
    *value = number;
    return RBT_OK;
}

static rbt_err host_push(const reading *r, const char *name, size_t n, uint32_t processes)
{
    rbt_host host = {.processes = processes};

    if (n > RBT_HOST_BYTES_MAX)
        return rbt_fail(r->error, RBT_E_LIMIT, "%s: a name in \"%.80s\" is longer than %d characters", r->what, r->text,
                        RBT_HOST_BYTES_MAX);
    if (r->hosts->count == RBT_HOSTS_MAX)
        return rbt_fail(r->error, RBT_E_LIMIT, "%s: \"%.80s\" makes more than %d hosts", r->what, r->text,
                        RBT_HOSTS_MAX);
    if (processes > RBT_PROCESSES_MAX - r->hosts->processes)
        return rbt_fail(r->error, RBT_E_LIMIT, "%s: \"%.80s\" makes more than %d processes", r->what, r->text,
                        RBT_PROCESSES_MAX);
    host.name = rbt_alloc(n + 1, 1);
    memcpy(host.name, name, n);
    rbt_array_push(r->hosts, host);
    r->hosts->processes += processes;
    return RBT_OK;
}

static bool may_be_in_a_name(char c)
{
    return isalnum((unsigned char)c) || strchr("-._@%", c) != NULL;
}

static rbt_err pattern_expand(const reading *r, const char *prefix, size_t prefix_bytes, const char *at,
                              const char *end, uint32_t processes);

/* One "7" or "001-003" of a bracket, before what stands from `rest` on. */
static rbt_err range_expand(const reading *r, const char *prefix, size_t prefix_bytes, const char *first,
                            const char *last, int width, const char *rest, const char *end, uint32_t processes)
{
    uint64_t low;
    uint64_t high;
    const char *at = digits_read(first, last, UINT32_MAX, &low);
    char name[RBT_HOST_BYTES_MAX + 32];

    if (at && width == 0)
        width = (int)(at - first); /* leading zeros stay; without them nothing is shorter than the first */
    high = low;
    if (at && at < last && *at == '-')
        at = digits_read(at + 1, last, UINT32_MAX, &high);
    if (at != last || high < low || width > 20)
        return rbt_fail(r->error, RBT_E_USAGE, "%s: \"%.*s\" in \"%.80s\" is not a number or a range like 1-3", r->what,
                        (int)(last - first), first, r->text);
    if (high - low >= RBT_HOSTS_MAX)
        return rbt_fail(r->error, RBT_E_LIMIT, "%s: \"%.80s\" makes more than %d hosts", r->what, r->text,
                        RBT_HOSTS_MAX);
    memcpy(name, prefix, prefix_bytes);
    for (uint64_t i = low; i <= high; i++) {
        int n = snprintf(name + prefix_bytes, 32, "%0*llu", width, (unsigned long long)i);
        rbt_err err = pattern_expand(r, name, prefix_bytes + (size_t)n, rest, end, processes);

        if (err)
            return err;
    }
    return RBT_OK;
}

/* The names of prefix + [at, end), which may have brackets. The depth is at most the number of brackets that fit. */
static rbt_err pattern_expand(const reading *r, const char *prefix, size_t prefix_bytes, const char *at,
                              const char *end, uint32_t processes)
{
    char name[RBT_HOST_BYTES_MAX + 1];
    const char *close;
    uint64_t width;
    rbt_err err = RBT_OK;

    while (at < end && *at != '[' && prefix_bytes <= RBT_HOST_BYTES_MAX) {
        if (prefix != name) {
            memcpy(name, prefix, prefix_bytes);
            prefix = name;
        }
        if (!may_be_in_a_name(*at) || (prefix_bytes == 0 && *at == '-'))
            return rbt_fail(r->error, RBT_E_USAGE, "%s: no host name has a '%c' there: \"%.80s\"; " EXPECTED, r->what,
                            isprint((unsigned char)*at) ? *at : '?', r->text);
        if (prefix_bytes < RBT_HOST_BYTES_MAX)
            name[prefix_bytes] = *at;
        prefix_bytes++;
        at++;
    }
    if (at == end || prefix_bytes > RBT_HOST_BYTES_MAX)
        return host_push(r, prefix, prefix_bytes, processes);

    close = memchr(at, ']', (size_t)(end - at));
    if (!close)
        return rbt_fail(r->error, RBT_E_USAGE, "%s: a '[' in \"%.80s\" has no ']'; " EXPECTED, r->what, r->text);
    at++;
    width = 0;
    if (memchr(at, ':', (size_t)(close - at))) {
        at = digits_read(at, close, 20, &width);
        if (!at || *at != ':' || width == 0)
            return rbt_fail(r->error, RBT_E_USAGE,
                            "%s: before the ':' in a bracket of \"%.80s\" stands no number of digits", r->what,
                            r->text);
        at++;
    }
    for (;;) {
        const char *comma = memchr(at, ',', (size_t)(close - at));
        const char *last = comma ? comma : close;

        err = range_expand(r, prefix, prefix_bytes, at, last, (int)width, close + 1, end, processes);
        if (err || !comma)
            return err;
        at = comma + 1;
    }
}

/* An address in brackets, "[fd00::1]": true when it is one, and then pushed. */
static bool address_push(const reading *r, const char *at, const char *end, uint32_t processes, rbt_err *err)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr address;
    size_t n = (size_t)(end - at);

    if (n < 4 || n - 2 >= sizeof text || at[0] != '[' || end[-1] != ']')
        return false;
    memcpy(text, at + 1, n - 2);
    text[n - 2] = 0;
    if (inet_pton(AF_INET6, text, &address) != 1)
        return false;
    *err = host_push(r, text, n - 2, processes);
    return true;
}

/* One item: a pattern, perhaps with :N behind it. */
static rbt_err item_parse(const reading *r, const char *at, const char *end)
{
    const char *colon = end;
    uint64_t processes = 1;
    rbt_err err;

    for (const char *p = end; p > at && p[-1] != ']'; p--)
        if (p[-1] == ':')
            colon = p - 1;
    if (colon < end && (digits_read(colon + 1, end, RBT_PROCESSES_MAX, &processes) != end || processes == 0))
        return rbt_fail(r->error, RBT_E_USAGE,
                        "%s: behind the ':' in \"%.*s\" stands no number of processes from 1 to %d", r->what,
                        (int)(end - at < 80 ? end - at : 80), at, RBT_PROCESSES_MAX);
    if (colon == at)
        return rbt_fail(r->error, RBT_E_USAGE, "%s: an empty name in \"%.80s\"; " EXPECTED, r->what, r->text);
    if (address_push(r, at, colon, (uint32_t)processes, &err))
        return err;
    return pattern_expand(r, "", 0, at, colon, (uint32_t)processes);
}

rbt_err rbt_hosts_parse(const char *what, const char *text, rbt_hosts *hosts, rbt_error *error)
{
    rbt_hosts read = {0};
    reading r = {.what = what, .text = text, .hosts = &read, .error = error};
    const char *at = text;
    rbt_err err = RBT_OK;

    for (;;) {
        const char *end = at;

        for (bool inside = false; *end && (inside || *end != ','); end++)
            inside = *end == '[' || (inside && *end != ']');
        if ((err = item_parse(&r, at, end)))
            break;
        if (!*end) {
            *hosts = read;
            return RBT_OK;
        }
        at = end + 1;
    }
    rbt_hosts_deinit(&read);
    return err;
}

rbt_err rbt_hosts_count(const char *what, const char *text, rbt_hosts *hosts, rbt_error *error)
{
    const char *end = text + strlen(text);
    const char *at = text;
    uint64_t total = 0;
    size_t i = 0;

    while (at && at < end && i < hosts->count) {
        uint64_t processes;
        uint64_t times = 1;

        at = digits_read(at, end, RBT_PROCESSES_MAX, &processes);
        if (at && at[0] == '(' && at[1] == 'x') {
            at = digits_read(at + 2, end, RBT_HOSTS_MAX, &times);
            at = at && *at == ')' ? at + 1 : NULL;
        }
        if (!at || (at < end && *at++ != ',') || times > hosts->count - i)
            at = NULL;
        for (uint64_t k = 0; at && k < times; k++) {
            hosts->at[i++].processes = (uint32_t)processes;
            total += processes;
        }
    }
    if (at != end || i < hosts->count || total > RBT_PROCESSES_MAX || (at > text && at[-1] == ','))
        return rbt_fail(error, RBT_E_USAGE,
                        "%s is \"%.80s\": expected a number for each of the %zu hosts, as in 2(x3),1", what, text,
                        hosts->count);
    hosts->processes = (uint32_t)total;
    return RBT_OK;
}

const char *rbt_host_bare(const char *name)
{
    const char *at = strrchr(name, '@');

    return at != NULL ? at + 1 : name;
}

void rbt_hosts_deinit(rbt_hosts *hosts)
{
    for (size_t i = 0; i < hosts->count; i++)
        rbt_free(hosts->at[i].name);
    rbt_array_free(hosts);
    hosts->processes = 0;
}
