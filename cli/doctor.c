/* rubato doctor: what a job on several hosts needs, checked before there is one: names, ways, the remote shell, the program,
 * the data, ports and clocks. One line per check, with a remedy for what failed.
 *
 * It starts a helper on each host as `rubato launch` would start a process of a job (doctor.h), and lets all of them dial
 * this host and each other. Proved by tests/cluster/test_doctor.sh. */
#include "cli/doctor.h"

#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/time.h"
#include "job/text.h"
#include "runtime/cluster/hosts.h"
#include "runtime/cluster/rsh.h"
#include "runtime/cluster/spawn.h"

#define TURN_MS      50
#define CALLERS_MOST 64  /* who call at a time and have not said who they are; others wait */
#define CLOCK_MOST_S 2.0 /* more than that, and logs cannot be put together */

typedef struct patient { /* one host */
    const char *host;
    char reaches_us[RBT_ADDRESS_ROOM]; /* where it is to dial; empty: not known */
    bool started, ended;
    rbt_child_end end;
    char last[DOCTOR_TEXT]; /* line that was not for us */
    char version[64], name[256], listen[RBT_ADDRESS_ROOM], data[DOCTOR_TEXT], trouble[DOCTOR_TEXT];
    bool data_fine;
    doctor_call call; /* the connection it has made */
    double clock_ahead;
} patient;

typedef struct doctor {
    const char *hosts, *rsh, *rubato, *key, *listen, *advertise, *data, *timeout, *probe, *number;
    rbt_hosts list;
    patient *at;
    size_t count;
    uint32_t *patient_of_child;
    rbt_spawn *spawn;
    rbt_tls *tls;
    int listener;
    rbt_address listening;
    doctor_call callers[CALLERS_MOST];
    char key_text[RBT_KEY_ROOM], self[RBT_SPAWN_SELF], directory[4096], here_data[DOCTOR_TEXT];
    uint64_t patience_ms;
    uint32_t checks, failed;
} doctor;

__attribute__((format(printf, 4, 5))) static void tell(doctor *d, const char *host, bool fine, const char *format, ...)
{
    va_list list;

    d->checks++;
    d->failed += !fine;
    printf("%-7s %-16s ", fine ? "ok" : "FAILED", host);
    va_start(list, format);
    vprintf(format, list);
    va_end(list);
    printf("\n");
    fflush(stdout);
}

/* ------------------------------------------------------------------------------------------------------ this host */

/* The host's name and the way there; what it is to dial to reach us. */
static void check_way(doctor *d, patient *p)
{
    rbt_address there, mine, told;
    char text[RBT_ADDRESS_ROOM], facing[RBT_ADDRESS_ROOM];
    rbt_error why;

    if (rbt_address_parse(rbt_host_bare(p->host), RBT_PORT, &there, &why) != RBT_OK) {
        tell(d, p->host, false, "name: %s", why.text);
        return;
    }
    rbt_address_text(&there, text);
    *strrchr(text, ':') = '\0';
    if (rbt_address_facing(&there, &mine, &why) != RBT_OK) {
        tell(d, p->host, false, "way to %s: %s", text, why.text);
        return;
    }
    rbt_address_set_port(&mine, rbt_address_port(&d->listening));
    rbt_address_text(rbt_address_is_any(&d->listening) ? &mine : &d->listening, facing);
    tell(d, p->host, true, "is %s; this host is %s to it", text, facing);
    if (d->advertise == NULL)
        memcpy(p->reaches_us, facing, sizeof facing);
    else if (rbt_address_parse(d->advertise, rbt_address_port(&d->listening), &told, &why) == RBT_OK)
        rbt_address_text(&told, p->reaches_us);
    else
        tell(d, p->host, false, "--advertise: %s", why.text);
}

