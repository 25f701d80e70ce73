/* Reading data, whatever it is. Contract in read.h; proved by tests/unit/test_data.c (several files, compressed files),
 * test_reading.c and tests/cli/test_formats.sh. */
#include "data/read.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text.h"
#include "data/cache.h"
#include "data/csv.h"
#include "data/data.h"
#include "data/docs.h"
#include "data/gather.h"
#include "data/idx.h"
#include "data/libsvm.h"
#include "data/origin.h"
#include "data/paths.h"
#include "data/ratings.h"
#include "data/stream.h"
#include "data/unpack.h"
#include "data/vw.h"

/* ------------------------------------------------------------------------------------------------------- files */

/* The files a path stands for, in the order they are read. */
typedef struct files {
    RBT_ARRAY(rbt_input) inputs;
    rbt_paths paths;       /* whose names the inputs use */
    rbt_rating_list *list; /* not NULL: ratings in text go here, in the order of their lines */
} files;

static void close_files(files *f)
{
    for (size_t i = 0; i < f->inputs.count; i++)
        rbt_input_close(&f->inputs.at[i]);
    rbt_array_free(&f->inputs);
    rbt_paths_free(&f->paths);
}

static rbt_err open_file(files *f, const char *path, rbt_error *error)
{
    rbt_input input;
    rbt_err err = rbt_input_open(path, &input, error);
    if (err != RBT_OK)
        return err;
    rbt_array_push(&f->inputs, input);
    return rbt_input_unpack(&f->inputs.at[f->inputs.count - 1], error);
}

bool rbt_data_is_pattern(const char *path)
{
    return strpbrk(path, "*?[\n") != NULL && access(path, F_OK) != 0; /* or a list, paths.h */
}

/* --bits says how names are hashed: nothing is where there are no names. A cache tells when it is open (rbt_origin_fits). */
static rbt_err bits_fit(const rbt_reading *reading, rbt_kind kind, const char *name, rbt_error *error)
{
    static const char *const what[] = {
        [RBT_KIND_LIBSVM] = "LIBSVM text", [RBT_KIND_IDX] = "IDX images", [RBT_KIND_RATINGS] = "ratings",
        [RBT_KIND_DOCWORD] = "documents",  [RBT_KIND_LDAC] = "documents", [RBT_KIND_CACHE] = NULL};

    uint32_t before = rbt_origin_bits(reading->origin);
    if (reading->bits != 0 && before != 0 && reading->bits != before)
        return rbt_fail(error, RBT_E_USAGE,
                        "--bits %u: the training data was hashed to 2^%u columns, and %s has to be, too; leave it "
                        "out, or train with --bits %u",
                        reading->bits, before, name, reading->bits);
    if (reading->bits == 0 || what[kind] == NULL)
        return RBT_OK;
    return rbt_fail(error, RBT_E_USAGE,
                    "--bits makes no sense for %s, which is %s, where nothing is hashed; leave it out (Vowpal Wabbit "
                    "text, and words in CSV, have use for it)",
                    name, what[kind]);
}

/* As is --base where features have no numbers. */
static rbt_err base_fits(const rbt_reading *reading, rbt_kind kind, const char *name, rbt_error *error)
{
    if (reading->base == RBT_BASE_AUTO || kind == RBT_KIND_LIBSVM || kind == RBT_KIND_CACHE || kind == RBT_KIND_AUTO)
        return RBT_OK;
    return rbt_fail(error, RBT_E_USAGE,
                    "--base makes no sense for %s, which is no LIBSVM text, whose features alone have numbers; leave "
                    "it out",
                    name);
}

