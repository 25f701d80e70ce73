/* Rubato: distributed machine learning for machines that do not keep the same time.
 *
 * This is the whole public interface; read it top to bottom.
 *
 *   1. Errors               how a call says that it failed
 *   2. Data                 rows of sparse features with labels
 *   3. Gradient models      a parameter vector, a loss, its gradient: runs under every protocol with servers or peers
 *   4. Tables               shared parameters that workers read with a bound on staleness, and increment
 *   5. Jobs                 a training job from options to result
 *   6. Methods              table programs that are trained, saved and applied like models
 *
 * Caveats before you start:
 *   - Nothing here prints, exits, or touches global state; a job's output comes through the callback you give it.
 *   - An rbt_worker belongs to the thread that runs the program it was given to. Nothing else may use it.
 *   - Pointers handed out are valid until the object they came from is destroyed, unless it says otherwise.
 *   - Verbs tell ownership: create/destroy (ours), init/deinit (memory is yours).
 */
#ifndef RUBATO_H
#define RUBATO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RBT_API __attribute__((visibility("default")))

#define RBT_VERSION_MAJOR 0
#define RBT_VERSION_MINOR 1
#define RBT_VERSION_PATCH 0

/* The version of the library at run time, as "0.1.0". */
RBT_API const char *rbt_version(void);

/* ------------------------------------------------------------------------------------------------ 1. Errors */

typedef enum rbt_err {
    RBT_OK = 0,
    RBT_E_USAGE,       /* an option or argument is wrong: exit code 2 */
    RBT_E_DATA,        /* a file's content is wrong; the message has file:line */
    RBT_E_IO,          /* the system refused: open, read, write, no space */
    RBT_E_MEMORY,      /* not enough memory for something whose size came from outside */
    RBT_E_LIMIT,       /* a named limit was exceeded */
    RBT_E_PROTOCOL,    /* a message broke the protocol */
    RBT_E_DIVERGED,    /* the loss became NaN, infinite or blew up */
    RBT_E_NO_PROGRESS, /* everybody waits and nothing is under way: exit code 6 */
    RBT_E_BROKEN,      /* a guarantee was broken (checkers only): exit code 5 */
    RBT_E_TARGET,      /* the target was not reached: exit code 3 */
    RBT_E_INTERRUPTED, /* the user stopped the job: exit code 130 */
    RBT_E_UNSUPPORTED, /* not in this build or on this runtime */
    RBT_E_CRASHED,     /* a process died of a signal (swarm) */
    RBT_E_MISSING,     /* cluster: not all processes joined in time: exit code 4 */
    RBT_E_LOST,        /* a process or worker that the job cannot do without was lost: exit code 7 */
    RBT_E_PIPE,        /* whoever read the standard output has gone: exit code 141, without a word */
} rbt_err;

typedef struct rbt_error {
    rbt_err code;
    char text[1024]; /* one sentence or two, no newline at the end */
} rbt_error;

/* The code's name, for logs: "data", "usage", ... */
RBT_API const char *rbt_err_name(rbt_err code);

/* The exit code a command line should use for it. */
RBT_API int rbt_err_exit_code(rbt_err code);

/* -------------------------------------------------------------------------------------------------- 2. Data */

/* What rows are. */
typedef enum rbt_content {
    RBT_CONTENT_ROWS,    /* of features, with labels */
    RBT_CONTENT_RATINGS, /* users; columns are items, values ratings, of which alone some may be 0 */
    RBT_CONTENT_DOCS,    /* documents; columns are words, values how often each occurs */
    RBT_CONTENT_POINTS,  /* only of a method and a reading: rows whose labels are of no matter; data has ROWS */
} rbt_content;

/* A list of names that does not change: what users and items are called in the file. Each is there once. */
typedef struct rbt_ids rbt_ids;
RBT_API size_t rbt_ids_count(const rbt_ids *ids);
RBT_API const char *rbt_ids_name(const rbt_ids *ids, size_t i);
RBT_API size_t rbt_ids_find(const rbt_ids *ids, const char *name); /* rbt_ids_count when it is not there */

/* Rows of sparse features, stored row after row. Row r has its features at start[r] .. start[r + 1] - 1 of `index` and
 * `value`, indices ascending, 0-based, below `cols`. */
typedef struct rbt_data {
    size_t rows;
    size_t cols;
    size_t nnz;
    size_t *start;   /* rows + 1 */
    uint32_t *index; /* nnz */
    float *value;    /* nnz */
    float *label;    /* rows, as in the file; or which of label_names */
    float *weight;   /* rows: how much each counts, above 0; NULL = 1 each */

    char *
        *label_names; /* labels that are words: label_count of them in ascending order; NULL when labels are numbers */
    size_t label_count;

    rbt_content content;
    rbt_ids *row_names; /* ratings: the users, as many as there are rows; else NULL */
    rbt_ids *col_names; /* ratings: the items, as many as there are columns; else NULL */

    char *origin; /* how it was read, as text (docs/formats.md, section 2); NULL: that is not known, or of no matter */

    /* Not NULL: start, index and value lie in this mapped cache file, which rbt_data_deinit unmaps. They must not be
     * written to, and the file not be cut short. Data that you make yourself has NULL and 0 here. */
    void *mapping;
    size_t mapping_bytes;
    bool streamed; /* of the mapping only what is being looked at stays in memory (--store disk) */
} rbt_data;

