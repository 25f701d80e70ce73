/* The option table: parsing, refusals, defaults that depend on others, job files, listing and help. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job/gradient.h"
#include "job/options.h"
#include "job/options_table.h"
#include "job/text.h"

static void set(rbt_options *o, const char *name, const char *value)
{
    rbt_error error = {RBT_OK, ""};

    if (rbt_options_set(o, name, value, &error) != RBT_OK)
        fail_msg("--%s %s: %s", name, value, error.text);
}

static void refuses_value(const char *name, const char *value, const char *part)
{
    rbt_options o;
    rbt_error error = {RBT_OK, ""};

    rbt_options_init(&o);
    assert_int_equal(rbt_options_set(&o, name, value, &error), RBT_E_USAGE);
    if (strstr(error.text, part) == NULL)
        fail_msg("'%s' does not contain '%s'", error.text, part);
    rbt_options_deinit(&o);
}

/* Pairs of names and values, ended by NULL; the check must refuse them with a sentence that contains `part`. */
static void refuses_combination(const char *const *pairs, const char *part)
{
    rbt_options o;
    rbt_error error = {RBT_OK, ""};

    rbt_options_init(&o);
    for (; pairs[0] != NULL; pairs += 2)
        set(&o, pairs[0], pairs[1]);
    assert_int_equal(rbt_options_check(&o, &error), RBT_E_USAGE);
    if (strstr(error.text, part) == NULL)
        fail_msg("'%s' does not contain '%s'", error.text, part);
    rbt_options_deinit(&o);
}

static void defaults_are_those_of_the_header(void **state)
{
    rbt_options o;
    rbt_error error;

    (void)state;
    rbt_options_init(&o);
    assert_int_equal(rbt_options_check(&o, &error), RBT_OK);
    assert_int_equal(o.runtime, RBT_RUNTIME_LOCAL);
    assert_true(o.workers >= 1);
    assert_int_equal(o.servers, 1);
    assert_int_equal(o.sync, RBT_SYNC_SSP);
    assert_int_equal(o.staleness, 3);
    assert_int_equal(o.rule, RBT_RULE_DYN);
    assert_int_equal(o.partition_sync, RBT_OFF);
    assert_int_equal(o.eager, RBT_ON);
    assert_true(o.epochs == 10 && o.clocks == 0);
    assert_true(o.batch == 1 && !o.batch_percent);             /* the step size is to be found */
    assert_true(o.lr == 0 && isnan(o.l2) && o.filter == 1e-6); /* the data decides */
    assert_int_equal(o.seed, 1);
    assert_int_equal(o.eval_every, 1);
    assert_false(o.has_target || o.quiet || o.verify || o.encode || o.no_bias);
    rbt_options_deinit(&o);
}

static void numbers_are_parsed_strictly(void **state)
{
    rbt_options o;

    (void)state;
    rbt_options_init(&o);
    set(&o, "clocks", "1e5");
    assert_int_equal(o.clocks, 100000);
    set(&o, "seed", "18446744073709551615");
    assert_true(o.seed == UINT64_MAX);
    set(&o, "batch", "64");
    assert_true(o.batch == 64 && !o.batch_percent);
    set(&o, "batch", "2.5%");
    assert_true(o.batch == 2.5 && o.batch_percent);
    set(&o, "decay", "sqrt:0.2");
    assert_true(o.decay == RBT_DECAY_SQRT && o.decay_factor == 0.2);
    set(&o, "filter", "threshold=1e-3");
    assert_true(o.filter == 1e-3);
    set(&o, "staleness", "inf");
    assert_true(o.staleness == RBT_UNBOUNDED);
    rbt_options_deinit(&o);

    refuses_value("clocks", "1.5", "not a whole number");
    refuses_value("clocks", "7x", "not a whole number");
    refuses_value("clocks", " 7", "not a whole number");
    refuses_value("clocks", "0x10", "not a whole number");
    refuses_value("clocks", "", "not a whole number");
    refuses_value("clocks", "-1", "-1 is too small; give at least 1");
    refuses_value("clocks", "-1.5", "not a whole number");
    refuses_value("servers", "-1", "-1 is out of range; give a number from 1 to ");
    refuses_value("seed", "18446744073709551616", "is too large; give at most 18446744073709551615");
    refuses_value("lr", "nan", "not a number");
    refuses_value("lr", "1e999", "not a number");
    refuses_value("lr", "fast", "not a number");
}