static void check_here(doctor *d)
{
    rbt_error why;
    rbt_key key;
    char id[2 * RBT_KEY_ID + 1];

    if (d->key != NULL && rbt_key_read(d->key, &key, &why) == RBT_OK) {
        rbt_key_id_text(key.id, id);
        tell(d, "this host", true, "key %s in %s", id, d->key);
        rbt_key_wipe(&key);
    } else if (d->key != NULL) {
        tell(d, "this host", false, "key: %s", why.text);
    }
    if (d->data != NULL)
        tell(d, "this host", doctor_look(d->data, d->here_data), "data: %s", d->here_data);
}

static rbt_err listen_here(doctor *d, rbt_error *error)
{
    rbt_address address;
    rbt_err err = rbt_address_parse(d->listen != NULL ? d->listen : ":0", RBT_PORT, &address, error);
    char text[RBT_ADDRESS_ROOM];

    if (err == RBT_OK && rbt_address_is_unix(&address))
        err = rbt_fail(error, RBT_E_USAGE, "--listen %s: other hosts cannot reach a Unix socket; give HOST:PORT",
                       d->listen);
    if (err == RBT_OK)
        err = rbt_socket_listen(&address, &d->listener, &d->listening, error);
    if (err != RBT_OK)
        return err;
    rbt_address_text(&d->listening, text);
    tell(d, "this host", true, "listens on %s", text);
    return RBT_OK;
}

/* --------------------------------------------------------------------------------------------------- the helpers */

static void take(char *to, size_t room, const char *text)
{
    snprintf(to, room, "%s", text);
    rbt_make_printable(to);
}

static void on_line(void *context, size_t child, const char *line)
{
    doctor *d = context;
    patient *p = &d->at[d->patient_of_child[child]];
    const char *text = line + strlen(DOCTOR_LINE), *space;

    if (strncmp(line, DOCTOR_LINE, strlen(DOCTOR_LINE)) != 0 || (space = strchr(text, ' ')) == NULL) {
        take(p->last, sizeof p->last, line);
        return;
    }
    if (strncmp(text, "version ", 8) == 0)
        take(p->version, sizeof p->version, space + 1);
    else if (strncmp(text, "host ", 5) == 0)
        take(p->name, sizeof p->name, space + 1);
    else if (strncmp(text, "listen ", 7) == 0)
        take(p->listen, sizeof p->listen, space + 1);
    else if (strncmp(text, "no ", 3) == 0)
        take(p->trouble, sizeof p->trouble, space + 1);
    else if (strncmp(text, "data ", 5) == 0 || strncmp(text, "nodata ", 7) == 0) {
        take(p->data, sizeof p->data, space + 1);
        p->data_fine = *text == 'd';
    }
}

static void on_ended(void *context, size_t child, const rbt_child_end *end)
{
    doctor *d = context;
    patient *p = &d->at[d->patient_of_child[child]];

    p->ended = true;
    p->end = *end;
    take(p->end.sentence, sizeof p->end.sentence, end->sentence);
}

static rbt_err start(doctor *d, uint32_t i, rbt_error *error)
{
    patient *p = &d->at[i];
    bool is_here = strcmp(p->host, RBT_HOST_HERE) == 0;
    char number[16];
    const char *words[] = {is_here || d->rubato == NULL ? d->self : d->rubato,
                           "doctor",
                           "--probe",
                           p->reaches_us,
                           "--number",
                           number,
                           d->data != NULL ? "--data" : NULL,
                           d->data,
                           NULL};
    char *line =
        rbt_rsh_line(d->directory[0] != '\0' ? d->directory : NULL, (snprintf(number, sizeof number, "%u", i), words));
    char **remote = rbt_rsh_words(d->rsh, p->host, line);
    rbt_child_spec spec = {.name = "the remote shell",
                           .host = is_here ? NULL : p->host,
                           .words = is_here ? words : (const char *const *)remote,
                           .first_line = d->key_text};
    rbt_err err = rbt_spawn_start(d->spawn, &spec, error);

    rbt_free(line);
    rbt_rsh_words_free(remote);
    p->started = err == RBT_OK;
    return err;
}

