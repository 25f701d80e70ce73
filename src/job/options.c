/* What the option table drives: defaults, setting, listing.
 *
 * An option is one entry of options_table.c; adding one is adding its entry (and its field in options.h). The command
 * line, job files and rbt_job_set all end in rbt_options_set. A failed set changes nothing. What options mean together
 * stands in options_check.c. Proved by tests/unit/test_options.c.
 */
#include "job/options.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "job/options_table.h"
#include "job/text.h"
#include "method/method.h"

/* ---------------------------------------------------------------------------------------------- the table */

static rbt_err option_find(const char *name, const rbt_option **found, rbt_error *error)
{
    const rbt_option *o = NULL;
    rbt_nearest nearest = {.word = name};

    for (size_t i = 0; (o = rbt_option_at(i)) != NULL; i++) {
        if (strcmp(o->name, name) == 0) {
            *found = o;
            return RBT_OK;
        }
    }
    for (size_t i = 0; (o = rbt_option_at(i)) != NULL; i++)
        rbt_nearest_offer(&nearest, o->name);
    for (size_t i = 0; rbt_method_at(i) != NULL; i++)
        for (const rbt_method_option *s = rbt_method_at(i)->options; s != NULL && s->name != NULL; s++)
            rbt_nearest_offer(&nearest, s->name);
    if (rbt_nearest_found(&nearest) != NULL)
        return rbt_fail(error, RBT_E_USAGE, "unknown option '--%s'; did you mean '--%s'?", name,
                        rbt_nearest_found(&nearest));
    return rbt_fail(error, RBT_E_USAGE, "unknown option '--%s'; --help lists the options there are", name);
}

#define OFFSET(field) offsetof(rbt_options, field)

/* RBT_OPTION_WORD copies any of the enums as an unsigned. */
_Static_assert(sizeof(rbt_runtime_kind) == sizeof(unsigned) && sizeof(rbt_sync) == sizeof(unsigned) &&
                   sizeof(rbt_rule_kind) == sizeof(unsigned) && sizeof(rbt_toggle) == sizeof(unsigned),
               "enums have the size of unsigned");

/* Where the option's value lies. */
static void *field(rbt_options *options, const rbt_option *o)
{
    return (char *)options + o->offset;
}

static const void *field_const(const rbt_options *options, const rbt_option *o)
{
    return (const char *)options + o->offset;
}

/* The i-th of the words "a|b|c": its start and length, NULL past the last. */
static const char *word_at(const char *words, size_t i, size_t *length)
{
    while (i-- > 0) {
        words = strchr(words, '|');
        if (words == NULL)
            return NULL;
        words++;
    }
    *length = strcspn(words, "|");
    return words;
}

/* -------------------------------------------------------------------------------------------- setting one */

