/* Documents and the plain sampler. Contract in plain_lda.h. */
#include "unit/plain_lda.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

rbt_data plain_docs_of(const uint32_t *count, size_t docs, size_t words)
{
    rbt_data data = {.rows = docs, .cols = words};

    data.start = rbt_alloc(docs + 2, sizeof *data.start); /* and room for one more */
    data.index = rbt_alloc(docs * words, sizeof *data.index);
    data.value = rbt_alloc(docs * words, sizeof *data.value);
    data.label = rbt_alloc(docs, sizeof *data.label);
    for (size_t d = 0; d < docs; d++) {
        for (size_t w = 0; w < words; w++) {
            if (count[d * words + w] == 0)
                continue;
            data.index[data.nnz] = (uint32_t)w;
            data.value[data.nnz++] = (float)count[d * words + w];
        }
        data.start[d + 1] = data.nnz;
    }
    return data;
}

rbt_data plain_docs_draw(size_t docs, size_t words, size_t topics, size_t length, uint64_t seed)
{
    rbt_rng rng = rbt_rng_stream(seed, RBT_STREAM_TEST, 0);
    uint32_t *count = rbt_alloc(docs * words, sizeof *count);
    rbt_data data;

    for (size_t d = 0; d < docs; d++) {
        size_t mine[2] = {(size_t)rbt_rng_below(&rng, topics), (size_t)rbt_rng_below(&rng, topics)};

        for (size_t i = 0; i < length; i++) {
            size_t range = words / topics, first = mine[rbt_rng_below(&rng, 2)] * range;
            size_t word = rbt_rng_below(&rng, 10) == 0
                              ? (size_t)rbt_rng_below(&rng, words)
                              : first + (size_t)(rbt_rng_f64(&rng) * rbt_rng_f64(&rng) * (double)range);

            count[d * words + word]++;
        }
    }
    data = plain_docs_of(count, docs, words);
    rbt_free(count);
    return data;
}

void plain_init(plain *p, const rbt_data *data, size_t k, rbt_rng *rng)
{
    *p = (plain){.k = k,
                 .nd = rbt_alloc(data->rows * k, sizeof(double)),
                 .nw = rbt_alloc(data->cols * k, sizeof(double)),
                 .n = rbt_alloc(k, sizeof(double))};
    for (size_t i = 0; i < data->nnz; i++)
        p->tokens += (size_t)data->value[i];
    p->doc = rbt_alloc(p->tokens, sizeof *p->doc);
    p->word = rbt_alloc(p->tokens, sizeof *p->word);
    p->topic = rbt_alloc(p->tokens, sizeof *p->topic);
    for (size_t d = 0, t = 0; d < data->rows; d++) {
        for (size_t i = data->start[d]; i < data->start[d + 1]; i++) {
            for (size_t c = (size_t)data->value[i]; c > 0; c--, t++) {
                p->doc[t] = (uint32_t)d;
                p->word[t] = data->index[i];
                p->topic[t] = (uint32_t)rbt_rng_below(rng, k);
                p->nd[d * k + p->topic[t]]++;
                p->nw[p->word[t] * k + p->topic[t]]++;
                p->n[p->topic[t]]++;
            }
        }
    }
}

void plain_change(plain *p, size_t t, double by)
{
    p->nd[p->doc[t] * p->k + p->topic[t]] += by;
    p->nw[p->word[t] * p->k + p->topic[t]] += by;
    p->n[p->topic[t]] += by;
}

void plain_sweep(plain *p, const rbt_lda_shape *shape, rbt_rng *rng)
{
    double *upto = rbt_alloc(p->k, sizeof *upto);

    for (size_t t = 0; t < p->tokens; t++) {
        double sum = 0, point;
        uint32_t z = 0;

        plain_change(p, t, -1);
        for (size_t k = 0; k < p->k; k++)
            upto[k] = sum += (p->nd[p->doc[t] * p->k + k] + shape->alpha) *
                             (p->nw[p->word[t] * p->k + k] + shape->beta) /
                             (p->n[k] + shape->beta * (double)shape->words);
        point = rbt_rng_f64(rng) * sum;
        while (z + 1 < p->k && point >= upto[z])
            z++;
        p->topic[t] = z;
        plain_change(p, t, 1);
    }
    rbt_free(upto);
}

double plain_joint(const plain *p, const rbt_lda_shape *shape, const rbt_data *data)
{
    double sum = 0, k = (double)p->k;

    for (size_t d = 0; d < data->rows; d++) {
        double length = 0;

        for (size_t z = 0; z < p->k; z++) {
            sum += lgamma(p->nd[d * p->k + z] + shape->alpha) - lgamma(shape->alpha);
            length += p->nd[d * p->k + z];
        }
        sum += lgamma(k * shape->alpha) - lgamma(length + k * shape->alpha);
    }
    for (size_t z = 0; z < p->k; z++) {
        double all = shape->beta * (double)shape->words;

        for (size_t w = 0; w < shape->words; w++)
            sum += lgamma(p->nw[w * p->k + z] + shape->beta) - lgamma(shape->beta);
        sum += lgamma(all) - lgamma(p->n[z] + all);
    }
    return sum / (double)p->tokens;
}

void plain_deinit(plain *p)
{
    rbt_free(p->doc);
    rbt_free(p->word);
    rbt_free(p->topic);
    rbt_free(p->nd);
    rbt_free(p->nw);
    rbt_free(p->n);
}

plain_outcome plain_run(const rbt_data *data, const rbt_lda_shape *shape, int sweeps, int runs)
{
    plain_outcome outcome = {0};
    double *joint = rbt_alloc((size_t)runs, sizeof *joint);

    for (int run = 0; run < runs; run++) {
        rbt_rng rng = rbt_rng_stream((uint64_t)run, RBT_STREAM_TEST, 1);
        plain p;

        plain_init(&p, data, shape->topics, &rng);
        for (int i = 0; i < sweeps; i++)
            plain_sweep(&p, shape, &rng);
        joint[run] = plain_joint(&p, shape, data);
        outcome.mean += joint[run] / runs;
        plain_deinit(&p);
    }
    for (int run = 0; run < runs; run++)
        outcome.deviation += (joint[run] - outcome.mean) * (joint[run] - outcome.mean) / (runs - 1);
    outcome.deviation = sqrt(outcome.deviation);
    rbt_free(joint);
    return outcome;
}

void plain_docs_write(const rbt_data *data, const char *path)
{
    FILE *out = fopen(path, "w");

    assert_non_null(out);
    for (size_t d = 0; d < data->rows; d++) {
        fputs("0", out);
        for (size_t i = data->start[d]; i < data->start[d + 1]; i++)
            fprintf(out, " %u:%g", data->index[i] + 1, (double)data->value[i]);
        fputc('\n', out);
    }
    assert_int_equal(fclose(out), 0);
}

rbt_job *plain_job_run(const char *options)
{
    rbt_job *job = rbt_job_create("lda");
    char text[512], *rest = text, *name;
    rbt_error error = {0};

    snprintf(text, sizeof text, "%s", options);
    while ((name = strtok_r(rest, " ", &rest)) != NULL)
        if (rbt_job_set(job, name, strtok_r(rest, " ", &rest), &error) != RBT_OK)
            fail_msg("%s: %s", name, error.text);
    if (rbt_job_run(job, NULL, NULL, &error) != RBT_OK)
        fail_msg("%s: %s", options, error.text);
    return job;
}