/* Somebody calls. */
static void take_call(doctor *d, doctor_call *caller)
{
    rbt_address from;
    rbt_error why;
    int fd = -1;

    if (rbt_socket_accept(d->listener, &fd, &from, &why) == RBT_OK && fd >= 0)
        (void)doctor_call_open(caller, d->tls, fd, true, &why);
}

/* One who has the key says its number and its clock. */
static void know_caller(doctor *d, doctor_call *caller)
{
    double now = doctor_clock();
    char *end = NULL;
    unsigned long number = strtoul(caller->line, &end, 10);

    if (number >= d->count || d->at[number].call.fd >= 0) {
        doctor_call_close(caller);
        return;
    }
    d->at[number].clock_ahead = strtod(end, NULL) - now;
    d->at[number].call = *caller;
    *caller = (doctor_call){.fd = -1};
}

/* As far as each of those who call has come; nobody is waited for. */
static void hear_callers(doctor *d)
{
    for (size_t i = 0; i < CALLERS_MOST; i++) {
        struct pollfd waiting = {.fd = d->listener, .events = POLLIN};
        doctor_call *caller = &d->callers[i];
        doctor_news news;

        if (caller->fd < 0 && poll(&waiting, 1, 0) == 1)
            take_call(d, caller);
        if (caller->fd < 0)
            continue;
        news = doctor_call_step(caller);
        if (news == DOCTOR_SAYS)
            know_caller(d, caller);
        else if (news == DOCTOR_GONE || rbt_now_ns() >= caller->until_ns)
            doctor_call_close(caller);
    }
}

/* Until every helper has called, or has ended, or has said that it cannot. */
static void wait_for_helpers(doctor *d)
{
    uint64_t until = rbt_now_ns() + d->patience_ms * 1000000u;
    bool waiting = true;

    while (waiting && rbt_now_ns() < until) {
        rbt_spawn_turn(d->spawn, TURN_MS);
        hear_callers(d);
        waiting = false;
        for (size_t i = 0; i < d->count; i++)
            waiting =
                waiting || (d->at[i].started && !d->at[i].ended && d->at[i].call.fd < 0 && d->at[i].trouble[0] == '\0');
    }
    rbt_spawn_turn(d->spawn, 0);
}

/* ------------------------------------------------------------------------------------------------------- the checks */

static const char *shell_remedy(const doctor *d, const patient *p)
{
    if (!p->ended)
        return "nothing came back in time; does `COMMAND HOST true` work by hand?";
    if (p->end.code == 127 || p->end.code == 126)
        return "is rubato there? --rubato PATH says where, and this folder must be there too";
    if (p->end.code == 255 && d->rsh == NULL)
        return "does `ssh -o BatchMode=yes HOST true` work? ssh-copy-id HOST lets you in without a password";
    return "does the remote shell work by hand, and is the same version of rubato there?";
}

static bool check_shell(doctor *d, const patient *p)
{
    bool same = strcmp(p->version, rbt_version()) == 0;
    bool quotes = p->last[0] != '\0' && (!p->ended || p->end.code == 0); /* the sentence about a failure does */

    if (p->version[0] == '\0') {
        tell(d, p->host, false, "remote shell: %s%s%s%s; %s", p->ended ? p->end.sentence : "no answer",
             quotes ? " (\"" : "", quotes ? p->last : "", quotes ? "\")" : "", shell_remedy(d, p));
        return false;
    }
    if (same)
        tell(d, p->host, true, "remote shell starts rubato %s on host %s", p->version, p->name);
    else
        tell(d, p->host, false, "rubato there is %s, here %s; install the same version, or name one with --rubato PATH",
             p->version, rbt_version());
    return true;
}

