/* Proves the simulator itself: a run is a function of its seed, 1,000 workers fit and finish, nobody waits for ever
 * without being named, crashes and partitions end, failures of a program and interruptions end the job, time is charged
 * as the cost model says, and what is reported adds up. */
#include "sim/jobs.h"

#include <string.h>

#include "base/hash.h"
#include "runtime/handle.h"

/* ---------------------------------------------------------------------------------------------- whole jobs */

static void a_run_is_a_function_of_its_seed(void **state)
{
    static const char *const more[] = {"", "straggler=lognormal=1 net=bw=50Mbit,lat=80us,jitter=200us",
                                       "faults=drop=0.1,dup=0.2,delay=0.1,crash=2,partition=2,within=10ms"};

    (void)state;
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++)
        for (int rule = 0; rule < 2; rule++) {
            job_outcome run[3];

            for (int k = 0; k < 3; k++)
                run[k] = job_run(
                    "data=data.svm runtime=sim sync=ssp staleness=2 workers=6 servers=3 clocks=8 rule=%s %s seed=%d",
                    rule == 0 ? "sum" : "dyn", more[i], k == 2 ? 8 : 7);
            assert_int_equal(run[0].err, RBT_OK);
            assert_memory_equal(&run[0].result, &run[1].result, sizeof run[0].result); /* times, bytes, events, hash */
            assert_int_not_equal(run[0].result.param_hash, run[2].result.param_hash);
            assert_true(run[0].result.events > 0);
            for (int k = 0; k < 3; k++)
                outcome_deinit(&run[k]);
        }
}

static void a_thousand_workers_finish(void **state)
{
    (void)state;
    for (int bound = 0; bound <= 3; bound += 3) {
        job_outcome o =
            job_run("data=data.svm runtime=sim sync=ssp staleness=%d workers=1000 servers=10 clocks=3 rule=con "
                    "eval-every=0 straggler=frac=0.2,slow=2",
                    bound);

        if (o.err != RBT_OK)
            fail_msg("%s", o.error.text);
        assert_int_equal(o.result.updates, 3000);
        assert_true(o.result.events > 10000);
        outcome_deinit(&o);
    }
}

static void bytes_are_those_of_the_encoded_messages_whether_they_are_encoded_or_not(void **state)
{
    job_outcome plain = job_run("data=data.svm runtime=sim workers=4 servers=2 clocks=5 sync=bsp");
    job_outcome encoded = job_run("data=data.svm runtime=sim workers=4 servers=2 clocks=5 sync=bsp encode=true");

    (void)state;
    assert_true(plain.result.bytes_sent > 0);
    assert_int_equal(plain.result.bytes_sent, encoded.result.bytes_sent);
    assert_int_equal(plain.result.messages, encoded.result.messages);
    assert_true(plain.result.seconds == encoded.result.seconds);
    outcome_deinit(&plain);
    outcome_deinit(&encoded);
}

static void crashed_workers_come_back_and_bsp_ends_with_the_same_parameters(void **state)
{
    uint64_t whole = job_hash("data=data.svm runtime=sim sync=bsp rule=con workers=4 servers=2 clocks=20");

    (void)state;
    for (int seed = 1; seed <= 5; seed++) {
        job_outcome o = job_run("data=data.svm runtime=sim sync=bsp rule=con workers=4 servers=2 clocks=20 verify=true "
                                "faults=crash=%d,within=20ms",
                                seed);

        if (o.err != RBT_OK)
            fail_msg("%d crashes: %s", seed, o.error.text);
        assert_int_equal(o.result.param_hash, whole);
        outcome_deinit(&o);
    }
}

/* ------------------------------------------------------------------------------------------ table programs */

typedef struct script {
    job_setup setup;
    rbt_err (*of_worker_0)(rbt_worker *worker, rbt_error *error);
    atomic_bool interrupted;
    uint64_t finished[3];
} script;

