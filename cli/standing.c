/* rubato train --runtime cluster, as one of the processes that srun, mpirun, mpiexec or Kubernetes has started, or as the
 * lead of processes that are started by hand.
 *
 * Every process gets the same command line. Rank 0 leads, works too, and is the one that prints; the others join it and
 * say something only when they could not, or when the lead is gone and says nothing. Options that do not fit together are
 * found by every process itself, so that none waits for a lead that has given up. Proved by tests/cluster. */
#include "cli/cli.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/time.h"
#include "runtime/cluster/pmi.h"

#define PROBE_MS   1000 /* for one of the hosts where the lead may be */
#define BETWEEN_MS 100
#define GRACE_S    5 /* after a signal: the lead has had it too, and ends the job */

/* One of the processes that follow the lead. */
typedef struct follower {
    const cli_command *command;
    uint32_t rank;
    atomic_bool is_unled; /* the lead is gone, and has not said why */
    atomic_bool is_alone; /* and this process goes on without it */
} follower;

static atomic_bool was_told; /* to end: so was the lead, whose end is no news */

/* ------------------------------------------------------------------------------------------------------ signals */

static void on_grace(int number)
{
    (void)number;
    _exit(rbt_err_exit_code(RBT_E_INTERRUPTED));
}

static void on_signal(int number)
{
    (void)number;
    atomic_store(&was_told, true);
    alarm(GRACE_S);
}

/* Ctrl-C reaches all processes at once, and so does the end of a terminal (SIGHUP, unless nohup has it ignored). The lead ends the job
 * after its clock; who died of it now would be a process lost. */
static void leave_it_to_the_lead(void)
{
    struct sigaction later = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, at_last = {.sa_handler = on_grace};
    struct sigaction hangup;

    sigemptyset(&later.sa_mask);
    sigemptyset(&at_last.sa_mask);
    sigaction(SIGALRM, &at_last, NULL);
    sigaction(SIGINT, &later, NULL);
    sigaction(SIGTERM, &later, NULL);
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &later, NULL);
}

/* ------------------------------------------------------------------------------------------------------ joining */

/* Does anybody listen there? */
static rbt_err probe(const char *text, rbt_error *error)
{
    struct pollfd ready = {.fd = -1, .events = POLLOUT};
    rbt_address address;
    rbt_err err = rbt_address_parse(text, RBT_PORT, &address, error);

    if (err == RBT_OK)
        err = rbt_socket_dial(&address, &ready.fd, error);
    if (err != RBT_OK)
        return err;
    if (poll(&ready, 1, PROBE_MS) == 1)
        err = rbt_socket_connected(ready.fd, &address, error);
    else
        err = rbt_fail(error, RBT_E_IO, "%s does not answer within %d ms", text, PROBE_MS);
    close(ready.fd);
    return err;
}

static void address_of(const rbt_standing *standing, const char *local, size_t i, char text[RBT_ADDRESS_ROOM])
{
    if (standing->one_host)
        snprintf(text, RBT_ADDRESS_ROOM, "%s", local);
    else
        snprintf(text, RBT_ADDRESS_ROOM, strchr(standing->lead[i], ':') != NULL ? "[%.140s]:%u" : "%.140s:%u",
                 standing->lead[i], standing->port);
}

/* Tries the hosts where the lead may be, in turn: it may not have been started yet, nor its name be known. */
static rbt_err join(const rbt_standing *standing, const rbt_session_config *config, bool *joined, rbt_error *error)
{
    uint64_t give_up_ns = rbt_now_ns() + config->join_timeout_ms * 1000000u;
    size_t places = standing->one_host ? 1 : standing->leads;
    rbt_error why = {RBT_OK, ""};
    rbt_err err;

    for (;;) {
        for (size_t i = 0; i < places; i++) {
            char address[RBT_ADDRESS_ROOM];

            address_of(standing, config->local, i, address);
            if (probe(address, &why) != RBT_OK)
                continue;
            err = rbt_cluster_job_join(config, address, standing->rank, joined, error);
            if (err == RBT_OK || *joined || places == 1)
                return err;
            why = *error;
        }
        if (rbt_now_ns() >= give_up_ns)
            return rbt_fail(error, RBT_E_MISSING,
                            "rank %u of %u (%s) has not found rank 0 within %llu s: %s; does rank 0 run, and can this "
                            "host reach it? RUBATO_LEAD=HOST:PORT says where it is",
                            standing->rank, standing->size, standing->kind,
                            (unsigned long long)config->join_timeout_ms / 1000, why.text);
        poll(NULL, 0, BETWEEN_MS);
    }
}

