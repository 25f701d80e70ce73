/* The data of a method's job. Called by method_job.c.
 *
 * One process reads all rows. Of several each reads its part, if the method can do with its own (`own_rows`), and rows go to the
 * processes of their workers (data/deal.h). They keep the numbers they have in the files: rows of workers elsewhere are there, with
 * labels and weights, and without features unless the method wants them everywhere (`common`). So a method sees the same rows under the same numbers everywhere, whatever the number of processes; and
 * its facts, which go from process to process in the order of rows, are the same bits. Proved by tests/cli/test_mf.sh, test_lda.sh,
 * test_lasso.sh, test_methods.sh and tests/cluster/test_processes_parts.sh. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/data.h"
#include "data/ids.h"
#include "data/paths.h"
#include "job/loading.h"
#include "job/method_job.h"

static rbt_err make_facts(rbt_method_run *r, const rbt_data *data, size_t *bytes, rbt_error *error)
{
    *bytes = r->plan.method->facts(data);
    r->facts = rbt_try_alloc(*bytes, 1);
    r->plan.facts = r->facts;
    return r->facts != NULL
               ? RBT_OK
               : rbt_fail(error, RBT_E_MEMORY, "not enough memory for what is to be known of %zu columns", data->cols);
}

/* Of several processes that have read all rows none has others than the lead: their sizes alone would not tell. */
static rbt_err compare(const rbt_method_run *r, rbt_err err, rbt_error *error)
{
    rbt_crew crew = rbt_session_crew(r->session);
    uint64_t mine = err == RBT_OK ? rbt_data_hash(&r->data) : 0, *all = rbt_alloc(crew.size, sizeof *all);
    char title[RBT_PATHS_TITLE_ROOM], lead[RBT_HOST_ROOM + 32];

    rbt_paths_title(r->job->options.data, title, sizeof title);
    rbt_session_name(r->session, 0, lead, sizeof lead);
    err = rbt_crew_share(&crew, err, &mine, sizeof mine, all, error);
    if (err == RBT_OK) {
        if (mine != all[0])
            err = rbt_fail(error, RBT_E_DATA,
                           "%s: has other rows here than for the lead (%s); give all hosts the same file", title, lead);
        err = rbt_crew_agree(&crew, err, error);
    }
    rbt_free(all);
    return err;
}

static rbt_err read_all(rbt_method_run *r, bool together, rbt_error *error)
{
    const rbt_method *method = r->plan.method;
    rbt_log log = rbt_job_log(r->job);
    size_t bytes;
    rbt_err err = rbt_loaded_read_data(&r->job->options, r->job->options.data, method->content, NULL, &log, &r->data,
                                       &r->report, error);

    if (together)
        err = compare(r, err, error);
    if (err == RBT_OK && method->survey != NULL)
        err = make_facts(r, &r->data, &bytes, error);
    if (err == RBT_OK && method->survey != NULL)
        method->survey(&r->data, 0, r->facts);
    return err;
}

/* ------------------------------------------------------------------------------------------------- several processes */

/* The part that this process has read. */
typedef struct surveying {
    const rbt_method *method;
    const rbt_data_part *part;
} surveying;

static void survey_part(void *context, void *facts)
{
    const surveying *s = context;

    s->method->survey(&s->part->data, s->part->first, facts);
}

