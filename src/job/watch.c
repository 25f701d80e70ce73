/* When to stop. Contract in watch.h; proved by tests/unit/test_watch.c. */
#include "job/watch.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

void rbt_watch_init(rbt_watch *watch, const rbt_options *options, size_t n)
{
    *watch = (rbt_watch){.options = options, .n = n, .best_valid = INFINITY};
    if (options->patience > 0)
        watch->best = rbt_alloc(n, sizeof *watch->best);
}

void rbt_watch_deinit(rbt_watch *watch)
{
    rbt_free(watch->best);
    watch->best = NULL;
}

/* Is the objective within the tolerance of the optimum? A bound says so itself; it can be far from sharp, so a tenth of the
 * sharpness will do when the objective hardly moves any more, and nothing but that where no bound is known. */
static bool is_close(const rbt_watch *watch, double objective, double gap)
{
    double tolerance = watch->options->tolerance, size = fabs(objective);
    bool still = watch->has_last && fabs(watch->last - objective) < tolerance / 5 * size;

    if (!(tolerance > 0))
        return false;
    return isnan(gap) ? still : gap <= tolerance * size || (still && gap <= 10 * tolerance * size);
}

bool rbt_watch_look(rbt_watch *watch, double objective, double gap, double valid, const float *w)
{
    const rbt_options *o = watch->options;

    if (o->patience > 0 && valid < watch->best_valid) {
        watch->best_valid = valid;
        watch->best_objective = objective;
        watch->worse = 0;
        memcpy(watch->best, w, watch->n * sizeof *w);
    } else if (o->patience > 0) {
        watch->worse++;
    }
    if (o->has_target && objective <= o->target_loss) {
        watch->reached = true;
        watch->why = "the target was reached";
    } else if (o->patience > 0 && watch->worse >= o->patience) {
        watch->why = "the loss on the validation data did not get better any more";
    } else if (is_close(watch, objective, gap)) {
        watch->why = "the objective is about as near to the optimum as --tolerance asks";
    }
    watch->last = objective;
    watch->has_last = true;
    return watch->why != NULL;
}

bool rbt_watch_may_stop(const rbt_options *options)
{
    return options->has_target || options->patience > 0 || options->tolerance > 0;
}
