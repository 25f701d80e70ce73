/* Running whole jobs from tests; the contract is in jobs.h. */
#include "sim/jobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/data.h"
#include "data/generate.h"

#define LINE_BYTES 1024

void data_write(const char *path, size_t rows, size_t cols, size_t nnz, uint64_t seed)
{
    rbt_generate_options options = rbt_generate_defaults();
    rbt_error error = {0};
    rbt_data data;

    options.rows = rows;
    options.cols = cols;
    options.nnz = nnz;
    options.seed = seed;
    assert_int_equal(rbt_generate_lr(&options, &data, &error), RBT_OK);
    assert_int_equal(rbt_data_write_libsvm(&data, path, &error), RBT_OK);
    rbt_data_deinit(&data);
}

/* Sets every "option=value" of the line. */
static void set_options(rbt_job *job, const char *line)
{
    char text[LINE_BYTES], *rest = text;
    rbt_error error = {0};

    assert_true(strlen(line) < sizeof text);
    snprintf(text, sizeof text, "%s", line);
    for (char *word; (word = strtok_r(rest, " ", &rest)) != NULL;) {
        char *equals = strchr(word, '=');

        assert_non_null(equals);
        *equals = '\0';
        if (rbt_job_set(job, word, equals + 1, &error) != RBT_OK)
            fail_msg("%s = %s: %s", word, equals + 1, error.text);
    }
}

static job_outcome run_line(const char *line)
{
    job_outcome o = {.err = RBT_OK};
    rbt_job *job = rbt_job_create("lr");
    const float *w;

    set_options(job, line);
    o.err = rbt_job_run(job, NULL, NULL, &o.error);
    w = rbt_job_parameters(job, &o.n);
    if (w != NULL) {
        o.result = *rbt_job_result(job);
        o.result.worker = NULL;
        o.w = malloc(o.n * sizeof *o.w);
        assert_non_null(o.w);
        memcpy(o.w, w, o.n * sizeof *o.w);
    }
    rbt_job_destroy(job);
    return o;
}

job_outcome job_run(const char *format, ...)
{
    char line[LINE_BYTES];
    va_list arguments;

    va_start(arguments, format);
    assert_true(vsnprintf(line, sizeof line, format, arguments) < (int)sizeof line);
    va_end(arguments);
    return run_line(line);
}

void outcome_deinit(job_outcome *o)
{
    free(o->w);
}

uint64_t job_hash(const char *format, ...)
{
    char line[LINE_BYTES];
    va_list arguments;
    job_outcome o;
    uint64_t hash;

    va_start(arguments, format);
    assert_true(vsnprintf(line, sizeof line, format, arguments) < (int)sizeof line);
    va_end(arguments);
    o = run_line(line);
    if (o.err != RBT_OK)
        fail_msg("%s: %s", line, o.error.text);
    hash = o.result.param_hash;
    outcome_deinit(&o);
    return hash;
}

void setup_init(job_setup *setup, const rbt_topology *topology, const rbt_rule *rule, const rbt_table_spec *specs,
                uint32_t tables)
{
    rbt_error error = {0};

    memset(setup, 0, sizeof *setup);
    setup->topology = *topology;
    setup->rule = (rbt_rule_config){.rule = rule,
                                    .workers = topology->workers,
                                    .staleness = topology->staleness,
                                    .factor = 1 / (float)topology->workers,
                                    .rate = 0.25f,
                                    .partition_sync = topology->partition_sync};
    assert_int_equal(rbt_topology_init(&setup->topology, specs, tables, &setup->rule, &error), RBT_OK);
    assert_int_equal(rbt_stragglers_init(&setup->stragglers, NULL, topology->workers, 1, &error), RBT_OK);
    assert_int_equal(rbt_sim_options_parse(&setup->sim, NULL, NULL, NULL, &error), RBT_OK);
    setup->sim.seed = 1;
    rbt_run_init(&setup->run, &setup->topology);
    setup->run.stragglers = &setup->stragglers;
}

void setup_deinit(job_setup *setup)
{
    rbt_run_deinit(&setup->run);
    rbt_stragglers_deinit(&setup->stragglers);
    rbt_topology_deinit(&setup->topology);
}
