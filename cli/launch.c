/* rubato launch: starts the processes of a cluster job, on this host or over ssh, and leads the job itself.
 *
 * A thread of its own starts the children, passes on what they say on their standard errors, and ends them all with the
 * job; the job's key reaches them through their standard inputs. Proved by tests/cluster. */
#include "cli/cli.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/time.h"
#include "job/text.h"
#include "runtime/cluster/hosts.h"
#include "runtime/cluster/rsh.h"
#include "runtime/cluster/spawn.h"

#define GRACE_MS 2000 /* for children to end by themselves when the job has */
#define LAST_MS  200  /* for those that have not, before they are killed */
#define TURN_MS  100
#define RESTARTS 100 /* of one process, with --on-worker-loss wait */

_Static_assert(RBT_STOP_MS + RBT_LEAVE_MS + LAST_MS < RBT_LAUNCH_MS && RBT_LAUNCH_MS < 5000, "docs/cluster.md: 5 s");

#define FORCE_MS 1000 /* for children to end when Ctrl-C came a second time */

/* A signal's handler has nothing else to tell by. */
static atomic_bool has_children, must_force;

static bool on_second_signal(void)
{
    atomic_store(&must_force, true);
    return atomic_load(&has_children);
}

typedef struct launch {
    const cli_command *command;
    rbt_hosts hosts;  /* count 0: all on this host */
    uint32_t workers; /* processes with workers; those of servers come after them */
    uint32_t processes;
    const char *rsh, *rubato;
    char key[RBT_KEY_ROOM], timeout[16];
    const char *listen; /* as it was said */
    bool insecure, restart;
    rbt_rings shm;
    const char *key_file; /* NULL: a key for this job alone */
    FILE *text;           /* where the address for those who watch is told; NULL: nowhere */
    char *self, *directory;

    /* between the job's thread and the one that watches */
    pthread_mutex_t lock;
    pthread_cond_t news;
    char local[RBT_ADDRESS_ROOM], tcp[RBT_ADDRESS_ROOM];
    bool must_start, has_started, must_end;
    rbt_error error; /* why starting failed, or a child ended early */

    /* the watching thread's */
    rbt_spawn *spawn;
    uint32_t *rank_of_child;
    size_t children, children_room;
    bool kills;         /* children that do not end: a signal is then our own */
    uint32_t *restarts; /* per rank */
} launch;

/* ---------------------------------------------------------------------------------------------------- children */

static const char *host_of(const launch *l, uint32_t rank)
{
    uint32_t before = 0;

    if (l->hosts.count == 0)
        return NULL;
    if (rank > l->workers) /* servers go round the hosts */
        return l->hosts.at[(rank - l->workers - 1) % l->hosts.count].name;
    for (size_t i = 0; i < l->hosts.count; i++) {
        before += l->hosts.at[i].processes;
        if (rank <= before)
            return l->hosts.at[i].name;
    }
    return l->hosts.at[l->hosts.count - 1].name;
}

static bool is_this_host(const char *host)
{
    return host == NULL || strcmp(host, RBT_HOST_HERE) == 0;
}

static bool has_others(const launch *l)
{
    for (size_t i = 0; i < l->hosts.count; i++)
        if (!is_this_host(l->hosts.at[i].name))
            return true;
    return false;
}

/* Our address that faces a host. */
static rbt_err find_facing(const char *host, rbt_address *mine, rbt_error *error)
{
    rbt_address there;
    rbt_error why;
    rbt_err err = rbt_address_parse(rbt_host_bare(host), RBT_PORT, &there, error);

    if (err != RBT_OK)
        return err;
    err = rbt_address_facing(&there, mine, &why);
    if (err != RBT_OK)
        return rbt_fail(error, err, "which address of this host does %s reach? %s; say so with --advertise ADDRESS",
                        host, why.text);
    return RBT_OK;
}

/* Where a host reaches us: an address of ours that faces it, unless one was said. A name that leads to loopback is this host,
 * whose processes are reached by the other hosts as we are. */
