/* Hosts of a simulated cluster; the contract is in sim_hosts.h. */
#include "runtime/sim_hosts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "data/file.h"
#include "runtime/spec.h"

#define SHOWN       40 /* characters of what was found that fit a message */
#define PLACE_BYTES 512

static int shown(size_t n)
{
    return n > SHOWN ? SHOWN : (int)n;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* --------------------------------------------------------------------------------------------- --speed */

/* A number that ends at `end`, from least to most. */
static bool whole_number(const char *at, const char *end, double least, double most, double *value)
{
    return rbt_spec_number(at, end, value) == end && *value >= least && *value <= most;
}

/* "3" or "4-7", workers. */
static bool parse_workers(const char *at, const char *end, uint32_t workers, uint32_t *first, uint32_t *last)
{
    const char *dash = memchr(at, '-', (size_t)(end - at));
    double from = 0, to = 0;

    if (!whole_number(at, dash != NULL ? dash : end, 0, workers - 1.0, &from))
        return false;
    to = from;
    if (dash != NULL && !whole_number(dash + 1, end, from, workers - 1.0, &to))
        return false;
    *first = (uint32_t)from;
    *last = (uint32_t)to;
    return from == floor(from) && to == floor(to);
}

/* One item: a speed, or WORKERS=SPEED. `next` is the worker that a bare one is for; named ones leave it alone. */
static rbt_err parse_speed(rbt_sim_hosts *hosts, const char *at, const char *end, uint32_t *next, rbt_error *error)
{
    const char *equals = memchr(at, '=', (size_t)(end - at));
    const char *number = equals != NULL ? equals + 1 : at;
    uint32_t first = *next, last = *next;
    double speed = 0;

    if (equals != NULL && !parse_workers(at, equals, hosts->workers, &first, &last))
        return rbt_fail(error, RBT_E_USAGE,
                        "--speed: '%.*s' names no workers of the job, which has 0 to %u; give for example 0=0.5 or "
                        "2-3=0.5",
                        shown((size_t)(equals - at)), at, hosts->workers - 1);
    if (!whole_number(number, end, 1 / RBT_SPEED_MAX, RBT_SPEED_MAX, &speed))
        return rbt_fail(error, RBT_E_USAGE,
                        "--speed: '%.*s' is not a speed from %g to %g, where 1 is what --cost says; give for example "
                        "1,1,0.5 or 2=0.5",
                        shown((size_t)(end - number)), number, 1 / RBT_SPEED_MAX, RBT_SPEED_MAX);
    if (equals == NULL && ++*next > hosts->workers)
        return RBT_OK; /* too many: counted, and refused at the end */
    for (uint32_t m = first; m <= last; m++)
        hosts->groups.at[m].speed = speed;
    return RBT_OK;
}

static rbt_err parse_speeds(rbt_sim_hosts *hosts, const char *text, const rbt_net *link, rbt_error *error)
{
    const char *end = text + strlen(text);
    bool named = strchr(text, '=') != NULL;
    uint32_t given = 0;

    for (uint32_t m = 0; m < hosts->workers; m++)
        rbt_array_push(&hosts->groups, ((rbt_sim_group){.count = 1, .workers = 1, .speed = 1, .link = *link}));
    for (;;) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        rbt_err err = parse_speed(hosts, text, comma != NULL ? comma : end, &given, error);

        if (err != RBT_OK)
            return err;
        if (comma == NULL)
            break;
        text = comma + 1;
    }
    if (named && given > 0)
        return rbt_fail(error, RBT_E_USAGE,
                        "--speed: some speeds say which workers they are for and some do not; give one for each "
                        "worker in order, or WORKER=SPEED for some");
    if (!named && given != hosts->workers)
        return rbt_fail(error, RBT_E_USAGE,
                        "--speed has %u speeds, but the job has %u workers; give one for each, or WORKER=SPEED for "
                        "some",
                        given, hosts->workers);
    return RBT_OK;
}

/* ------------------------------------------------------------------------------------------- --cluster */

enum { COUNT, WORKERS, SERVERS, SPEED, BW, LAT, JITTER, KEYS };