rbt_err rbt_reading_fits(const rbt_reading *reading, rbt_kind kind, const char *name, rbt_error *error)
{
    rbt_err err = bits_fit(reading, kind, name, error);

    if (err == RBT_OK)
        err = base_fits(reading, kind, name, error);
    if (err == RBT_OK && kind != RBT_KIND_CSV) /* whose header tells (csv_layout.c) */
        err = rbt_origin_kind_fits(reading, kind, name, error);
    if (err != RBT_OK)
        return err;
    if (reading->skip_bad > 0 && (kind == RBT_KIND_CACHE || kind == RBT_KIND_IDX))
        return rbt_fail(
            error, RBT_E_USAGE,
            "--skip-bad makes no sense for %s, which is %s and has no rows that could be left out; leave it "
            "out",
            name, kind == RBT_KIND_CACHE ? "a cache" : "a file of images");
    if (kind == RBT_KIND_CSV || kind == RBT_KIND_IDX || kind == RBT_KIND_CACHE || kind == RBT_KIND_AUTO ||
        (reading->label == NULL && reading->weight == NULL))
        return RBT_OK;
    if (kind != RBT_KIND_LIBSVM && kind != RBT_KIND_VW)
        return rbt_fail(error, RBT_E_USAGE, "--%s makes no sense for %s, which has %s; leave it out",
                        reading->label != NULL ? "label" : "weight", name,
                        kind == RBT_KIND_RATINGS ? "ratings" : "documents");
    if (kind == RBT_KIND_LIBSVM && reading->label == NULL)
        return rbt_fail(
            error, RBT_E_USAGE,
            "--weight makes no sense for %s, which is LIBSVM text, whose rows have no weights; leave it out "
            "(Vowpal Wabbit text and CSV have them)",
            name);
    return rbt_fail(error, RBT_E_USAGE,
                    "--%s makes no sense for %s, which is %s text and has its %s in its rows; leave it out",
                    reading->label != NULL ? "label" : "weight", name, kind == RBT_KIND_VW ? "Vowpal Wabbit" : "LIBSVM",
                    reading->label != NULL ? "labels" : "weights");
}

rbt_err rbt_texts_parse(const rbt_source *source, rbt_kind kind, const rbt_reading *reading, rbt_data *data,
                        rbt_error *error)
{
    rbt_err err = rbt_reading_fits(reading, kind, source->name, error);
    if (err != RBT_OK)
        return err;
    return kind == RBT_KIND_CSV       ? rbt_csv_parse(source, reading, data, error)
           : kind == RBT_KIND_VW      ? rbt_vw_parse(source, reading, data, error)
           : kind == RBT_KIND_RATINGS ? rbt_ratings_parse(source, reading, data, error)
           : kind == RBT_KIND_DOCWORD ? rbt_docword_parse(source, reading, data, error)
           : kind == RBT_KIND_LDAC    ? rbt_ldac_parse(source, reading, data, error)
                                      : rbt_libsvm_parse(source, reading, data, error);
}

static rbt_err parse_texts(const files *f, rbt_kind kind, const char *name, const rbt_reading *reading, rbt_data *data,
                           rbt_error *error)
{
    rbt_text *texts = rbt_alloc(f->inputs.count, sizeof *texts);
    for (size_t i = 0; i < f->inputs.count; i++)
        texts[i] = (rbt_text){f->inputs.at[i].name, f->inputs.at[i].bytes, f->inputs.at[i].n, f->inputs.at[i].mapped};
    const rbt_source source = {texts, f->inputs.count, name, rbt_cut_default(), NULL};
    rbt_err err = f->list != NULL && kind == RBT_KIND_RATINGS ? rbt_reading_fits(reading, kind, name, error) : RBT_OK;
    if (err == RBT_OK)
        err = f->list != NULL && kind == RBT_KIND_RATINGS ? rbt_ratings_list(&source, reading, f->list, error)
                                                          : rbt_texts_parse(&source, kind, reading, data, error);
    rbt_free(texts);
    return err;
}

/* One of those that were given: it was read as the reading says, and its features are those of the reading's origin. */
static rbt_err take_cache(rbt_input *input, const rbt_reading *reading, rbt_data *data, rbt_error *error)
{
    rbt_err err = rbt_cache_take(input, data, error);
    if (err != RBT_OK)
        return err;
    err = rbt_origin_fits(reading, data, input->name, error);
    if (err == RBT_OK)
        err = rbt_origin_check(reading, data, input->name, error);
    if (err != RBT_OK)
        rbt_data_deinit(data);
    return err;
}