static rbt_err address_for(const launch *l, const char *host, char text[RBT_ADDRESS_ROOM], rbt_error *error)
{
    rbt_address listening, mine, other;
    rbt_err err = rbt_address_parse(l->tcp, 0, &listening, error);

    snprintf(text, RBT_ADDRESS_ROOM, "%s", l->tcp);
    if (err != RBT_OK || !rbt_address_is_any(&listening))
        return err;
    err = find_facing(host, &mine, error);
    for (size_t i = 0; err == RBT_OK && rbt_address_is_loopback(&mine) && i < l->hosts.count; i++)
        if (find_facing(l->hosts.at[i].name, &other, NULL) == RBT_OK)
            mine = other;
    if (err != RBT_OK)
        return err;
    rbt_address_set_port(&mine, rbt_address_port(&listening));
    rbt_address_text(&mine, text);
    return RBT_OK;
}

/* Where a process on this host listens for those of other hosts: where we do, on a port of its own. */
static rbt_err listen_beside(const launch *l, char text[RBT_ADDRESS_ROOM], rbt_error *error)
{
    rbt_address address;
    rbt_err err = rbt_address_parse(l->listen, RBT_PORT, &address, error);

    rbt_address_set_port(&address, 0);
    rbt_address_text(&address, text);
    return err;
}

static rbt_err start_child(launch *l, uint32_t rank, rbt_error *error)
{
    const char *host = host_of(l, rank);
    bool is_here = is_this_host(host), must_listen = is_here && has_others(l);
    char number[16], name[64], address[RBT_ADDRESS_ROOM];
    const char *words[20] = {is_here ? l->self : l->rubato,
                             "node",
                             "--join",
                             is_here ? l->local : address,
                             "--key",
                             "-",
                             "--rank",
                             number,
                             "--join-timeout",
                             l->timeout,
                             "--quiet"};
    size_t n = 11;
    char *line = NULL, **remote = NULL;
    rbt_err err = must_listen ? listen_beside(l, address, error)
                  : is_here   ? RBT_OK
                              : address_for(l, host, address, error);

    if (err != RBT_OK)
        return err;
    if (must_listen) {
        words[n++] = "--listen";
        words[n++] = address;
    }
    if (l->insecure)
        words[n++] = "--insecure";
    if (l->shm != RBT_RINGS_AUTO) {
        words[n++] = "--shm";
        words[n++] = l->shm == RBT_RINGS_ON ? "on" : "off";
    }
    words[n] = NULL;
    snprintf(number, sizeof number, "%u", rank);
    snprintf(name, sizeof name, "%s process (rank %u)", rank > l->workers ? "server" : "worker", rank);
    if (!is_here) {
        line = rbt_rsh_line(l->directory, words);
        remote = rbt_rsh_words(l->rsh, host, line);
    }
    rbt_child_spec spec = {.name = name,
                           .host = is_here ? NULL : host,
                           .words = is_here ? words : (const char *const *)remote,
                           .first_line = l->key,
                           .last_line = CLI_NODE_END};
    err = rbt_spawn_start(l->spawn, &spec, error);
    rbt_free(line);
    rbt_rsh_words_free(remote);
    if (err != RBT_OK)
        return err;
    if (l->children == l->children_room) {
        l->children_room = l->children_room == 0 ? 64 : 2 * l->children_room;
        l->rank_of_child = rbt_realloc(l->rank_of_child, l->children_room, sizeof *l->rank_of_child);
    }
    l->rank_of_child[l->children++] = rank;
    return RBT_OK;
}

static void on_line(void *context, size_t child, const char *line)
{
    const launch *l = context;
    uint32_t rank = l->rank_of_child[child];
    const char *host = host_of(l, rank);

    fprintf(stderr, "[rank %u%s%s] %s\n", rank, host != NULL ? " on " : "", host != NULL ? host : "", line);
}