static void values_out_of_range_are_refused(void **state)
{
    (void)state;
    refuses_value("workers", "0", "from 1 to 100000");
    refuses_value("workers", "100001", "from 1 to 100000");
    refuses_value("servers", "0", "from 1 to");
    refuses_value("lr", "0", "greater than 0");
    refuses_value("lr", "-1", "greater than 0");
    refuses_value("l2", "-0.1", "at least 0");
    refuses_value("epochs", "0", "greater than 0");
    refuses_value("batch", "0", "out of range");
    refuses_value("batch", "0%", "out of range");
    refuses_value("batch", "101%", "at most 100%");
    refuses_value("decay", "sqrt:0", "greater than 0");
    refuses_value("decay", "mult:1.5", "at most 1");
    refuses_value("decay", "mult:", "not a number");
    refuses_value("decay", "linear", "none, sqrt:ALPHA or mult:BETA");
    refuses_value("filter", "1e-6", "threshold=X");
    refuses_value("filter", "threshold=-1", "at least 0");
    refuses_value("filter", "significant=2", "from 0 to 1");
    refuses_value("filter", "threshold=1,magic=2", "significant=X or kkt=X");
    refuses_value("filter", "kkt=", "not a number");
    refuses_value("sync", "bps", "bsp|ssp|asp");
    refuses_value("quiet", "maybe", "true or false");
    refuses_value("data", "", "needs a value");
}

static void a_struct_filled_by_hand_gets_the_same_checks(void **state)
{
    rbt_options o;
    rbt_error error;

    (void)state;
    rbt_options_init(&o);
    o.servers = RBT_SERVERS_LIMIT + 1;
    assert_int_equal(rbt_options_check(&o, &error), RBT_E_USAGE);
    o.servers = 1;
    o.workers = RBT_WORKERS_LIMIT + 1;
    assert_int_equal(rbt_options_check(&o, &error), RBT_E_USAGE);
    o.workers = 1;
    o.batch = -1;
    assert_int_equal(rbt_options_check(&o, &error), RBT_E_USAGE);
    o.batch = 10;
    o.lr = -1;
    assert_int_equal(rbt_options_check(&o, &error), RBT_E_USAGE);
    o.lr = 1;
    assert_int_equal(rbt_options_check(&o, &error), RBT_OK);
    rbt_options_deinit(&o);
}

static void a_misspelt_option_is_answered_with_the_nearest(void **state)
{
    bool takes = false;
    rbt_error error;

    (void)state;
    refuses_value("stalness", "3", "unknown option '--stalness'; did you mean '--staleness'?");
    refuses_value("wokers", "3", "did you mean '--workers'?");
    refuses_value("tpyo-of-nothing", "3", "--help lists");
    assert_int_equal(rbt_options_takes_value("quite", &takes, &error), RBT_E_USAGE);
    assert_non_null(strstr(error.text, "'--quiet'"));
    assert_int_equal(rbt_options_takes_value("quiet", &takes, &error), RBT_OK);
    assert_false(takes);
    assert_int_equal(rbt_options_takes_value("lr", &takes, &error), RBT_OK);
    assert_true(takes);
}