/* A line's only word, n bytes. */
static rbt_err parse_line(rbt_sim_hosts *hosts, const char *place, const char *text, size_t n, const rbt_net *link,
                          rbt_error *error)
{
    rbt_spec_key keys[KEYS] = {
        [COUNT] = {.name = "count", .kind = RBT_SPEC_COUNT, .least = 1, .example = "count=8"},
        [WORKERS] = {.name = "workers", .kind = RBT_SPEC_COUNT, .example = "workers=2"},
        [SERVERS] = {.name = "servers", .kind = RBT_SPEC_COUNT, .example = "servers=1"},
        [SPEED] = {.name = "speed", .least = 1 / RBT_SPEED_MAX, .most = RBT_SPEED_MAX, .example = "speed=0.5"},
        [BW] = {.name = "bw", .kind = RBT_SPEC_RATE, .least = 1, .most = RBT_SPEC_RATE_MAX, .example = "bw=1Gbit"},
        [LAT] = {.name = "lat", .kind = RBT_SPEC_DURATION, .most = RBT_SPEC_DURATION_MAX, .example = "lat=200us"},
        [JITTER] = {.name = "jitter",
                    .kind = RBT_SPEC_DURATION,
                    .most = RBT_SPEC_DURATION_MAX,
                    .example = "jitter=50us"},
    };
    rbt_sim_group group = {.count = 1, .speed = 1, .link = *link};
    uint64_t workers, servers;
    rbt_err err;

    for (int i = COUNT; i <= SERVERS; i++)
        keys[i].most = RBT_SIM_RESIDENTS_LIMIT;
    err = rbt_spec_parse(place, text, n, keys, KEYS, error);
    if (err != RBT_OK)
        return err;
    group.count = keys[COUNT].given ? (uint32_t)keys[COUNT].number : 1;
    group.workers = keys[WORKERS].given ? (uint32_t)keys[WORKERS].number : 0;
    group.servers = keys[SERVERS].given ? (uint32_t)keys[SERVERS].number : 0;
    if (group.workers == 0 && group.servers == 0)
        return rbt_fail(error, RBT_E_USAGE, "%s: nobody lives on these hosts; add workers=1 or servers=1", place);
    if (keys[SPEED].given)
        group.speed = keys[SPEED].number;
    if (keys[BW].given)
        group.link.bits_per_second = keys[BW].number;
    if (keys[LAT].given)
        group.link.latency_ns = (uint64_t)keys[LAT].number;
    if (keys[JITTER].given)
        group.link.jitter_ns = (uint64_t)keys[JITTER].number;
    workers = hosts->workers + (uint64_t)group.count * group.workers;
    servers = hosts->servers + (uint64_t)group.count * group.servers;
    if (workers > RBT_SIM_RESIDENTS_LIMIT || servers > RBT_SIM_RESIDENTS_LIMIT)
        return rbt_fail(error, RBT_E_LIMIT, "%s: with these hosts there are more than %d %s; describe fewer", place,
                        RBT_SIM_RESIDENTS_LIMIT, workers > RBT_SIM_RESIDENTS_LIMIT ? "workers" : "servers");
    hosts->workers = (uint32_t)workers;
    hosts->servers = (uint32_t)servers;
    rbt_array_push(&hosts->groups, group);
    return RBT_OK;
}

static rbt_err parse_file(rbt_sim_hosts *hosts, const rbt_input *input, const rbt_net *link, rbt_error *error)
{
    const char *at = input->bytes, *end = input->bytes + input->n;
    char place[PLACE_BYTES];

    for (size_t line = 1; at < end; line++) {
        const char *feed = memchr(at, '\n', (size_t)(end - at));
        const char *stop = feed != NULL ? feed : end, *text = at, *word;
        const char *comment = memchr(at, '#', (size_t)(stop - at));
        rbt_err err;

        at = feed != NULL ? feed + 1 : end;
        if (comment != NULL)
            stop = comment;
        while (text < stop && is_blank(*text))
            text++;
        while (stop > text && is_blank(stop[-1]))
            stop--;
        if (text == stop)
            continue;
        snprintf(place, sizeof place, "%.400s:%zu", input->name, line);
        for (word = text; word < stop && !is_blank(*word); word++)
            ;
        if (word < stop)
            return rbt_fail(error, RBT_E_USAGE,
                            "%s: '%.*s' has blanks in it; put commas between, for example count=8,workers=2,speed=0.5",
                            place, shown((size_t)(stop - text)), text);
        err = parse_line(hosts, place, text, (size_t)(stop - text), link, error);
        if (err != RBT_OK)
            return err;
    }
    return hosts->workers > 0
               ? RBT_OK
               : rbt_fail(error, RBT_E_USAGE, "%s: no host has workers; write for example count=8,workers=2,speed=0.5",
                          input->name);
}

/* ------------------------------------------------------------------------------------------------- both */

rbt_err rbt_sim_hosts_init(rbt_sim_hosts *hosts, const char *speed, const char *cluster, uint32_t workers,
                           const rbt_net *link, rbt_error *error)
{
    rbt_input input;
    rbt_err err = RBT_OK;

    *hosts = (rbt_sim_hosts){0};
    if (speed != NULL) {
        RBT_ASSERT(cluster == NULL && workers > 0);
        hosts->workers = workers;
        err = parse_speeds(hosts, speed, link, error);
    } else if (cluster != NULL) {
        err = rbt_input_open(cluster, &input, error);
        if (err != RBT_OK)
            return err;
        err = parse_file(hosts, &input, link, error);
        rbt_input_close(&input);
    }
    if (err != RBT_OK)
        rbt_sim_hosts_deinit(hosts);
    return err;
}

void rbt_sim_hosts_deinit(rbt_sim_hosts *hosts)
{
    rbt_array_free(&hosts->groups);
    *hosts = (rbt_sim_hosts){0};
}