static rbt_err join_caches(files *f, const rbt_reading *reading, rbt_data *data, rbt_error *error)
{
    size_t n = f->inputs.count;
    rbt_data *parts = rbt_alloc(n, sizeof *parts);
    rbt_origin_of *origins = rbt_alloc(n, sizeof *origins);
    rbt_err err = RBT_OK;
    for (size_t i = 0; err == RBT_OK && i < n; i++) {
        err = take_cache(&f->inputs.at[i], reading, &parts[i], error);
        origins[i] = (rbt_origin_of){f->inputs.at[i].name, parts[i].origin};
    }
    if (err == RBT_OK)
        err = rbt_origins_agree(origins, n, error);
    if (err == RBT_OK)
        err = rbt_data_join(parts, n, data, error);
    for (size_t i = 0; i < n; i++)
        rbt_data_deinit(&parts[i]);
    rbt_free(origins);
    rbt_free(parts);
    return err;
}

/* ------------------------------------------------------------------------------------------------------ images */

/* Opens the labels that belong to the images; `labels` stays empty when there are to be none. */
static rbt_err open_labels(const rbt_input *images, const rbt_reading *reading, char **path, rbt_input *labels,
                           rbt_error *error)
{
    bool none = reading->label != NULL && strcmp(reading->label, "none") == 0;
    if (none && reading->unlabelled)
        return RBT_OK;
    if (reading->label != NULL && !none) {
        *path = rbt_strdup(reading->label);
    } else if (!none) {
        *path = rbt_idx_partner(images->name);
        if (*path != NULL && access(*path, R_OK) != 0 && reading->unlabelled)
            return RBT_OK;
    }
    if (*path == NULL && reading->unlabelled)
        return RBT_OK;
    if (*path == NULL)
        return rbt_fail(error, RBT_E_USAGE, "%s: which file has the labels of these images? give --label FILE",
                        images->name);
    if (reading->label == NULL && access(*path, R_OK) != 0)
        return rbt_fail(error, RBT_E_IO,
                        "%s: cannot be opened: %s; it should have the labels of %s: give --label FILE if another has",
                        *path, strerror(errno), images->name);
    rbt_err err = rbt_input_open(*path, labels, error);
    return err == RBT_OK ? rbt_input_unpack(labels, error) : err;
}

rbt_err rbt_images_read(const rbt_input *images, const rbt_reading *reading, rbt_data *data, rbt_error *error)
{
    rbt_input labels = {0};
    char *path = NULL;
    if (reading->weight != NULL)
        return rbt_fail(error, RBT_E_USAGE, "--weight makes no sense for %s, which has images; leave it out",
                        images->name);
    rbt_err err = rbt_reading_fits(reading, RBT_KIND_IDX, images->name, error);
    if (err == RBT_OK)
        err = open_labels(images, reading, &path, &labels, error);
    if (err == RBT_OK)
        err = rbt_idx_parse(images, labels.bytes != NULL ? &labels : NULL, data, error);
    if (err == RBT_OK && reading->report != NULL)
        *reading->report = (rbt_read_report){.unlabelled = labels.bytes != NULL ? 0 : data->rows};
    rbt_input_close(&labels);
    rbt_free(path);
    return err;
}

rbt_err rbt_images_refuse(const char *name, size_t count, rbt_error *error)
{
    return rbt_fail(error, RBT_E_USAGE, "%s: stands for %zu files; images are read from one file at a time", name,
                    count);
}

/* ---------------------------------------------------------------------------------------------------- all kinds */

static const char *const kind_names[] = {"auto", "libsvm", "vw", "csv", "idx", "ratings", "docword", "ldac", "cache"};

rbt_err rbt_reading_kind(const rbt_reading *reading, rbt_kind *kind, rbt_error *error)
{
    *kind = RBT_KIND_AUTO;
    if (reading->bits > RBT_BITS_LIMIT)
        return rbt_fail(error, RBT_E_USAGE, "--bits %u is out of range; give a number from 1 to %d", reading->bits,
                        RBT_BITS_LIMIT);
    if (reading->format == NULL)
        return RBT_OK;
    for (size_t i = 0; i < sizeof kind_names / sizeof kind_names[0]; i++) {
        if (strcmp(reading->format, kind_names[i]) == 0) {
            *kind = (rbt_kind)i;
            return RBT_OK;
        }
    }
    return rbt_fail(error, RBT_E_USAGE,
                    "--format '%s' is unknown; choose auto, libsvm, vw, csv, idx, ratings, docword, ldac or cache",
                    reading->format);
}