static void senseless_combinations_are_refused_with_the_reason(void **state)
{
    (void)state;
    refuses_combination((const char *[]){"sync", "bsp", "staleness", "3", NULL},
                        "--staleness makes no sense with --sync bsp");
    refuses_combination((const char *[]){"staleness", "3", "sync", "asp", NULL}, "nobody ever waits");
    refuses_combination((const char *[]){"rule", "sum", "global-rate", "0.5", NULL}, "only con");
    refuses_combination((const char *[]){"global-rate", "0.5", NULL}, "--rule dyn");
    refuses_combination((const char *[]){"sync", "bsp", "partition-sync", "on", NULL}, "only dyn keeps versions");
    refuses_combination((const char *[]){"sync", "asp", "eager", "on", NULL}, "only ssp");
    refuses_combination((const char *[]){"eager", "on", "partition-sync", "on", NULL}, "exclude each other");
    refuses_combination((const char *[]){"net", "lat=1ms", NULL}, "use --runtime sim");
    refuses_combination((const char *[]){"cost", "nnz=1ns", NULL}, "--cost describes the simulator");
    refuses_combination((const char *[]){"faults", "drop=0.1", NULL}, "--faults describes the simulator");
    refuses_combination((const char *[]){"clocks", "3", "epochs", "2", NULL}, "give one of them");
    refuses_combination((const char *[]){"data", "part-{rank}.svm", NULL}, "with --workers");
    refuses_combination((const char *[]){"data", "{rank}.svm", "workers", "2", "folds", "3", NULL}, "--folds makes no");
    refuses_combination((const char *[]){"data", "{rank}.svm", "workers", "2", "store", "disk", NULL},
                        "--store makes no");
    refuses_combination((const char *[]){"data", "{rank}.svm", "workers", "2", "cache", "auto", NULL},
                        "--cache makes no");
    refuses_combination((const char *[]){"codec", "delta,zip", NULL}, "is unknown; give none, or some of delta");
    refuses_combination((const char *[]){"codec", "zeros", "sync", "hogwild", "model", "lr", NULL},
                        "--codec makes no sense with --sync hogwild");
    refuses_combination((const char *[]){"codec", "fp16", "sync", "hop", "model", "lr", NULL}, "peers send parameters");
    refuses_combination((const char *[]){"codec", "delta,fp16", "rule", "adarev", NULL}, "--rule adarev, which makes");
    refuses_combination((const char *[]){"codec", "fp16", "rule", "adagrad", NULL}, "--rule adagrad, which makes");
    refuses_combination((const char *[]){"codec", "fp16", "model", "kmeans", NULL}, "exact sums");
}

static void filters_are_for_what_can_bear_them(void **state)
{
    rbt_options o;
    rbt_error error;

    (void)state;
    refuses_combination((const char *[]){"model", "lr", "l1", "0.1", "filter", "kkt=0.5", NULL}, "train l1lr");
    refuses_combination((const char *[]){"model", "lr", "rule", "adarev", "filter", "significant=0.1", NULL},
                        "servers make the steps");
    refuses_combination(
        (const char *[]){"model", "lr", "runtime", "sim", "faults", "crash=1", "filter", "significant=0.1", NULL},
        "is lost with it");
    refuses_combination((const char *[]){"model", "lda", "filter", "significant=0.1", NULL}, "add up to the tokens");
    refuses_combination((const char *[]){"model", "kmeans", "filter", "threshold=0.1", NULL}, "must agree");
    refuses_combination((const char *[]){"model", "l1lr", "filter", "threshold=0.1", NULL}, "none may be lost");
    rbt_options_init(&o);
    set(&o, "model", "l1lr");
    set(&o, "filter", "kkt=0.25,significant=0.125");
    assert_int_equal(rbt_options_check(&o, &error), RBT_OK);
    assert_string_equal(o.settings, "kkt=0.25,significant=0.125");
    assert_true(o.significant == 0);
    rbt_options_deinit(&o);
    rbt_options_init(&o);
    set(&o, "model", "lr");
    set(&o, "sync", "bsp");
    set(&o, "filter", "significant=0.5,threshold=0.25");
    assert_int_equal(rbt_options_check(&o, &error), RBT_OK);
    assert_true(o.significant == 0.5 && o.filter == 0.25);
    rbt_options_deinit(&o);
}

static void auto_values_follow_the_protocol(void **state)
{
    rbt_options o;
    rbt_error error;

    (void)state;
    rbt_options_init(&o);
    set(&o, "sync", "bsp");
    set(&o, "workers", "8");
    assert_int_equal(rbt_options_check(&o, &error), RBT_OK);
    assert_true(o.rule == RBT_RULE_CON && o.global_rate == 0.125 && o.staleness == 0 && o.filter == 0);
    assert_int_equal(o.eager, RBT_OFF);
    rbt_options_deinit(&o);

    rbt_options_init(&o);
    set(&o, "sync", "asp");
    assert_int_equal(rbt_options_check(&o, &error), RBT_OK);
    assert_true(o.rule == RBT_RULE_DYN && o.staleness == RBT_UNBOUNDED && o.eager == RBT_OFF);
    rbt_options_deinit(&o);

    rbt_options_init(&o);
    set(&o, "servers", "4");
    assert_int_equal(rbt_options_check(&o, &error), RBT_OK);
    assert_true(o.partition_sync == RBT_ON && o.eager == RBT_OFF);
    rbt_options_deinit(&o);

    rbt_options_init(&o);
    set(&o, "servers", "4");
    set(&o, "eager", "on");
    assert_int_equal(rbt_options_check(&o, &error), RBT_OK);
    assert_true(o.partition_sync == RBT_OFF && o.eager == RBT_ON);
    rbt_options_deinit(&o);

    rbt_options_init(&o);
    set(&o, "staleness", "0");
    set(&o, "rule", "sum");
    assert_int_equal(rbt_options_check(&o, &error), RBT_OK);
    assert_true(o.eager == RBT_OFF && o.filter == 0);
    rbt_options_deinit(&o);
}

