/* The yardstick of bench/mf.sh: matrix factorisation as a single-purpose program without anything of Rubato, and the data.
 *
 *   mf_yardstick gen USERS ITEMS RANK RATINGS NOISE TRAIN TEST     ratings as LIBSVM text, a user per line; one in eleven in TEST
 *   mf_yardstick split TRAIN FIT VALID                             one in ten ratings of TRAIN in VALID, the others in FIT
 *   mf_yardstick run TRAIN TEST RANK L2 RATE PASSES THREADS        trains, prints M ratings per second (of wall time, and per
 *                                                                  second of a thread's own time) and the RMSE on TEST
 *
 * `run` is what LIBMF does in one thread's block: ratings sorted by user, vectors with one AdaGrad sum each, no biases, ratings
 * in units of their deviation, first values 0 .. 1 / sqrt(rank); compiled with -O3 -march=native -ffast-math. With more than one
 * thread, users are split among them and items are updated without locks. Not LIBMF itself, which is not packaged. */
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t state = 88172645463325252u;

static double uniform(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) / 9007199254740992.0;
}

static double normal(void)
{
    return sqrt(-2 * log(1 - uniform())) * cos(2 * 3.14159265358979 * uniform());
}

static int generate(char **a)
{
    size_t users = strtoul(a[0], NULL, 10), items = strtoul(a[1], NULL, 10), rank = strtoul(a[2], NULL, 10);
    double share = strtod(a[3], NULL) / ((double)users * (double)items), noise = strtod(a[4], NULL);
    FILE *out[2] = {fopen(a[5], "w"), fopen(a[6], "w")};
    float *q = malloc(items * rank * sizeof *q), *p = malloc(rank * sizeof *p);

    if (out[0] == NULL || out[1] == NULL || q == NULL || p == NULL)
        return 1;
    for (size_t i = 0; i < items * rank; i++)
        q[i] = (float)(normal() * pow((double)rank, -0.25));
    for (size_t u = 0; u < users; u++) {
        for (size_t k = 0; k < rank; k++)
            p[k] = (float)(normal() * pow((double)rank, -0.25));
        fputc('0', out[0]);
        fputc('0', out[1]);
        for (size_t i = 0; i < items; i++) {
            double r = 3 + noise * normal();

            if (uniform() >= share)
                continue;
            for (size_t k = 0; k < rank; k++)
                r += (double)p[k] * (double)q[i * rank + k];
            fprintf(out[uniform() < 1.0 / 11], " %zu:%.4f", i + 1, r);
        }
        fputc('\n', out[0]);
        fputc('\n', out[1]);
    }
    return fclose(out[0]) | fclose(out[1]);
}

typedef struct ratings {
    size_t users, items, n, *start;
    uint32_t *item;
    float *value;
} ratings;

static ratings read_ratings(const char *path)
{
    ratings r = {0};
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t room = 0, users_room = 0, values_room = 0;

    if (file == NULL)
        exit(1);
    while (getline(&line, &room, file) > 0) {
        char *at = line + strcspn(line, " \n");

        if (r.users + 2 > users_room)
            r.start = realloc(r.start, (users_room = 2 * users_room + 1024) * sizeof *r.start);
        r.start[r.users++] = r.n;
        while (*at == ' ' && at[1] >= '0' && at[1] <= '9') {
            uint32_t i = (uint32_t)strtoul(at, &at, 10);

            if (r.n + 1 > values_room) {
                values_room = 2 * values_room + 1024;
                r.item = realloc(r.item, values_room * sizeof *r.item);
                r.value = realloc(r.value, values_room * sizeof *r.value);
            }
            r.item[r.n] = i - 1;
            r.value[r.n++] = strtof(at + 1, &at);
            r.items = i > r.items ? i : r.items;
        }
    }
    r.start[r.users] = r.n;
    fclose(file);
    return r;
}

static int split(char **a)
{
    ratings r = read_ratings(a[0]);
    FILE *out[2] = {fopen(a[1], "w"), fopen(a[2], "w")};

    if (out[0] == NULL || out[1] == NULL)
        return 1;
    for (size_t u = 0; u < r.users; u++) {
        fputc('0', out[0]);
        fputc('0', out[1]);
        for (size_t i = r.start[u]; i < r.start[u + 1]; i++)
            fprintf(out[uniform() < 0.1], " %u:%.4f", r.item[i] + 1, (double)r.value[i]);
        fputc('\n', out[0]);
        fputc('\n', out[1]);
    }
    return fclose(out[0]) | fclose(out[1]);
}

typedef struct job {
    const ratings *r;
    size_t first, end, rank;
    float *p, *q, *pg, *qg, l2, rate, mean, scale;
    double seconds;
} job;