static void check_data(doctor *d, const patient *p)
{
    if (d->data == NULL)
        return;
    if (!p->data_fine)
        tell(d, p->host, false, "data: %s; put it on storage that all hosts share, or copy it there", p->data);
    else if (strcmp(p->data, d->here_data) != 0 && strstr(d->data, "{rank}") == NULL)
        tell(d, p->host, false, "data: %s, but here %s; copy it again", p->data, d->here_data);
    else
        tell(d, p->host, true, "data: %s", p->data);
}

static void check_ports(doctor *d, const patient *p)
{
    rbt_error why;

    if (p->call.fd >= 0)
        tell(d, p->host, true, "reaches this host at %s", p->reaches_us);
    else
        tell(d, p->host, false,
             "does not reach this host at %s: %s; open the port (--listen ADDRESS takes a certain one) or "
             "say which address it can reach with --advertise",
             p->reaches_us, p->trouble[0] != '\0' ? p->trouble : "its call did not come");
    if (p->listen[0] == '\0')
        tell(d, p->host, false, "cannot listen: %s", p->trouble);
    else if (doctor_dial(p->listen, &why))
        tell(d, p->host, true, "is reached at %s", p->listen);
    else
        tell(d, p->host, false,
             "is not reached at %s: %s; processes of a job listen on any free port, let them through", p->listen,
             why.text);
    if (p->call.fd >= 0 && p->clock_ahead < CLOCK_MOST_S && p->clock_ahead > -CLOCK_MOST_S)
        tell(d, p->host, true, "clock differs by less than %.0f s", CLOCK_MOST_S);
    else if (p->call.fd >= 0)
        tell(d, p->host, false, "clock is %.1f s %s; logs of several hosts will not fit together: set it (chrony, ntp)",
             p->clock_ahead < 0 ? -p->clock_ahead : p->clock_ahead, p->clock_ahead < 0 ? "behind" : "ahead");
}

/* Workers and servers on different hosts talk to each other, too. */
static void check_between(doctor *d, patient *from, const patient *to)
{
    if (from == to || from->call.fd < 0 || to->listen[0] == '\0')
        return;
    if (!doctor_call_write(&from->call, to->listen, DOCTOR_DIAL_MS) ||
        !doctor_call_read(&from->call, 2 * DOCTOR_DIAL_MS)) {
        tell(d, from->host, false, "does not say whether it reaches %s", to->host);
        doctor_call_close(&from->call); /* what comes late would answer another question */
    } else if (strcmp(from->call.line, "ok") == 0) {
        tell(d, from->host, true, "reaches %s at %s", to->host, to->listen);
    } else {
        tell(d, from->host, false, "does not reach %s: %s", to->host, from->call.line);
    }
}

/* --------------------------------------------------------------------------------------------------- the command */

static rbt_err prepare(doctor *d, rbt_error *error)
{
    rbt_key key;
    uint64_t seconds = 20;
    rbt_spawn_handler handler = {.line = on_line, .ended = on_ended, .context = d};
    rbt_err err = cli_require("hosts", d->hosts, "LIST", error);

    if (err == RBT_OK && d->timeout != NULL)
        err = rbt_text_to_count("--timeout", d->timeout, 1, 3600, &seconds, error);
    d->patience_ms = seconds * 1000;
    if (err == RBT_OK)
        err = rbt_hosts_parse("--hosts", d->hosts, &d->list, error);
    if (err == RBT_OK)
        err = rbt_spawn_self(d->self, error);
    if (getcwd(d->directory, sizeof d->directory) == NULL)
        d->directory[0] = '\0';
    if (err == RBT_OK)
        err = rbt_key_create(&key, error);
    if (err == RBT_OK) {
        rbt_key_text(&key, d->key_text);
        err = rbt_tls_create(&key, &d->tls, error);
        rbt_key_wipe(&key);
    }
    if (err == RBT_OK)
        err = rbt_spawn_create(&handler, &d->spawn, error);
    if (err != RBT_OK)
        return err;
    d->at = rbt_alloc(d->list.count, sizeof *d->at);
    d->patient_of_child = rbt_alloc(d->list.count, sizeof *d->patient_of_child);
    for (size_t i = 0; i < d->list.count; i++) { /* each host once */
        bool again = false;

        for (size_t k = 0; k < d->count; k++)
            again = again || strcmp(d->at[k].host, d->list.at[i].name) == 0;
        if (!again)
            d->at[d->count++] = (patient){.host = d->list.at[i].name, .call.fd = -1};
    }
    return RBT_OK;
}

