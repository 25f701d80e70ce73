/* Options that would change nothing in this job. An option that is silently ignored is one that somebody counts on: it is
 * refused, unless it has the value that it has anyway. A part of rbt_options_check (options.h); checking twice changes
 * nothing. Proved by tests/unit/test_options.c and tests/cli/test_usage.sh.
 */
#include "job/options.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "job/trainee.h"

/* Is the word among those with blanks between? */
static bool listed(const char *words, const char *word)
{
    size_t n = strlen(word);

    for (const char *at = words; at != NULL && *at != '\0'; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        if (length == n && memcmp(at, word, n) == 0)
            return true;
        at += length;
    }
    return false;
}

/* Of a method: an option that was given and that it does not heed, or NULL. */
static const char *unheeded(const rbt_options *o, const rbt_method *method)
{
    const struct {
        const char *name, *word; /* the option's name, and what the method's list calls it; NULL: of no use to one that
                                    reads its data itself */
        bool given;
    } options[] = {
        {"lr", "lr", o->lr > 0},
        {"decay", "decay", o->decay == RBT_DECAY_SQRT || o->decay == RBT_DECAY_MULT},
        {"l1", "l1", o->l1 > 0},
        {"l2", "l2", !isnan(o->l2) && o->l2 > 0},
        {"batch", "batch", o->batch > 0},
        {"batches-per-clock", "batch", o->batches_per_clock > 0},
        {"epochs", "epochs", o->epochs > 0 && o->epochs != 1}, /* 1 is what it does */
        {"clocks", "epochs", o->clocks > 0},
        {"valid", "valid", o->valid != NULL},
        {"budget", "budget", o->budget != NULL},
        {"format", NULL, o->format != NULL && strcmp(o->format, "auto") != 0},
        {"label", NULL, o->label != NULL},
        {"weight", NULL, o->weight != NULL},
        {"bits", NULL, o->bits > 0},
        {"base", NULL, o->base != RBT_BASE_AUTO},
        {"cache", NULL, o->cache != RBT_CACHE_OFF},
    };

    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (options[i].given &&
            (options[i].word != NULL ? listed(method->unheeded, options[i].word) : method->reads_itself))
            return options[i].name;
    return NULL;
}

bool rbt_method_unheeds(const rbt_method *method, const char *word)
{
    return listed(method->unheeded, word);
}

rbt_err rbt_options_check_unused(const rbt_options *o, rbt_sync sync, const rbt_method *method, rbt_error *error)
{
    const char *given = method != NULL ? unheeded(o, method) : NULL;

    if (given != NULL)
        return rbt_fail(error, RBT_E_USAGE, "--%s makes no sense for %s%s; leave it out", given, method->name,
                        strcmp(given, "budget") == 0 ? ", whose servers make a step of what a clock sends as a whole: "
                                                       "parts that went early would be other steps"
                                                     : "");
    if (o->momentum != RBT_MOMENTUM_DEFAULT && o->optimizer != RBT_OPTIMIZER_MOMENTUM && o->rule != RBT_RULE_MOMENTUM)
        return rbt_fail(error, RBT_E_USAGE,
                        "--momentum makes no sense without --optimizer momentum or --rule momentum; give one of them");
    if (!isnan(o->delta) && o->model != NULL && strcmp(o->model, "huber") != 0 && !rbt_trainee_is_path(o->model))
        return rbt_fail(error, RBT_E_USAGE,
                        "--delta makes no sense for %s: it is where huber's loss becomes linear; "
                        "leave it out, or train huber",
                        o->model);
    if (o->epochs != floor(o->epochs) && o->batches_per_clock == 0 &&
        (sync >= RBT_SYNC_HOGWILD || (sync <= RBT_SYNC_ASP && method == NULL)))
        return rbt_fail(error, RBT_E_USAGE,
                        "--epochs %g makes no sense where a clock is a pass over the data; give a whole number%s",
                        o->epochs,
                        sync <= RBT_SYNC_ASP ? ", or make clocks shorter, as with --batches-per-clock 1" : "");
    if (o->skip_trigger != RBT_SKIP_TRIGGER_DEFAULT && o->skip == 0)
        return rbt_fail(error, RBT_E_USAGE,
                        "--skip-trigger says when a peer skips iterations; give --skip too, as in --skip 10");
    if (o->join_timeout != RBT_JOIN_TIMEOUT_DEFAULT && o->runtime != RBT_RUNTIME_CLUSTER)
        return rbt_fail(error, RBT_E_USAGE,
                        "--join-timeout is for several processes; use rubato launch, or --runtime cluster under srun "
                        "or mpirun");
    if (o->machines != NULL && (o->graph == NULL || strcmp(o->graph, "clique") != 0))
        return rbt_fail(error, RBT_E_USAGE,
                        "--machines makes no sense without --graph clique: other graphs do not go by machines; leave "
                        "it out, or use --graph clique");
    return RBT_OK;
}