static void on_unled(void *context)
{
    atomic_store(&((follower *)context)->is_unled, !atomic_load(&was_told));
}

/* Called when there is no lead to tell it to. */
static void on_log(void *context, rbt_log_level level, const char *source, const char *sentence)
{
    follower *f = context;

    (void)level;
    (void)source;
    atomic_store(&f->is_alone, true);
    fprintf(stderr, "rubato %s: rank %u: %s\n", f->command->name, f->rank, sentence);
}

/* The last sentence of a process without a lead: whose it is, and where to look. */
static rbt_error told_by(const follower *f, const rbt_error *why)
{
    rbt_error told = *why;

    if (why->code != RBT_OK)
        rbt_fail(&told, why->code, "rank %u: %.900s%s", f->rank, why->text,
                 why->code == RBT_E_LOST && !atomic_load(&f->is_alone) ? "; was rank 0 killed, or is its host down?"
                                                                       : "");
    return told;
}

/* The lead says why, if there is one. */
static void on_over(void *context, const rbt_error *why)
{
    const follower *f = context;
    rbt_error told = told_by(f, why);

    cli_leave_soon(atomic_load(&f->is_unled) ? f->command : NULL, &told);
}

static int follow(const cli_command *command, const rbt_options *options, const rbt_standing *standing,
                  const rbt_gathering *gathering)
{
    static follower f; /* who leaves soon may outlive this function */
    rbt_session_config config = {.key = gathering->key,
                                 .has_key = gathering->has_key,
                                 .insecure = options->insecure,
                                 .shm = rbt_job_rings(options),
                                 .job = gathering->job,
                                 .local = gathering->local,
                                 .has_others = !standing->one_host,
                                 .on_unled = on_unled,
                                 .on_over = on_over,
                                 .context = &f,
                                 .log = {.write = on_log, .context = &f},
                                 .join_timeout_ms = (uint64_t)options->join_timeout * 1000};
    rbt_error error = {RBT_OK, ""};
    bool joined = false;
    rbt_err err;

    f.command = command;
    f.rank = standing->rank;
    leave_it_to_the_lead();
    err = join(standing, &config, &joined, &error);
    rbt_key_wipe(&config.key);
    if (err == RBT_OK)
        return 0;
    if (joined)
        error = told_by(&f, &error);
    return joined && !atomic_load(&f.is_unled) ? rbt_err_exit_code(err) : cli_fail(command, &error);
}

/* ------------------------------------------------------------------------------------------------------- standing */

/* Where the lead listens between hosts: --listen may say so, at every rank the same. */
static rbt_err settle_port(rbt_options *options, rbt_standing *standing, rbt_error *error)
{
    char text[16];
    rbt_address address;
    rbt_err err;

    if (options->listen == NULL) {
        snprintf(text, sizeof text, ":%u", standing->port);
        return rbt_options_set(options, "listen", text, error);
    }
    err = rbt_address_parse(options->listen, RBT_PORT, &address, error);
    if (err == RBT_OK && (rbt_address_is_unix(&address) || rbt_address_port(&address) == 0))
        err = rbt_fail(error, RBT_E_USAGE,
                       "--listen %s: rank 0 is to be found by the others, so it takes a port: --listen :%u",
                       options->listen, RBT_PORT);
    if (err == RBT_OK)
        standing->port = rbt_address_port(&address);
    return err;
}

/* As many workers as the processes have room for, unless somebody said how many. */
static rbt_err settle_workers(rbt_options *options, const rbt_gathering *gathering, rbt_error *error)
{
    uint32_t servers = options->colocate != RBT_OFF ? 0 : options->servers == 0 ? 1 : options->servers;
    rbt_options settled;
    rbt_err err;

    if (servers >= gathering->processes)
        return rbt_fail(
            error, RBT_E_USAGE,
            "%u servers in processes of their own (--colocate off) and at least one worker need %u processes, "
            "and there are %u; start more, or leave out --colocate off",
            servers, servers + 1, gathering->processes);
    if (options->workers == 0)
        options->workers = (gathering->processes - servers) * options->per_process;
    rbt_options_init(&settled);
    rbt_options_copy(&settled, options);
    err = rbt_options_check(&settled, error);
    if (err == RBT_OK)
        err = rbt_cluster_job_fits(&settled, gathering, error);
    rbt_options_deinit(&settled);
    return err;
}

