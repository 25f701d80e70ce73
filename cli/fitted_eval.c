/* rubato eval for fitted models of methods, where eval.c has its own way for trained models. The contract stands in cli.h. Proved by
 * tests/cli/test_methods.sh. */
#include "cli/cli.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "job/text.h"
#include "method/method.h"
#include "report/text.h"

/* A fitted model and how it fared. */
typedef struct examined {
    rbt_fitted fitted;
    rbt_figure figures[RBT_FIGURES_MOST];
    size_t n;
} examined;

/* Is the figure asked for? `list`: names with commas between; NULL: all are. */
static bool wanted(const char *list, const char *name)
{
    size_t n = strlen(name);

    for (const char *at = list; at != NULL; at = strchr(at, ',') != NULL ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, name, n) == 0 && (at[n] == ',' || at[n] == '\0'))
            return true;
    return list == NULL;
}

/* Does the model have every figure of the list? */
static rbt_err check_list(const char *list, const examined *x, rbt_error *error)
{
    char names[256] = "";
    size_t used = 0;

    for (size_t i = 0; i < x->n && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "", x->figures[i].name);
    for (const char *at = list; at != NULL; at = strchr(at, ',') != NULL ? strchr(at, ',') + 1 : NULL) {
        size_t length = strcspn(at, ",");
        bool known = false;
        for (size_t i = 0; i < x->n && !known; i++)
            known = strlen(x->figures[i].name) == length && memcmp(x->figures[i].name, at, length) == 0;
        if (!known)
            return rbt_fail(error, RBT_E_USAGE, "--metric '%.*s' is none of a model of %s, which has %s",
                            (int)(length < 60 ? length : 60), at, x->fitted.method->name, names);
    }
    return RBT_OK;
}

/* Loads the model and measures it; `data` is read for the first and serves the second. */
static rbt_err examine(const cli_fitted_request *request, const char *model, rbt_data *data, examined *x,
                       rbt_error *error)
{
    rbt_reading as = *request->reading;
    rbt_err err = rbt_fitted_load_own(model, request->own, &x->fitted, error);

    if (err != RBT_OK)
        return err;
    if (x->fitted.method->measure != NULL)
        return x->fitted.method->measure(&x->fitted, request->data, x->figures, &x->n, error);
    if (x->fitted.method->evaluate == NULL)
        return cli_fitted_lacks(&x->fitted, model, "be evaluated", error);
    if (data->rows == 0) {
        char *origin = cli_fitted_reading(&x->fitted, &as);

        as.unlabelled = x->fitted.method->content != RBT_CONTENT_RATINGS && /* what is compared with them needs them */
                        x->fitted.method->as_trained == NULL;
        as.classes = x->fitted.method->has_classes;
        err = rbt_data_read_as(request->data, &as, data, error);
        if (err != RBT_OK)
            cli_memory_hint(error);
        if (as.report != NULL && as.expect != RBT_CONTENT_ROWS)
            as.report->unlabelled = 0; /* nobody asks for labels */
        rbt_free(origin);
    }
    if (err == RBT_OK)
        err = x->fitted.method->evaluate(&x->fitted, data, x->figures, &x->n, error);
    return err;
}