/* Everything rbt_options_at says, as one text. */
static void list(const rbt_options *o, char *text, size_t room)
{
    char value[RBT_OPTION_ROOM];
    const char *name = NULL;
    size_t used = 0;

    for (size_t i = 0; rbt_options_at(o, i, &name, value, sizeof value) && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, "%s = %s\n", name, value);
}

static void partition_sync_off_is_listed_while_the_rule_is_auto(void **state)
{
    char listed[4096];
    rbt_options o;

    (void)state;
    rbt_options_init(&o);
    set(&o, "partition-sync", "off");
    list(&o, listed, sizeof listed);
    assert_non_null(strstr(listed, "partition-sync = off"));
    rbt_options_deinit(&o);
}

static void eager_is_listed_while_the_protocol_is_auto(void **state)
{
    char listed[4096];
    rbt_options o;

    (void)state;
    for (int on = 0; on < 2; on++) {
        rbt_options_init(&o);
        set(&o, "eager", on ? "on" : "off");
        list(&o, listed, sizeof listed);
        assert_non_null(strstr(listed, on ? "eager = on" : "eager = off"));
        rbt_options_deinit(&o);
    }
}

static void what_is_listed_describes_the_same_job(void **state)
{
    static const char *const PROTOCOLS[] = {"bsp",         "asp/sum", "ssp:7/con",    "ssp:inf/dyn",
                                            "bsp/adagrad", "ssp",     "ssp:2/adarev", "bsp/momentum"};
    char first[4096], second[4096], value[RBT_OPTION_ROOM];
    const char *name = NULL;
    rbt_error error;

    (void)state;
    for (size_t p = 0; p < 2 * sizeof PROTOCOLS / sizeof PROTOCOLS[0]; p++) {
        rbt_options o, copy;
        rbt_options_init(&o);
        rbt_options_init(&copy);
        set(&o, "model", "lr");
        set(&o, "data", "a file#1.svm");
        set(&o, "lr", "0.1");
        set(&o, "decay", "mult:0.9");
        set(&o, "servers", "3");
        set(&o, "target-loss", "0.3");
        set(&o, p % 2 == 0 ? "clocks" : "epochs", "17");
        assert_int_equal(rbt_options_set_protocol(&o, PROTOCOLS[p / 2], &error), RBT_OK);
        if (p % 2 == 0)
            assert_int_equal(rbt_options_check(&o, &error), RBT_OK);
        for (size_t i = 0; rbt_options_at(&o, i, &name, value, sizeof value); i++)
            set(&copy, name, value);
        if (rbt_options_check(&copy, &error) != RBT_OK || rbt_options_check(&o, &error) != RBT_OK)
            fail_msg("%s: %s", PROTOCOLS[p / 2], error.text);
        list(&o, first, sizeof first);
        list(&copy, second, sizeof second);
        assert_string_equal(first, second);
        rbt_options_deinit(&o);
        rbt_options_deinit(&copy);
    }
}

static void protocols_set_sync_staleness_and_rule(void **state)
{
    rbt_options o;
    rbt_error error;

    (void)state;
    rbt_options_init(&o);
    set(&o, "global-rate", "0.25");
    set(&o, "staleness", "9");
    assert_int_equal(rbt_options_set_protocol(&o, "ssp/con", &error), RBT_OK);
    assert_true(o.sync == RBT_SYNC_SSP && o.staleness == 9 && o.rule == RBT_RULE_CON && o.global_rate == 0.25);
    assert_int_equal(rbt_options_set_protocol(&o, "ssp:10/dyn", &error), RBT_OK);
    assert_true(o.staleness == 10 && o.rule == RBT_RULE_DYN && o.global_rate == 0);
    assert_int_equal(rbt_options_set_protocol(&o, "asp/sum", &error), RBT_OK);
    assert_int_equal(rbt_options_check(&o, &error), RBT_OK);
    assert_true(o.sync == RBT_SYNC_ASP && o.staleness == RBT_UNBOUNDED);
    assert_int_equal(rbt_options_set_protocol(&o, "bsp:3", &error), RBT_E_USAGE);
    assert_non_null(strstr(error.text, "only ssp takes a staleness"));
    assert_int_equal(rbt_options_set_protocol(&o, "ssp:x/dyn", &error), RBT_E_USAGE);
    assert_int_equal(rbt_options_set_protocol(&o, "ssp:3/dny", &error), RBT_E_USAGE);
    assert_non_null(strstr(error.text, "protocol 'ssp:3/dny'"));
    assert_int_equal(rbt_options_set_protocol(&o, "", &error), RBT_E_USAGE);
    rbt_options_deinit(&o);
}

