/* Running a job for a command: checks beforehand, events to their outputs, Ctrl-C. The contract stands in cli.h.
 *
 * A signal handler has nothing but global state to find the job by: `running`, whether it may end the process at once, and what
 * a launcher has to do before that.
 */
#include "cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/time.h"
#include "data/file.h"
#include "job/trainee.h"
#include "sync/graph.h"

static _Atomic(rbt_job *) running;
static atomic_bool at_once;   /* nothing has been trained yet, and nothing would be left behind */
static atomic_bool has_folds; /* which are trained before the job's start is told */
static _Atomic(cli_last_act) last_act;
static atomic_bool was_told; /* to end, whatever came of it */
static _Atomic uint64_t interrupted_ns;
static atomic_bool is_forced; /* told twice: what becomes of the job's processes now is no accident */
static atomic_bool is_over;   /* the job has ended, and its outputs are being written */
static atomic_bool told_late; /* to end, when it was */

#define EXIT_INTERRUPTED 130

static const int SIGNALS[3] = {SIGINT, SIGTERM, SIGHUP};

/* ------------------------------------------------------------------------------------------ beforehand */

/* Tries what will be done at the end: a regular file gets its temporary neighbour created and removed again. */
static rbt_err check_output(const char *option, const char *path, rbt_error *error)
{
    rbt_output output;
    rbt_error inner = {RBT_OK, ""};
    struct stat status;

    if (path == NULL || strcmp(path, "-") == 0)
        return RBT_OK;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
        if (S_ISDIR(status.st_mode))
            return rbt_fail(error, RBT_E_IO, "--%s %s is a folder; give a file", option, path);
        if (access(path, W_OK) != 0)
            return rbt_fail(error, RBT_E_IO, "--%s %s cannot be written: %s", option, path, strerror(errno));
        return RBT_OK;
    }
    rbt_err err = rbt_output_open(path, &output, &inner);
    if (err != RBT_OK)
        return rbt_fail(error, err, "--%s %.900s", option, inner.text);
    rbt_output_abandon(&output);
    return RBT_OK;
}

/* The files of --straggler trace=FILE. */
static rbt_err keep_traces(const char *straggler, const char *out, rbt_error *error)
{
    static const char TRACE[] = "trace=";
    char *text = rbt_strdup(straggler != NULL ? straggler : ""), *rest = NULL;
    rbt_err err = RBT_OK;

    for (char *part = strtok_r(text, ";,", &rest); part != NULL && err == RBT_OK; part = strtok_r(NULL, ";,", &rest))
        if (strncmp(part, TRACE, sizeof TRACE - 1) == 0)
            err = cli_keep_apart(part + sizeof TRACE - 1, out, error);
    rbt_free(text);
    return err;
}

/* Nothing that a job reads is written over; its job file is looked after where that is read. */
static rbt_err keep_inputs(const rbt_options *options, bool is_plugin, const char *out, rbt_error *error)
{
    rbt_graph_kind known;
    const bool is_file = options->graph != NULL && !rbt_graph_kind_find(options->graph, &known);
    const bool has_key = options->runtime == RBT_RUNTIME_CLUSTER;
    const char *const inputs[] = {has_key ? cli_key_file(options->key) : options->key, options->cluster,
                                  is_file ? options->graph : NULL, is_plugin ? options->model : NULL};
    const cli_data data[] = {{options->data, options->label, options->workers}, {options->valid, options->label, 0}};
    rbt_err err = keep_traces(options->straggler, out, error);

    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0] && err == RBT_OK; i++)
        err = cli_keep_apart(inputs[i], out, error);
    for (size_t i = 0; i < sizeof data / sizeof data[0] && err == RBT_OK; i++)
        err = cli_keep_data_apart(&data[i], out, error);
    return err;
}

rbt_err cli_job_check(const rbt_options *options, rbt_error *error)
{
    rbt_options settled;
    rbt_trainee kind;
    rbt_err err = rbt_trainee_find(options->model, &kind, error);

    rbt_options_init(&settled);
    if (err == RBT_OK && options->data == NULL)
        err = rbt_fail(error, RBT_E_USAGE, "no training data; give --data PATH (a LIBSVM file; rubato gen makes one)");
    if (err == RBT_OK) {
        rbt_options_copy(&settled, options);
        err = rbt_options_check(&settled, error);
    }
    const cli_output outputs[] = {{"out", options->out}, {"json", options->json}, {"report", options->report}};
    const size_t count = sizeof outputs / sizeof outputs[0];
    for (size_t i = 0; i < count && err == RBT_OK; i++)
        err = check_output(outputs[i].option, outputs[i].path, error);
    for (size_t i = 0; i < count && err == RBT_OK; i++)
        err = keep_inputs(&settled, kind.is_plugin, outputs[i].path, error);
    if (err == RBT_OK)
        err = cli_keep_outputs_apart(outputs, count, error);
    rbt_options_deinit(&settled);
    return err;
}

rbt_err cli_job_create(const rbt_options *options, rbt_job **job, rbt_error *error)
{
    char value[RBT_OPTION_ROOM];
    const char *name = NULL;
    rbt_trainee kind;
    rbt_err err = rbt_trainee_find(options->model, &kind, error);

    if (err != RBT_OK)
        return err;
    rbt_job *made = rbt_job_create(options->model);
    if (made == NULL)
        return rbt_fail(error, RBT_E_USAGE, "model '%s' cannot be used for a job", options->model);
    for (size_t i = 0; err == RBT_OK && rbt_options_at(options, i, &name, value, sizeof value); i++)
        if (strcmp(name, "model") != 0)
            err = rbt_job_set(made, name, value, error);
    if (err == RBT_OK)
        *job = made;
    else
        rbt_job_destroy(made);
    return err;
}

