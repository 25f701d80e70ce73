/* Several runs side by side; the contract stands in compare.h. */
#include "report/compare.h"

#include <math.h>

#define COLUMNS 10 /* one more with --folds */

/* Has the run a result to be measured by? A run that missed its target has one, a run that diverged has none. */
static bool is_measured(const rbt_recorder *run)
{
    return run->has_result && run->error.code != RBT_E_DIVERGED &&
           (run->error.code == RBT_OK || run->error.code == RBT_E_TARGET || run->error.code == RBT_E_INTERRUPTED);
}

/* Does its time count: the time to the target, or of the whole run when there is none? */
static bool has_time(const rbt_recorder *run)
{
    return is_measured(run) && run->error.code != RBT_E_INTERRUPTED && (!run->result.has_target || run->result.reached);
}

bool rbt_compare_better(const rbt_recorder *a, const rbt_recorder *b)
{
    if (is_measured(a) != is_measured(b) || !is_measured(a))
        return is_measured(a) && !is_measured(b);
    if (a->result.has_target && (a->result.reached || b->result.reached)) {
        if (a->result.reached != b->result.reached)
            return a->result.reached;
        return a->result.seconds < b->result.seconds;
    }
    return a->result.loss < b->result.loss || (isnan(b->result.loss) && !isnan(a->result.loss));
}

const char *rbt_compare_state(const rbt_recorder *run)
{
    if (run->error.code == RBT_E_DIVERGED)
        return "diverged";
    if (run->error.code == RBT_E_INTERRUPTED)
        return "interrupted";
    if (!is_measured(run))
        return "failed";
    if (!run->result.has_target)
        return "done";
    return run->result.reached ? "reached" : "not reached";
}

static double speed_up(const rbt_recorder *first, const rbt_recorder *run)
{
    return has_time(first) && has_time(run) && run->result.seconds > 0 ? first->result.seconds / run->result.seconds
                                                                       : NAN;
}

static void add_row(const rbt_recorder *first, const rbt_recorder *run, rbt_grid *grid)
{
    const rbt_result *r = &run->result;
    char cell[RBT_CELL_ROOM], mean[RBT_CELL_ROOM], spread[RBT_CELL_ROOM], folds[2 * RBT_CELL_ROOM + 4] = "-";
    bool measured = is_measured(run);
    double faster = speed_up(first, run);

    rbt_grid_add(grid, run->name);
    rbt_grid_add(grid, rbt_recorder_setting(run, "lr", "-"));
    rbt_grid_add(grid, has_time(run) ? rbt_show_seconds(cell, r->seconds) : rbt_compare_state(run));
    rbt_grid_add(grid, has_time(run) ? rbt_show_count(cell, (double)r->updates) : "-");
    rbt_grid_add(grid, measured ? rbt_show_seconds(cell, r->seconds_per_update) : "-");
    rbt_grid_add(grid, measured ? rbt_show_percent(cell, r->wait_fraction) : "-");
    rbt_grid_add(grid, measured ? rbt_show_real(cell, r->minobj) : "-");
    rbt_grid_add(grid, measured ? rbt_show_real(cell, r->varobj) : "-");
    rbt_grid_add(grid, measured ? rbt_show_real(cell, r->loss) : "-");
    if (isfinite(faster))
        snprintf(cell, sizeof cell, "%.2fx", faster);
    rbt_grid_add(grid, isfinite(faster) ? cell : "-");
    if (grid->columns <= COLUMNS)
        return;
    if (measured && r->folds > 0 && isfinite(r->fold_loss))
        snprintf(folds, sizeof folds, "%s +- %s", rbt_show_real(mean, r->fold_loss),
                 rbt_show_spread(spread, r->fold_loss_deviation));
    rbt_grid_add(grid, folds);
}

void rbt_compare_grid(const rbt_recorder *runs, size_t n, rbt_grid *grid)
{
    bool target = false, folds = false;

    for (size_t i = 0; i < n; i++) {
        target = target || rbt_recorder_setting(&runs[i], "target-loss", NULL) != NULL;
        folds = folds || rbt_recorder_setting(&runs[i], "folds", NULL) != NULL;
    }
    const char *const heading[COLUMNS + 1] = {"protocol",
                                              "step size",
                                              target ? "time to target" : "time",
                                              target ? "updates to target" : "updates",
                                              "time/update",
                                              "wait %",
                                              "mean of last 5",
                                              "variance",
                                              "final loss",
                                              "speed-up",
                                              "loss of folds"};
    *grid = (rbt_grid){.columns = COLUMNS + folds, .left = 1};
    for (size_t i = 0; i < grid->columns; i++)
        rbt_grid_add(grid, heading[i]);
    for (size_t i = 0; i < n; i++)
        add_row(&runs[0], &runs[i], grid);
}

void rbt_compare_json(const rbt_recorder *runs, size_t n, rbt_json *json, const char *key)
{
    rbt_json_array(json, key);
    for (size_t i = 0; i < n; i++) {
        const rbt_recorder *run = &runs[i];
        const rbt_result *r = &run->result;
        bool measured = is_measured(run);
        rbt_json_object(json, NULL);
        rbt_json_text(json, "protocol", run->name);
        rbt_json_guess(json, "lr", rbt_recorder_setting(run, "lr", ""));
        rbt_json_text(json, "state", rbt_compare_state(run));
        rbt_json_real(json, "seconds_to_target", has_time(run) ? r->seconds : NAN);
        rbt_json_real(json, "updates_to_target", has_time(run) ? (double)r->updates : NAN);
        rbt_json_real(json, "seconds_per_update", measured ? r->seconds_per_update : NAN);
        rbt_json_real(json, "wait_fraction", measured ? r->wait_fraction : NAN);
        rbt_json_real(json, "minobj", measured ? r->minobj : NAN);
        rbt_json_real(json, "varobj", measured ? r->varobj : NAN);
        rbt_json_real(json, "loss", measured ? r->loss : NAN);
        rbt_json_real(json, "speed_up", speed_up(&runs[0], run));
        rbt_json_end(json);
    }
    rbt_json_end(json);
}