/* What was left out or filled in while reading. */
typedef struct rbt_read_report {
    uint64_t skipped;    /* bad rows left out */
    uint64_t unlabelled; /* rows without a label, which got 0 */
    rbt_error first;     /* the first bad row, with file:line; "" of a kept cache */
    uint64_t repeated;   /* ratings: of a user and an item that have a later one, which counts */
    uint64_t headers;    /* ratings: first lines of files that were taken for the names of the columns; csv: 1 if the
                            first line was, and a name is also a cell of its column in the first rows */
    uint64_t unknown;    /* ratings left out: of a user or an item that the reading's rows or cols do not have */
    char mixed[384];     /* csv: the first word in a column of words that are mostly numbers, with file:line; else "" */
    uint64_t layout; /* csv, images, vw: the columns that the file's own, its pixels or --bits make; 0: the rows tell */
    bool again;      /* csv: headers is 1, and later lines that equal the first were left out */
} rbt_read_report;

/* Where the features of LIBSVM text begin to count. AUTO: from 0 when an index 0 occurs, else from 1. */
typedef enum rbt_base { RBT_BASE_AUTO, RBT_BASE_0, RBT_BASE_1 } rbt_base;

/* How to read a file. All zero: find out what it is, and take what is usual. */
typedef struct rbt_reading {
    const char
        *format; /* "libsvm", "vw", "csv", "idx", "ratings", "docword", "ldac" or "cache"; NULL or "auto" = by the
                           file's first bytes, its name and its first lines */
    rbt_content expect; /* which of the formats that a text may have is meant, when its lines do not tell: RATINGS takes
                           any text for ratings, DOCS takes index:count for lda-c; POINTS: no column of csv is a label
                           unless `label` names one */
    const char *label;  /* csv: the label's column, by name or by number from 1, or "none"; NULL = 1. idx: the file of
                           labels, or "none"; NULL = the one whose name fits */
    const char *weight; /* csv: the column of the rows' weights; NULL = none */
    uint32_t bits;      /* vw, and words in csv: hashed to 2^bits columns; 0 = 18 */
    rbt_base base;      /* libsvm: what the first feature's index is */
    const char
        *origin; /* how other data was read (rbt_data, rbt_trained): what is left open here is taken from it, and a
                           file whose columns are others is refused; NULL = none */
    uint64_t skip_bad; /* rows that may be wrong; they are left out */
    size_t features;   /* csv: how many the columns are to make, those of a model that answers; 0 = whatever they make.
                            `rubato predict` need not see all rows then before it answers the first */
    bool unlabelled; /* rows need no label, pairs of user and item no rating (for prediction): 0 stands in its place */
    bool classes;    /* labels tell classes apart: a number that a float would round to another one is refused */
    const rbt_ids *rows; /* ratings: the users and the items there are, in this order (those that a model was trained */
    const rbt_ids *cols; /* with); ratings of others are left out. NULL: those in the file, as they first occur */
    rbt_read_report *report; /* written on success; NULL = not wanted */
} rbt_reading;

#define RBT_BITS_DEFAULT 18
#define RBT_BITS_LIMIT   31

/* Reads data from a file, from the standard input ("-"), or from all files that match a pattern such as "part-*.svm",
 * in the order of their names, as one data set: LIBSVM text, Vowpal Wabbit text, CSV, IDX images, ratings, or documents
 * as UCI bags of words or lda-c (docs/formats.md has them). Files compressed with gzip or Zstandard are unpacked. A
 * cache that `rubato convert` wrote is checked and mapped instead. Uses all cores. rbt_data_read takes the defaults. */
RBT_API rbt_err rbt_data_read_as(const char *path, const rbt_reading *reading, rbt_data *data, rbt_error *error);
RBT_API rbt_err rbt_data_read(const char *path, rbt_data *data, rbt_error *error);
RBT_API void rbt_data_deinit(rbt_data *data);

/* --------------------------------------------------------------------------------------- 3. Gradient models */

/* What a model is made for. */
typedef struct rbt_shape {
    size_t cols;    /* features */
    bool bias;      /* one more parameter per decision value, after all others, which is not regularised */
    bool unit_rows; /* rows are scaled to length 1 before the model sees them */
    double delta;   /* huber: the error from which on the loss is linear */

    size_t classes; /* what is predicted: one of so many classes, or, with 0, a number */
    double *labels; /* the classes' labels as in the file, ascending; NULL with names */
    char **names;   /* the classes' labels when they are words, ascending; else NULL */
} rbt_shape;

RBT_API void rbt_shape_deinit(rbt_shape *shape);

/* For `prepare` below. Columns, when they are 0, and: the classes are the data's labels, at least two different ones,
 * and exactly `wanted` unless that is 0; or no classes, labels are numbers, and there is at least one row. */
RBT_API rbt_err rbt_shape_set_classes(const rbt_data *data, size_t wanted, rbt_shape *shape, rbt_error *error);
RBT_API rbt_err rbt_shape_set_numbers(const rbt_data *data, rbt_shape *shape, rbt_error *error);

/* Makes data fit a shape: labels become the numbers 0, 1, ... of the shape's classes (a label the shape does not have
 * is refused by its row), rows are scaled to length 1 if the shape says so. Do it once. Without `labels` the labels
 * stay as they are: enough for predicting. */
RBT_API rbt_err rbt_shape_apply(const rbt_shape *shape, bool labels, rbt_data *data, rbt_error *error);

/* A model is a flat vector of f32 parameters and the functions below; it holds no state of its own. The data they see
 * has been made to fit the shape: a label is the number of a class, or the number to predict. Weights of rows count.
 * All must be there but link and probability. */