/* What the files hold: what the first that is not empty does. All caches or none: whether text counts from 0 is seen in
 * the text alone, a cache cannot tell any more. */
static rbt_err kind_of_files(const files *f, const char *name, rbt_content expect, rbt_kind *kind, rbt_error *error)
{
    const rbt_input *first = &f->inputs.at[0];
    bool caches = rbt_cache_recognise(first->bytes, first->n);
    rbt_err err = RBT_OK;
    for (size_t i = 0; err == RBT_OK && i < f->inputs.count; i++)
        err = rbt_kind_refuse_model(&f->inputs.at[i], error);
    if (err != RBT_OK)
        return err;
    for (size_t i = 1; i < f->inputs.count; i++) {
        const rbt_input *other = &f->inputs.at[i];
        if (rbt_cache_recognise(other->bytes, other->n) != caches)
            return rbt_fail(error, RBT_E_DATA, "%s: %s is a cache, and %s is none; give caches alone, or none of them",
                            name, caches ? first->name : other->name, caches ? other->name : first->name);
    }
    for (size_t i = 0; i + 1 < f->inputs.count && first->n == 0; i++)
        first = &f->inputs.at[i + 1];
    *kind = rbt_kind_of(first, expect);
    return RBT_OK;
}

static rbt_err read_kinds(files *f, const char *name, const rbt_reading *reading, rbt_data *data, rbt_error *error)
{
    rbt_kind kind;
    rbt_err err = rbt_reading_kind(reading, &kind, error);
    if (err == RBT_OK && kind == RBT_KIND_AUTO)
        err = kind_of_files(f, name, reading->expect, &kind, error);
    if (err != RBT_OK)
        return err;
    if (kind == RBT_KIND_IDX)
        err = f->inputs.count > 1 ? rbt_images_refuse(name, f->inputs.count, error)
                                  : rbt_images_read(&f->inputs.at[0], reading, data, error);
    else if (kind != RBT_KIND_CACHE)
        err = parse_texts(f, kind, name, reading, data, error);
    if (err == RBT_OK && reading->report != NULL &&
        (kind == RBT_KIND_CSV || kind == RBT_KIND_IDX || kind == RBT_KIND_VW))
        reading->report->layout = data->cols;
    if (kind != RBT_KIND_CACHE)
        return err;
    err = rbt_reading_fits(reading, kind, name, error);
    if (err != RBT_OK)
        return err;
    if (reading->report != NULL)
        *reading->report = (rbt_read_report){0};
    return f->inputs.count == 1 ? take_cache(&f->inputs.at[0], reading, data, error)
                                : join_caches(f, reading, data, error);
}

/* By the names that the caller has, if any. */
rbt_err rbt_data_rename(rbt_data *data, const rbt_reading *reading, const char *name, rbt_error *error)
{
    uint64_t unknown = 0;
    rbt_err err = rbt_ratings_rename(data, reading->rows, reading->cols, name, &unknown, error);
    if (err != RBT_OK)
        rbt_data_deinit(data);
    else if (reading->report != NULL)
        reading->report->unknown = unknown;
    return err;
}

static rbt_err read_files(files *f, const char *name, const rbt_reading *reading, rbt_data *data, rbt_error *error)
{
    rbt_data d = {0};
    rbt_err err = read_kinds(f, name, reading, &d, error);
    if (err == RBT_OK && (err = rbt_origin_check(reading, &d, name, error)) != RBT_OK)
        rbt_data_deinit(&d);
    if (err == RBT_OK)
        err = rbt_data_rename(&d, reading, name, error);
    if (err == RBT_OK)
        *data = d;
    return err;
}

rbt_err rbt_data_take(rbt_input *input, const rbt_reading *reading, rbt_data *data, rbt_error *error)
{
    files f = {0};
    rbt_array_push(&f.inputs, *input);
    *input = (rbt_input){0};
    rbt_err err = rbt_input_unpack(&f.inputs.at[0], error);
    if (err == RBT_OK)
        err = read_files(&f, f.inputs.at[0].name, reading, data, error);
    close_files(&f);
    return err;
}

