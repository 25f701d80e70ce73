/* What the sub-commands share: arguments, errors, outputs, interruption. One sub-command is one file.
 *
 * The command line is the only place of the project that prints and that ends the process. Errors go to the standard
 * error as "rubato COMMAND: sentence"; the exit code comes from rbt_err_exit_code. Proved by tests/cli.
 */
#ifndef RBT_CLI_H
#define RBT_CLI_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#include "data/file.h"
#include "job/cluster_job.h"
#include "job/options.h"
#include "job/trainee.h"
#include "report/jsonlines.h"
#include "report/recorder.h"
#include "report/summary.h"

/* ---------------------------------------------------------------------------------------------- commands */

typedef struct cli_command {
    const char *name;
    const char *form;  /* what follows the name on the command line */
    const char *about; /* one sentence */
    int (*run)(const struct cli_command *command, int argc, char **argv); /* argv without "rubato COMMAND" */
} cli_command;

int cli_train(const cli_command *command, int argc, char **argv);
int cli_compare(const cli_command *command, int argc, char **argv);
int cli_predict(const cli_command *command, int argc, char **argv);
int cli_eval(const cli_command *command, int argc, char **argv);
int cli_export(const cli_command *command, int argc, char **argv);
int cli_import(const cli_command *command, int argc, char **argv);
int cli_gen(const cli_command *command, int argc, char **argv);
int cli_convert(const cli_command *command, int argc, char **argv);
int cli_info(const cli_command *command, int argc, char **argv);
int cli_graph(const cli_command *command, int argc, char **argv);
int cli_sim(const cli_command *command, int argc, char **argv);
int cli_swarm(const cli_command *command, int argc, char **argv);
int cli_key(const cli_command *command, int argc, char **argv);
int cli_bench(const cli_command *command, int argc, char **argv);
int cli_launch(const cli_command *command, int argc, char **argv);
int cli_top(const cli_command *command, int argc, char **argv);
int cli_doctor(const cli_command *command, int argc, char **argv);
int cli_node(const cli_command *command, int argc, char **argv);

/* Prints the error and returns its exit code. */
int cli_fail(const cli_command *command, const rbt_error *error);

/* Prints one line to the stream `context`; what the library's line-by-line outputs are given. */
void cli_write_line(void *context, const char *line);

/* Has everything printed so far reached the standard output? A full disk behind a redirection is a failure, too. */
rbt_err cli_flush(rbt_error *error);

/* From now on Ctrl-C (SIGINT, SIGTERM) makes this true, and a second one ends the process with 130: for commands that
 * write a file and must not leave a part of it. */
const atomic_bool *cli_stop_flag(void);

/* Is it the same signal once more, at once? `timeout -s INT` tells its process, and then the group of processes: that is one wish.
 * For the handlers of SIGINT, SIGTERM and SIGHUP. */
bool cli_signal_is_echo(int number);

/* The job that this process is a part of is over: it ends within 3 s with that code, whatever it is doing, and says why as `command`
 * (NULL: it does not). Not for a lead, which has a result to look after. */
void cli_leave_soon(const cli_command *command, const rbt_error *why);

#define CLI_NODE_END "end" /* what a launcher says to its processes when they are to end at once */

/* --------------------------------------------------------------------------------------------- arguments */

/* An option of one command alone; job options come from the table in src/job. */
typedef struct cli_option {
    const char *name;
    const char *syntax; /* NULL: a flag, whose value is "true" when given */
    const char *help;
    const char **value; /* NULL stays when not given */
} cli_option;

typedef struct cli_arguments {
    const cli_option *own;
    size_t own_count;
    rbt_options *job; /* where job options go; NULL: the command takes none */
    const char *const
        *without;       /* job options that the command always refuses, the last NULL: its help has none of them */
    const char **words; /* what is no option, in order */
    size_t words_room;
    size_t words_count;
    bool help;                   /* --help was given */
    char data[RBT_OPTION_ROOM];  /* --data, when several paths were given: all of them, one to a line (data/paths.h) */
    char valid[RBT_OPTION_ROOM]; /* --valid of a job, likewise */
} cli_arguments;

/* One more path for the option, behind those before (data/paths.h). */
rbt_err cli_add_path(const char *option, const char *path, char paths[RBT_OPTION_ROOM], rbt_error *error);

/* Takes "--name value" and "--name=value" (the value of --config is read first, so that the command line wins), and the
 * words. An option given twice is refused, but --data a.svm b.svm, and --data a.svm --data b.svm, are several paths; so are --valid a.svm b.svm. */
rbt_err cli_parse(cli_arguments *arguments, int argc, char **argv, rbt_error *error);
void cli_help(const cli_command *command, const cli_arguments *arguments);