typedef struct rbt_model {
    const char *name;
    const char *about;
    bool numbers;                /* predicts a number; else a class */
    const struct rbt_link *link; /* built-in models with one decision value per row: the loss as a function of it */

    /* How many parameters; how many decision values per row. */
    size_t (*size)(const rbt_shape *shape);
    size_t (*outputs)(const rbt_shape *shape);

    /* Works out classes and columns from data as it was read; refuses data the model cannot use. */
    rbt_err (*prepare)(const rbt_data *data, rbt_shape *shape, rbt_error *error);

    /* Adds to `gradient` the sum over the given rows of the loss's gradient at `w` (no regularisation), and returns the
     * sum of the losses. `rows` lists n row numbers. */
    double (*gradient)(const rbt_shape *shape, const rbt_data *data, const uint32_t *rows, size_t n, const float *w,
                       float *gradient);

    /* The sum of the losses over rows first .. first + n - 1. */
    double (*loss)(const rbt_shape *shape, const rbt_data *data, size_t first, size_t n, const float *w);

    /* The decision values of one row; the label they stand for, a class's number or a number itself; and the classes'
     * probabilities. A model that knows none has NULL there. */
    void (*score)(const rbt_shape *shape, const rbt_data *data, size_t row, const float *w, double *score);
    double (*label)(const rbt_shape *shape, const double *score);
    void (*probability)(const rbt_shape *shape, const double *score, double *probability);
} rbt_model;

/* A built-in model by name, or NULL. rbt_model_at lists them: NULL past the last. */
RBT_API const rbt_model *rbt_model_find(const char *name);
RBT_API const rbt_model *rbt_model_at(size_t i);

/* ------------------------------------------------------------------------------------------------ 4. Tables */

typedef enum rbt_type { RBT_F32, RBT_I32, RBT_I64 } rbt_type;

#define RBT_UNBOUNDED        UINT64_MAX       /* a staleness: never wait */
#define RBT_STALENESS_OF_JOB (UINT64_MAX - 1) /* a staleness: the job's own bound */

/* A procedure: what servers do with the updates of a table when adding them up is not it.
 *
 * A table is cut into blocks, each on one server. Beside a block's values the server keeps `memory` numbers per element
 * for the procedure, and `kept` numbers per element for each version of the block that some worker can still have
 * computed an update from. Four functions are called, for one block at a time; those that are not needed may be NULL,
 * except apply:
 *
 *   init      when the block is made; values and memory are 0
 *   on_read   before a version goes to a worker for the first time: writes down what must be known of it later
 *   apply     with an update, and what on_read wrote down of the version that the update was computed from
 *   expire    when no worker can name that version any more
 *
 * Different blocks may be worked on by different threads at the same time, one block never is. The same calls must have
 * the same result, element by element, wherever a block begins: then BSP gives the same bits on every runtime with any
 * number of servers. A table with a procedure is dense and of f32. src/rule/adarev.c is one to start from. */
typedef struct rbt_procedure rbt_procedure;

/* What the job's options say. */
typedef struct rbt_procedure_job {
    uint32_t workers;
    float rate;     /* --lr; 0.5 if not given */
    float momentum; /* --momentum */
    float factor;   /* --global-rate, or 1 / workers */
} rbt_procedure_job;

typedef struct rbt_procedure_block {
    uint32_t n;       /* elements */
    uint64_t version; /* updates it has taken */
    uint64_t clock;   /* clocks that the fastest worker has finished in it, before the update being applied */
    float *value;     /* n */
    float *memory;    /* number k of element i is at k * n + i */
} rbt_procedure_block;

typedef struct rbt_procedure_update {
    uint32_t worker;
    uint64_t clock; /* the clock it was computed in */
    uint32_t count;
    const uint32_t *index; /* which elements, ascending; NULL: 0 .. count - 1 */
    const float *value;    /* count */
    const float *kept;     /* of the version it was computed from; NULL: of none (never read), or it keeps nothing */
} rbt_procedure_update;

struct rbt_procedure {
    const char *name;
    const void *argument; /* yours */
    uint32_t memory;
    uint32_t kept;        /* 0: an update's version does not matter */
    bool takes_gradients; /* workers send gradients: they see their own effect only through the server */
    bool counts_empty;    /* apply is called in every clock of every worker, also when nothing changed */
    void (*init)(const rbt_procedure *procedure, const rbt_procedure_job *job, rbt_procedure_block *block);
    void (*on_read)(const rbt_procedure *procedure, const rbt_procedure_job *job, const rbt_procedure_block *block,
                    float *kept);
    void (*apply)(const rbt_procedure *procedure, const rbt_procedure_job *job, rbt_procedure_block *block,
                  const rbt_procedure_update *update);
    void (*expire)(const rbt_procedure *procedure, const rbt_procedure_job *job, rbt_procedure_block *block,
                   const float *kept);
};

/* The servers' own procedures by name (adagrad, adarev, momentum), or NULL. */
RBT_API const rbt_procedure *rbt_procedure_find(const char *name);

typedef struct rbt_table_spec {
    const char *name;
    uint64_t rows;
    uint64_t cols;
    rbt_type type;
    bool sparse;               /* store only what is not zero */
    const rbt_procedure *rule; /* what servers do with updates; NULL: what --rule says. Integers are always added up */
    /* Rows that are sent together, at most; 0: as many as suit the table's size; 1: a reader is sent the rows it asks
     * for and no others, and a procedure sees whole rows, which have at most 65,536 columns then. */
    uint64_t block_rows;
} rbt_table_spec;