static void a_protocol_drops_the_codecs_it_has_no_use_for(void **state)
{
    rbt_options o;
    rbt_error error;

    (void)state;
    rbt_options_init(&o);
    set(&o, "model", "lr");
    set(&o, "codec", "zeros,fp16,delta");
    assert_int_equal(rbt_options_set_protocol(&o, "ssp:3/dyn", &error), RBT_OK);
    assert_string_equal(o.codec, "zeros,fp16,delta");
    assert_int_equal(rbt_options_set_protocol(&o, "ssp:3/adarev", &error), RBT_OK);
    assert_string_equal(o.codec, "delta,zeros");
    assert_int_equal(rbt_options_check(&o, &error), RBT_OK);
    set(&o, "codec", "fp16");
    assert_int_equal(rbt_options_set_protocol(&o, "hop:ring", &error), RBT_OK);
    assert_null(o.codec);
    set(&o, "codec", "delta");
    assert_int_equal(rbt_options_set_protocol(&o, "hop:ring", &error), RBT_OK);
    assert_string_equal(o.codec, "delta");
    assert_int_equal(rbt_options_set_protocol(&o, "hogwild", &error), RBT_OK);
    assert_null(o.codec);
    rbt_options_deinit(&o);
}

static void a_factor_shrinks_steps_as_a_power_after_however_many_clocks(void **state)
{
    rbt_options o;

    (void)state;
    rbt_options_init(&o);
    set(&o, "lr", "3");
    set(&o, "decay", "mult:0.5");
    for (int clock = 0; clock < 60; clock++)
        assert_true(rbt_training_rate(&o, (uint64_t)clock) == ldexp(3, -clock));
    set(&o, "decay", "mult:0.999999999999");
    assert_true(fabs(rbt_training_rate(&o, 1000000000000) / (3 * exp(-1)) - 1) < 1e-3);
    assert_true(rbt_training_rate(&o, UINT64_MAX) == 0);
    rbt_options_deinit(&o);
}

static const rbt_option *named(const char *name)
{
    size_t i = 0;

    while (strcmp(rbt_option_at(i)->name, name) != 0)
        i++;
    return rbt_option_at(i);
}

/* One command line serves several protocols: what one of them has no use for does not stop the comparison. */
static void a_protocol_drops_what_it_would_refuse(void **state)
{
    static const struct {
        const char *option, *value, *rule, *protocol, *kept_by;
    } CASES[] = {{"partition-sync", "on", NULL, "hogwild", "ssp:3/dyn"},
                 {"global-rate", "0.5", "con", "hogwild", "ssp"},
                 {"budget", "200Mbit", "con", "bsp", "ssp"},
                 {"budget", "200Mbit", "con", "hop:ring", "asp"},
                 {"budget", "200Mbit", NULL, "ssp:2/dyn", "ssp:2/con"},
                 {"verify", "true", NULL, "hop:ring", "ssp"}};
    rbt_error error;

    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        for (int kept = 0; kept < 2; kept++) {
            rbt_options o, fresh;

            rbt_options_init(&o);
            rbt_options_init(&fresh);
            set(&o, "model", "lr");
            set(&o, CASES[i].option, CASES[i].value);
            if (CASES[i].rule != NULL)
                set(&o, "rule", CASES[i].rule);
            assert_int_equal(rbt_options_set_protocol(&o, kept ? CASES[i].kept_by : CASES[i].protocol, &error), RBT_OK);
            assert_int_equal(rbt_option_is_same(named(CASES[i].option), &o, &fresh), !kept);
            if (rbt_options_check(&o, &error) != RBT_OK)
                fail_msg("case %zu: %s", i, error.text);
            rbt_options_deinit(&o);
            rbt_options_deinit(&fresh);
        }
}

