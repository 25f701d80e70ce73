/* Jobs that run a table program (rubato.h, sections 4 and 5): tables are created on the job, the program runs on every
 * worker, and when all have left the tables' final contents can be read. Proved by tests/unit/test_table_job.c. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "job/run.h"
#include "runtime/handle.h"

rbt_err rbt_table_create(rbt_job *job, const rbt_table_spec *spec, rbt_table *table, rbt_error *error)
{
    rbt_table_spec copy = *spec;
    rbt_layout trial;
    rbt_err err;

    if (spec->name == NULL || spec->type > RBT_I64)
        return rbt_fail(error, RBT_E_USAGE, "a table needs a name and one of the types RBT_F32, RBT_I32, RBT_I64");
    if (job->started || job->options.model != NULL)
        return rbt_fail(error, RBT_E_USAGE, "table '%s' cannot be created: %s", spec->name,
                        job->started ? "the job has been run" : "the job trains a model; create the job without one");
    err = rbt_layout_init(&trial, spec, 1, 0, error); /* refuses a shape that cannot be laid out */
    if (err != RBT_OK)
        return err;
    rbt_layout_deinit(&trial);
    copy.name = rbt_strdup(spec->name);
    *table = (rbt_table)job->tables.count;
    rbt_array_push(&job->tables, copy);
    return RBT_OK;
}

void rbt_job_forget_tables(rbt_job *job)
{
    for (size_t t = 0; t < job->contents.count; t++) {
        for (uint32_t b = 0; b < job->layouts.at[t].blocks; b++)
            rbt_snap_unref(job->contents.at[t][b]);
        rbt_free(job->contents.at[t]);
        rbt_layout_deinit(&job->layouts.at[t]);
    }
    for (size_t t = 0; t < job->tables.count; t++)
        rbt_free((char *)job->tables.at[t].name);
    rbt_array_free(&job->contents);
    rbt_array_free(&job->layouts);
    rbt_array_free(&job->tables);
}

rbt_err rbt_job_collect(rbt_worker *observer, void *argument, rbt_error *error)
{
    rbt_job *job = argument;
    rbt_err err = RBT_OK;

    for (rbt_table t = 0; err == RBT_OK && t < observer->run->topology->tables; t++) {
        const rbt_copy *copies = observer->client.cache[t].copies;
        rbt_snap **blocks;
        uint64_t slowest;

        err = rbt_observe_wait(observer, t, RBT_UNBOUNDED, &slowest, error);
        if (err != RBT_OK)
            break;
        blocks = rbt_alloc(observer->run->topology->layout[t].blocks, sizeof(rbt_snap *));
        for (uint32_t b = 0; b < observer->run->topology->layout[t].blocks; b++)
            blocks[b] = rbt_snap_ref(copies[b].base);
        rbt_array_push(&job->contents, blocks);
    }
    return err;
}

void rbt_job_keep_layouts(rbt_job *job, rbt_setup *setup)
{
    for (size_t t = 0; t < job->contents.count; t++) {
        rbt_array_push(&job->layouts, setup->topology.layout[t]);
        setup->topology.layout[t].server = NULL;
    }
}

/* -------------------------------------------------------------------------------------------------------- the outcome */

static int64_t integer_at(rbt_type type, const void *values, size_t i)
{
    return type == RBT_I64 ? ((const int64_t *)values)[i] : ((const int32_t *)values)[i];
}

/* A sum beyond 64 bits begins again. */
static void add_integer(rbt_result *result, int64_t value)
{
    result->table_sum = (int64_t)((uint64_t)result->table_sum + (uint64_t)value);
}

/* A dense table, row by row: the same hash however it is cut. */
static void count_dense(rbt_job *job, rbt_table t, rbt_hasher *hasher)
{
    const rbt_layout *layout = &job->layouts.at[t];
    size_t size = rbt_type_size(layout->type);
    void *some = rbt_alloc(RBT_BLOCK_ELEMENTS, size); /* of a row: what lies in one block */

    for (uint64_t row = 0; row < layout->rows; row++)
        for (uint64_t col = 0, n; col < layout->cols; col += n) {
            n = rbt_layout_run(layout, col);
            rbt_snap_read(job->contents.at[t][rbt_layout_block(layout, row, col)], rbt_layout_offset(layout, row, col),
                          (uint32_t)n, some);
            rbt_hasher_add(hasher, some, n * size);
            for (size_t k = 0; layout->type != RBT_F32 && k < n; k++)
                add_integer(&job->result, integer_at(layout->type, some, k));
        }
    rbt_free(some);
}

/* What is not zero in a block of a sparse table: hashes of places and values, added up, as blocks are in no order that rows have. */
static uint64_t count_sparse_block(rbt_job *job, const rbt_layout *layout, uint32_t block, const rbt_snap *snap)
{
    uint64_t first_row = block / layout->across * layout->block_rows, hash = 0;
    uint64_t first_col = block % layout->across * layout->block_cols, left = layout->cols - first_col;
    uint64_t width = left < layout->block_cols ? left : layout->block_cols;
    size_t size = rbt_type_size(layout->type);

    for (uint32_t k = 0; k < snap->count; k++) {
        uint32_t place = snap->index != NULL ? snap->index[k] : k;
        uint64_t element = (first_row + place / width) * layout->cols + first_col + place % width;
        uint64_t bits = 0;

        if (layout->type == RBT_F32 ? snap->f32[k] == 0 : integer_at(layout->type, snap->value, k) == 0)
            continue;
        memcpy(&bits, (const char *)snap->value + k * size, size);
        hash += rbt_hash_mix(element, bits);
        if (layout->type != RBT_F32)
            add_integer(&job->result, integer_at(layout->type, snap->value, k));
    }
    return hash;
}