typedef uint32_t rbt_table; /* a table's number: 0, 1, ... in order of creation */

typedef struct rbt_worker rbt_worker;

/* In the simulator a worker has 1 MiB of stack: large buffers belong on the heap. */

/* A table program: a function that every worker runs, against tables that were created on its job (section 5).
 * It may read and increment as often as it likes between two clocks. */
typedef struct rbt_program {
    const char *name;
    rbt_err (*work)(rbt_worker *worker, void *argument, rbt_error *error);
    void *argument;
} rbt_program;

/* Who am I? Workers are numbered 0 .. workers - 1. The clock is the number of clocks this worker has finished; a worker
 * that was restarted begins at the clock its predecessor had finished. */
RBT_API uint32_t rbt_worker_id(const rbt_worker *worker);
RBT_API uint32_t rbt_worker_count(const rbt_worker *worker);
RBT_API uint64_t rbt_worker_clock(const rbt_worker *worker);
RBT_API bool rbt_worker_should_stop(const rbt_worker *worker);    /* the job asks everybody to end after this clock */
RBT_API bool rbt_worker_is_interrupted(const rbt_worker *worker); /* somebody has asked the job to: what waits for the
                                                                     outside world, a pipe, need not wait any longer */

/* Reads. The values contain every update of every worker from clocks before (my clock - staleness), all of my own
 * updates, and perhaps more. A call waits when the staleness bound demands it. `out` has the table's type. Under a rule
 * that takes gradients (adagrad, adarev) my own updates are in it once my clock has ended and the server has made
 * something of them. */
RBT_API rbt_err rbt_get_row(rbt_worker *worker, rbt_table table, uint64_t row, uint64_t staleness, void *out,
                            rbt_error *error);
RBT_API rbt_err rbt_get_range(rbt_worker *worker, rbt_table table, uint64_t row, uint64_t col, uint64_t n,
                              uint64_t staleness, void *out, rbt_error *error);
RBT_API rbt_err rbt_get_keys(rbt_worker *worker, rbt_table table, uint64_t row, const uint64_t *cols, size_t n,
                             uint64_t staleness, void *out, rbt_error *error);

/* Asks for a range that will be read in the next clock with the given staleness, without waiting for it. */
RBT_API rbt_err rbt_prefetch(rbt_worker *worker, rbt_table table, uint64_t row, uint64_t col, uint64_t n,
                             uint64_t staleness, rbt_error *error);

/* Increments. Visible to this worker at once, to the others when this worker's clock has ended. */
RBT_API rbt_err rbt_inc(rbt_worker *worker, rbt_table table, uint64_t row, uint64_t col, double delta,
                        rbt_error *error);
RBT_API rbt_err rbt_inc_row(rbt_worker *worker, rbt_table table, uint64_t row, const void *deltas, rbt_error *error);
RBT_API rbt_err rbt_inc_range(rbt_worker *worker, rbt_table table, uint64_t row, uint64_t col, uint64_t n,
                              const void *deltas, rbt_error *error);
RBT_API rbt_err rbt_inc_keys(rbt_worker *worker, rbt_table table, uint64_t row, const uint64_t *cols, size_t n,
                             const void *deltas, rbt_error *error);

/* Ends the worker's clock: its increments go out. */
RBT_API rbt_err rbt_clock(rbt_worker *worker, rbt_error *error);

/* Tells how much work was done since the last call: the simulator charges virtual time for it; elsewhere it feeds the
 * statistics. */
RBT_API void rbt_worker_did(rbt_worker *worker, uint64_t samples, uint64_t nonzeros);

/* -------------------------------------------------------------------------------------------------- 5. Jobs */

/* A training job: created, described by options (the very ones of the command line, without the dashes), run once.
 *
 *     rbt_job *job = rbt_job_create("lr");
 *     rbt_job_set(job, "data", "train.svm", &error);
 *     rbt_job_set(job, "workers", "8", &error);
 *     rbt_job_run(job, NULL, NULL, &error);
 *
 * The name of a built-in model makes a job that trains it on data; NULL makes one for a table program (below).
 */
typedef struct rbt_job rbt_job;

/* How the job stands after a clock. Loss is the objective: mean loss + l2/2 |w|^2. Times are wall seconds, or virtual
 * ones under the simulator; loading is not included. */
typedef struct rbt_progress {
    uint64_t clock_min; /* clocks of the slowest and the fastest worker that are in what has this loss */
    uint64_t clock_max;
    double seconds;
    double loss;
    uint64_t updates; /* clocks of all workers together, without those that peers jumped over */
    uint64_t samples;
    double samples_per_second;
    double wait_fraction;  /* of the workers' time so far */
    double staleness_mean; /* of the reads so far */
    uint64_t bytes_sent;
} rbt_progress;

#define RBT_LABELS_REPORTED 10 /* classes whose rows are counted per worker */

typedef struct rbt_worker_report {
    double compute_seconds;
    double wait_seconds;          /* for other workers */
    double communication_seconds; /* for answers under way */
    double slowed_seconds;        /* of compute: added by --straggler */
    uint64_t rows;
    uint64_t nonzeros;
    uint64_t labels[RBT_LABELS_REPORTED]; /* rows of each class, in the order of the labels */
    size_t classes;                       /* so many of them; 0: more than fit, or numbers are predicted */
    uint64_t clocks;
    uint64_t samples;
} rbt_worker_report;

#define RBT_STALENESS_BINS 65 /* staleness 0 .. 63, and the rest */