static void protocols_of_peers_set_graph_and_bounds(void **state)
{
    rbt_options o;
    rbt_error error;

    (void)state;
    rbt_options_init(&o);
    set(&o, "model", "lr");
    set(&o, "servers", "3");
    assert_int_equal(rbt_options_set_protocol(&o, "hop:ring/max-gap=5/backup=1/order=serial", &error), RBT_OK);
    assert_true(o.sync == RBT_SYNC_HOP && o.max_gap == 5 && o.backup == 1 && o.order == RBT_ORDER_SERIAL);
    assert_string_equal(o.graph, "ring");
    assert_int_equal(o.servers, 0);
    assert_int_equal(rbt_options_check(&o, &error), RBT_OK);
    assert_int_equal(rbt_options_set_protocol(&o, "adpsgd", &error), RBT_OK);
    assert_true(o.sync == RBT_SYNC_ADPSGD && o.max_gap == 0 && o.backup == 0 && o.order == RBT_ORDER_PARALLEL);
    assert_string_equal(o.graph, "ring");
    assert_int_equal(rbt_options_check(&o, &error), RBT_OK);
    assert_int_equal(rbt_options_set_protocol(&o, "allreduce", &error), RBT_OK);
    assert_null(o.graph);
    assert_int_equal(rbt_options_check(&o, &error), RBT_OK);
    assert_int_equal(rbt_options_set_protocol(&o, "hop/notify-ack", &error), RBT_OK);
    assert_true(o.notify_ack && o.graph == NULL);
    assert_int_equal(rbt_options_set_protocol(&o, "hop:ring/backup", &error), RBT_E_USAGE);
    assert_int_equal(rbt_options_set_protocol(&o, "hop:ring/lr=3", &error), RBT_E_USAGE);
    assert_non_null(strstr(error.text, "'lr' is no part of one for peers"));
    assert_int_equal(rbt_options_set_protocol(&o, "hop:ring/backup=x", &error), RBT_E_USAGE);
    assert_int_equal(rbt_options_set_protocol(&o, "bsp", &error), RBT_OK);
    assert_true(!o.notify_ack && o.graph == NULL);
    assert_int_equal(rbt_options_check(&o, &error), RBT_OK);
    rbt_options_deinit(&o);
}

/* Writes the text into a file of its own and reads it as a job file. */
static rbt_err read_text(rbt_options *o, const char *text, rbt_error *error)
{
    char path[] = "/tmp/rubato-test-XXXXXX";
    int fd = mkstemp(path);
    rbt_err err = RBT_OK;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    err = rbt_options_read_file(o, path, error);
    unlink(path);
    return err;
}

static void a_job_file_sets_options(void **state)
{
    rbt_options o;
    rbt_error error;

    (void)state;
    rbt_options_init(&o);
    assert_int_equal(
        read_text(&o, "# a job\nmodel = lr\n\n  workers=4 # cores\nquiet = true\ndata = dir/a#1.svm\r\n", &error),
        RBT_OK);
    assert_string_equal(o.model, "lr");
    assert_string_equal(o.data, "dir/a#1.svm");
    assert_int_equal(o.workers, 4);
    assert_true(o.quiet);
    assert_int_equal(read_text(&o, "\xef\xbb\xbfworkers = 5\n", &error), RBT_OK); /* a byte-order mark */
    assert_int_equal(o.workers, 5);
    assert_int_equal(read_text(&o, "\xef\xbb\xbf# a job\nworkers = 6\n", &error), RBT_OK);
    assert_int_equal(o.workers, 6);
    rbt_options_deinit(&o);
}

static void a_bad_job_file_is_refused_with_its_line(void **state)
{
    rbt_options o;
    rbt_error error;

    (void)state;
    rbt_options_init(&o);
    assert_int_equal(read_text(&o, "model = lr\nwrokers = 4\n", &error), RBT_E_USAGE);
    assert_non_null(strstr(error.text, ":2: unknown option '--wrokers'; did you mean '--workers'?"));
    assert_int_equal(read_text(&o, "just words\n", &error), RBT_E_USAGE);
    assert_non_null(strstr(error.text, ":1: 'just words' is not of the form 'option = value'"));
    assert_int_equal(read_text(&o, "lr = 1\n# again\n\n--lr = 1\n", &error), RBT_E_USAGE);
    assert_non_null(strstr(error.text, ":4: 'lr' is given twice, first in line 1; give it once"));
    assert_int_equal(read_text(&o, "rank = 3\nset = rank=4\nrank = 3\n", &error), RBT_E_USAGE);
    assert_non_null(strstr(error.text, ":3: 'rank' is given twice"));
    assert_int_equal(read_text(&o, "lr = 1\n\xef\xbb\xbfworkers = 2\n", &error), RBT_E_USAGE); /* not there */
    assert_int_equal(rbt_options_read_file(&o, "/nowhere/job.conf", &error), RBT_E_IO);
    assert_non_null(strstr(error.text, "/nowhere/job.conf"));
    rbt_options_deinit(&o);
}

