/* Helpers of the tests that run whole jobs: data to train on, a job described in one line of text, table programs.
 * Called by tests/sim and tests/unit/test_local.c. */
#ifndef RBT_TESTS_SIM_JOBS_H
#define RBT_TESTS_SIM_JOBS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"
#include "job/gradient.h"
#include "runtime/sim.h"

/* A job that has been run. */
typedef struct job_outcome {
    rbt_err err;
    rbt_error error;
    rbt_result result; /* without the reports of the workers */
    size_t n;
    float *w; /* to be released with outcome_deinit */
} job_outcome;

/* Writes generated data of that size to `path`, in the test's own folder. */
void data_write(const char *path, size_t rows, size_t cols, size_t nnz, uint64_t seed);

/* Runs an lr job described by "option=value option=value ...": printf-style, values without blanks. */
job_outcome job_run(const char *format, ...) __attribute__((format(printf, 1, 2)));
void outcome_deinit(job_outcome *outcome);

/* The same for a job that must end well and of which only the parameters' hash matters. */
uint64_t job_hash(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* In a table program: a check that failed ends the job with an error. (cmocka's assertions may not leave a worker's
 * stack.) */
#define program_check(condition, error)                                                                                \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            return rbt_fail((error), RBT_E_BROKEN, "%s:%d: %s", __FILE__, __LINE__, #condition);                       \
    } while (0)

/* A table program and its run: fill in what differs, then setup_run. */
typedef struct job_setup {
    rbt_topology topology;
    rbt_rule_config rule;
    rbt_stragglers stragglers;
    rbt_sim_options sim;
    rbt_run run;
} job_setup;

/* `topology` and `rule` are as the job would settle them; the tables' rules follow from `rule`. */
void setup_init(job_setup *setup, const rbt_topology *topology, const rbt_rule *rule, const rbt_table_spec *specs,
                uint32_t tables);
void setup_deinit(job_setup *setup);

#endif