typedef struct rbt_result {
    double loss;
    double seconds; /* of training, up to the target if one was reached */
    double load_seconds;
    uint64_t clocks;
    uint64_t updates;
    double seconds_per_update;
    uint64_t bytes_sent;
    uint64_t bytes_plain; /* what it would have been without --codec */
    uint64_t messages;
    double wait_fraction;
    uint64_t max_gap; /* the largest difference between clocks being computed */
    uint64_t staleness_histogram[RBT_STALENESS_BINS];
    uint64_t peak_versions; /* dyn, adarev: most versions alive at once in a block */
    uint64_t version_bytes; /* dyn, adarev: most memory of versions on any one server */
    uint64_t parameter_bytes;
    double samples_per_second;
    double penalty; /* what of `loss` is that of l1 and l2; 0: none, or not known */
    double minobj;  /* mean and variance of the last five clocks' objectives */
    double varobj;
    bool has_target;
    bool reached;
    bool interrupted;    /* it was asked to end, and has not ended of itself before that */
    const char *ended;   /* why training ended before its last clock, as a sentence; NULL: it did not */
    uint64_t param_hash; /* xxHash of the final parameters */
    int64_t table_sum;   /* of integer tables */
    bool has_table_sum;
    uint64_t seed;
    uint64_t events; /* simulator: events handled */

    bool has_peers;   /* trained without servers: the parameters are the mean of the peers' */
    double spread;    /* the root of the mean squared distance of the peers from it */
    uint64_t skipped; /* iterations that were jumped over */

    uint32_t folds;   /* cross-validation: so many; the rest is of the model trained on all rows */
    double fold_loss; /* on the rows left out: mean over the folds, and standard deviation */
    double fold_loss_deviation;
    double fold_score; /* likewise: accuracy, or, of a model of numbers, the root of the mean squared error */
    double fold_score_deviation;
    bool folds_of_numbers;

    uint32_t threads;
    uint32_t servers;
    size_t workers;
    const rbt_worker_report *worker; /* one per worker */
} rbt_result;

typedef enum rbt_event_kind {
    RBT_EVENT_START,
    RBT_EVENT_CLOCK,
    RBT_EVENT_EVAL,
    RBT_EVENT_NOTE,
    RBT_EVENT_DONE
} rbt_event_kind;

/* A figure about a fitted model on data: "rmse", 0.87. */
typedef struct rbt_figure {
    const char *name; /* a constant */
    double value;
} rbt_figure;

#define RBT_FIGURES_MOST 8

typedef struct rbt_event {
    rbt_event_kind kind;
    const rbt_job *job;
    const rbt_progress *progress; /* CLOCK */
    uint64_t eval_clock;          /* EVAL: on the validation data, after this many clocks */
    double eval_seconds;
    double eval_loss;
    double eval_accuracy;          /* of a model that predicts classes, else NaN */
    double eval_rmse;              /* of a model that predicts numbers, else NaN */
    const rbt_figure *eval_figure; /* of a method: all it finds; the above are those of the same name, or NaN */
    size_t eval_figures;
    const char *note;         /* NOTE: a sentence */
    const rbt_result *result; /* DONE */
} rbt_event;

/* Called from one thread at a time, not necessarily the one that runs the job; must not call back into the job. */
typedef void rbt_event_handler(void *context, const rbt_event *event);

RBT_API rbt_job *rbt_job_create(const char *model);
RBT_API void rbt_job_destroy(rbt_job *job);

/* Sets an option by name; an unknown name or a bad value is an error that says what was expected. */
RBT_API rbt_err rbt_job_set(rbt_job *job, const char *option, const char *value, rbt_error *error);

/* The effective options, one after the other: false past the last. Values are text that rbt_job_set would take. */
RBT_API bool rbt_job_option(const rbt_job *job, size_t i, const char **name, const char **value);

/* Loads the data, trains, evaluates. RBT_E_TARGET and RBT_E_INTERRUPTED still leave a result. A job that has
 * been run, whatever came of it, is refused: RBT_E_USAGE. */
RBT_API rbt_err rbt_job_run(rbt_job *job, rbt_event_handler *handler, void *context, rbt_error *error);

/* Asks a running job to end after the current clock. Safe to call from a signal handler. */
RBT_API void rbt_job_interrupt(rbt_job *job);

/* After a run: the result, the parameters, what they were made for. NULL before. */
RBT_API const rbt_result *rbt_job_result(const rbt_job *job);
RBT_API const float *rbt_job_parameters(const rbt_job *job, size_t *n);

/* A table program as a job: created with rbt_job_create(NULL), given tables and options (workers, servers, sync, ...),
 * and run once. Increments add up (rule sum) unless another rule is set. When all workers have ended, the tables can be
 * read. Its runtimes are local and sim: the processes of a cluster have no such function. A method in a shared object
 * (section 6) runs there.
 *
 *     rbt_job *job = rbt_job_create(NULL);
 *     rbt_table_spec spec = {.name = "counts", .rows = 1, .cols = 1000, .type = RBT_I64};
 *     rbt_program program = {.name = "count", .work = count, .argument = &counts};
 *     rbt_table_create(job, &spec, &counts, &error);
 *     rbt_job_set(job, "workers", "8", &error);
 *     rbt_job_run_program(job, &program, NULL, NULL, &error);
 *     rbt_table_read(job, counts, 0, 0, 1000, values, &error);
 */
