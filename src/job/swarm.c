/* The swarm: many seeds, on all cores, each process watched (swarm.h has the contract).
 *
 * Seeds run in child processes, so that a crash or a failed assertion of ours is an answer like any other: the parent
 * reads from shared memory which seed it was. A failed assertion is a broken guarantee; any other signal is a crash. */
#include "job/swarm.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "job/swarm_case.h"

#define CHILDREN_MAX  64
#define SUMMARY_BYTES 512
#define ROUND_SEEDS   64 /* a child's turn; then what it has to say is written */

/* What a child leaves for its parent. */
typedef struct child_report {
    uint64_t seed; /* the one it is at */
    rbt_err err;
    rbt_error error;
    uint64_t lines;
    char summary[ROUND_SEEDS][SUMMARY_BYTES];
} child_report;

/* A child's share of the `n` seeds from `first` on: every `step`-th, from number `at` on. */
static void run_child(child_report *report, uint64_t first, uint64_t n, uint64_t at, uint64_t step)
{
    for (; at < n && report->err == RBT_OK; at += step) {
        report->seed = first + at;
        report->lines++;
        report->err = rbt_swarm_case(first + at, report->summary[report->lines - 1], SUMMARY_BYTES, &report->error);
    }
    _exit(0);
}

/* How the child ended, as an error of the seed it was at. */
static void judge_child(child_report *report, int status)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT)
        report->err = rbt_fail(&report->error, RBT_E_BROKEN, "an assertion failed (its text is above)");
    else
        report->err = rbt_fail(&report->error, RBT_E_CRASHED, "the process died: %s",
                               WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "it ended early");
}

/* One round: every child does its share of the `n` seeds from `first` on. */
static rbt_err run_round(child_report *reports, uint32_t children, uint64_t first, uint64_t n, rbt_error *error)
{
    pid_t pids[CHILDREN_MAX];

    for (uint32_t i = 0; i < children; i++) {
        reports[i].err = RBT_OK;
        reports[i].lines = 0;
        reports[i].seed = first + i;
        pids[i] = fork();
        if (pids[i] == 0)
            run_child(&reports[i], first, n, i, children);
        if (pids[i] < 0) {
            for (uint32_t k = 0; k < i; k++)
                waitpid(pids[k], NULL, 0);
            return rbt_fail(error, RBT_E_IO, "the system refused to start a process for the swarm");
        }
    }
    for (uint32_t i = 0; i < children; i++) {
        int status = 0;

        waitpid(pids[i], &status, 0);
        judge_child(&reports[i], status);
    }
    return RBT_OK;
}

/* The failing seed with the lowest number, or NULL. */
static const child_report *first_failure(const child_report *reports, uint32_t children)
{
    const child_report *first = NULL;

    for (uint32_t i = 0; i < children; i++)
        if (reports[i].err != RBT_OK && (first == NULL || reports[i].seed < first->seed))
            first = &reports[i];
    return first;
}

rbt_err rbt_swarm_run(const rbt_swarm_options *options, void (*write)(void *context, const char *line), void *context,
                      rbt_error *error)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t children = cores < 1 ? 1 : cores > CHILDREN_MAX ? CHILDREN_MAX : (uint32_t)cores;
    size_t bytes = children * sizeof(child_report);
    child_report *reports = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint64_t most = (uint64_t)children * ROUND_SEEDS; /* in a round */
    rbt_err err = RBT_OK;

    if (reports == MAP_FAILED)
        return rbt_fail(error, RBT_E_MEMORY, "no memory for the swarm's reports");
    for (uint64_t left = options->seeds, n = 0; err == RBT_OK && left > 0; left -= n) {
        const child_report *failed;

        n = left < most ? left : most;
        err = run_round(reports, children, options->first_seed + (options->seeds - left), n, error);
        for (uint64_t line = 0; err == RBT_OK && options->verbose && line < ROUND_SEEDS; line++)
            for (uint32_t i = 0; i < children; i++)
                if (line < reports[i].lines)
                    write(context, reports[i].summary[line]);
        failed = err == RBT_OK ? first_failure(reports, children) : NULL;
        if (failed != NULL) {
            if (failed->lines > 0 && !options->verbose)
                write(context, failed->summary[failed->lines - 1]);
            err = rbt_fail(error, failed->err, "seed %" PRIu64 ": %s. Replay: rubato swarm --replay %" PRIu64,
                           failed->seed, failed->error.text, failed->seed);
        }
    }
    if (err == RBT_OK) {
        char line[128];

        snprintf(line, sizeof line, "%" PRIu64 " seed%s from %" PRIu64 " on: every guarantee held", options->seeds,
                 options->seeds == 1 ? "" : "s", options->first_seed);
        write(context, line);
    }
    munmap(reports, bytes);
    return err;
}
