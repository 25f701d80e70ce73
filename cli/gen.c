/* rubato gen: synthetic data of several kinds, written in the format that suits it.
 *
 * One table says which options a kind takes and what they are when not given; an option that a kind has no use for is
 * refused.
 */
#include "cli/cli.h"

#include <string.h>

#include "base/error.h"
#include "data/data.h"
#include "data/generate.h"
#include "job/text.h"

typedef enum option {
    ROWS,
    COLS,
    NNZ,
    SKEW,
    NOISE,
    CLASSES,
    RATE,
    USERS,
    ITEMS,
    RANK,
    TOPICS,
    SIDE,
    DOCS,
    WORDS,
    OPTION_COUNT
} option;

static const char *const option_name[OPTION_COUNT] = {"rows",  "cols",  "nnz",  "skew",   "noise", "classes", "rate",
                                                      "users", "items", "rank", "topics", "side",  "docs",    "words"};

/* Which of the options are numbers that need not be whole. */
#define IS_REAL(o) ((o) == SKEW || (o) == NOISE || (o) == RATE)

/* Stands for "no such option". */
#define NONE (-1)

typedef enum kind { LR, REGRESSION, MULTICLASS, CLICKS, RATINGS, DOCUMENTS, IMAGES, KIND_COUNT } kind;

typedef struct kind_entry {
    const char *name;
    const char *format; /* its own, NULL: rows in any of the formats */
    double value[OPTION_COUNT];
} kind_entry;

#define ROW_KIND(noise, classes, rate)                                                                                 \
    {                                                                                                                  \
        10000, 1000, 20, 1.1, noise, classes, rate, NONE, NONE, NONE, NONE, NONE, NONE, NONE                           \
    }

static const kind_entry kinds[KIND_COUNT] = {
    {"lr", NULL, ROW_KIND(0.05, NONE, NONE)},
    {"regression", NULL, ROW_KIND(0.5, NONE, NONE)},
    {"multiclass", NULL, ROW_KIND(0.05, 5, NONE)},
    {"clicks", NULL, ROW_KIND(0, NONE, 0.03)},
    {"ratings", "ratings", {100000, NONE, NONE, 0.8, 0.5, NONE, NONE, 1000, 1700, 10, NONE, NONE, NONE, NONE}},
    {"docs", "uci", {1000, 5000, 100, 1.1, 0.1, NONE, NONE, NONE, NONE, NONE, 20, NONE, 1000, 5000}},
    {"images", "idx", {1000, NONE, NONE, NONE, 0.2, 10, NONE, NONE, NONE, NONE, NONE, 28, NONE, NONE}},
};

typedef struct texts {
    const char *out, *to, *seed;
    const char *option[OPTION_COUNT];
    const char *other_name[OPTION_COUNT]; /* by which it was given */
} texts;

typedef struct numbers {
    uint64_t count[OPTION_COUNT];
    double real[OPTION_COUNT];
    uint64_t seed;
} numbers;

static rbt_err find_kind(const char *name, kind *found, rbt_error *error)
{
    for (size_t i = 0; name != NULL && i < KIND_COUNT; i++)
        if (strcmp(kinds[i].name, name) == 0) {
            *found = (kind)i;
            return RBT_OK;
        }
    return rbt_fail(error, RBT_E_USAGE, "%s%s%s there are lr, regression, multiclass, clicks, ratings, docs, images",
                    name != NULL ? "unknown kind '" : "which kind of data?", name != NULL ? name : "",
                    name != NULL ? "';" : "");
}

/* Documents are the rows and words the columns of `docs`: both names will do, but not both at once. */
static rbt_err join_names(texts *t, option one, option other, rbt_error *error)
{
    if (t->option[one] != NULL && t->option[other] != NULL)
        return rbt_fail(error, RBT_E_USAGE, "--%s and --%s are the same; give one of them", option_name[one],
                        option_name[other]);
    if (t->option[other] != NULL)
        t->option[one] = t->option[other], t->other_name[one] = option_name[other];
    t->option[other] = NULL;
    return RBT_OK;
}