RBT_API rbt_err rbt_table_create(rbt_job *job, const rbt_table_spec *spec, rbt_table *table, rbt_error *error);
RBT_API rbt_err rbt_job_run_program(rbt_job *job, const rbt_program *program, rbt_event_handler *handler, void *context,
                                    rbt_error *error);
RBT_API rbt_err rbt_table_read(const rbt_job *job, rbt_table table, uint64_t row, uint64_t col, uint64_t n, void *out,
                               rbt_error *error);

/* A trained model: the model's functions, its shape and its parameters. Files are checksummed and written atomically.
 */
typedef struct rbt_trained {
    const rbt_model *model;
    rbt_shape shape;
    size_t n;
    float *w;
    char *origin; /* how the data was read that it was trained with, as in rbt_data; or NULL */
} rbt_trained;

RBT_API rbt_err rbt_job_save(const rbt_job *job, const char *path, rbt_error *error);
RBT_API rbt_err rbt_trained_save(const rbt_trained *trained, const char *path, rbt_error *error);
RBT_API rbt_err rbt_trained_load(const char *path, rbt_trained *trained, rbt_error *error);

/* The same for a file that may be of a model that is not built in: of `own`, by its name. NULL: built-in ones alone. */
RBT_API rbt_err rbt_trained_load_own(const char *path, const rbt_model *own, rbt_trained *trained, rbt_error *error);
RBT_API void rbt_trained_deinit(rbt_trained *trained);

/* ----------------------------------------------------------------------------------------------- 6. Methods */

/* A method is a table program with all that makes it a model for its user: options of its own, data, an objective, a
 * file with what was learned, and ways to apply that. `rubato train kmeans` runs a built-in one, `rubato train
 * ./mine.so` one from a shared object (below). From C: rbt_job_create(NAME), rbt_job_set, rbt_job_run, rbt_job_save, as
 * for models.
 *
 * The steps of a job: every process reads the data (or its part of it: see `own_rows`) and calls `plan`, which looks at
 * it and creates the tables, the same ones everywhere. Then every worker runs `work`:
 *
 *     while (rbt_plan_batch(plan, worker, &first, &n)) {
 *         ... rows[first] .. rows[first + n - 1] of rbt_plan_rows; rbt_get_..., rbt_inc_... ...
 *         rbt_worker_did(worker, n, nonzeros);
 *         rbt_plan_tell(plan, worker, loss, n, error);
 *         rbt_clock(worker, error);
 *     }
 *
 * At the end `keep` puts what is in the tables into a fitted model, once, where the job was started; without servers
 * also before that, whenever --valid is looked at. */

#define RBT_METHOD_OPTIONS_MOST 64 /* options of a method; a shared object with more is refused */

/* An option of a method: --NAME VALUE. Its value is a number. */
typedef struct rbt_method_option {
    const char *name; /* NULL ends a list */
    double fallback;
    double least, most;
    bool whole;        /* whole numbers only */
    const char *words; /* not NULL: "first|second|...", and the value is the chosen word's place, from 0 */
    const char *about; /* a sentence for --help */
} rbt_method_option;

typedef struct rbt_method rbt_method;

/* What a method's functions are told. Rows are all rows of the data, in every process; but of a method with `own_rows`,
 * in a job of several processes, those of workers elsewhere have their labels and weights, and no features unless they
 * are `common`. */
typedef struct rbt_plan {
    const rbt_method *method;
    const rbt_data *data;
    const char *path; /* --data, for methods that read it themselves; `data` then has no rows */
    uint32_t workers;
    uint64_t seed;
    double lr;          /* --lr; 0: not given */
    bool bias;          /* not --no-bias */
    uint64_t staleness; /* the job's bound; 0 under bsp, RBT_UNBOUNDED under asp */
    uint64_t skip_bad;  /* --skip-bad, for methods that read `path` themselves */
    double l1, l2;      /* --l1, --l2; 0 and NAN: not given. `plan` may set what was not: the job goes on with it */
    bool shared;        /* in shared memory: `pass` is called, and there are no tables */
    bool peers;         /* without servers: `update` is called, and there are no tables */
    /* With peers: how far a worker's update may take a parameter that all change, in units of its distance from the
     * optimum, so that averages stay stable; and how much of what averages have lost of one that it alone changes it
     * may make up for in a pass, in units of what is missing there (0: averages keep sums, nothing is lost). */
    double reach;
    double own_reach;
    const float *result;  /* with peers, in `keep`: the parameters, which are the mean of the peers' */
    bool takes_gradients; /* the job's rule makes steps of gradients: that is what increments of f32 tables must be */
    uint64_t judge_every; /* 0; `plan` may set it: clocks between two calls of `judge`, when these are many */
    const void *facts;    /* what `survey` has found */
    void *state;          /* the method's own, from `plan` to `end` */
    struct rbt_planned *job; /* ours */
} rbt_plan;

/* The value of an option of the method's own. */
RBT_API double rbt_plan_option(const rbt_plan *plan, const char *name);

/* In `plan`: creates a table. */
RBT_API rbt_err rbt_plan_table(rbt_plan *plan, const rbt_table_spec *spec, rbt_table *table, rbt_error *error);

/* In `work`: the worker's rows; and which of them its present clock is for: false when there are none any more, because
 * all passes are done or the job is to end. A pass takes rbt_plan_pass_clocks clocks, the same number for every
 * worker. */