static void examine(doctor *d)
{
    rbt_error why;
    uint32_t children = 0;

    check_here(d);
    for (uint32_t i = 0; i < d->count; i++) {
        check_way(d, &d->at[i]);
        if (d->at[i].reaches_us[0] == '\0')
            continue;
        d->patient_of_child[children] = i;
        if (start(d, i, &why) == RBT_OK)
            children++;
        else
            tell(d, d->at[i].host, false, "remote shell: %s", why.text);
    }
    wait_for_helpers(d);
    for (size_t i = 0; i < d->count; i++)
        if (d->at[i].started && check_shell(d, &d->at[i])) {
            check_data(d, &d->at[i]);
            check_ports(d, &d->at[i]);
        }
    for (size_t i = 0; i < d->count; i++)
        for (size_t k = 0; k < d->count; k++)
            check_between(d, &d->at[i], &d->at[k]);
}

int cli_doctor(const cli_command *command, int argc, char **argv)
{
    doctor d = {.listener = -1};
    const cli_option own[] = {
        {"hosts", "LIST", "The hosts of the job to be: a,b:4,c.", &d.hosts},
        {"rsh", "COMMAND", "Runs COMMAND HOST LINE instead of ssh.", &d.rsh},
        {"rubato", "PATH", "This program on the other hosts. [the same path]", &d.rubato},
        {"key", "FILE", "The job's key.", &d.key},
        {"listen", "ADDRESS", "Where the lead of the job will listen. [a free port]", &d.listen},
        {"advertise", "ADDRESS", "The address that other hosts will be told.", &d.advertise},
        {"data", "PATH", "The job's data, to be seen from every host.", &d.data},
        {"timeout", "S", "Seconds to wait for the hosts. [20]", &d.timeout},
        {"probe", "ADDRESS", "For the doctor itself: looks at this host and calls there.", &d.probe},
        {"number", "N", "For the doctor itself, with --probe.", &d.number},
    };
    cli_arguments arguments = {.own = own, .own_count = sizeof own / sizeof own[0]};
    rbt_error error = {RBT_OK, ""};
    rbt_err err = cli_parse(&arguments, argc, argv, &error);

    for (size_t i = 0; i < CALLERS_MOST; i++)
        d.callers[i].fd = -1;
    if (err == RBT_OK && arguments.help) {
        cli_help(command, &arguments);
        return 0;
    }
    if (err == RBT_OK && d.probe != NULL)
        return doctor_probe(d.probe, d.number != NULL ? d.number : "0", d.data);
    if (err == RBT_OK)
        err = prepare(&d, &error);
    if (err == RBT_OK)
        err = listen_here(&d, &error);
    if (err == RBT_OK) {
        examine(&d);
        printf("%u checks, %u failed\n", d.checks, d.failed);
    }
    for (size_t i = 0; i < d.count; i++)
        doctor_call_close(&d.at[i].call);
    for (size_t i = 0; i < CALLERS_MOST; i++)
        doctor_call_close(&d.callers[i]);
    rbt_tls_destroy(d.tls);
    memset(d.key_text, 0, sizeof d.key_text);
    if (d.spawn != NULL)
        rbt_spawn_end(d.spawn, 1000);
    rbt_spawn_destroy(d.spawn);
    if (d.listener >= 0)
        close(d.listener);
    rbt_hosts_deinit(&d.list);
    rbt_free(d.at);
    rbt_free(d.patient_of_child);
    return err != RBT_OK ? cli_fail(command, &error) : d.failed > 0 ? 1 : 0;
}
