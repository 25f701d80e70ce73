/* What becomes of a job that loses processes, without any: events in, decisions out. */
#include "runtime/cluster/losses.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MS 1000000ull

/* Rank 0 leads, 1 .. `working` have a worker each, `serving` more have a server. */
static void set_up(rbt_losses *losses, rbt_on_loss on_loss, uint32_t working, uint32_t serving)
{
    rbt_losses_init(losses, on_loss, 1 + working + serving);
    for (uint32_t r = 1; r <= working; r++)
        rbt_losses_seat(losses, r, r - 1, 1, 0);
    for (uint32_t r = 1 + working; r <= working + serving; r++)
        rbt_losses_seat(losses, r, working, 0, 1);
}

static rbt_verdict lose(rbt_losses *losses, uint32_t rank, const char *reason)
{
    const char *said = NULL;
    rbt_verdict verdict = rbt_losses_lost(losses, rank, &said);

    if (reason == NULL)
        assert_null(said);
    else
        assert_non_null(strstr(said, reason));
    return verdict;
}

static void before_the_start_every_loss_ends_the_job(void **state)
{
    static const rbt_on_loss ALL[] = {RBT_LOSS_CONTINUE, RBT_LOSS_STOP, RBT_LOSS_WAIT};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        rbt_losses losses;

        set_up(&losses, ALL[i], 2, 1);
        assert_int_equal(lose(&losses, 1, "not started"), RBT_VERDICT_END);
        rbt_losses_deinit(&losses);
    }
}

static void a_worker_is_done_without_stopped_for_or_waited_for(void **state)
{
    static const struct {
        rbt_on_loss on_loss;
        rbt_verdict verdict;
        const char *reason;
        bool is_done;
    } TABLE[] = {
        {RBT_LOSS_AUTO, RBT_VERDICT_GO_ON, NULL, true},
        {RBT_LOSS_CONTINUE, RBT_VERDICT_GO_ON, NULL, true},
        {RBT_LOSS_STOP, RBT_VERDICT_END, "--on-worker-loss stop", true},
        {RBT_LOSS_WAIT, RBT_VERDICT_WAIT, NULL, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof TABLE / sizeof TABLE[0]; i++) {
        rbt_losses losses;

        set_up(&losses, TABLE[i].on_loss, 2, 1);
        rbt_losses_start(&losses);
        assert_int_equal(lose(&losses, 1, TABLE[i].reason), TABLE[i].verdict);
        assert_int_equal(rbt_rank_is_done(losses.ranks[1].state), TABLE[i].is_done);
        assert_int_equal(rbt_rank_is_told(losses.ranks[1].state), TABLE[i].is_done);
        assert_true(rbt_losses_is_lost(&losses, 1));
        rbt_losses_deinit(&losses);
    }
}

static void a_server_and_the_last_worker_end_the_job(void **state)
{
    rbt_losses losses;

    (void)state;
    set_up(&losses, RBT_LOSS_CONTINUE, 2, 1);
    rbt_losses_start(&losses);
    assert_int_equal(lose(&losses, 1, NULL), RBT_VERDICT_GO_ON);
    assert_int_equal(lose(&losses, 2, "no worker is left"), RBT_VERDICT_END);
    rbt_losses_deinit(&losses);
    set_up(&losses, RBT_LOSS_WAIT, 2, 1);
    rbt_losses_start(&losses);
    assert_int_equal(lose(&losses, 3, "it held parameters"), RBT_VERDICT_END);
    rbt_losses_deinit(&losses);
}

static void without_servers_a_sum_needs_all_and_a_peer_cannot_return(void **state)
{
    rbt_losses losses;

    (void)state;
    set_up(&losses, RBT_LOSS_CONTINUE, 3, 0);
    losses.needs_all = true;
    rbt_losses_start(&losses);
    assert_int_equal(lose(&losses, 2, "all-reduce needs every worker"), RBT_VERDICT_END);
    rbt_losses_deinit(&losses);
    set_up(&losses, RBT_LOSS_WAIT, 3, 0);
    losses.cannot_return = true;
    rbt_losses_start(&losses);
    assert_int_equal(lose(&losses, 2, "lost with it"), RBT_VERDICT_END);
    rbt_losses_deinit(&losses);
}

/* What nobody can take over is left out only if somebody asked for that. */
static void rows_that_stay_end_the_job_unless_it_is_to_go_on(void **state)
{
    rbt_losses losses;

    (void)state;
    for (int cannot_return = 0; cannot_return < 2; cannot_return++) {
        set_up(&losses, RBT_LOSS_AUTO, 2, 1);
        losses.rows_stay = true;
        losses.cannot_return = cannot_return;
        rbt_losses_start(&losses);
        assert_int_equal(lose(&losses, 1, cannot_return ? "continue goes on" : "wait has it come back"),
                         RBT_VERDICT_END);
        rbt_losses_deinit(&losses);
    }
    set_up(&losses, RBT_LOSS_CONTINUE, 2, 1);
    losses.rows_stay = true;
    rbt_losses_start(&losses);
    assert_int_equal(lose(&losses, 1, NULL), RBT_VERDICT_GO_ON);
    rbt_losses_deinit(&losses);
}

static void who_was_waited_for_returns_works_and_may_be_lost_again(void **state)
{
    rbt_losses losses;

    (void)state;
    set_up(&losses, RBT_LOSS_WAIT, 2, 1);
    rbt_losses_start(&losses);
    assert_false(rbt_losses_return(&losses, 1)); /* nobody is missing there */
    assert_int_equal(lose(&losses, 1, NULL), RBT_VERDICT_WAIT);
    assert_true(rbt_losses_return(&losses, 1));
    assert_false(rbt_losses_is_lost(&losses, 1));
    assert_int_equal(lose(&losses, 1, NULL), RBT_VERDICT_WAIT); /* while it prepares */
    assert_true(rbt_losses_return(&losses, 1));
    rbt_losses_back(&losses, 1);
    assert_false(rbt_rank_is_done(losses.ranks[1].state));
    rbt_losses_done(&losses, 1);
    assert_true(rbt_rank_is_done(losses.ranks[1].state));
    assert_false(rbt_rank_is_told(losses.ranks[1].state));
    rbt_losses_deinit(&losses);
}

/* Between DONE and TOTALS: nothing more is waited for, and nobody takes its place, whatever the policy. */
static void a_loss_after_the_last_clock_holds_nobody_up(void **state)
{
    static const rbt_on_loss ALL[] = {RBT_LOSS_CONTINUE, RBT_LOSS_STOP, RBT_LOSS_WAIT};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        rbt_losses losses;

        set_up(&losses, ALL[i], 2, 1);
        rbt_losses_start(&losses);
        rbt_losses_done(&losses, 1);
        assert_int_equal(lose(&losses, 1, NULL), RBT_VERDICT_NOTHING);
        assert_true(rbt_rank_is_told(losses.ranks[1].state));
        assert_false(rbt_losses_return(&losses, 1));
        rbt_losses_deinit(&losses);
    }
}