/* How large a number may be is known to the generators, who refuse others. */
static rbt_err numbers_of(texts *t, kind k, numbers *n, rbt_error *error)
{
    rbt_err err = RBT_OK;

    for (option o = 0; err == RBT_OK && o < OPTION_COUNT; o++)
        if (t->option[o] != NULL && kinds[k].value[o] == NONE)
            err =
                rbt_fail(error, RBT_E_USAGE, "--%s makes no sense for %s; leave it out", option_name[o], kinds[k].name);
    if (err == RBT_OK)
        err = join_names(t, ROWS, DOCS, error);
    if (err == RBT_OK)
        err = join_names(t, COLS, WORDS, error);
    for (option o = 0; err == RBT_OK && o < OPTION_COUNT; o++) {
        uint64_t least = k == MULTICLASS && o == CLASSES ? 2 : 1;
        char shown[32] = "--";
        (void)snprintf(shown, sizeof shown, "--%s", t->other_name[o] != NULL ? t->other_name[o] : option_name[o]);
        n->real[o] = kinds[k].value[o];
        n->count[o] = n->real[o] >= 0 ? (uint64_t)n->real[o] : 0;
        if (t->option[o] != NULL)
            err = IS_REAL(o) ? rbt_text_to_real(shown, t->option[o], &n->real[o], error)
                             : rbt_text_to_count(shown, t->option[o], least, UINT64_MAX, &n->count[o], error);
    }
    if (t->option[NNZ] == NULL && n->count[NNZ] > n->count[COLS] && n->count[COLS] > 0)
        n->count[NNZ] = n->count[COLS];
    n->seed = 1;
    if (err == RBT_OK && t->seed != NULL)
        err = rbt_text_to_count("--seed", t->seed, 0, UINT64_MAX, &n->seed, error);
    return err;
}

/* ------------------------------------------------------------------------------------------------------- kinds */

static rbt_err write_rows(const cli_command *command, kind k, const numbers *n, const char *to, const rbt_writing *how,
                          rbt_error *error)
{
    static const rbt_rows_kind row_kind[] = {RBT_ROWS_LR, RBT_ROWS_REGRESSION, RBT_ROWS_MULTICLASS, RBT_ROWS_CLICKS};
    rbt_rows_options options = {
        .kind = row_kind[k],
        .common = {.rows = n->count[ROWS],
                   .cols = n->count[COLS],
                   .nnz = n->count[NNZ],
                   .skew = n->real[SKEW],
                   .noise = n->real[NOISE],
                   .seed = n->seed},
        .classes = n->count[CLASSES],
        .rate = n->real[RATE],
    };
    rbt_format format = RBT_FORMAT_LIBSVM;
    rbt_err err = rbt_format_of_path(how->path, RBT_FORMAT_LIBSVM, &format, error);

    if (err == RBT_OK && to != NULL)
        err = rbt_format_find(to, false, &format, error);
    if (err == RBT_OK)
        err = rbt_format_check_path(format, how->path, error);
    if (err == RBT_OK)
        err = rbt_generate_write(&options, format, how, error);
    if (err == RBT_OK && format == RBT_FORMAT_VW)
        cli_bits_note(command, options.common.cols);
    return err;
}

/* Kinds that are no rows of features have a format of their own. */
static rbt_err check_format(kind k, const char *to, rbt_error *error)
{
    if (to == NULL || strcmp(to, kinds[k].format) == 0 || (k == RATINGS && strcmp(to, "csv") == 0) ||
        (k == DOCUMENTS && strcmp(to, "docword") == 0))
        return RBT_OK;
    return rbt_fail(error, RBT_E_USAGE, "--to '%s' makes no sense for %s, which are no rows of features; choose %s%s",
                    to, kinds[k].name, kinds[k].format, k == RATINGS ? " (user::item::rating::time) or csv" : "");
}