RBT_API const uint32_t *rbt_plan_rows(const rbt_plan *plan, const rbt_worker *worker, size_t *n);
RBT_API const uint32_t *rbt_plan_rows_of(const rbt_plan *plan, uint32_t worker, size_t *n); /* the same by its number */
RBT_API bool rbt_plan_batch(const rbt_plan *plan, const rbt_worker *worker, size_t *first, size_t *n);
RBT_API uint64_t rbt_plan_pass_clocks(const rbt_plan *plan);

/* All clocks that a worker makes: opening, batches, closing. In `plan`, a method whose passes are not over rows says
 * how many clocks one takes: --epochs counts these. */
RBT_API uint64_t rbt_plan_clocks(const rbt_plan *plan);
RBT_API void rbt_plan_set_pass_clocks(rbt_plan *plan, uint64_t clocks);

/* The step size in this clock: --lr (or, not given, `lr`) after --decay; the same for the clock of that number. */
RBT_API double rbt_plan_rate(const rbt_plan *plan, const rbt_worker *worker, double lr);
RBT_API double rbt_plan_rate_at(const rbt_plan *plan, uint64_t clock, double lr);

/* In `work`: adds to the objective of the present clock. What the job reports is the sum of all that workers told of a
 * clock, divided by the sum of the weights. Not finite: RBT_E_DIVERGED. */
RBT_API rbt_err rbt_plan_tell(const rbt_plan *plan, rbt_worker *worker, double sum, uint64_t weight, rbt_error *error);

/* In `keep`: a range of a table as it is after the last clock. In `judge`: as it is now. */
RBT_API rbt_err rbt_plan_read(const rbt_plan *plan, rbt_table table, uint64_t row, uint64_t col, uint64_t n, void *out,
                              rbt_error *error);

/* What a method has learned: arrays, lists of names, and numbers, each by a name that no other of all these has, nor
 * "model" or "about". A file holds just that. */
typedef struct rbt_values {
    char *name;
    rbt_type type;
    uint64_t rows, cols;
    void *at; /* row after row */
} rbt_values;

typedef struct rbt_name_list {
    char *name;
    size_t n;
    char **at;
} rbt_name_list;

typedef struct rbt_number {
    char *name;
    double value;
} rbt_number;

typedef struct rbt_fitted {
    const rbt_method *method;
    size_t arrays, lists, numbers;
    rbt_values *array;
    rbt_name_list *list;
    rbt_number *number;
} rbt_fitted;

/* Adds an array of zeros, or a list of names (copied; NULL: none are known); the array's values, or NULL without
 * memory. */
RBT_API void *rbt_fitted_add(rbt_fitted *fitted, const char *name, rbt_type type, uint64_t rows, uint64_t cols);
RBT_API void rbt_fitted_add_names(rbt_fitted *fitted, const char *name, size_t n, const char *const *names);
RBT_API void rbt_fitted_set(rbt_fitted *fitted, const char *name, double value);

/* Finds them again: NULL, and NAN, when there are none. */
RBT_API const rbt_values *rbt_fitted_values(const rbt_fitted *fitted, const char *name);
RBT_API const rbt_name_list *rbt_fitted_names(const rbt_fitted *fitted, const char *name);
RBT_API double rbt_fitted_number(const rbt_fitted *fitted, const char *name);

RBT_API rbt_err rbt_fitted_save(const rbt_fitted *fitted, const char *path, rbt_error *error);
RBT_API rbt_err rbt_fitted_load(const char *path, rbt_fitted *fitted, rbt_error *error);
RBT_API rbt_err rbt_fitted_load_own(const char *path, const rbt_method *own, rbt_fitted *fitted, rbt_error *error);
RBT_API void rbt_fitted_deinit(rbt_fitted *fitted);

/* What a worker has done in a pass in shared memory, or in a peer's clock, and what it tells of the objective. */
typedef struct rbt_told {
    double sum;
    uint64_t weight; /* samples, too */
    uint64_t rows;
    uint64_t nonzeros; /* peers: as for rbt_worker_did */
} rbt_told;

/* Of a method name, about, plan, work and keep must be there; with update also size and losses; of facts and survey
 * both or none. */
struct rbt_method {
    const char *name;
    const char *about;
    const char *objective; /* what workers tell, in words: "squared distance"; NULL: nothing, and the job has no loss */
    rbt_content content;   /* what its rows are: helps to tell the format of a file whose lines do not */
    bool reads_itself;     /* from plan->path; the plan's data has no rows */
    const rbt_method_option *options;
    uint32_t opening, closing; /* clocks that `work` makes before its first batch, and after the last */
    uint32_t parts;            /* clocks that a pass is cut into unless --batch says otherwise; 0: one */
    bool keeps_state;          /* a worker remembers things between clocks: one that was lost cannot be replaced */
    bool has_bias;             /* it heeds plan->bias; others refuse --no-bias */
    bool has_classes;          /* labels tell classes apart: they are refused where a float would round them */
    bool needs_sums;           /* its tables only mean something when updates are added up: no --rule but sum */
    bool reads_once; /* it seldom reads a row again before others have changed it: --eager is off unless asked for */
    const char *unfiltered; /* why nothing of its updates may be left out or wait (--filter); NULL: it may */
    const char *unheeded;   /* job options that mean nothing to it, of lr, decay, l1, l2, batch, epochs, valid and
                               budget, with blanks between: these are refused; NULL: it may heed all */

    /* `own_rows`: a process looks at features of its own workers' rows only, so that each reads but its part of the
     * data. What `plan` has to know of all features is in plan->facts: `facts` bytes, zero at first, to which `survey`
     * adds the rows of some data, of which the first is number `first` of all. It is called for all rows in their
     * order, in whichever processes have read them. May be NULL. */
    bool own_rows;
    size_t (*facts)(const rbt_data *data);
    void (*survey)(const rbt_data *rows, size_t first, void *facts);

