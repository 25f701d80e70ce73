/* When to stop. Contract in watch.h; proved by tests/unit/test_watch.c. */
#include "job/watch.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

#define LEAST 1e-12 /* of the objective of parameters that are all zero: no loss is below 0 */
#define FEW   65536 /* parameters */
#define CALM  3     /* looks in a row */
#define STILL 300   /* of these, where dual variables may still move that nobody sees */

void rbt_watch_init(rbt_watch *watch, const rbt_options *options, size_t n)
{
    *watch = (rbt_watch){.options = options, .n = n, .least_gap = INFINITY, .best_score = INFINITY};
    if (options->patience > 0)
        watch->best = rbt_alloc(n, sizeof *watch->best);
}

void rbt_watch_deinit(rbt_watch *watch)
{
    rbt_free(watch->best);
    watch->best = NULL;
}

/* Is it time to stop by the objective alone? A bound or an estimate says so itself. Where none is known, steps get
 * smaller as it goes on: what they may still bring is about the last change, times as many as there have been, and one
 * small change may be chance. That they bring nothing more does not say that the optimum is near: they may be too small
 * for the way. */
static const char *judge(rbt_watch *watch, double objective, double gap)
{
    const rbt_options *o = watch->options;
    double change = watch->looks > 0 ? fabs(watch->last - objective) : INFINITY;
    double near = o->tolerance * fabs(objective);

    watch->looks++;
    watch->unmoved = change == 0 && !(gap < watch->least_gap) ? watch->unmoved + 1 : 0;
    watch->least_gap = gap < watch->least_gap ? gap : watch->least_gap; /* smaller ones are progress nobody sees yet */
    watch->calm = (double)watch->looks * change <= near ? watch->calm + 1 : 0;
    if (!(o->tolerance > 0))
        return NULL;
    if (objective <= LEAST * watch->first)
        return "the objective is as good as 0";
    if (gap <= near)
        return o->optimizer == RBT_OPTIMIZER_SDCA
                   ? "the objective is within --tolerance of the optimum"
                   : "the objective is within --tolerance of the optimum, by an estimate";
    if (isnan(gap) && watch->calm >= CALM)
        return "the objective changes by less than --tolerance; how near the optimum is, is not known";
    watch->stuck = watch->unmoved >= (o->optimizer == RBT_OPTIMIZER_SDCA ? STILL : CALM);
    return watch->stuck ? "the objective does not get better any more" : NULL;
}

/* Dual ascent's objective may rise for a while, and so may Newton's where the loss has a corner. Few parameters are
 * kept from the start, many only when it has done so. */
static bool begins_to_keep(const rbt_watch *watch, double objective)
{
    const rbt_options *o = watch->options;
    return watch->best == NULL && o->patience == 0 && o->optimizer >= RBT_OPTIMIZER_SDCA &&
           (watch->n <= FEW || (watch->looks > 1 && objective > watch->last));
}

/* The best parameters so far: with patience by the validation data. */
static void keep_best(rbt_watch *watch, double objective, double score, const float *w)
{
    if (begins_to_keep(watch, objective))
        watch->best = rbt_try_alloc_raw(watch->n, sizeof *watch->best);
    if (watch->best == NULL)
        return;
    watch->worse++;
    if (!(score < watch->best_score))
        return;
    watch->best_score = score;
    watch->best_objective = objective;
    watch->worse = 0;
    if (watch->n > 0) /* a method keeps its best itself */
        memcpy(watch->best, w, watch->n * sizeof *w);
}

bool rbt_watch_look(rbt_watch *watch, double objective, double gap, double valid, const float *w)
{
    const rbt_options *o = watch->options;
    const char *end = judge(watch, objective, gap);

    keep_best(watch, objective, o->patience > 0 ? valid : objective, w);
    if (o->has_target && objective <= o->target_loss) {
        watch->reached = true;
        watch->why = "the target was reached";
    } else if (o->patience > 0 && watch->worse >= o->patience) {
        watch->why = "the loss on the validation data did not get better any more";
    } else {
        watch->why = end;
    }
    watch->stuck = watch->stuck && watch->why == end;
    watch->last = objective;
    return watch->why != NULL;
}

bool rbt_watch_may_stop(const rbt_options *options)
{
    return options->has_target || options->patience > 0 || options->tolerance > 0;
}
