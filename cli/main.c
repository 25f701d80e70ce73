/* The program `rubato`: finds the sub-command and runs it. Each sub-command stands in a file of its own. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "job/text.h"

static const cli_command COMMANDS[] = {
    {"train", "MODEL --data PATH... [--valid PATH...] [--out FILE] [options]", "Trains a model.", cli_train},
    {"compare", "MODEL --data PATH... --protocols LIST [--grid lr=LIST] [options]",
     "Trains the same model under several protocols and shows them side by side.", cli_compare},
    {"sim", "train|compare MODEL --data PATH... [--cluster FILE] [options]",
     "Trains or compares in the simulator: machines you do not have, in virtual time.", cli_sim},
    {"predict", "--model FILE --data PATH... [--out FILE] [--as label|probability|score]",
     "Applies a trained model to data, one line per row.", cli_predict},
    {"eval", "--model FILE --data PATH... [--metric LIST] [--baseline FILE] [--json FILE]",
     "Measures how good a trained model is on data.", cli_eval},
    {"export", "--model FILE --format liblinear|npy|json|text --out FILE [--vocab FILE]",
     "Writes a trained model for other programs.", cli_export},
    {"import", "--model FILE --out FILE [--format liblinear]", "Takes a model that LIBLINEAR has trained.", cli_import},
    {"gen", "lr|regression|multiclass|clicks|ratings|docs|images --out FILE [--to FORMAT] [options]",
     "Generates data to train on.", cli_gen},
    {"convert", "--data PATH... --out FILE [--to cache|libsvm|csv|vw|ratings|docword]",
     "Writes data in another format, such as a cache that loads fast.", cli_convert},
    {"info", "FILE... [--vocab FILE]", "Tells what a model file or data files hold.", cli_info},
    {"graph", "KIND N | FILE [--machines 3,3,2] [--svg FILE] [--json FILE] [options]",
     "Tells what a graph of peers is worth: neighbours, diameter, spectral gap, how far peers can get apart.",
     cli_graph},
    {"swarm", "--seeds N [--seed FIRST] [--replay SEED] [--verbose]",
     "Runs random jobs with faults in the simulator and checks every guarantee.", cli_swarm},
    {"key", "new|show FILE", "Makes the key that the processes of a job share, or tells which one a file holds.",
     cli_key},
    {"launch", "(--local N | --hosts a,b:4) [--servers P] [--key FILE] -- train MODEL --data PATH... [options]",
     "Starts a job of several processes, on this host or on many.", cli_launch},
    {"node", "--join ADDRESS --key FILE", "Takes part in a job as one of its processes.", cli_node},
    {"top", "ADDRESS --key FILE [--once] [--json FILE]", "Shows a running job.", cli_top},
    {"doctor", "--hosts LIST [--key FILE] [--data PATH] [--listen ADDRESS]",
     "Checks what a job on several hosts needs before there is one.", cli_doctor},
    {"bench", "hop|kernels|local|net|sim", "Measures this machine.", cli_bench},
};

#define COMMAND_COUNT (sizeof COMMANDS / sizeof COMMANDS[0])

void cli_write_line(void *context, const char *line)
{
    fprintf(context, "%s\n", line);
}

int cli_fail(const cli_command *command, const rbt_error *error)
{
    fflush(stdout);
    if (error->code == RBT_E_PIPE) /* as other programs do it: `rubato ... | head` is no failure worth a word */
        return rbt_err_exit_code(error->code);
    fprintf(stderr, "rubato %s: %s\n", command->name, error->text);
    return rbt_err_exit_code(error->code);
}

/* The reason of a write that failed some time ago is forgotten, but a pipe without a reader still has none. */
static bool nobody_reads(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};

    return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

rbt_err cli_flush(rbt_error *error)
{
    bool failed;

    errno = 0;
    failed = fflush(stdout) != 0 || ferror(stdout);
    if (failed && errno == 0 && nobody_reads())
        errno = EPIPE;
    if (failed)
        return rbt_fail(error, errno == EPIPE ? RBT_E_PIPE : RBT_E_IO, "cannot write to the standard output: %s",
                        errno != 0 ? strerror(errno) : "a part of it was refused: a full disk, or nobody reads it");
    return RBT_OK;
}

static int help(void)
{
    printf("rubato %s: distributed machine learning for machines that do not keep the same time\n\n", rbt_version());
    printf("usage: rubato COMMAND ...\n\nCommands:\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        printf("  %-9s %s\n", COMMANDS[i].name, COMMANDS[i].about);
    printf(
        "\nrubato COMMAND --help lists a command's options; rubato --version tells the version.\n"
        "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 target not reached, 4 processes missing, 5 broken guarantee,\n"
        "6 no progress, 7 a process was lost, 130 interrupted, 141 nobody reads.\n");
    return 0;
}

static int unknown(const char *name)
{
    rbt_nearest nearest = {.word = name};

    for (size_t i = 0; i < COMMAND_COUNT; i++)
        rbt_nearest_offer(&nearest, COMMANDS[i].name);
    fprintf(stderr, "rubato: unknown command '%s'; ", name);
    if (rbt_nearest_found(&nearest) != NULL)
        fprintf(stderr, "did you mean '%s'?\n", rbt_nearest_found(&nearest));
    else
        fprintf(stderr, "rubato --help lists the commands\n");
    return rbt_err_exit_code(RBT_E_USAGE);
}

/* The command's own answer, unless what it printed could not be written. */
static int finish(const cli_command *command, int code)
{
    rbt_error error = {RBT_OK, ""};

    if (cli_flush(&error) != RBT_OK && code == 0)
        return cli_fail(command, &error);
    return code;
}

/* A file or socket that was given the number of a closed standard stream would be written to by whoever prints. */
static void open_standard_streams(void)
{
    int fd = open("/dev/null", O_RDWR);

    while (fd >= 0 && fd <= STDERR_FILENO)
        fd = open("/dev/null", O_RDWR);
    if (fd > STDERR_FILENO)
        (void)close(fd);
}

int main(int argc, char **argv)
{
    open_standard_streams();
    signal(SIGPIPE, SIG_IGN); /* a reader that goes away is a write error: files are put in order before the end */
    signal(SIGXFSZ, SIG_IGN); /* and so is a limit on the size of files */
    if (argc < 2) {
        fprintf(stderr, "rubato: which command? rubato --help lists them\n");
        return rbt_err_exit_code(RBT_E_USAGE);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0)
        return finish(&(cli_command){.name = "--help"}, help());
    if (strcmp(argv[1], "--version") == 0)
        return finish(&(cli_command){.name = "--version"}, printf("rubato %s\n", rbt_version()) > 0 ? 0 : 1);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(COMMANDS[i].name, argv[1]) == 0)
            return finish(&COMMANDS[i], COMMANDS[i].run(&COMMANDS[i], argc - 2, argv + 2));
    return unknown(argv[1]);
}