/* Marks who has which of 60 rows of worker 0. */
static void check_rows(const rbt_losses *losses, const uint32_t *ranks, size_t n)
{
    uint32_t owners[60] = {0};

    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < losses->ranks[ranks[k]].inherited.count; i++) {
            rbt_rows_of rows = losses->ranks[ranks[k]].inherited.at[i];

            for (uint32_t row = rows.first; rows.worker == 0 && row < 60; row += rows.step)
                owners[row]++;
        }
    for (size_t row = 0; row < 60; row++)
        assert_int_equal(owners[row], 1);
}

static void rows_are_handed_on_also_those_that_were_inherited(void **state)
{
    rbt_losses losses;
    rbt_bequests out;

    (void)state;
    set_up(&losses, RBT_LOSS_CONTINUE, 4, 1);
    rbt_losses_start(&losses);
    assert_int_equal(lose(&losses, 1, NULL), RBT_VERDICT_GO_ON);
    out = rbt_losses_bequeath(&losses, 1);
    assert_int_equal(out.count, 3);
    check_rows(&losses, (uint32_t[]){2, 3, 4}, 3);
    rbt_array_free(&out);
    assert_int_equal(lose(&losses, 3, NULL), RBT_VERDICT_GO_ON);
    out = rbt_losses_bequeath(&losses, 3);
    assert_int_equal(out.count, 4); /* its own worker's and what it had inherited, to two each */
    check_rows(&losses, (uint32_t[]){2, 4}, 2);
    rbt_array_free(&out);
    rbt_losses_done(&losses, 2);
    assert_int_equal(lose(&losses, 4, NULL), RBT_VERDICT_GO_ON);
    out = rbt_losses_bequeath(&losses, 4);
    assert_int_equal(out.count, 0); /* who has done its work takes no more */
    rbt_losses_deinit(&losses);
}

/* Of many processes one after the other is lost: no row is, none is twice, and the shares stay few. */
static void rows_of_many_losses_stay_whole(void **state)
{
    enum { WORKERS = 40, ROWS = 1000 };
    rbt_losses losses;

    (void)state;
    set_up(&losses, RBT_LOSS_CONTINUE, WORKERS, 1);
    rbt_losses_start(&losses);
    for (uint32_t gone = 1; gone < WORKERS; gone++) { /* rank 0 leads and has the server */
        uint8_t *owners = rbt_alloc(WORKERS * ROWS, 1);
        rbt_bequests out;

        assert_int_equal(lose(&losses, gone, NULL), RBT_VERDICT_GO_ON);
        out = rbt_losses_bequeath(&losses, gone);
        rbt_array_free(&out);
        for (uint32_t r = gone + 1; r <= WORKERS; r++) {
            assert_true(losses.ranks[r].inherited.count <= (size_t)2 * WORKERS * WORKERS);
            for (size_t i = 0; i < losses.ranks[r].inherited.count; i++) {
                rbt_rows_of rows = losses.ranks[r].inherited.at[i];

                for (uint32_t row = rows.first; row < ROWS; row += rows.step)
                    owners[rows.worker * ROWS + row]++;
            }
        }
        for (size_t row = 0; row < (size_t)gone * ROWS; row++)
            assert_int_equal(owners[row], 1);
        rbt_free(owners);
    }
    rbt_losses_deinit(&losses);
}