/* Everything that all ranks must agree on. */
static rbt_err settle(rbt_options *options, rbt_standing *standing, rbt_gathering *gathering,
                      char local[RBT_ADDRESS_ROOM], rbt_error *error)
{
    const char *key = NULL;
    rbt_err err = RBT_OK;

    if (standing->pmi_fd >= 0) {
        char mine[RBT_PMI_VALUE_MAX];

        rbt_pmi_here(mine);
        err = rbt_pmi_meet(standing, mine, error);
    }
    if (err == RBT_OK)
        err = settle_workers(options, gathering, error);
    if (err == RBT_OK)
        err = rbt_standing_key_file(rbt_standing_environment, NULL, standing, options->key, options->insecure, &key,
                                    error);
    if (err == RBT_OK && key != NULL) {
        err = rbt_key_read(key, &gathering->key, error);
        gathering->has_key = err == RBT_OK;
    }
    gathering->job = rbt_hash(standing->job, strlen(standing->job), 0);
    if (err == RBT_OK && standing->one_host) {
        snprintf(local, RBT_ADDRESS_ROOM, "unix:@rubato-%u-%016llx", (unsigned)getuid(),
                 (unsigned long long)gathering->job);
        gathering->local = local;
    } else if (err == RBT_OK) {
        err = settle_port(options, standing, error);
    }
    return err;
}

const char *cli_key_file(const char *option)
{
    static const rbt_standing here = {.one_host = true}; /* where none is an error, who listens or joins says so */
    const char *path = NULL;

    (void)rbt_standing_key_file(rbt_standing_environment, NULL, &here, option, false, &path, NULL);
    return path;
}

/* Nobody has started us as one of several: others are to join by hand. */
static int lead_by_hand(const cli_command *command, rbt_options *options)
{
    rbt_gathering gathering = {0};
    rbt_error error = {RBT_OK, ""};
    const char *key = cli_key_file(options->key);
    rbt_options settled;
    rbt_err err;
    int code;

    if (options->listen == NULL)
        return cli_train_run(command, options, NULL); /* which says what is missing */
    rbt_options_init(&settled);
    rbt_options_copy(&settled, options);
    err = rbt_options_check(&settled, &error);
    gathering.processes = 1 + rbt_cluster_processes(&settled, settled.colocate == RBT_ON);
    rbt_options_deinit(&settled);
    if (err == RBT_OK && key != NULL) {
        err = rbt_key_read(key, &gathering.key, &error);
        gathering.has_key = err == RBT_OK;
    }
    code = err == RBT_OK ? cli_train_run(command, options, &gathering) : cli_fail(command, &error);
    rbt_key_wipe(&gathering.key);
    return code;
}

int cli_train_standing(const cli_command *command, rbt_options *options)
{
    rbt_error error = {RBT_OK, ""};
    rbt_standing standing;
    rbt_gathering gathering = {.lead_works = true, .colocate = true};
    char local[RBT_ADDRESS_ROOM];
    rbt_err err = rbt_standing_find(rbt_standing_environment, NULL, &standing, &error);
    int code;

    if (err != RBT_OK)
        return cli_fail(command, &error);
    if (standing.kind == NULL) {
        rbt_standing_deinit(&standing);
        err = cli_job_check(options, &error);
        return err == RBT_OK ? lead_by_hand(command, options) : cli_fail(command, &error);
    }
    gathering.processes = standing.size;
    err = settle(options, &standing, &gathering, local, &error);
    if (err == RBT_OK && standing.rank == 0)
        err = cli_job_check(options, &error);
    if (err != RBT_OK) /* all ranks find the same, so that one says it; but each reads its own key */
        code = standing.rank == 0 || err != RBT_E_USAGE ? cli_fail(command, &error) : rbt_err_exit_code(err);
    else if (standing.rank == 0)
        code = cli_train_run(command, options, &gathering);
    else
        code = follow(command, options, &standing, &gathering);
    rbt_key_wipe(&gathering.key);
    rbt_standing_deinit(&standing);
    return code;
}