    /* With `own_rows`: rows whose features `plan` looks at in every process, whosever they are. Says how many, and
     * writes their numbers, of `rows` in all, to `list` unless that is NULL; in any order, and some perhaps again. The
     * plan has its options and no data yet. May be NULL. */
    size_t (*common)(const rbt_plan *plan, size_t rows, uint32_t *list);

    rbt_err (*plan)(rbt_plan *plan, rbt_error *error);
    rbt_err (*work)(rbt_worker *worker, rbt_plan *plan, rbt_error *error);
    rbt_err (*keep)(const rbt_plan *plan, rbt_fitted *fitted, rbt_error *error);

    /* NULL: the objective is the mean of what workers tell. A method whose workers cannot know it, as their copies lack
     * what others do, works it out where the job is watched: from that mean (`told`) and the tables as servers have
     * them (rbt_plan_read). */
    rbt_err (*judge)(const rbt_plan *plan, double told, double *objective, rbt_error *error);

    void (*end)(rbt_plan *plan); /* frees plan->state, also after a `plan` that failed; may be NULL */

    /* Shared memory (--sync hogwild or sequential): called by every worker's thread once per pass over the data, by all
     * at the same time, in the place of `work`. The worker goes through its share of the rows and changes what is in
     * plan->state; what several change must be atomic. NULL: there is no such way. */
    rbt_err (*pass)(rbt_plan *plan, uint32_t worker, uint64_t pass, rbt_told *told, rbt_error *error);

    /* Peers without servers (--sync hop, adpsgd, allreduce): each worker has all parameters, `size` numbers that begin
     * at 0, and averages them with its neighbours'. `update` is called once per clock in the place of `work`, by
     * several workers at the same time: from the parameters w, which it may change, it works out what the n rows add to
     * them, and writes that to u. In the result, the mean of all peers, an update counts but 1 / workers. `losses` is
     * the sum of the objective over rows at w, and of its weight; called by one at a time. Opening and closing clocks
     * are left out. NULL: there is no such way. */
    size_t (*size)(const rbt_plan *plan);
    rbt_err (*update)(rbt_plan *plan, uint32_t worker, uint64_t clock, const uint32_t *rows, size_t n, float *w,
                      float *u, rbt_told *told, rbt_error *error);
    double (*losses)(const rbt_plan *plan, const uint32_t *rows, size_t n, const float *w, uint64_t *weight);

    /* What can be done with a fitted model. Writes a line for one row of data; finds at most RBT_FIGURES_MOST figures;
     * describes it for a reader. Ratings in text are predicted one by one in the order of their lines, by the names of
     * row and column, if there is a `predict_one`. A figure "loss" is the objective, without penalties, in the unit of
     * what workers tell: that is what --patience watches. Each may be NULL. `open` checks a model from a file: may the
     * others rely on its arrays? */
    rbt_err (*open)(const rbt_fitted *fitted, rbt_error *error);
    rbt_err (*predict)(const rbt_fitted *fitted, const rbt_data *data, size_t row, FILE *out, rbt_error *error);
    rbt_err (*predict_one)(const rbt_fitted *fitted, const char *row, const char *col, FILE *out, rbt_error *error);
    rbt_err (*evaluate)(const rbt_fitted *fitted, const rbt_data *data, rbt_figure *figures, size_t *n,
                        rbt_error *error);
    void (*describe)(const rbt_fitted *fitted, FILE *out);

    /* The same as predict and evaluate for a method that reads files itself: for a line of text, which may be empty, of
     * a file. */
    rbt_err (*answer)(const rbt_fitted *fitted, const char *line, size_t n, FILE *out, rbt_error *error);
    rbt_err (*measure)(const rbt_fitted *fitted, const char *path, rbt_figure *figures, size_t *n, rbt_error *error);

    /* What was learned as a trained model, if that is what it is, such as lr: it is then predicted with, and exported,
     * as one. May be NULL. */
    rbt_err (*as_trained)(const rbt_fitted *fitted, rbt_trained *trained, rbt_error *error);

    /* Writes the best n columns for a row of this name, a line each; those that `known` (or NULL) has for it are left
     * out. */
    rbt_err (*recommend)(const rbt_fitted *fitted, const rbt_data *known, const char *name, size_t n, FILE *out,
                         rbt_error *error);
};

/* A built-in method by name, or NULL. rbt_method_at lists them: NULL past the last. */
RBT_API const rbt_method *rbt_method_find(const char *name);
RBT_API const rbt_method *rbt_method_at(size_t i);

/* After a method's run: what it learned. NULL before, and for models. */
RBT_API const rbt_fitted *rbt_job_fitted(const rbt_job *job);

/* Shared objects. One that is given in a model's place (`rubato train ./mine.so`) has a function RBT_PLUGIN that
 * returns one of these. It is loaded into every process of the job, from the same path. */
typedef struct rbt_plugin {
    uint32_t version;       /* RBT_PLUGIN_VERSION */
    const rbt_model *model; /* one of both, the other NULL */
    const rbt_method *method;
} rbt_plugin;

#define RBT_PLUGIN_VERSION 4u
#define RBT_PLUGIN         "rbt_plugin_entry" /* const rbt_plugin *rbt_plugin_entry(void) */

#ifdef __cplusplus
}
#endif

#endif