static void count_sparse(rbt_job *job, rbt_table t, rbt_hasher *hasher)
{
    const rbt_layout *layout = &job->layouts.at[t];
    uint64_t hash = 0;

    for (uint32_t b = 0; b < layout->blocks; b++)
        hash += count_sparse_block(job, layout, b, job->contents.at[t][b]);
    rbt_hasher_add(hasher, &hash, sizeof hash);
}

void rbt_job_count_tables(rbt_job *job, rbt_table tables)
{
    rbt_hasher *hasher = rbt_hasher_create(0);

    for (rbt_table t = 0; t < tables; t++) {
        if (job->layouts.at[t].sparse)
            count_sparse(job, t, hasher);
        else
            count_dense(job, t, hasher);
        job->result.has_table_sum = job->result.has_table_sum || job->layouts.at[t].type != RBT_F32;
    }
    job->result.param_hash = rbt_hasher_value(hasher);
    rbt_hasher_destroy(hasher);
}

/* -------------------------------------------------------------------------------------------------------- running */

static rbt_err run_program(rbt_job *job, rbt_setup *setup, const rbt_program *program, rbt_error *error)
{
    rbt_err err = rbt_setup_init(setup, &job->options, error);

    if (err == RBT_OK)
        err = rbt_setup_lay_out(setup, &job->options, job->tables.at, (uint32_t)job->tables.count, error);
    if (err != RBT_OK)
        return err;
    setup->run.program = *program;
    setup->run.observe = (rbt_program){.name = "collector", .work = rbt_job_collect, .argument = job};
    setup->run.log = rbt_job_log(job);
    setup->run.interrupted = job->stop;
    rbt_job_emit(job, &(rbt_event){.kind = RBT_EVENT_START, .job = job});
    err = rbt_setup_run(setup, &job->options, error);
    rbt_job_keep_layouts(job, setup);
    return err;
}

rbt_err rbt_job_run_program(rbt_job *job, const rbt_program *program, rbt_event_handler *handler, void *context,
                            rbt_error *error)
{
    rbt_setup setup = {0};
    rbt_error discarded;
    rbt_err err;

    if (error == NULL)
        error = &discarded;
    if (job->options.model != NULL || job->tables.count == 0 || job->started)
        return rbt_fail(
            error, RBT_E_USAGE,
            "a table program needs a job of its own, created without a model, with at least one table, not run before");
    if (job->options.runtime == RBT_RUNTIME_CLUSTER) /* the other processes have no such function */
        return rbt_fail(error, RBT_E_UNSUPPORTED,
                        "the table program '%s' cannot run with runtime cluster; use local or sim, or make it a method "
                        "in a shared object (docs/writing-a-model.md)",
                        program->name != NULL ? program->name : "");
    job->started = true;
    job->handler = handler;
    job->context = context;
    if (job->options.rule == RBT_RULE_AUTO)
        job->options.rule = RBT_RULE_SUM; /* a program's increments add up unless it says otherwise */
    err = rbt_options_check(&job->options, error);
    if (err == RBT_OK)
        err = run_program(job, &setup, program, error);
    if (err == RBT_OK) {
        rbt_job_count(job, &setup);
        rbt_job_fill(job, &(rbt_evaluation){.loss = NAN}, 0);
        rbt_job_count_tables(job, (rbt_table)job->contents.count);
        job->has_result = true;
        rbt_job_emit(job, &(rbt_event){.kind = RBT_EVENT_DONE, .job = job, .result = &job->result});
        if (job->result.interrupted)
            err = rbt_fail(error, RBT_E_INTERRUPTED, "interrupted after %llu updates",
                           (unsigned long long)job->result.updates);
    }
    rbt_setup_deinit(&setup);
    return err;
}

rbt_err rbt_table_copy(const rbt_layout *layout, rbt_snap *const *blocks, rbt_table table, uint64_t row, uint64_t col,
                       uint64_t n, void *out, rbt_error *error)
{
    rbt_err err = rbt_layout_check(layout, table, row, col, n, error);

    for (uint64_t done = 0; err == RBT_OK && done < n;) {
        uint64_t run = rbt_layout_run(layout, col + done);
        uint32_t some = (uint32_t)(run < n - done ? run : n - done);

        rbt_snap_read(blocks[rbt_layout_block(layout, row, col + done)], rbt_layout_offset(layout, row, col + done),
                      some, (char *)out + done * rbt_type_size(layout->type));
        done += some;
    }
    return err;
}

rbt_err rbt_table_read(const rbt_job *job, rbt_table table, uint64_t row, uint64_t col, uint64_t n, void *out,
                       rbt_error *error)
{
    if (!job->has_result || table >= job->contents.count)
        return rbt_fail(error, RBT_E_USAGE, "table %u cannot be read: %s", table,
                        job->has_result ? "there is no such table" : "the job has not been run");
    return rbt_table_copy(&job->layouts.at[table], job->contents.at[table], table, row, col, n, out, error);
}