/* The value of an own option, or an error that says that the command needs it. */
rbt_err cli_require(const char *name, const char *value, const char *syntax, rbt_error *error);

/* Refuses to write over what is being read. Either may be NULL, and a path that names no file is none. */
rbt_err cli_keep_apart(const char *in, const char *out, rbt_error *error);

/* The same for data, with the labels that images have in another file. */
typedef struct cli_data {
    const char *path;  /* NULL: none */
    const char *label; /* --label, or NULL: the labels are found by the images' name */
    uint32_t workers;  /* with {rank} in the path: each has files of its own; 0: {rank} means nothing */
} cli_data;
rbt_err cli_keep_data_apart(const cli_data *data, const char *out, rbt_error *error);

/* Refuses to write two outputs to one file, of which the later would be all that is left. A path may be NULL. */
typedef struct cli_output {
    const char *option, *path;
} cli_output;
rbt_err cli_keep_outputs_apart(const cli_output *outputs, size_t n, rbt_error *error);

/* ------------------------------------------------------------------------------------------------ reading */

/* How data is to be read, as given on the command line (jobs have the same options in their table). */
typedef struct cli_reading {
    const char *format, *label, *weight, *bits, *base, *skip_bad;
} cli_reading;

/* Their entries in a command's list of own options. */
#define CLI_READING_OPTIONS(given)                                                                                     \
    {"format", "FORMAT", "auto, libsvm, vw, csv, idx, ratings, docword, ldac or cache. [auto]", &(given)->format},     \
        {"label", "COLUMN|FILE", "csv: the label's column, by name or number (first = 1), or none; idx: the labels.",  \
         &(given)->label},                                                                                             \
        {"weight", "COLUMN", "csv: the column of the rows' weights.", &(given)->weight},                               \
        {"bits", "N", "vw, and words in csv: features are hashed to 2^N columns. [18]", &(given)->bits},               \
        {"base", "auto|0|1", "libsvm: where features begin to count; auto: at 0 if it occurs. [auto]",                 \
         &(given)->base},                                                                                              \
    {                                                                                                                  \
        "skip-bad", "N", "Leaves out up to N rows that cannot be read. [0]", &(given)->skip_bad                        \
    }

rbt_err cli_reading_settle(const cli_reading *given, rbt_read_report *report, rbt_reading *reading, rbt_error *error);

/* Hands rows on block after block, in constant memory; who waits at the other end of a pipe gets each answer at once.
 * `base`, for cli_columns_note, may be NULL. */
rbt_err cli_answer_stream(const char *path, const rbt_reading *reading,
                          rbt_err (*answer)(void *context, const rbt_data *block, rbt_output *output, rbt_error *error),
                          void *context, rbt_output *output, rbt_base *base, rbt_error *error);

/* Refuses to measure a model beside another one whose training data was read in another way, as far as that is known. */
rbt_err cli_compare_origins(const char *model, const char *origin, const char *baseline, const char *other,
                            rbt_error *error);

/* Says on the standard error what was left out or filled in, if anything was. */
void cli_reading_note(const cli_command *command, const rbt_read_report *report);

/* And when columns of data, which has `cols`, are not those that a model with so many features was trained with, as far as that
 * can be seen. `base`: from where on its features were counted, by its origin; AUTO: it is neither LIBSVM text nor a
 * cache of such. */
void cli_columns_note(const cli_command *command, const rbt_read_report *report, size_t cols, size_t features,
                      rbt_base base);

/* And with which --bits Vowpal Wabbit text of so many columns, which was written, is to be read, if the usual ones are too few. */
void cli_bits_note(const cli_command *command, size_t cols);

/* A message that rows have no room in memory is told the way round it: a cache of them. */
void cli_memory_hint(rbt_error *error);

/* ------------------------------------------------------------------------------------ fitted models of methods */

/* Is the file one of those? Then these do what predict, eval, info and export do with it. `array`: which one, for npy; NULL:
 * the first. */
bool cli_fitted_is(const char *path);

/* A trained model from a file; of a fitted one what it is as such (as_trained), and cli_fitted_is_trained says beforehand whether it
 * is. */
bool cli_fitted_is_trained(const char *path, const rbt_method *own);
rbt_err cli_trained_load(const char *path, const rbt_trainee *plugin, rbt_trained *trained, rbt_error *error);

/* The shared object that --plugin names, for models of its own; NULL: none. */
rbt_err cli_plugin_open(const char *path, rbt_trainee *plugin, rbt_error *error);
#define CLI_PLUGIN_OPTION(value)                                                                                       \
    {                                                                                                                  \
        "plugin", "FILE", "The shared object that the model was trained with.", (value)                                \
    }

rbt_err cli_fitted_predict(const char *model, const rbt_method *own, const char *path, const rbt_reading *reading,
                           const char *out, rbt_error *error);