static void who_broke_the_protocol_is_cut_at_once_but_never_a_server_for_a_worker(void **state)
{
    rbt_losses losses;
    rbt_complaint c;

    (void)state;
    set_up(&losses, RBT_LOSS_CONTINUE, 3, 1);
    rbt_losses_start(&losses);
    rbt_losses_complain(&losses, 1, 2, true, "nonsense", 5 * MS);
    assert_true(rbt_losses_judge(&losses, 5 * MS, &c));
    assert_int_equal(c.about, 2);
    assert_int_equal(c.by, 1);
    assert_string_equal(c.why, "nonsense");
    assert_false(rbt_losses_judge(&losses, 5000 * MS, &c)); /* once */
    rbt_losses_complain(&losses, 1, 4, true, "slander", 6 * MS);
    assert_true(rbt_losses_judge(&losses, 6 * MS, &c));
    assert_int_equal(c.about, 1);
    rbt_losses_deinit(&losses);
}

static void of_two_that_lost_each_other_one_is_cut_after_a_while(void **state)
{
    rbt_losses losses;
    rbt_complaint c;

    (void)state;
    set_up(&losses, RBT_LOSS_CONTINUE, 3, 1);
    rbt_losses_start(&losses);
    rbt_losses_complain(&losses, 4, 2, false, "silent", 10 * MS);
    rbt_losses_complain(&losses, 2, 4, false, "silent", 20 * MS);
    assert_false(rbt_losses_judge(&losses, (RBT_APART_MS - 1) * MS, &c));
    assert_true(rbt_losses_judge(&losses, (RBT_APART_MS + 10) * MS, &c));
    assert_int_equal(c.about, 2); /* not the server */
    assert_false(rbt_losses_judge(&losses, 10000 * MS, &c));
    rbt_losses_deinit(&losses);

    set_up(&losses, RBT_LOSS_CONTINUE, 4, 0);
    rbt_losses_start(&losses);
    rbt_losses_complain(&losses, 4, 1, false, "silent", 0); /* 1 is the one that all others have lost */
    rbt_losses_complain(&losses, 3, 1, false, "silent", 0);
    rbt_losses_complain(&losses, 1, 2, false, "silent", 0);
    assert_true(rbt_losses_judge(&losses, RBT_APART_MS * MS, &c));
    assert_int_equal(c.about, 1);
    assert_false(rbt_losses_judge(&losses, 10000 * MS, &c));
    rbt_losses_deinit(&losses);
}

static void complaints_about_the_dead_are_settled_by_their_death(void **state)
{
    rbt_losses losses;
    rbt_complaint c;

    (void)state;
    set_up(&losses, RBT_LOSS_CONTINUE, 3, 0);
    rbt_losses_start(&losses);
    rbt_losses_complain(&losses, 1, 2, false, "reset", 0);
    assert_int_equal(lose(&losses, 2, NULL), RBT_VERDICT_GO_ON);
    rbt_losses_complain(&losses, 3, 2, false, "reset", 0); /* late */
    assert_false(rbt_losses_judge(&losses, 10000 * MS, &c));
    for (int i = 0; i < 1000; i++) /* who shouts fills no memory */
        rbt_losses_complain(&losses, 1, 3, false, "reset", 0);
    assert_int_equal(losses.complaints.count, 1);
    rbt_losses_deinit(&losses);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_the_start_every_loss_ends_the_job),
        cmocka_unit_test(a_worker_is_done_without_stopped_for_or_waited_for),
        cmocka_unit_test(a_server_and_the_last_worker_end_the_job),
        cmocka_unit_test(without_servers_a_sum_needs_all_and_a_peer_cannot_return),
        cmocka_unit_test(rows_that_stay_end_the_job_unless_it_is_to_go_on),
        cmocka_unit_test(who_was_waited_for_returns_works_and_may_be_lost_again),
        cmocka_unit_test(a_loss_after_the_last_clock_holds_nobody_up),
        cmocka_unit_test(rows_are_handed_on_also_those_that_were_inherited),
        cmocka_unit_test(rows_of_many_losses_stay_whole),
        cmocka_unit_test(who_broke_the_protocol_is_cut_at_once_but_never_a_server_for_a_worker),
        cmocka_unit_test(of_two_that_lost_each_other_one_is_cut_after_a_while),
        cmocka_unit_test(complaints_about_the_dead_are_settled_by_their_death),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