/* The numbers that all rows have, one each, of those of the rows here; NULL: rows have none. */
static rbt_err gather(const rbt_data_part *part, rbt_crew *crew, const float *mine, float **all, rbt_error *error)
{
    const rbt_bytes own = {(uint8_t *)(uintptr_t)mine, mine != NULL ? part->data.rows * sizeof *mine : 0};
    rbt_bytes *bytes = rbt_alloc(crew->size, sizeof *bytes);
    rbt_err err = rbt_crew_collect(crew, RBT_OK, own, bytes, error);
    float *to = NULL;

    if (err != RBT_OK)
        goto free_bytes;
    to = *all = mine != NULL ? rbt_try_alloc(part->rows + 1, sizeof *to) : NULL;
    if (mine != NULL && to == NULL)
        err = rbt_fail(error, RBT_E_MEMORY, "not enough memory for the labels of %zu rows", part->rows);
    for (uint32_t q = 0; err == RBT_OK && to != NULL && q < crew->size; to += part->rows_of[q++]) {
        if (bytes[q].n != part->rows_of[q] * sizeof *to)
            err = rbt_fail(error, RBT_E_PROTOCOL, "process %u tells the labels of other rows than it has", q);
        else if (bytes[q].n > 0)
            memcpy(to, bytes[q].at, bytes[q].n);
    }
    rbt_crew_free(crew, bytes);
free_bytes:
    rbt_free(bytes);
    return rbt_crew_agree(crew, err, error);
}

/* Rows that every process has, whosever they are. */
typedef struct common {
    uint32_t *number; /* ascending */
    rbt_data data;
} common;