FILE *cli_text_stream(const rbt_options *options)
{
    const char *const outputs[] = {options->json, options->out, options->report};
    bool taken = false;

    for (size_t i = 0; i < sizeof outputs / sizeof outputs[0]; i++)
        taken = taken || (outputs[i] != NULL && strcmp(outputs[i], "-") == 0);
    return options->quiet ? NULL : taken ? stderr : stdout;
}

/* ---------------------------------------------------------------------------------------------- running */

static void on_signal(int number)
{
    static const char EARLY[] = "rubato: interrupted before training began\n";
    static const char FOLDED[] = "rubato: interrupted before the first fold was over; there is no result\n";
    static const char AGAIN[] = "rubato: told to end a second time: the job ends at once, and nothing more is saved\n";
    rbt_job *job;

    if (cli_signal_is_echo(number))
        return;
    bool again = atomic_exchange(&was_told, true);
    if (number == SIGHUP && again) /* the shell says so, and the system once more */
        return;
    job = atomic_exchange(&running, NULL);
    if (job == NULL && !again && atomic_load(&is_over)) { /* what is being written is written to its end */
        atomic_store(&interrupted_ns, rbt_now_ns());
        atomic_store(&told_late, true);
        return;
    }
    if (job == NULL) { /* the second time, or nothing is running: at once */
        cli_last_act act = atomic_load(&last_act);

        if (again && !atomic_exchange(&is_forced, true))
            (void)!write(STDERR_FILENO, AGAIN, sizeof AGAIN - 1);
        if (act == NULL || !act())
            _exit(EXIT_INTERRUPTED);
        return;
    }
    if (atomic_load(&at_once)) { /* reading may take long, or wait for a pipe */
        bool folds = atomic_load(&has_folds);

        (void)!write(STDERR_FILENO, folds ? FOLDED : EARLY, folds ? sizeof FOLDED - 1 : sizeof EARLY - 1);
        _exit(EXIT_INTERRUPTED);
    }
    atomic_store(&interrupted_ns, rbt_now_ns());
    rbt_job_interrupt(job);
}

uint64_t cli_job_interrupted_ns(void)
{
    return atomic_load(&interrupted_ns);
}

/* SIGHUP: the terminal is gone; under nohup that is to be ignored. SA_RESTART: an output that waits for its reader goes on waiting. */
static void listen_to_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, now;

    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < 3; i++) {
        sigaction(SIGNALS[i], NULL, &now);
        if (SIGNALS[i] != SIGHUP || now.sa_handler != SIG_IGN)
            sigaction(SIGNALS[i], &action, NULL);
    }
}

void cli_job_before_exit(cli_last_act act)
{
    atomic_store(&last_act, act);
    listen_to_signals();
}

static double monotonic_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void on_event(void *context, const rbt_event *event)
{
    cli_listener *listener = context;

    if (event->kind == RBT_EVENT_START || (event->kind == RBT_EVENT_NOTE && strncmp(event->note, "fold ", 5) == 0))
        atomic_store(&at_once, false);
    if (event->kind == RBT_EVENT_NOTE && atomic_load(&is_forced))
        return;
    rbt_recorder_event(listener->recorder, event);
    if (listener->lines != NULL) {
        rbt_jsonlines_event(listener->lines, listener->recorder, event);
        if (listener->lines->failed !=
            0) /* nobody will read about it: as after Ctrl-C, and the reason is told at the end */
            rbt_job_interrupt(listener->job);
    }
    if (listener->text != NULL && event->kind == RBT_EVENT_START) {
        if (listener->title != NULL)
            fprintf(listener->text, "%s\n", listener->title);
        rbt_summary_configuration(listener->recorder, listener->text);
        fflush(listener->text);
    }
    if (listener->note != NULL && event->kind == RBT_EVENT_NOTE)
        listener->note(listener->context, event->note);
    if (listener->line != NULL)
        rbt_progress_line_event(listener->line, event, listener->prefix, monotonic_seconds());
}

/* What the signals meant before the first job, and whether that is kept here. */
static struct sigaction before[3];
static bool is_listening;

rbt_err cli_job_run(rbt_job *job, cli_listener *listener, rbt_error *error)
{
    rbt_err err = RBT_OK;

    for (size_t i = 0; i < 3 && !is_listening; i++)
        sigaction(SIGNALS[i], NULL, &before[i]);
    is_listening = true;
    listener->job = job;
    atomic_store(&at_once, listener->early_end);
    atomic_store(&has_folds, listener->has_folds);
    atomic_store(&running, job);
    atomic_store(&is_over, false);
    listen_to_signals();
    if (atomic_load(&told_late)) /* after the job before this one */
        rbt_job_interrupt(job);
    err = rbt_job_run(job, on_event, listener, error);
    if (atomic_load(&is_forced)) /* its processes are being ended, and this one after them */
        (void)sleep(RBT_LAUNCH_MS / 1000);
    atomic_store(&is_over, true);
    atomic_store(&running, NULL);

    if (listener->line != NULL)
        rbt_progress_line_clear(listener->line);
    listener->recorder->error.code = err;
    if (err != RBT_OK && error != NULL)
        listener->recorder->error = *error;
    return err;
}

rbt_err cli_job_release(rbt_error *error)
{
    for (size_t i = 0; i < 3 && is_listening; i++)
        sigaction(SIGNALS[i], &before[i], NULL);
    is_listening = false;
    atomic_store(&is_over, false);
    return atomic_load(&told_late) ? rbt_fail(error, RBT_E_INTERRUPTED,
                                              "interrupted when the job was over; all that it was to write is there")
                                   : RBT_OK;
}
