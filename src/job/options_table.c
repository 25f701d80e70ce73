/* The option table: one entry per option, from which parsing, job files, --help and the effective configuration come.
 *
 * An entry: name, group, kind, where the value lies, default as text, how the help shows the value; then the sentence
 * of the help, where the option is allowed (the refusal itself stands in options_check.c), and what its kind needs.
 * Proved by tests/unit/test_options.c, which sets, prints and reads back every entry.
 */
#include "job/options_table.h"

#define AT(field) offsetof(rbt_options, field)

static const rbt_option TABLE[] = {
    {"model", "Data", RBT_OPTION_TEXT, AT(model), NULL, "NAME", .help = "The model to train: lr."},
    {"data", "Data", RBT_OPTION_TEXT, AT(data), NULL, "PATH",
     .help = "Training data: LIBSVM text, also .gz and .zst; a file, a quoted pattern, or - = standard input."},
    {"valid", "Data", RBT_OPTION_TEXT, AT(valid), NULL, "PATH",
     .help = "Validation data: loss and accuracy while training."},
    {"cache", "Data", RBT_OPTION_WORD, AT(cache), "off", "auto|off",
     .help = "auto: keeps a binary cache next to the data, and reads that as long as the data does not change.",
     .words = "off|auto"},
    {"store", "Data", RBT_OPTION_WORD, AT(store), "memory", "memory|disk|both",
     .help = "Where the data is: in memory; on disk, streamed in bounded memory; in memory, with a cache kept on disk.",
     .words = "memory|disk|both"},
    {"out", "Data", RBT_OPTION_TEXT, AT(out), NULL, "FILE", .help = "Where the trained model goes."},
    {"runtime", "Job", RBT_OPTION_WORD, AT(runtime), "local", "local|sim",
     .help = "Threads of this machine, or the simulator in virtual time.", .words = "local|sim"},
    {"workers", "Job", RBT_OPTION_U32, AT(workers), "auto", "N|auto", .help = "Workers; auto = as many as cores.",
     .zero = "auto", .min = 1, .max = RBT_WORKERS_LIMIT},
    {"servers", "Job", RBT_OPTION_U32, AT(servers), "1", "P", .help = "Servers that the parameters are spread over.",
     .min = 1, .max = RBT_SERVERS_LIMIT},
    {"sync", "Job", RBT_OPTION_WORD, AT(sync), "ssp", "bsp|ssp|asp",
     .help = "Who waits for whom: everybody, within a bound, nobody.", .words = "bsp|ssp|asp"},
    {"staleness", "Job", RBT_OPTION_STALENESS, 0, "3", "S|inf",
     .help = "How many clocks a worker may be ahead of the slowest.", .when = "--sync ssp"},
    {"rule", "Job", RBT_OPTION_WORD, AT(rule), "auto", "auto|sum|con|dyn|adagrad",
     .help = "What a server does with an update; auto = con under bsp, else dyn.", .words = "auto|sum|con|dyn|adagrad"},
    {"global-rate", "Job", RBT_OPTION_REAL, AT(global_rate), "auto", "G|auto",
     .help = "The factor of each update; auto = 1/workers.", .when = "--rule con", .zero = "auto"},
    {"partition-sync", "Job", RBT_OPTION_WORD, AT(partition_sync), "auto", "on|off|auto",
     .help = "Reads never mix versions of different servers; auto = on with several.", .when = "--rule dyn",
     .words = "auto|off|on"},
    {"eager", "Job", RBT_OPTION_WORD, AT(eager), "auto", "on|off|auto",
     .help = "Servers push fresh blocks to readers before they ask.", .when = "--sync ssp", .words = "auto|off|on"},
    {"clocks", "Job", RBT_OPTION_U64, AT(clocks), "auto", "N|auto",
     .help = "Clocks per worker; auto = as --epochs demands.", .zero = "auto", .min = 1, .max = UINT64_MAX},
    {"epochs", "Job", RBT_OPTION_REAL, AT(epochs), "auto", "N|auto", .help = "Passes over the data; auto = 10.",
     .zero = "auto"},
    {"batch", "Job", RBT_OPTION_BATCH, 0, "10%", "N|F%",
     .help = "Rows of a mini-batch, or percent of the worker's rows."},
    {"batches-per-clock", "Job", RBT_OPTION_U64, AT(batches_per_clock), "pass", "N|pass",
     .help = "Mini-batches of a clock; pass = once over the data.", .zero = "pass", .min = 1, .max = UINT64_MAX},
    {"seed", "Job", RBT_OPTION_U64, AT(seed), "1", "N", .help = "Seed of every random choice.", .max = UINT64_MAX},
    {"straggler", "Job", RBT_OPTION_TEXT, AT(straggler), NULL, "SPEC",
     .help = "Slows workers down: frac=0.2,slow=2 or p=0.1,slow=6 or worker=3,slow=4 or lognormal=0.5 or trace=FILE; "
             "several with ';'."},
    {"eval-every", "Job", RBT_OPTION_U64, AT(eval_every), "1", "N",
     .help = "Clocks of all workers between evaluations; 0 = only at the end.", .max = UINT64_MAX},
    {"verify", "Job", RBT_OPTION_FLAG, AT(verify), "false", NULL,
     .help = "Checks while it runs: no read misses what it must see, nothing is lost."},
    {"encode", "Job", RBT_OPTION_FLAG, AT(encode), "false", NULL,
     .help = "Encodes and decodes every message on its way (for testing)."},
    {"lr", "Learning", RBT_OPTION_REAL, AT(lr), "0.5", "ETA", .help = "Step size."},
    {"decay", "Learning", RBT_OPTION_DECAY, 0, "none", "none|sqrt:A|mult:B",
     .help = "Step size at clock c: ETA, ETA/sqrt(A*c+1), ETA*B^c."},
    {"l2", "Learning", RBT_OPTION_REAL, AT(l2), "0", "LAMBDA", .help = "Adds LAMBDA/2 |w|^2 to the objective.",
     .closed = true},
    {"no-bias", "Learning", RBT_OPTION_FLAG, AT(no_bias), "false", NULL, .help = "Leaves out the constant feature."},
    {"filter", "Learning", RBT_OPTION_FILTER, 0, NULL, "threshold=X",
     .help = "Does not send entries smaller than X; 1e-6 under dyn, else 0."},
    {"target-loss", "Learning", RBT_OPTION_TARGET, 0, NULL, "X",
     .help = "Stops when the objective is X or less; exit code 3 if it never is."},
    {"per-process", "Simulator", RBT_OPTION_U32, AT(per_process), "1", "N",
     .help = "Workers that share a process and its cache (local: all do).", .when = "--runtime sim", .min = 1,
     .max = RBT_WORKERS_LIMIT},
    {"net", "Simulator", RBT_OPTION_TEXT, AT(net), NULL, "SPEC", .help = "Links: bw=1Gbit,lat=200us,jitter=50us.",
     .when = "--runtime sim"},
    {"cost", "Simulator", RBT_OPTION_TEXT, AT(cost), NULL, "SPEC",
     .help = "Time of work: sample=100ns,nnz=2ns,byte=0.1ns,message=1us.", .when = "--runtime sim"},
    {"faults", "Simulator", RBT_OPTION_TEXT, AT(faults), NULL, "SPEC",
     .help = "drop=P,dup=P,delay=P,crash=N,partition=N,within=T.", .when = "--runtime sim"},
    {"json", "Output", RBT_OPTION_TEXT, AT(json), NULL, "FILE", .help = "Writes one JSON object per event and line."},
    {"report", "Output", RBT_OPTION_TEXT, AT(report), NULL, "FILE",
     .help = "Writes an HTML page with curves and tables."},
    {"quiet", "Output", RBT_OPTION_FLAG, AT(quiet), "false", NULL, .help = "Prints errors only."},
};

const rbt_option *rbt_option_at(size_t i)
{
    return i < sizeof TABLE / sizeof TABLE[0] ? &TABLE[i] : NULL;
}