static rbt_err set_flag(bool *flag, const char *what, const char *value, rbt_error *error)
{
    if (strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
        return rbt_fail(error, RBT_E_USAGE, "%s is true or false, not '%s'", what, value);
    *flag = strcmp(value, "true") == 0;
    return RBT_OK;
}

static rbt_err set_word(const rbt_option *o, void *to, const char *what, const char *value, rbt_error *error)
{
    const char *word = NULL;
    size_t length = 0;

    for (unsigned i = 0; (word = word_at(o->words, i, &length)) != NULL; i++) {
        if (strlen(value) == length && memcmp(word, value, length) == 0) {
            memcpy(to, &i, sizeof i);
            return RBT_OK;
        }
    }
    return rbt_fail(error, RBT_E_USAGE, "%s '%s' is unknown; choose one of %s", what, value, o->words);
}

static rbt_err set_count(const rbt_option *o, uint64_t *to, const char *what, const char *value, rbt_error *error)
{
    if (o->zero != NULL && strcmp(value, o->zero) == 0) {
        *to = 0;
        return RBT_OK;
    }
    return rbt_text_to_count(what, value, o->min, o->max, to, error);
}

/* Is a number option's value one that the table allows? */
static rbt_err check_real(const rbt_option *o, double value, const char *what, rbt_error *error)
{
    if (o->zero != NULL && value == 0)
        return RBT_OK;
    if (!isfinite(value) || value < 0 || (value == 0 && !o->closed))
        return rbt_fail(error, RBT_E_USAGE, "%s %g is out of range; give a number %s 0", what, value,
                        o->closed ? "of at least" : "greater than");
    return RBT_OK;
}

static rbt_err set_real(const rbt_option *o, double *to, const char *what, const char *value, rbt_error *error)
{
    double parsed = 0;
    rbt_err err = RBT_OK;

    if (o->automatic && strcmp(value, "auto") == 0) {
        *to = NAN;
        return RBT_OK;
    }
    if (o->zero != NULL && strcmp(value, o->zero) == 0) {
        *to = 0;
        return RBT_OK;
    }
    err = rbt_text_to_real(what, value, &parsed, error);
    if (err == RBT_OK && parsed == 0 && !o->closed)
        return rbt_fail(error, RBT_E_USAGE, "%s 0 is out of range; give a number greater than 0", what);
    if (err == RBT_OK)
        err = check_real(o, parsed, what, error);
    if (err == RBT_OK)
        *to = parsed;
    return err;
}

static rbt_err set_staleness(rbt_options *options, const char *value, rbt_error *error)
{
    if (strcmp(value, "inf") == 0) {
        options->staleness = RBT_UNBOUNDED;
    } else {
        /* the two highest numbers mean something else in rubato.h */
        rbt_err err = rbt_text_to_count("--staleness", value, 0, UINT32_MAX, &options->staleness, error);
        if (err != RBT_OK)
            return err;
    }
    options->staleness_given = true;
    return RBT_OK;
}

static rbt_err set_batch(rbt_options *options, const char *value, rbt_error *error)
{
    size_t length = strlen(value);
    double batch = 0;
    uint64_t rows = 0;
    bool percent = length > 0 && value[length - 1] == '%';

    if (strcmp(value, "auto") == 0) {
        batch = 0;
    } else if (percent) {
        char number[RBT_REAL_ROOM];
        snprintf(number, sizeof number, "%.*s", (int)(length - 1), value);
        rbt_err err = rbt_text_to_real("--batch", number, &batch, error);
        if (err != RBT_OK)
            return err;
        if (!(batch > 0 && batch <= 100))
            return rbt_fail(error, RBT_E_USAGE, "--batch %s is out of range; give more than 0%% and at most 100%%",
                            value);
    } else {
        rbt_err err = rbt_text_to_count("--batch", value, 1, UINT32_MAX, &rows, error);
        if (err != RBT_OK)
            return err;
        batch = (double)rows;
    }
    options->batch = batch;
    options->batch_percent = percent;
    return RBT_OK;
}

static rbt_err check_decay(rbt_decay decay, double factor, rbt_error *error)
{
    if (decay == RBT_DECAY_SQRT && !(isfinite(factor) && factor > 0))
        return rbt_fail(error, RBT_E_USAGE, "--decay sqrt:%g is out of range; give a number greater than 0", factor);
    if (decay == RBT_DECAY_MULT && !(factor > 0 && factor <= 1))
        return rbt_fail(error, RBT_E_USAGE, "--decay mult:%g is out of range; give a factor above 0 and at most 1",
                        factor);
    return RBT_OK;
}

static rbt_err set_decay(rbt_options *options, const char *value, rbt_error *error)
{
    double factor = 0;
    rbt_decay decay = RBT_DECAY_NONE;
    rbt_err err = RBT_OK;

    if (strncmp(value, "sqrt:", 5) == 0)
        decay = RBT_DECAY_SQRT;
    else if (strncmp(value, "mult:", 5) == 0)
        decay = RBT_DECAY_MULT;
    else if (strcmp(value, "auto") == 0)
        decay = RBT_DECAY_AUTO;
    else if (strcmp(value, "none") != 0)
        return rbt_fail(error, RBT_E_USAGE, "--decay '%s' is unknown; give auto, none, sqrt:ALPHA or mult:BETA", value);
    if (decay == RBT_DECAY_SQRT || decay == RBT_DECAY_MULT)
        err = rbt_text_to_real("--decay", value + 5, &factor, error);
    if (err == RBT_OK)
        err = check_decay(decay, factor, error);
    if (err == RBT_OK) {
        options->decay = decay;
        options->decay_factor = factor;
    }
    return err;
}

static rbt_err set_target(rbt_options *options, const char *value, rbt_error *error)
{
    rbt_err err = rbt_text_to_real("--target-loss", value, &options->target_loss, error);

    if (err == RBT_OK)
        options->has_target = true;
    return err;
}

static rbt_err set_text(char **to, const char *what, const char *value, rbt_error *error)
{
    if (value[0] == '\0')
        return rbt_fail(error, RBT_E_USAGE, "%s needs a value", what);
    if (strlen(value) >= RBT_OPTION_ROOM)
        return rbt_fail(error, RBT_E_USAGE, "%s is longer than %d characters", what, RBT_OPTION_ROOM - 1);
    rbt_free(*to);
    *to = rbt_strdup(value);
    return RBT_OK;
}

static rbt_err option_set(rbt_options *options, const rbt_option *o, const char *value, rbt_error *error)
{
    char what[64];
    uint64_t count = 0;
    rbt_err err = RBT_OK;

    snprintf(what, sizeof what, "--%s", o->name);
    switch (o->kind) {
    case RBT_OPTION_TEXT:
        return set_text(field(options, o), what, value, error);
    case RBT_OPTION_FLAG:
        return set_flag(field(options, o), what, value, error);
    case RBT_OPTION_WORD:
        return set_word(o, field(options, o), what, value, error);
    case RBT_OPTION_U32:
        err = set_count(o, &count, what, value, error);
        if (err == RBT_OK)
            *(uint32_t *)field(options, o) = (uint32_t)count;
        return err;
    case RBT_OPTION_U64:
        return set_count(o, field(options, o), what, value, error);
    case RBT_OPTION_REAL:
        return set_real(o, field(options, o), what, value, error);
    case RBT_OPTION_STALENESS:
        return set_staleness(options, value, error);
    case RBT_OPTION_BATCH:
        return set_batch(options, value, error);
    case RBT_OPTION_DECAY:
        return set_decay(options, value, error);
    case RBT_OPTION_FILTER:
        return rbt_options_set_filter(options, value, error);
    case RBT_OPTION_TARGET:
        return set_target(options, value, error);
    }
    return RBT_OK;
}

/* Does a built-in method have an option of its own with this name? */
static bool is_setting(const char *name)
{
    for (size_t i = 0; rbt_method_at(i) != NULL; i++)
        if (rbt_method_option_find(rbt_method_at(i), name) != NULL)
            return true;
    return false;
}

rbt_err rbt_options_put_setting(rbt_options *options, const char *name, const char *value, rbt_error *error)
{
    char text[RBT_OPTION_ROOM] = "";
    size_t used = 0, length = strlen(name);

    if (value[0] == '\0' || strchr(value, ',') != NULL)
        return rbt_fail(error, RBT_E_USAGE, "--%s '%.60s' makes no sense; give one value", name, value);
    for (const char *at = options->settings != NULL ? options->settings : ""; *at != '\0';) {
        size_t n = strcspn(at, ",");

        if (strncmp(at, name, length) != 0 || at[length] != '=')
            used += (size_t)snprintf(text + used, sizeof text - used, "%.*s,", (int)n, at);
        at += n + (at[n] == ',');
    }
    if (used + length + strlen(value) + 2 > sizeof text)
        return rbt_fail(error, RBT_E_USAGE, "--%s: all options of a model together are longer than %d characters", name,
                        RBT_OPTION_ROOM - 1);
    snprintf(text + used, sizeof text - used, "%s=%s", name, value);
    rbt_free(options->settings);
    options->settings = rbt_strdup(text);
    return RBT_OK;
}

rbt_err rbt_options_set(rbt_options *options, const char *name, const char *value, rbt_error *error)
{
    const rbt_option *o = NULL;
    rbt_err err = option_find(name, &o, error);

    if (err != RBT_OK && is_setting(name))
        return rbt_options_put_setting(options, name, value, error);
    return err != RBT_OK ? err : option_set(options, o, value, error);
}

rbt_err rbt_options_takes_value(const char *name, bool *takes, rbt_error *error)
{
    const rbt_option *o = NULL;
    rbt_err err = option_find(name, &o, error);

    if (err == RBT_OK)
        *takes = o->kind != RBT_OPTION_FLAG;
    else if (is_setting(name))
        *takes = true, err = RBT_OK;
    return err;
}

bool rbt_options_is_text(const char *name)
{
    const rbt_option *o = NULL;

    return option_find(name, &o, NULL) == RBT_OK && o != NULL && o->kind == RBT_OPTION_TEXT;
}

bool rbt_options_names_file(const char *name)
{
    const rbt_option *o = NULL;

    return option_find(name, &o, NULL) == RBT_OK && o != NULL && o->syntax != NULL &&
           (strstr(o->syntax, "FILE") != NULL || strstr(o->syntax, "PATH") != NULL);
}

/* ------------------------------------------------------------------------------------------- all of them */

void rbt_options_init(rbt_options *options)
{
    const rbt_option *o = NULL;

    memset(options, 0, sizeof *options);
    for (size_t i = 0; (o = rbt_option_at(i)) != NULL; i++)
        if (o->fallback != NULL)
            RBT_ASSERT(option_set(options, o, o->fallback, NULL) == RBT_OK);
    options->staleness_given = false;
}

void rbt_options_deinit(rbt_options *options)
{
    const rbt_option *o = NULL;

    for (size_t i = 0; (o = rbt_option_at(i)) != NULL; i++)
        if (o->kind == RBT_OPTION_TEXT)
            rbt_free(*(char **)field(options, o));
    memset(options, 0, sizeof *options);
}

void rbt_options_copy(rbt_options *to, const rbt_options *from)
{
    const rbt_option *o = NULL;

    if (to == from)
        return;
    rbt_options_deinit(to);
    *to = *from;
    for (size_t i = 0; (o = rbt_option_at(i)) != NULL; i++) {
        char **text = field(to, o);
        if (o->kind == RBT_OPTION_TEXT && *text != NULL)
            *text = rbt_strdup(*text);
    }
}

/* Does the option have a value, and does it mean anything in this job? */
static bool option_applies(const rbt_options *options, const rbt_option *o)
{
    if (o->kind == RBT_OPTION_TEXT)
        return *(char *const *)field_const(options, o) != NULL;
    if (o->kind == RBT_OPTION_STALENESS)
        return options->sync == RBT_SYNC_SSP || options->staleness_given;
    if (o->offset == OFFSET(eager))
        return options->sync == RBT_SYNC_SSP || (options->sync == RBT_SYNC_AUTO && options->eager != RBT_AUTO);
    if (o->offset == OFFSET(max_gap) || o->offset == OFFSET(backup) || o->offset == OFFSET(skip) ||
        o->offset == OFFSET(skip_trigger) || o->offset == OFFSET(order) || o->offset == OFFSET(notify_ack))
        return options->sync == RBT_SYNC_HOP || options->max_gap > 0 || options->backup > 0 || options->skip > 0 ||
               options->order != RBT_ORDER_PARALLEL || options->notify_ack;
    if (rbt_options_peers(options) && (o->offset == OFFSET(servers) || o->offset == OFFSET(rule)))
        return false;
    if (o->kind == RBT_OPTION_FILTER)
        return options->filter_given || options->filter > 0 || options->significant_given;
    if (o->kind == RBT_OPTION_TARGET)
        return options->has_target;
    if (o->offset == OFFSET(global_rate))
        return options->global_rate > 0;
    if (o->offset == OFFSET(partition_sync))
        return options->rule == RBT_RULE_DYN || options->partition_sync == RBT_ON ||
               (options->rule == RBT_RULE_AUTO && options->partition_sync != RBT_AUTO);
    if (o->offset == OFFSET(per_process))
        return options->runtime != RBT_RUNTIME_LOCAL || options->per_process > 1;
    if (o->offset == OFFSET(join_timeout) || o->offset == OFFSET(insecure) || o->offset == OFFSET(shm) ||
        o->offset == OFFSET(on_worker_loss) || o->offset == OFFSET(colocate))
        return options->runtime == RBT_RUNTIME_CLUSTER;
    if (o->offset == OFFSET(priority))
        return options->budget != NULL;
    if (o->offset == OFFSET(bits))
        return options->bits > 0;
    if (o->offset == OFFSET(base))
        return options->base != RBT_BASE_AUTO;
    if (o->offset == OFFSET(skip_bad))
        return options->skip_bad > 0;
    if (o->offset == OFFSET(clocks))
        return options->clocks > 0;
    if (o->offset == OFFSET(epochs))
        return options->epochs > 0;
    if (o->offset == OFFSET(momentum))
        return options->optimizer == RBT_OPTIMIZER_MOMENTUM || options->rule == RBT_RULE_MOMENTUM;
    if (o->offset == OFFSET(delta))
        return !isnan(options->delta) || (options->model != NULL && strcmp(options->model, "huber") == 0);
    if (o->offset == OFFSET(l1))
        return options->l1 > 0;
    if (o->offset == OFFSET(patience))
        return options->patience > 0;
    if (o->offset == OFFSET(folds))
        return options->folds > 0;
    if (o->offset == OFFSET(normalize))
        return options->normalize != RBT_NORMALIZE_NONE;
    if (rbt_options_shared(options)) /* no servers, no messages, no batches */
        return o->offset != OFFSET(servers) && o->offset != OFFSET(rule) && o->offset != OFFSET(batches_per_clock) &&
               o->offset != OFFSET(verify) && o->offset != OFFSET(encode) && o->kind != RBT_OPTION_BATCH &&
               !(options->optimizer >= RBT_OPTIMIZER_SDCA && (o->offset == OFFSET(lr) || o->kind == RBT_OPTION_DECAY));
    return true;
}

static void print_count(const rbt_option *o, uint64_t count, char *value, size_t room)
{
    if (o->zero != NULL && count == 0)
        snprintf(value, room, "%s", o->zero);
    else
        snprintf(value, room, "%llu", (unsigned long long)count);
}

static void print_real(const char *before, double real, const char *after, char *value, size_t room)
{
    char text[RBT_REAL_ROOM];

    rbt_text_from_real(real, text, sizeof text);
    snprintf(value, room, "%s%s%s", before, text, after);
}

static void print_word(const rbt_option *o, const void *from, char *value, size_t room)
{
    unsigned i = 0;
    size_t length = 0;

    memcpy(&i, from, sizeof i);
    const char *word = word_at(o->words, i, &length);
    RBT_ASSERT(word != NULL);
    snprintf(value, room, "%.*s", (int)length, word);
}

static void option_print(const rbt_options *options, const rbt_option *o, char *value, size_t room)
{
    const void *from = field_const(options, o);
    static const char *const DECAYS[] = {"none", "sqrt:", "mult:", "auto"};

    switch (o->kind) {
    case RBT_OPTION_TEXT:
        snprintf(value, room, "%s", *(char *const *)from);
        break;
    case RBT_OPTION_FLAG:
        snprintf(value, room, "%s", *(const bool *)from ? "true" : "false");
        break;
    case RBT_OPTION_WORD:
        print_word(o, from, value, room);
        break;
    case RBT_OPTION_U32:
        print_count(o, *(const uint32_t *)from, value, room);
        break;
    case RBT_OPTION_U64:
        print_count(o, *(const uint64_t *)from, value, room);
        break;
    case RBT_OPTION_REAL:
        if (o->automatic && isnan(*(const double *)from))
            snprintf(value, room, "auto");
        else if (o->zero != NULL && *(const double *)from == 0)
            snprintf(value, room, "%s", o->zero);
        else
            print_real("", *(const double *)from, "", value, room);
        break;
    case RBT_OPTION_STALENESS:
        if (options->staleness == RBT_UNBOUNDED)
            snprintf(value, room, "inf");
        else
            print_count(o, options->staleness, value, room);
        break;
    case RBT_OPTION_BATCH:
        if (options->batch == 0)
            snprintf(value, room, "auto");
        else
            print_real("", options->batch, options->batch_percent ? "%" : "", value, room);
        break;
    case RBT_OPTION_DECAY:
        if (options->decay == RBT_DECAY_NONE || options->decay == RBT_DECAY_AUTO)
            snprintf(value, room, "%s", DECAYS[options->decay]);
        else
            print_real(DECAYS[options->decay], options->decay_factor, "", value, room);
        break;
    case RBT_OPTION_FILTER:
        rbt_options_print_filter(options, value, room);
        break;
    case RBT_OPTION_TARGET:
        print_real("", options->target_loss, "", value, room);
        break;
    }
}

bool rbt_option_is_same(const rbt_option *o, const rbt_options *a, const rbt_options *b)
{
    char one[RBT_OPTION_ROOM] = "", other[RBT_OPTION_ROOM] = "";

    if (o->kind == RBT_OPTION_STALENESS && a->staleness_given != b->staleness_given)
        return false;
    if (o->kind != RBT_OPTION_TEXT || *(char *const *)field_const(a, o) != NULL)
        option_print(a, o, one, sizeof one);
    if (o->kind != RBT_OPTION_TEXT || *(char *const *)field_const(b, o) != NULL)
        option_print(b, o, other, sizeof other);
    return strcmp(one, other) == 0;
}

bool rbt_options_at(const rbt_options *options, size_t i, const char **name, char *value, size_t room)
{
    const rbt_option *o = NULL;

    for (size_t k = 0; (o = rbt_option_at(k)) != NULL; k++) {
        if (!option_applies(options, o) || i-- > 0)
            continue;
        *name = o->name;
        option_print(options, o, value, room);
        return true;
    }
    return false;
}