static rbt_err write_kind(const cli_command *command, kind k, const numbers *n, const char *to, const rbt_writing *how,
                          rbt_error *error)
{
    rbt_format named = RBT_FORMAT_LIBSVM, format = k == RATINGS ? RBT_FORMAT_RATINGS : RBT_FORMAT_DOCWORD;
    if (kinds[k].format == NULL)
        return write_rows(command, k, n, to, how, error);
    rbt_err err = check_format(k, to, error);
    if (err == RBT_OK)
        err = rbt_format_of_path(how->path, RBT_FORMAT_LIBSVM, &named, error);
    if (k == RATINGS && (to != NULL ? strcmp(to, "csv") == 0 : named == RBT_FORMAT_CSV))
        format = RBT_FORMAT_CSV;
    if (err == RBT_OK && k != IMAGES) /* whose names get an end of their own */
        err = rbt_format_check_path(format, how->path, error);
    if (err != RBT_OK)
        return err;
    if (k == RATINGS)
        return rbt_generate_ratings(&(rbt_ratings_options){.rows = n->count[ROWS],
                                                           .users = n->count[USERS],
                                                           .items = n->count[ITEMS],
                                                           .rank = n->count[RANK],
                                                           .skew = n->real[SKEW],
                                                           .noise = n->real[NOISE],
                                                           .seed = n->seed},
                                    format == RBT_FORMAT_CSV, how, error);
    if (k == DOCUMENTS)
        return rbt_generate_docs(&(rbt_docs_options){.docs = n->count[ROWS],
                                                     .words = n->count[COLS],
                                                     .nnz = n->count[NNZ],
                                                     .topics = n->count[TOPICS],
                                                     .skew = n->real[SKEW],
                                                     .noise = n->real[NOISE],
                                                     .seed = n->seed},
                                 how, error);
    return rbt_generate_images(&(rbt_images_options){.images = n->count[ROWS],
                                                     .side = n->count[SIDE],
                                                     .classes = n->count[CLASSES],
                                                     .noise = n->real[NOISE],
                                                     .seed = n->seed},
                               how, error);
}

int cli_gen(const cli_command *command, int argc, char **argv)
{
    rbt_error error = {RBT_OK, ""};
    texts t = {0};
    const char *name = NULL;
    const cli_option own[] = {
        {"out", "FILE", "Where the data goes; - = standard output. images: the beginning of two names.", &t.out},
        {"to", "FORMAT",
         "Rows: libsvm, csv, vw or cache [as FILE ends, else libsvm]; ratings: ratings or csv; docs: uci; images: idx.",
         &t.to},
        {"rows", "N", "Rows, ratings, documents or images. [10000; ratings 100000; docs, images 1000]",
         &t.option[ROWS]},
        {"cols", "N", "Features. [1000]", &t.option[COLS]},
        {"nnz", "N", "Features per row, on average; clicks: fields. [20; docs 100; all columns if there are fewer]",
         &t.option[NNZ]},
        {"skew", "X", "How uneven the popularity is; 0 = all alike. [1.1; ratings 0.8]", &t.option[SKEW]},
        {"noise", "X",
         "lr, multiclass, clicks, docs: probability that a label or word is arbitrary [0.05 0.05 0 0.1]; "
         "regression, ratings, images: standard deviation of the error [0.5 0.5 0.2].",
         &t.option[NOISE]},
        {"seed", "N", "Seed; the same options give the same bytes. [1]", &t.seed},
        {"classes", "N", "multiclass, images: classes. [5; images 10]", &t.option[CLASSES]},
        {"rate", "X", "clicks: how many of the rows are clicks. [0.03]", &t.option[RATE]},
        {"users", "N", "ratings: users. [1000]", &t.option[USERS]},
        {"items", "N", "ratings: items. [1700]", &t.option[ITEMS]},
        {"rank", "N", "ratings: rank of the truth. [10]", &t.option[RANK]},
        {"docs", "N", "docs: another name for --rows.", &t.option[DOCS]},
        {"words", "N", "docs: the vocabulary, another name for --cols. [5000]", &t.option[WORDS]},
        {"topics", "N", "docs: topics. [20]", &t.option[TOPICS]},
        {"side", "N", "images: pixels in a row and rows in an image. [28]", &t.option[SIDE]},
    };
    cli_arguments arguments = {.own = own, .own_count = sizeof own / sizeof own[0], .words = &name, .words_room = 1};
    numbers n = {.seed = 1};
    kind k = LR;
    rbt_err err = cli_parse(&arguments, argc, argv, &error);

    if (err == RBT_OK && arguments.help) {
        cli_help(command, &arguments);
        return 0;
    }
    if (err == RBT_OK)
        err = find_kind(name, &k, &error);
    if (err == RBT_OK)
        err = cli_require("out", t.out, "FILE", &error);
    if (err == RBT_OK)
        err = numbers_of(&t, k, &n, &error);
    if (err == RBT_OK)
        err = write_kind(command, k, &n, t.to, &(rbt_writing){.path = t.out, .stop = cli_stop_flag()}, &error);
    return err == RBT_OK ? 0 : cli_fail(command, &error);
}