static void on_ended(void *context, size_t child, const rbt_child_end *end)
{
    launch *l = context;
    uint32_t rank = l->rank_of_child[child];
    rbt_error error;

    pthread_mutex_lock(&l->lock);
    bool is_over = l->must_end || end->code == 0; /* who was told that the job is done may be faster than we are */
    if (!is_over && l->error.code == RBT_OK)
        rbt_fail(&l->error, RBT_E_LOST, "%s", end->sentence);
    pthread_mutex_unlock(&l->lock);
    /* Else it has said itself what was wrong, here or to the lead, who may know of the end before we do. */
    if (end->killed && !l->kills)
        fprintf(stderr, "rubato launch: %s\n", end->sentence);
    if (is_over || !l->restart || rank > l->workers)
        return;
    if (l->restarts[rank]++ == RESTARTS)
        fprintf(stderr,
                "rubato launch: worker process (rank %u) has been started again %d times and is not any more; the job "
                "waits "
                "for it until Ctrl-C ends it\n",
                rank, RESTARTS);
    else if (start_child(l, rank, &error) != RBT_OK)
        fprintf(stderr, "rubato launch: %s\n", error.text);
}

static rbt_err start_all(launch *l, rbt_error *error)
{
    rbt_spawn_handler handler = {.line = on_line, .ended = on_ended, .context = l};
    rbt_err err = rbt_spawn_create(&handler, &l->spawn, error);

    for (uint32_t rank = 1; err == RBT_OK && rank < l->processes; rank++)
        err = start_child(l, rank, error);
    return err;
}

/* Ctrl-C came twice: nobody is waited for, and nobody is left. */
static void force_end(launch *l)
{
    pthread_mutex_lock(&l->lock);
    l->must_end = true;
    pthread_mutex_unlock(&l->lock);
    l->kills = true;
    rbt_spawn_end(l->spawn, FORCE_MS);
    _exit(rbt_err_exit_code(RBT_E_INTERRUPTED));
}

static void turn(launch *l)
{
    rbt_spawn_turn(l->spawn, TURN_MS);
    if (atomic_load(&must_force))
        force_end(l);
}

/* Until when children may end by themselves, now that the job has. */
static uint64_t patience_end(void)
{
    uint64_t signal = cli_job_interrupted_ns(), last = signal + (RBT_LAUNCH_MS - LAST_MS) * UINT64_C(1000000),
             until = rbt_now_ns() + GRACE_MS * UINT64_C(1000000);

    return signal != 0 && last < until ? last : until;
}

/* The watching thread: the children live as long as it does. */
static void *watch(void *argument)
{
    launch *l = argument;
    rbt_error error;
    bool failed;

    pthread_mutex_lock(&l->lock);
    while (!l->must_start && !l->must_end)
        pthread_cond_wait(&l->news, &l->lock);
    pthread_mutex_unlock(&l->lock);
    if (l->must_end)
        return NULL;
    atomic_store(&has_children, true);
    failed = start_all(l, &error) != RBT_OK;
    pthread_mutex_lock(&l->lock);
    if (failed)
        l->error = error;
    l->has_started = true;
    pthread_cond_broadcast(&l->news);
    while (!l->must_end) {
        pthread_mutex_unlock(&l->lock);
        if (l->spawn != NULL)
            turn(l);
        pthread_mutex_lock(&l->lock);
    }
    pthread_mutex_unlock(&l->lock);
    if (l->spawn != NULL) {
        uint64_t until = patience_end();

        while (rbt_spawn_running(l->spawn) > 0 && rbt_now_ns() < until) /* the end of the job has been told to them */
            turn(l);
        l->kills = true;
        rbt_spawn_end(l->spawn, LAST_MS);
        rbt_spawn_destroy(l->spawn);
    }
    atomic_store(&has_children, false);
    return NULL;
}

/* --------------------------------------------------------------------------------------------- for the job's lead */

/* How the job can be watched: over TCP, and on this host over the Unix socket, too. */
static void tell_address(const launch *l)
{
    rbt_address address;
    char host[256] = "", where[sizeof host + 16];

    if (l->text == NULL || l->key_file == NULL || l->tcp[0] == '\0')
        return;
    snprintf(where, sizeof where, "%s", l->tcp);
    if (rbt_address_parse(l->tcp, 0, &address, NULL) == RBT_OK && rbt_address_is_any(&address) &&
        gethostname(host, sizeof host - 1) == 0)
        snprintf(where, sizeof where, "%s:%u", host, (unsigned)rbt_address_port(&address));
    fprintf(l->text, "  %-10s rubato top %s --key %s (on this host also %s)\n", "watch", where, l->key_file, l->local);
    fflush(l->text);
}