/* predict --user: the best columns for a row of that name; --top as it was typed, or NULL. Without `path` nothing is known. */
rbt_err cli_fitted_recommend(const char *model, const rbt_method *own, const char *path, const rbt_reading *reading,
                             const char *user, const char *top, const char *out, rbt_error *error);

/* eval: `metric` is a list of figures, NULL = all; `baseline` another model of the same method, or NULL. */
typedef struct cli_fitted_request {
    const char *model, *baseline, *data, *metric, *json;
    const rbt_method *own;
    const rbt_reading *reading;
} cli_fitted_request;
rbt_err cli_fitted_eval(const cli_fitted_request *request, rbt_error *error);

/* That the model cannot do this; and how its data is read, with memory that is to be freed when it has been. */
rbt_err cli_fitted_lacks(const rbt_fitted *fitted, const char *path, const char *what, rbt_error *error);
char *cli_fitted_reading(const rbt_fitted *fitted, rbt_reading *reading);
struct rbt_vocab;
rbt_err cli_fitted_info(const char *path, const rbt_method *own, const struct rbt_vocab *vocab, rbt_error *error);

/* Says on the standard error when --vocab has more or less names than a model has features. */
void cli_vocab_note(const char *command, const struct rbt_vocab *vocab, size_t features);

/* Refuses another number of names than of features; fewer may be those that stand before hashes. */
rbt_err cli_vocab_check(const char *path, const struct rbt_vocab *vocab, size_t features, const char *origin,
                        rbt_error *error);
rbt_err cli_fitted_export(const char *model, const rbt_method *own, const char *format, const char *array,
                          const char *vocab, const char *out, rbt_error *error);

/* --------------------------------------------------------------------------------------------------- jobs */

/* Where a run's events go. */
typedef struct cli_listener {
    rbt_recorder *recorder;
    rbt_jsonlines *lines;                          /* NULL: no JSON */
    rbt_progress_line *line;                       /* NULL: no progress */
    FILE *text;                                    /* where the configuration is printed; NULL: not */
    const char *title;                             /* a line before the configuration; NULL: none */
    const char *prefix;                            /* of the progress line */
    void (*note)(void *context, const char *text); /* told of notes, besides; NULL: nobody */
    void *context;
    rbt_job *job;   /* what runs; filled in by cli_job_run */
    bool early_end; /* Ctrl-C before the job's start, while data is read, ends the process at once */
    bool has_folds; /* before its start, then, the job trains, too */
} cli_listener;

/* Is the model's name known, is there data, can the outputs be written, do the options make sense together? To be asked
 * before anything long starts: an hour of training is not lost to a misspelt folder. */
rbt_err cli_job_check(const rbt_options *options, rbt_error *error);

/* A job with these options. */
rbt_err cli_job_create(const rbt_options *options, rbt_job **job, rbt_error *error);

/* Runs the job; Ctrl-C (SIGINT, SIGTERM, SIGHUP) ends it after the current clock, a second one ends the process with 130. Afterwards
 * a first one is kept in mind, so that the outputs can be written: until cli_job_release, which then fails with
 * RBT_E_INTERRUPTED. Another job that is run before that ends as it begins. */
rbt_err cli_job_run(rbt_job *job, cli_listener *listener, rbt_error *error);
rbt_err cli_job_release(rbt_error *error);

/* From now on such a signal that would end the process asks this first, in the signal's handler; true: it will end by itself. */
typedef bool (*cli_last_act)(void);
void cli_job_before_exit(cli_last_act act);

/* When a job was interrupted by a signal; 0: none has been. */
uint64_t cli_job_interrupted_ns(void);

/* The command line of train, without running it; *helped: --help was asked for and has been answered. And running it;
 * gathering: how a job on a cluster comes by its processes, NULL on one machine. */
rbt_err cli_train_options(const cli_command *command, int argc, char **argv, rbt_options *options, bool *helped,
                          rbt_error *error);
int cli_train_run(const cli_command *command, const rbt_options *options, const rbt_gathering *gathering);

/* The model's name is the first word, or --model; a job file may have another, the command line may not. */
rbt_err cli_refuse_two_models(int argc, char **argv, const char *word, rbt_error *error);

/* train --runtime cluster: as the rank that srun, mpirun, mpiexec or Kubernetes says, or as the lead of processes that
 * somebody starts. Settles what the options leave open. */
int cli_train_standing(const cli_command *command, rbt_options *options);

/* The file of a cluster job's key: what --key says, else RUBATO_KEY_FILE; NULL: none. */
const char *cli_key_file(const char *option);

/* Where people's text goes: NULL with --quiet, the standard error when the standard output carries JSON, a model or a page. */
FILE *cli_text_stream(const rbt_options *options);

#endif