/* Beside each other, when there are two. */
static void print_figures(const cli_fitted_request *request, const examined *x, const rbt_data *data)
{
    rbt_grid grid = {.columns = request->baseline != NULL ? 4 : 2, .left = request->baseline != NULL ? 1 : 2};
    char cell[RBT_CELL_ROOM];

    if (request->baseline != NULL) {
        rbt_grid_add(&grid, "");
        rbt_grid_add(&grid, "model");
        rbt_grid_add(&grid, "baseline");
        rbt_grid_add(&grid, "ratio");
        if (x->fitted.method->measure == NULL)
            printf("rows      %zu\n", data->rows);
    } else if (x->fitted.method->measure == NULL) {
        snprintf(cell, sizeof cell, "%zu", data->rows);
        rbt_grid_add(&grid, "rows");
        rbt_grid_add(&grid, cell);
    }
    for (size_t i = 0; i < x->n; i++) {
        if (!wanted(request->metric, x->figures[i].name))
            continue;
        rbt_grid_add(&grid, x->figures[i].name);
        for (size_t k = 0; k < (request->baseline != NULL ? 2 : 1); k++) {
            bool share = strcmp(x->figures[i].name, "accuracy") == 0;
            double value = (share ? 100 : 1) * x[k].figures[i].value;
            if (share || isnan(value))
                snprintf(cell, sizeof cell, isnan(value) ? "-" : "%.4f %%", value);
            else
                (void)rbt_text_from_loss(value, cell);
            rbt_grid_add(&grid, cell);
        }
        if (request->baseline != NULL) {
            double ratio = x[0].figures[i].value / x[1].figures[i].value;
            snprintf(cell, sizeof cell, isfinite(ratio) ? "%.4f" : "-", ratio);
            rbt_grid_add(&grid, cell);
        }
    }
    rbt_grid_print(&grid, "", stdout);
    rbt_grid_deinit(&grid);
}

static void write_values(rbt_json *json, const cli_fitted_request *request, const examined *x, const examined *by)
{
    for (size_t i = 0; i < x->n; i++)
        if (wanted(request->metric, x->figures[i].name))
            rbt_json_real(json, x->figures[i].name, x->figures[i].value / (by != NULL ? by->figures[i].value : 1));
}

static rbt_err write_figures(const cli_fitted_request *request, const examined *x, const rbt_data *data,
                             rbt_error *error)
{
    rbt_jsonlines lines = {0};
    rbt_err err = rbt_jsonlines_open(&lines, request->json, error);

    if (err != RBT_OK)
        return err;
    rbt_json_object(&lines.json, NULL);
    rbt_json_text(&lines.json, "model", x->fitted.method->name);
    if (x->fitted.method->measure == NULL)
        rbt_json_count(&lines.json, "rows", data->rows);
    write_values(&lines.json, request, x, NULL);
    if (request->baseline != NULL) {
        rbt_json_object(&lines.json, "baseline");
        write_values(&lines.json, request, &x[1], NULL);
        rbt_json_end(&lines.json);
        rbt_json_object(&lines.json, "ratio");
        write_values(&lines.json, request, x, &x[1]);
        rbt_json_end(&lines.json);
    }
    rbt_json_end(&lines.json);
    return rbt_jsonlines_close(&lines, error);
}

/* What was read as the first model's data was, is read as the second's was. */
static rbt_err compare_origins(const cli_fitted_request *request, const examined *x, rbt_error *error)
{
    char *first = rbt_fitted_origin(&x[0].fitted), *second = rbt_fitted_origin(&x[1].fitted);
    rbt_err err = cli_compare_origins(request->model, first, request->baseline, second, error);

    rbt_free(first);
    rbt_free(second);
    return err;
}

rbt_err cli_fitted_eval(const cli_fitted_request *request, rbt_error *error)
{
    examined x[2];
    rbt_data data = {0};

    memset(x, 0, sizeof x);
    rbt_err err = examine(request, request->model, &data, &x[0], error);
    if (err == RBT_OK)
        err = check_list(request->metric, &x[0], error);
    if (err == RBT_OK && request->baseline != NULL)
        err = examine(request, request->baseline, &data, &x[1], error);
    if (err == RBT_OK && request->baseline != NULL && data.rows > 0)
        err = compare_origins(request, x, error);
    if (err == RBT_OK && request->baseline != NULL && (x[0].fitted.method != x[1].fitted.method || x[0].n != x[1].n))
        err = rbt_fail(error, RBT_E_USAGE, "--baseline %s is a model of %s, %s one of %s; give two of a kind",
                       request->baseline, x[1].fitted.method->name, request->model, x[0].fitted.method->name);
    if (err == RBT_OK && (request->json == NULL || strcmp(request->json, "-") != 0))
        print_figures(request, x, &data);
    if (err == RBT_OK && request->json != NULL)
        err = write_figures(request, x, &data, error);
    rbt_data_deinit(&data);
    for (size_t i = 0; i < 2; i++)
        rbt_fitted_deinit(&x[i].fitted);
    return err;
}