static rbt_err on_start(void *context, const char *local, const char *tcp, rbt_error *error)
{
    launch *l = context;
    rbt_err err;

    pthread_mutex_lock(&l->lock);
    snprintf(l->local, sizeof l->local, "%s", local);
    snprintf(l->tcp, sizeof l->tcp, "%s", tcp);
    tell_address(l);
    l->must_start = true;
    pthread_cond_broadcast(&l->news);
    while (!l->has_started)
        pthread_cond_wait(&l->news, &l->lock);
    err = l->error.code;
    if (err != RBT_OK)
        *error = l->error;
    pthread_mutex_unlock(&l->lock);
    return err;
}

static const char *on_host(void *context, uint32_t rank)
{
    return host_of(context, rank);
}

static rbt_err on_check(void *context, rbt_error *error)
{
    launch *l = context;
    rbt_err err;

    pthread_mutex_lock(&l->lock);
    err = l->error.code;
    if (err != RBT_OK)
        rbt_fail(error, err, "%s before it had joined the job", l->error.text);
    pthread_mutex_unlock(&l->lock);
    return err;
}

/* ---------------------------------------------------------------------------------------------------- the command */

typedef struct launch_arguments {
    const char *local, *hosts, *servers, *key, *rsh, *rubato, *listen, *advertise, *timeout, *insecure, *colocate;
} launch_arguments;

/* The value of an option as text; "" when it has none in this job. */
static void value_of(const rbt_options *options, const char *option, char value[RBT_OPTION_ROOM])
{
    const char *name = NULL;

    for (size_t i = 0; rbt_options_at(options, i, &name, value, RBT_OPTION_ROOM); i++)
        if (strcmp(name, option) == 0)
            return;
    value[0] = '\0';
}

/* Does the option stand among these words? */
static bool is_among(const char *option, int argc, char **argv)
{
    const size_t n = strlen(option);

    for (int i = 0; i < argc; i++)
        if (strncmp(argv[i], "--", 2) == 0 && strncmp(argv[i] + 2, option, n) == 0 &&
            (argv[i][2 + n] == '\0' || argv[i][2 + n] == '='))
            return true;
    return false;
}

/* Sets an option of launch for the job, which may say the same behind --, but nothing else; a job file may. */
static rbt_err pass_one(const char *name, const char *value, rbt_options *options, int argc, char **argv,
                        rbt_error *error)
{
    char of_job[RBT_OPTION_ROOM], of_launch[RBT_OPTION_ROOM];

    value_of(options, name, of_job);
    rbt_err err = rbt_options_set(options, name, value, error);
    value_of(options, name, of_launch);
    if (err == RBT_OK && is_among(name, argc, argv) && strcmp(of_job, of_launch) != 0)
        err = rbt_fail(error, RBT_E_USAGE, "--%s %.200s of launch and --%s %.200s of the job; give it once", name,
                       of_launch, name, of_job);
    return err;
}

/* What launch was given and the job, whose words these are, has as options, too. */
static rbt_err pass_on(const launch_arguments *given, rbt_options *options, int argc, char **argv, rbt_error *error)
{
    const struct {
        const char *name, *value;
    } both[] = {{"servers", given->servers},
                {"listen", given->listen},
                {"advertise", given->advertise},
                {"join-timeout", given->timeout},
                {"insecure", given->insecure},
                {"colocate", given->colocate},
                {"key", given->key}};
    const char *other = options->runtime == RBT_RUNTIME_SIM ? "sim" : "local";
    rbt_err err = RBT_OK;

    if (options->runtime != RBT_RUNTIME_CLUSTER) /* which it is unless somebody says otherwise */
        return rbt_fail(error, RBT_E_USAGE,
                        "--runtime %s makes no sense with rubato launch, which starts processes; leave it out, or run "
                        "`rubato train --runtime %s` without launch",
                        other, other);
    for (size_t i = 0; err == RBT_OK && i < sizeof both / sizeof both[0]; i++)
        if (both[i].value != NULL)
            err = pass_one(both[i].name, both[i].value, options, argc, argv, error);
    return err;
}