static int compare_numbers(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Which they are, each once. */
static rbt_err list_common(const rbt_plan *plan, size_t rows, uint32_t **list, size_t *n, rbt_error *error)
{
    size_t listed = plan->method->common(plan, rows, NULL), kept = 0;
    uint32_t *at = *list = rbt_try_alloc(listed + 1, sizeof *at);

    if (at == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for the numbers of %zu rows", listed);
    (void)plan->method->common(plan, rows, at);
    qsort(at, listed, sizeof *at, compare_numbers);
    if (listed > 0 && at[listed - 1] >= rows)
        return rbt_fail(error, RBT_E_USAGE,
                        "%s wants to see row %u everywhere, and there are %zu; its `common` is wrong",
                        plan->method->name, at[listed - 1], rows);
    for (size_t i = 0; i < listed; i++)
        if (kept == 0 || at[kept - 1] != at[i])
            at[kept++] = at[i];
    *n = kept;
    return RBT_OK;
}

static rbt_err share_common(const rbt_plan *plan, const rbt_data_part *part, rbt_crew *crew, common *c,
                            rbt_error *error)
{
    size_t n = 0;
    rbt_err err = list_common(plan, part->rows, &c->number, &n, error);

    err = rbt_crew_agree(crew, err, error);
    return err == RBT_OK ? rbt_deal_copies(part, c->number, n, RBT_DEAL_ROUND_BYTES, crew, &c->data, error) : err;
}

static void count_features(const rbt_data *from, const uint32_t *number, rbt_data *all)
{
    for (size_t i = 0; i < from->rows; i++)
        all->start[number[i] + 1] = from->start[i + 1] - from->start[i];
}

static void copy_features(const rbt_data *from, const uint32_t *number, rbt_data *all)
{
    for (size_t i = 0; i < from->rows; i++) {
        size_t at = from->start[i], n = from->start[i + 1] - at, to = all->start[number[i]];

        memcpy(all->index + to, from->index + at, n * sizeof *all->index);
        memcpy(all->value + to, from->value + at, n * sizeof *all->value);
    }
}

/* Puts rows where they are among all, which has their labels: row i is number[i]. So for those in common, of which some are here
 * already. The others have no features. */
static rbt_err spread_rows(rbt_data *own, const uint32_t *number, const common *c, rbt_data *all, rbt_error *error)
{
    rbt_data d = {0};
    rbt_err err = rbt_data_alloc(all->rows, own->nnz + c->data.nnz, &d, error);

    if (err != RBT_OK)
        return err;
    memset(d.start, 0, (all->rows + 1) * sizeof *d.start);
    count_features(own, number, &d);
    count_features(&c->data, c->number, &d);
    for (size_t g = 0; g < all->rows; g++)
        d.start[g + 1] += d.start[g];
    copy_features(own, number, &d);
    copy_features(&c->data, c->number, &d);
    rbt_free(d.label);
    all->start = d.start;
    all->index = d.index;
    all->value = d.value;
    all->nnz = d.start[all->rows];
    all->cols = own->cols;
    all->content = own->content;
    all->col_names = rbt_ids_ref(own->col_names);
    all->label_names = own->label_names; /* moved */
    all->label_count = own->label_count;
    own->label_names = NULL;
    own->label_count = 0;
    return RBT_OK;
}

/* Deals the part out; what comes here is spread. */
static rbt_err deal(rbt_method_run *r, rbt_data_part *part, const common *c, const rbt_hosting *hosting, rbt_crew *crew,
                    rbt_error *error)
{
    const rbt_options *options = &r->job->options;
    rbt_data own = {0};
    rbt_shards shards = {0};
    uint32_t *order = NULL;
    rbt_err err =
        rbt_deal(part, hosting, options->workers, options->seed, RBT_DEAL_ROUND_BYTES, crew, &own, &shards, error);

    if (err != RBT_OK)
        return err; /* everywhere */
    RBT_ASSERT(options->workers > 0);
    r->nonzeros = rbt_alloc(options->workers, sizeof *r->nonzeros);
    for (uint32_t m = 0; m < options->workers; m++)
        r->nonzeros[m] = shards.shard[m].nnz;
    err = rbt_shards_order(part->rows, options->workers, options->seed, &order, error);
    if (err == RBT_OK)
        err =
            spread_rows(&own, order + rbt_shards_begin(part->rows, options->workers, hosting->first_worker[crew->rank]),
                        c, &r->data, error);
    if (err == RBT_OK)
        r->data.row_names = rbt_ids_ref(part->users);
    rbt_free(order);
    rbt_shards_destroy(&shards);
    rbt_data_deinit(&own);
    return rbt_crew_agree(crew, err, error);
}

static rbt_err read_together(rbt_method_run *r, rbt_error *error)
{
    uint32_t size = rbt_session_size(r->session);
    uint32_t *first = rbt_alloc(size, sizeof *first), *count = rbt_alloc(size, sizeof *count);
    const rbt_hosting hosting = {first, count};
    rbt_crew crew = rbt_session_crew(r->session);
    rbt_data_part part = {.rows = 0};
    surveying s = {r->plan.method, &part};
    common c = {0};
    size_t bytes = 0;
    rbt_err err;

    for (uint32_t rank = 0; rank < size; rank++) {
        first[rank] = rbt_session_seat(r->session, rank)->first_worker;
        count[rank] = rbt_session_seat(r->session, rank)->workers;
    }
    err = rbt_loaded_read_part(&r->job->options, r->plan.method->content, &r->report, &hosting, &crew, &part, error);
    if (err == RBT_OK && s.method->survey != NULL) {
        err = make_facts(r, &part.data, &bytes, error);
        err = rbt_crew_travel(&crew, err, survey_part, &s, r->facts, bytes, error);
    }
    r->data.rows = part.rows;
    r->data.origin = part.data.origin; /* moved */
    part.data.origin = NULL;
    if (err == RBT_OK)
        err = gather(&part, &crew, part.data.label, &r->data.label, error);
    if (err == RBT_OK)
        err = gather(&part, &crew, part.data.weight, &r->data.weight, error);
    if (err == RBT_OK && s.method->common != NULL)
        err = share_common(&r->plan, &part, &crew, &c, error);
    if (err == RBT_OK)
        err = deal(r, &part, &c, &hosting, &crew, error);
    rbt_free(c.number);
    rbt_data_deinit(&c.data);
    rbt_data_part_deinit(&part);
    rbt_free(first);
    rbt_free(count);
    return err;
}

rbt_err rbt_method_read(rbt_method_run *r, rbt_error *error)
{
    const rbt_method *method = r->plan.method;
    bool together = r->session != NULL && r->job->options.cache != RBT_CACHE_AUTO &&
                    rbt_session_seat(r->session, rbt_session_rank(r->session))->incarnation == 0; /* else others work */
    rbt_err err;

    if (method->reads_itself)
        return RBT_OK;
    err = together && method->own_rows ? read_together(r, error) : read_all(r, together, error);
    if (method->content != RBT_CONTENT_ROWS)
        r->report.unlabelled = 0; /* nobody asks for labels */
    return err;
}