static void collect(void *context, const char *line)
{
    char *all = context;

    assert_true(strlen(line) <= 100);
    strcat(all, line);
    strcat(all, "\n");
}

static void help_names_every_option(void **state)
{
    static char all[32768];
    char value[RBT_OPTION_ROOM], wanted[128];
    const char *name = NULL;
    rbt_options o;

    (void)state;
    all[0] = '\0';
    rbt_options_help(NULL, collect, all);
    rbt_options_init(&o);
    for (size_t i = 0; rbt_options_at(&o, i, &name, value, sizeof value); i++) {
        snprintf(wanted, sizeof wanted, "  --%s", name);
        assert_non_null(strstr(all, wanted));
    }
    assert_non_null(strstr(all, "Only with --runtime sim."));
    rbt_options_deinit(&o);
}

static void copies_share_nothing(void **state)
{
    rbt_options a, b;

    (void)state;
    rbt_options_init(&a);
    rbt_options_init(&b);
    set(&a, "data", "one");
    set(&b, "data", "two");
    rbt_options_copy(&b, &a);
    set(&a, "data", "three");
    assert_string_equal(b.data, "one");
    rbt_options_deinit(&a);
    assert_string_equal(b.data, "one");
    rbt_options_deinit(&b);
}

static void reals_are_printed_shortest_and_read_back(void **state)
{
    static const double VALUES[] = {0, 0.1, 1.0 / 3, 1e-300, 123456789.125, 5e-324, -2.5};
    char text[RBT_REAL_ROOM];

    (void)state;
    for (size_t i = 0; i < sizeof VALUES / sizeof VALUES[0]; i++) {
        rbt_text_from_real(VALUES[i], text, sizeof text);
        assert_true(strtod(text, NULL) == VALUES[i]);
    }
    assert_string_equal(rbt_text_from_loss(0.25, text), "0.25");
    assert_string_equal(rbt_text_from_loss(-NAN, text), "not a number");
    assert_string_equal(rbt_text_from_loss(INFINITY, text), "infinite");
    assert_string_equal(rbt_text_from_loss(-INFINITY, text), "infinite, below 0");
    rbt_text_from_real(0.1, text, sizeof text);
    assert_string_equal(text, "0.1");
    rbt_text_from_real(1e5, text, sizeof text);
    assert_true(strtod(text, NULL) == 1e5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_those_of_the_header),
        cmocka_unit_test(numbers_are_parsed_strictly),
        cmocka_unit_test(values_out_of_range_are_refused),
        cmocka_unit_test(a_struct_filled_by_hand_gets_the_same_checks),
        cmocka_unit_test(a_misspelt_option_is_answered_with_the_nearest),
        cmocka_unit_test(senseless_combinations_are_refused_with_the_reason),
        cmocka_unit_test(filters_are_for_what_can_bear_them),
        cmocka_unit_test(auto_values_follow_the_protocol),
        cmocka_unit_test(partition_sync_off_is_listed_while_the_rule_is_auto),
        cmocka_unit_test(eager_is_listed_while_the_protocol_is_auto),
        cmocka_unit_test(what_is_listed_describes_the_same_job),
        cmocka_unit_test(protocols_set_sync_staleness_and_rule),
        cmocka_unit_test(a_protocol_drops_what_it_would_refuse),
        cmocka_unit_test(a_factor_shrinks_steps_as_a_power_after_however_many_clocks),
        cmocka_unit_test(a_protocol_drops_the_codecs_it_has_no_use_for),
        cmocka_unit_test(protocols_of_peers_set_graph_and_bounds),
        cmocka_unit_test(a_job_file_sets_options),
        cmocka_unit_test(a_bad_job_file_is_refused_with_its_line),
        cmocka_unit_test(help_names_every_option),
        cmocka_unit_test(copies_share_nothing),
        cmocka_unit_test(reals_are_printed_shortest_and_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
