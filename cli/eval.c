/* rubato eval: how good a trained model is on data. */
#include "cli/cli.h"

#include "model/metrics.h"

static rbt_err evaluate(const char *model, const char *path, const rbt_reading *reading, rbt_metrics *metrics,
                        rbt_error *error)
{
    rbt_trained trained = {0};
    rbt_data data = {0};
    rbt_err err = rbt_trained_load(model, &trained, error);

    if (err != RBT_OK)
        return err;
    err = rbt_data_read_as(path, reading, &data, error);
    if (err == RBT_OK) {
        err = rbt_shape_apply(&trained.shape, true, &data, error);
        if (err == RBT_OK)
            err = rbt_metrics_compute(&trained, &data, metrics, error);
        rbt_data_deinit(&data);
    }
    rbt_trained_deinit(&trained);
    return err;
}

int cli_eval(const cli_command *command, int argc, char **argv)
{
    rbt_error error = {RBT_OK, ""};
    const char *model = NULL, *data = NULL;
    cli_reading given = {0};
    rbt_read_report report = {0};
    rbt_reading reading;
    const cli_option own[] = {
        {"model", "FILE", "The trained model.", &model},
        {"data", "PATH", "Rows with labels: a file, a quoted pattern, or - = standard input.", &data},
        CLI_READING_OPTIONS(&given),
    };
    cli_arguments arguments = {own, sizeof own / sizeof own[0], NULL, NULL, 0, 0, false};
    rbt_metrics metrics;
    rbt_err err = cli_parse(&arguments, argc, argv, &error);

    if (err == RBT_OK && arguments.help) {
        cli_help(command, &arguments);
        return 0;
    }
    if (err == RBT_OK)
        err = cli_require("model", model, "FILE", &error);
    if (err == RBT_OK)
        err = cli_require("data", data, "PATH", &error);
    if (err == RBT_OK)
        err = cli_reading_settle(&given, &report, &reading, &error);
    if (err == RBT_OK)
        err = evaluate(model, data, &reading, &metrics, &error);
    if (err != RBT_OK)
        return cli_fail(command, &error);
    cli_reading_note(command, &report);
    printf("rows      %zu\nloss      %.6g\naccuracy  %.4f %%\n", metrics.rows, metrics.loss, 100 * metrics.accuracy);
    return 0;
}