/* `gather`: compressed files and pipes piece by piece, which is for rows alone. */
static rbt_err read_path(const char *path, const rbt_reading *reading, bool gather, rbt_data *data,
                         rbt_rating_list *list, rbt_error *error)
{
    files f = {.list = list};
    rbt_err err = rbt_paths_list(path, &f.paths, error);
    if (err == RBT_OK && gather && rbt_gather_suits(&f.paths, reading)) {
        close_files(&f);
        return rbt_gather_read(path, reading, RBT_ROWSTREAM_PIECE_BYTES, data, error);
    }
    for (size_t i = 0; err == RBT_OK && i < f.paths.count; i++)
        err = open_file(&f, f.paths.at[i], error);
    char title[RBT_PATHS_TITLE_ROOM];
    rbt_paths_title(path, title, sizeof title);
    if (err == RBT_OK)
        err = read_files(&f, f.inputs.count == 1 ? f.inputs.at[0].name : title, reading, data, error);
    close_files(&f);
    return err;
}

rbt_err rbt_data_read_listed(const char *path, const rbt_reading *reading, rbt_data *data, rbt_rating_list *list,
                             rbt_error *error)
{
    return read_path(path, reading, false, data, list, error);
}

rbt_err rbt_data_read_whole(const char *path, const rbt_reading *reading, rbt_data *data, rbt_error *error)
{
    return read_path(path, reading, false, data, NULL, error);
}

rbt_err rbt_data_read_as(const char *path, const rbt_reading *reading, rbt_data *data, rbt_error *error)
{
    return read_path(path, reading, true, data, NULL, error);
}

rbt_err rbt_data_read(const char *path, rbt_data *data, rbt_error *error)
{
    return rbt_data_read_as(path, &(rbt_reading){0}, data, error);
}

/* Adds a part of the note, behind a semicolon if it is not the first. */
static size_t add_note(char *note, size_t n, const char *format, ...) __attribute__((format(printf, 3, 4)));
static size_t add_note(char *note, size_t n, const char *format, ...)
{
    va_list arguments;
    if (n > 0)
        n = rbt_text_add(note, RBT_READ_NOTE_ROOM, n, "; ");
    va_start(arguments, format);
    n = rbt_text_add_list(note, RBT_READ_NOTE_ROOM, n, format, arguments);
    va_end(arguments);
    return n;
}

bool rbt_read_note(const rbt_read_report *report, char note[RBT_READ_NOTE_ROOM])
{
    size_t n = 0;
    if (report->unknown > 0)
        n = add_note(note, n, "%llu rating%s of an unknown user or item %s left out",
                     (unsigned long long)report->unknown, report->unknown == 1 ? "" : "s",
                     report->unknown == 1 ? "was" : "were");
    if (report->headers == 1)
        n = add_note(note, n, "line 1 was taken for the names of the columns%s",
                     report->again ? ", and lines that equal it were left out; put a line of names before it if it is "
                                     "a row"
                                   : "");
    else if (report->headers > 1)
        n = add_note(note, n, "line 1 of %llu files was taken for the names of the columns",
                     (unsigned long long)report->headers);
    if (report->repeated > 0)
        n = add_note(note, n, "%llu rating%s a later one of the same user and item, which counts",
                     (unsigned long long)report->repeated, report->repeated == 1 ? " has" : "s have");
    if (report->skipped > 0 && report->first.text[0] == '\0')
        n = add_note(note, n, "%llu bad row%s left out when the kept cache was made",
                     (unsigned long long)report->skipped, report->skipped == 1 ? " was" : "s were");
    else if (report->skipped > 0)
        n = add_note(note, n, "%llu bad row%s left out; the first: %s", (unsigned long long)report->skipped,
                     report->skipped == 1 ? " was" : "s were", report->first.text);
    else if (report->unlabelled > 0 && n == 0)
        n = add_note(note, n, "%llu row%s no label", (unsigned long long)report->unlabelled,
                     report->unlabelled == 1 ? " has" : "s have");
    if (report->mixed[0] != '\0')
        n = add_note(note, n, "%s", report->mixed);
    return n > 0;
}