static rbt_err two_clocks(rbt_worker *worker, rbt_error *error)
{
    float value;
    rbt_err err = RBT_OK;

    while (err == RBT_OK && rbt_worker_clock(worker) < 2) {
        err = rbt_get_range(worker, 0, 0, 0, 1, RBT_STALENESS_OF_JOB, &value, error);
        if (err == RBT_OK)
            err = rbt_clock(worker, error);
    }
    return err;
}

static rbt_err play(rbt_worker *worker, void *argument, rbt_error *error)
{
    script *s = argument;
    rbt_err err = rbt_worker_id(worker) == 0 ? s->of_worker_0(worker, error) : two_clocks(worker, error);

    s->finished[rbt_worker_id(worker)] = rbt_worker_clock(worker);
    return err;
}

static rbt_err run_script(script *s, rbt_err (*of_worker_0)(rbt_worker *, rbt_error *), uint64_t staleness,
                          rbt_error *error)
{
    rbt_topology topology = {.workers = 3, .servers = 2, .staleness = staleness};
    rbt_table_spec spec = {.name = "t", .rows = 1, .cols = 10, .type = RBT_F32};
    rbt_err err;

    memset(s, 0, sizeof *s);
    setup_init(&s->setup, &topology, &rbt_rule_sum, &spec, 1);
    s->of_worker_0 = of_worker_0;
    s->setup.run.program = (rbt_program){.name = "script", .work = play, .argument = s};
    s->setup.run.interrupted = &s->interrupted;
    err = rbt_sim_run(&s->setup.run, &s->setup.sim, error);
    setup_deinit(&s->setup);
    return err;
}

/* Listens until it is no more: nothing that it could hear makes it go on. */
static rbt_err wait_for_ever(rbt_worker *worker, rbt_error *error)
{
    while (worker->ops->receive(worker, true))
        ;
    return rbt_fail(error, RBT_E_INTERRUPTED, "gone");
}

static void when_everybody_waits_it_says_who_waits_for_whom(void **state)
{
    rbt_error error = {0};
    script s;

    (void)state;
    assert_int_equal(run_script(&s, wait_for_ever, 0, &error), RBT_E_NO_PROGRESS);
    assert_non_null(strstr(error.text, "3 workers wait and nothing is under way"));
    assert_non_null(strstr(error.text, "worker 1 (clock 1) waits for worker 0 (clock 0)"));
    assert_non_null(strstr(error.text, "worker 2 (clock 1) waits for worker 0 (clock 0)"));
    assert_int_equal(rbt_err_exit_code(error.code), 6);
}

static rbt_err give_up(rbt_worker *worker, rbt_error *error)
{
    return rbt_fail(error, RBT_E_DATA, "worker %u found nothing to do", rbt_worker_id(worker));
}

static void a_program_that_fails_ends_the_job_with_its_error(void **state)
{
    rbt_error error = {0};
    script s;

    (void)state;
    assert_int_equal(run_script(&s, give_up, 0, &error), RBT_E_DATA);
    assert_string_equal(error.text, "worker 0 found nothing to do");
    assert_int_equal(s.finished[1], 2); /* the others were not held up by it */
    assert_int_equal(s.finished[2], 2);
}

static rbt_err until_told(rbt_worker *worker, rbt_error *error)
{
    float value;
    rbt_err err = RBT_OK;

    while (err == RBT_OK && !rbt_worker_should_stop(worker)) {
        rbt_worker_did(worker, 1000, 0);
        err = rbt_get_range(worker, 0, 0, 0, 1, RBT_UNBOUNDED, &value, error);
        if (err == RBT_OK)
            err = rbt_clock(worker, error);
        if (rbt_worker_clock(worker) == 7) /* as a signal handler would */
            atomic_store((atomic_bool *)worker->run->interrupted, true);
    }
    return err;
}