static rbt_err find_self(launch *l, rbt_error *error)
{
    char path[RBT_SPAWN_SELF];
    rbt_err err = rbt_spawn_self(path, error);

    if (err != RBT_OK)
        return err;
    l->self = rbt_strdup(path);
    if (l->rubato == NULL)
        l->rubato = l->self;
    if (getcwd(path, sizeof path) != NULL)
        l->directory = rbt_strdup(path);
    return RBT_OK;
}

/* Refuses what is for other hosts where there are none. Somebody else may watch where the job listens. */
static rbt_err refuse_remote(const launch *l, const launch_arguments *given, const rbt_options *options,
                             rbt_error *error)
{
    const char *option = l->rsh != NULL             ? "rsh"
                         : l->rubato != NULL        ? "rubato"
                         : options->listen != NULL  ? NULL
                         : given->advertise != NULL ? "advertise"
                         : given->insecure != NULL  ? "insecure"
                                                    : NULL;

    if (option == NULL)
        return RBT_OK;
    return rbt_fail(error, RBT_E_USAGE,
                    "--%s makes no sense with --local, where all processes are on this host; leave it out, or give "
                    "--hosts",
                    option);
}

/* How many processes, where, and what each is. */
static rbt_err plan(launch *l, const launch_arguments *given, rbt_options *options, rbt_error *error)
{
    uint64_t here = 0;
    rbt_options settled;
    rbt_err err;

    if (given->local == NULL && given->hosts == NULL)
        return rbt_fail(error, RBT_E_USAGE, "where? give --local N for processes on this host, or --hosts a,b:4");
    if (given->local != NULL && given->hosts != NULL)
        return rbt_fail(error, RBT_E_USAGE,
                        "--local and --hosts both say where; give one of them (localhost in --hosts is this host)");
    if (given->local != NULL && refuse_remote(l, given, options, error) != RBT_OK)
        return error->code;
    err = given->local != NULL ? rbt_text_to_count("--local", given->local, 1, RBT_RANKS_LIMIT / 2, &here, error)
                               : rbt_hosts_parse("--hosts", given->hosts, &l->hosts, error);
    if (err != RBT_OK)
        return err;
    l->workers = given->local != NULL ? (uint32_t)here : l->hosts.processes;
    if (options->workers == 0)
        options->workers = l->workers * options->per_process;
    if (given->hosts != NULL && options->listen == NULL)
        err = rbt_options_set(options, "listen", ":0", error);
    if (err != RBT_OK)
        return err;
    rbt_options_init(&settled);
    rbt_options_copy(&settled, options);
    err = rbt_options_check(&settled, error);
    l->processes = 1 + l->workers + (settled.colocate == RBT_ON ? 0 : settled.servers);
    rbt_options_deinit(&settled);
    snprintf(l->timeout, sizeof l->timeout, "%u", options->join_timeout);
    l->listen = options->listen;
    l->insecure = options->insecure;
    l->shm = rbt_job_rings(options);
    l->key_file = options->key;
    l->text = cli_text_stream(options);
    l->restart = options->on_worker_loss == RBT_LOSS_WAIT;
    l->restarts = rbt_alloc(l->processes, sizeof *l->restarts);
    return err;
}

static rbt_err find_key(const rbt_options *options, rbt_key *key, rbt_error *error)
{
    return options->key != NULL ? rbt_key_read(options->key, key, error) : rbt_key_create(key, error);
}

static int lead(launch *l, const rbt_options *options, rbt_error *error)
{
    rbt_gathering gathering = {.processes = l->processes,
                               .start = on_start,
                               .host = on_host,
                               .check = on_check,
                               .context = l,
                               .has_key = true};
    pthread_t thread;
    int code;

    if (find_key(options, &gathering.key, error) != RBT_OK || find_self(l, error) != RBT_OK)
        return cli_fail(l->command, error);
    rbt_key_text(&gathering.key, l->key);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->news, NULL);
    cli_job_before_exit(on_second_signal);
    if (pthread_create(&thread, NULL, watch, l) != 0) {
        rbt_fail(error, RBT_E_LIMIT, "the system refused a thread");
        return cli_fail(l->command, error);
    }
    code = cli_train_run(l->command, options, &gathering);
    pthread_mutex_lock(&l->lock);
    l->must_end = true;
    pthread_cond_broadcast(&l->news);
    pthread_mutex_unlock(&l->lock);
    pthread_join(thread, NULL);
    rbt_key_wipe(&gathering.key);
    memset(l->key, 0, sizeof l->key);
    return code;
}

