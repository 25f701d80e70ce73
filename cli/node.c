/* rubato node: one process of a cluster job. It is told everything by the job's lead; what it has to say goes there. */
#include "cli/cli.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/error.h"
#include "job/text.h"

/* Between this process and its launcher, when there is one. */
typedef struct leash {
    pthread_mutex_t lock;
    bool is_free;               /* the job needs no lead any more: the end of the launcher is not ours */
    bool is_cut;                /* the launcher is gone */
    const cli_command *command; /* as what it says why the job is over; NULL: it does not */
    char *unheard; /* the last sentence on the standard errors: a launcher that has ended may not have read it */
} leash;

/* The launcher's end of the standard errors is gone with it; the standard output of its processes is its own. */
static void say_aloud(const char *sentence)
{
    printf("rubato node: %s\n", sentence);
    fflush(stdout);
}

/* A launcher's pipe. The key was its first line; another one says that the job is to end, whatever it could go on without; its end means
 * that the launcher is gone. */
static void *watch_input(void *argument)
{
    static const char END[] = CLI_NODE_END "\n";
    leash *l = argument;
    size_t matching = 0;
    char byte;

    while (read(STDIN_FILENO, &byte, 1) > 0) {
        matching = byte == END[matching] ? matching + 1 : 0;
        if (END[matching] == '\0')
            _exit(rbt_err_exit_code(RBT_E_INTERRUPTED));
    }
    pthread_mutex_lock(&l->lock);
    if (!l->is_free)
        _exit(rbt_err_exit_code(RBT_E_LOST));
    l->is_cut = true;
    if (l->unheard != NULL)
        say_aloud(l->unheard);
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

static void on_free(void *context)
{
    leash *l = context;

    pthread_mutex_lock(&l->lock);
    l->is_free = true;
    pthread_mutex_unlock(&l->lock);
    prctl(PR_SET_PDEATHSIG, 0);
}

static void on_over(void *context, const rbt_error *why)
{
    cli_leave_soon(((const leash *)context)->command, why);
}

/* Called when there is nobody else to tell it to. */
static void on_log(void *context, rbt_log_level level, const char *source, const char *sentence)
{
    leash *l = context;

    (void)level;
    (void)source;
    pthread_mutex_lock(&l->lock);
    if (l->is_cut || fprintf(stderr, "rubato node: %s\n", sentence) < 0) {
        say_aloud(sentence);
    } else {
        free(l->unheard);
        l->unheard = strdup(sentence);
    }
    pthread_mutex_unlock(&l->lock);
}

typedef struct node_arguments {
    const char *join, *key, *rank, *listen, *advertise, *timeout, *shm, *insecure, *quiet;
} node_arguments;

static rbt_err settle(const node_arguments *given, rbt_session_config *config, uint32_t *rank, rbt_error *error)
{
    const char *key = cli_key_file(given->key);
    uint64_t number = 0;
    rbt_err err = cli_require("join", given->join, "ADDRESS", error);

    config->insecure = given->insecure != NULL;
    config->shm = given->shm != NULL && strcmp(given->shm, "off") == 0  ? RBT_RINGS_OFF
                  : given->shm != NULL && strcmp(given->shm, "on") == 0 ? RBT_RINGS_ON
                                                                        : RBT_RINGS_AUTO;
    if (err == RBT_OK && config->shm == RBT_RINGS_AUTO && given->shm != NULL && strcmp(given->shm, "auto") != 0)
        err = rbt_fail(error, RBT_E_USAGE, "--shm '%.60s' is unknown; choose one of auto|on|off", given->shm);
    config->listen = given->listen;
    config->advertise = given->advertise;
    config->join_timeout_ms = 60000;
    *rank = RBT_RANK_NONE;
    if (err == RBT_OK && given->timeout != NULL) {
        err = rbt_text_to_count("--join-timeout", given->timeout, 1, 86400, &number, error);
        config->join_timeout_ms = number * 1000;
    }
    if (err == RBT_OK && given->rank != NULL) {
        err = rbt_text_to_count("--rank", given->rank, 1, RBT_RANKS_LIMIT - 1, &number, error);
        *rank = (uint32_t)number;
    }
    if (err == RBT_OK && key != NULL) {
        err = rbt_key_read(key, &config->key, error);
        config->has_key = err == RBT_OK;
    }
    return err;
}

int cli_node(const cli_command *command, int argc, char **argv)
{
    node_arguments given = {0};
    const cli_option own[] = {
        {"join", "ADDRESS", "Where the job's lead listens: HOST:PORT or unix:NAME.", &given.join},
        {"key", "FILE", "The job's key; - = the first line of the standard input.", &given.key},
        {"rank", "N", "Which process of the job to be; otherwise the first that is missing.", &given.rank},
        {"listen", "ADDRESS", "Where the other processes reach this one.", &given.listen},
        {"advertise", "ADDRESS", "The address they are told, if it is not the one listened on.", &given.advertise},
        {"join-timeout", "S", "Seconds to try to reach the lead. [60]", &given.timeout},
        {"shm", "auto|on|off", "Shared memory with processes of this host. [auto]", &given.shm},
        {"insecure", NULL, "No encryption between hosts.", &given.insecure},
        {"quiet", NULL, "Leaves it to the lead to tell what went wrong in the job.", &given.quiet},
    };
    cli_arguments arguments = {.own = own, .own_count = sizeof own / sizeof own[0]};
    static leash launcher = {.lock = PTHREAD_MUTEX_INITIALIZER}; /* its watcher may outlive this function */
    rbt_session_config config = {
        .on_free = on_free, .on_over = on_over, .context = &launcher, .log = {.write = on_log, .context = &launcher}};
    rbt_error error = {RBT_OK, ""};
    uint32_t rank;
    bool joined = false;
    pthread_t watcher;
    rbt_err err = cli_parse(&arguments, argc, argv, &error);

    if (err == RBT_OK && arguments.help) {
        cli_help(command, &arguments);
        return 0;
    }
    launcher.command = given.quiet == NULL ? command : NULL;
    if (err == RBT_OK)
        err = settle(&given, &config, &rank, &error);
    if (err == RBT_OK && given.key != NULL && strcmp(given.key, "-") == 0 &&
        pthread_create(&watcher, NULL, watch_input, &launcher) == 0)
        pthread_detach(watcher);
    if (err == RBT_OK)
        err = rbt_cluster_job_join(&config, given.join, rank, &joined, &error);
    rbt_key_wipe(&config.key);
    if (err == RBT_OK)
        return 0;
    return given.quiet != NULL && joined ? rbt_err_exit_code(err) : cli_fail(command, &error);
}