static void an_interruption_ends_the_job_after_a_clock(void **state)
{
    rbt_error error = {0};
    script s;

    (void)state;
    assert_int_equal(run_script(&s, until_told, RBT_UNBOUNDED, &error), RBT_OK);
    assert_in_range(s.finished[0], 7, 20);
}

static rbt_err outside(rbt_worker *worker, rbt_error *error)
{
    uint64_t col = 10;
    float value[10] = {0};

    program_check(rbt_get_row(worker, 1, 0, 0, value, error) == RBT_E_USAGE, error);
    program_check(rbt_get_row(worker, 0, 1, 0, value, error) == RBT_E_USAGE, error);
    program_check(rbt_get_range(worker, 0, 0, 5, 6, 0, value, error) == RBT_E_USAGE, error);
    program_check(rbt_get_range(worker, 0, 0, UINT64_MAX, 2, 0, value, error) == RBT_E_USAGE, error);
    program_check(rbt_get_keys(worker, 0, 0, &col, 1, 0, value, error) == RBT_E_USAGE, error);
    program_check(rbt_inc(worker, 0, 0, 10, 1, error) == RBT_E_USAGE, error);
    program_check(rbt_inc_row(worker, 0, 3, value, error) == RBT_E_USAGE, error);
    program_check(rbt_inc_keys(worker, 0, 0, &col, 1, value, error) == RBT_E_USAGE, error);
    program_check(rbt_prefetch(worker, 2, 0, 0, 1, 0, error) == RBT_E_USAGE, error);
    return rbt_inc_range(worker, 0, 0, 9, 2, value, error);
}

static void reads_and_increments_outside_a_table_are_refused_by_name(void **state)
{
    rbt_error error = {0};
    script s;

    (void)state;
    assert_int_equal(run_script(&s, outside, 0, &error), RBT_E_USAGE);
    assert_non_null(strstr(error.text, "row 0, columns 9 to 11 lie outside table 0 of 1 x 10"));
}

static rbt_err work_and_read(rbt_worker *worker, rbt_error *error)
{
    uint64_t began = rbt_worker_elapsed_ns(worker), worked, read;
    float value[10];
    rbt_err err;

    rbt_worker_did(worker, 1000, 50);
    worked = rbt_worker_elapsed_ns(worker);
    err = rbt_get_range(worker, 0, 0, 0, 1, RBT_UNBOUNDED, value, error);
    read = rbt_worker_elapsed_ns(worker);
    /* 1000 samples of 100 ns, 50 non-zeros of 2 ns; a pull and its answer travel 100 us each and are read in 1 us each
     */
    program_check(worked - began == 100100, error);
    program_check(read - worked >= 202000 && read - worked < 210000, error);
    program_check(worker->compute_ns == 100100, error);
    program_check(worker->communication_ns == read - worked && worker->wait_ns == 0, error);
    return err;
}

static void time_is_charged_by_the_cost_model(void **state)
{
    rbt_error error = {0};
    script s;

    (void)state;
    if (run_script(&s, work_and_read, RBT_UNBOUNDED, &error) != RBT_OK)
        fail_msg("%s", error.text);
}

static int write_data(void **state)
{
    (void)state;
    data_write("data.svm", 1200, 50, 5, 2);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_is_a_function_of_its_seed),
        cmocka_unit_test(a_thousand_workers_finish),
        cmocka_unit_test(bytes_are_those_of_the_encoded_messages_whether_they_are_encoded_or_not),
        cmocka_unit_test(crashed_workers_come_back_and_bsp_ends_with_the_same_parameters),
        cmocka_unit_test(when_everybody_waits_it_says_who_waits_for_whom),
        cmocka_unit_test(a_program_that_fails_ends_the_job_with_its_error),
        cmocka_unit_test(an_interruption_ends_the_job_after_a_clock),
        cmocka_unit_test(reads_and_increments_outside_a_table_are_refused_by_name),
        cmocka_unit_test(time_is_charged_by_the_cost_model),
    };

    return cmocka_run_group_tests(tests, write_data, NULL);
}