/* The job's own words were taken for launch's. */
static void add_hint(rbt_error *error)
{
    rbt_error first = *error;

    rbt_fail(error, first.code, "%.900s; the job stands behind --, as in: rubato launch --local 4 -- train lr ...",
             first.text);
}

/* Behind "--", the first of these words, stands what is launched. */
static rbt_err check_job(int argc, char **argv, rbt_error *error)
{
    if (argc < 2)
        return rbt_fail(error, RBT_E_USAGE,
                        "what? give the job behind --, as in: rubato launch --local 4 -- train lr --data FILE");
    if (strcmp(argv[1], "train") != 0)
        return rbt_fail(error, RBT_E_USAGE,
                        "'%.60s' cannot be launched; train can, as in: rubato launch --local 4 -- train lr --data FILE",
                        argv[1]);
    return RBT_OK;
}

int cli_launch(const cli_command *command, int argc, char **argv)
{
    launch_arguments given = {0};
    launch l = {.command = command};
    const cli_option own[] = {
        {"local", "N", "N worker processes on this host.", &given.local},
        {"hosts", "LIST", "Hosts, with the number of worker processes on each: a,b:4,c.", &given.hosts},
        {"servers", "P", "Server processes. [1]", &given.servers},
        {"colocate", "on|off", "Servers live in the workers' processes. [off]", &given.colocate},
        {"key", "FILE", "The job's key; otherwise one is made for this job alone.", &given.key},
        {"listen", "ADDRESS", "Where the processes join; between hosts a free port by default.", &given.listen},
        {"advertise", "ADDRESS", "The address that other hosts are told.", &given.advertise},
        {"join-timeout", "S", "Seconds to wait for all processes. [60]", &given.timeout},
        {"insecure", NULL, "No encryption between hosts.", &given.insecure},
        {"rsh", "COMMAND", "Runs COMMAND HOST LINE instead of ssh.", &l.rsh},
        {"rubato", "PATH", "This program on the other hosts. [the same path]", &l.rubato},
    };
    cli_arguments arguments = {.own = own, .own_count = sizeof own / sizeof own[0]};
    rbt_error error = {RBT_OK, ""};
    rbt_options options;
    bool helped = false;
    int mine = 0, code;

    while (mine < argc && strcmp(argv[mine], "--") != 0)
        mine++;
    rbt_options_init(&options);
    options.runtime = RBT_RUNTIME_CLUSTER;
    rbt_err err = cli_parse(&arguments, mine, argv, &error);
    if (err != RBT_OK && mine == argc)
        add_hint(&error);
    if (err == RBT_OK && arguments.help) {
        cli_help(command, &arguments);
        helped = true;
    }
    if (err == RBT_OK && !helped)
        err = check_job(argc - mine, argv + mine, &error);
    if (err == RBT_OK && !helped)
        err = cli_train_options(command, argc - mine - 2, argv + mine + 2, &options, &helped, &error);
    if (err == RBT_OK && !helped)
        err = pass_on(&given, &options, argc - mine, argv + mine, &error);
    if (err == RBT_OK && !helped)
        err = plan(&l, &given, &options, &error);
    if (err == RBT_OK && !helped)
        err = cli_job_check(&options, &error);
    code = err != RBT_OK ? cli_fail(command, &error) : helped ? 0 : lead(&l, &options, &error);
    rbt_options_deinit(&options);
    rbt_hosts_deinit(&l.hosts);
    rbt_free(l.rank_of_child);
    rbt_free(l.restarts);
    rbt_free(l.self);
    rbt_free(l.directory);
    return code;
}