static void *pass(void *argument)
{
    job *j = argument;
    size_t rank = j->rank;
    struct timespec a, b;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
    for (size_t u = j->first; u < j->end; u++) {
        float *restrict p = j->p + u * rank;

        for (size_t i = j->r->start[u]; i < j->r->start[u + 1]; i++) {
            size_t item = j->r->item[i];
            float *restrict q = j->q + item * rank, dot = 0, gp = 0, gq = 0;
            float pe = j->rate / sqrtf(j->pg[u]), qe = j->rate / sqrtf(j->qg[item]), z;

            for (size_t k = 0; k < rank; k++)
                dot += p[k] * q[k];
            z = (j->r->value[i] - j->mean) / j->scale - dot;
            for (size_t k = 0; k < rank; k++) {
                float a1 = z * q[k] - j->l2 * p[k], b1 = z * p[k] - j->l2 * q[k];

                gp += a1 * a1;
                gq += b1 * b1;
                p[k] += pe * a1;
                q[k] += qe * b1;
            }
            j->pg[u] += gp / (float)rank;
            j->qg[item] += gq / (float)rank;
        }
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
    j->seconds += (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
    return NULL;
}

static int run(char **a)
{
    ratings train = read_ratings(a[0]), test = read_ratings(a[1]);
    size_t rank = strtoul(a[2], NULL, 10), passes = strtoul(a[5], NULL, 10), threads = strtoul(a[6], NULL, 10);
    size_t items = train.items > test.items ? train.items : test.items;
    double sum = 0, squares = 0, seconds = 0;
    job common = {.r = &train, .rank = rank, .rate = strtof(a[4], NULL)}, jobs[64];
    pthread_t thread[64];
    struct timespec began, ended;
    double wall;

    for (size_t i = 0; i < train.n; i++) {
        sum += (double)train.value[i];
        squares += (double)train.value[i] * (double)train.value[i];
    }
    common.mean = (float)(sum / (double)train.n);
    common.scale = (float)sqrt(squares / (double)train.n - (double)common.mean * (double)common.mean);
    common.l2 = strtof(a[3], NULL) / common.scale;
    common.p = aligned_alloc(64, (train.users * rank * sizeof(float) + 63) / 64 * 64);
    common.q = aligned_alloc(64, (items * rank * sizeof(float) + 63) / 64 * 64);
    common.pg = malloc(train.users * sizeof(float));
    common.qg = malloc(items * sizeof(float));
    for (size_t i = 0; i < train.users * rank; i++)
        common.p[i] = (float)((uniform() - 0.5) / sqrt((double)rank));
    for (size_t i = 0; i < items * rank; i++)
        common.q[i] = (float)((uniform() - 0.5) / sqrt((double)rank));
    for (size_t i = 0; i < train.users; i++)
        common.pg[i] = 1;
    for (size_t i = 0; i < items; i++)
        common.qg[i] = 1;
    for (size_t t = 0; t < threads; t++) {
        jobs[t] = common;
        jobs[t].first = train.users * t / threads;
        jobs[t].end = train.users * (t + 1) / threads;
    }
    clock_gettime(CLOCK_MONOTONIC, &began);
    for (size_t e = 0; e < passes; e++) {
        for (size_t t = 0; t < threads; t++)
            pthread_create(&thread[t], NULL, pass, &jobs[t]);
        for (size_t t = 0; t < threads; t++)
            pthread_join(thread[t], NULL);
    }
    clock_gettime(CLOCK_MONOTONIC, &ended);
    wall = (double)(ended.tv_sec - began.tv_sec) + 1e-9 * (double)(ended.tv_nsec - began.tv_nsec);
    for (size_t t = 0; t < threads; t++)
        seconds += jobs[t].seconds;
    sum = 0;
    for (size_t u = 0; u < test.users; u++) {
        for (size_t i = test.start[u]; i < test.start[u + 1]; i++) {
            double r = 0;

            for (size_t k = 0; k < rank; k++)
                r += (double)common.p[u * rank + k] * (double)common.q[test.item[i] * rank + k];
            r = r * (double)common.scale + (double)common.mean - (double)test.value[i];
            sum += r * r;
        }
    }
    printf("%.2f %.2f %.4f\n", (double)train.n * (double)passes / wall / 1e6,
           (double)train.n * (double)passes / seconds / 1e6, sqrt(sum / (double)test.n));
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 9 && strcmp(argv[1], "gen") == 0)
        return generate(argv + 2);
    if (argc == 5 && strcmp(argv[1], "split") == 0)
        return split(argv + 2);
    if (argc == 9 && strcmp(argv[1], "run") == 0)
        return run(argv + 2);
    fprintf(stderr, "see the head of mf_yardstick.c\n");
    return 2;
}
