/* Proves src/runtime/check.c: a sound server passes, and every complaint can be provoked by a server that was doctored.
 */
#include "unit/world.h"

#include <math.h>
#include <string.h>

#include "runtime/check.h"

typedef struct checked {
    world w;
    rbt_checker *checker;
    rbt_server *server;
} checked;

static void begin(checked *c, uint32_t workers, uint64_t staleness, const rbt_rule *rule, bool partition_sync)
{
    rbt_topology topology = {
        .workers = workers, .servers = 1, .staleness = staleness, .partition_sync = partition_sync};

    world_init(&c->w, topology, rule, 6);
    c->checker = rbt_checker_create(&c->w.topology);
    c->server = &c->w.servers[0];
}

static void end(checked *c)
{
    rbt_checker_destroy(c->checker);
    world_deinit(&c->w);
}

/* The server handles a message under the checker's eyes; `doctor` gets at the server and at what it said in between. */
static void handle(checked *c, rbt_message *message, void (*doctor)(rbt_server *server, rbt_outbox *said))
{
    rbt_env env = {.now_ns = c->w.now_ns};
    rbt_message *said;

    rbt_checker_before(c->checker, c->server, message);
    rbt_server_handle(c->server, message, &env);
    if (doctor != NULL)
        doctor(c->server, &env.out);
    rbt_checker_after(c->checker, c->server, &env.out);
    while ((said = rbt_outbox_take(&env.out)) != NULL)
        rbt_message_destroy(said);
}

static void assert_complains(const checked *c, const char *of)
{
    const char *broken = rbt_checker_broken(c->checker);

    if (broken == NULL)
        fail_msg("the checker has nothing to say about: %s", of);
    if (strstr(broken, of) == NULL)
        fail_msg("the checker says '%s', not: %s", broken, of);
}

/* --------------------------------------------------------------------------------------------- all is well */

static void a_sound_server_passes_under_every_rule(void **state)
{
    static const rbt_rule *const rules[] = {&rbt_rule_sum,     &rbt_rule_con,    &rbt_rule_dyn,
                                            &rbt_rule_adagrad, &rbt_rule_adarev, &rbt_rule_momentum};

    (void)state;
    for (size_t rule = 0; rule < 6; rule++)
        for (uint64_t staleness = 0; staleness < 3; staleness++)
            for (int sync = 0; sync <= (rules[rule] == &rbt_rule_dyn); sync++) {
                checked c;

                begin(&c, 3, staleness, rules[rule], sync);
                for (uint64_t clock = 0; clock < 6; clock++)
                    for (uint32_t m = 0; m < 3; m++) {
                        rbt_message *pull =
                            pull_by_hand(&c.w, m, clock, clock > staleness ? clock - staleness : 0, 0, clock + 1);

                        pull->version = clock;
                        handle(&c, pull, NULL);
                        for (int twice = 0; twice < 2; twice++) {
                            rbt_message *push = push_by_hand(&c.w, m, clock, 0, 0.3f * (float)(m + 1));

                            if (rules[rule] == &rbt_rule_adarev) /* as if nothing had been read */
                                push->parts.at[0].version = RBT_UNBOUNDED;
                            handle(&c, push, NULL);
                        }
                    }
                if (rbt_checker_broken(c.checker) != NULL)
                    fail_msg("rule %s, staleness %d: %s", rules[rule]->name, (int)staleness,
                             rbt_checker_broken(c.checker));
                end(&c);
            }
}

/* ------------------------------------------------------------------------------------------------ doctored */

static void count_twice(rbt_server *server, rbt_outbox *said)
{
    (void)said;
    rbt_floor_raise(&server->clocks, 0, server->clocks.value[0] + 1);
}

static void a_push_that_counts_twice_is_noticed(void **state)
{
    checked c;

    (void)state;
    begin(&c, 2, 3, &rbt_rule_sum, false);
    handle(&c, push_by_hand(&c.w, 0, 0, 0, 1), count_twice);
    assert_complains(&c, "server 0 has 2 clocks of worker 0 after its push of clock 0, had 0");
    end(&c);
}

static void an_update_applied_twice_is_noticed(void **state)
{
    rbt_message *again;
    checked c;

    (void)state;
    begin(&c, 2, 3, &rbt_rule_sum, false);
    handle(&c, push_by_hand(&c.w, 0, 0, 0, 1), NULL);
    c.server->clocks.value[0] = 0; /* the server forgets that it had this one */
    again = push_by_hand(&c.w, 0, 0, 0, 1);
    handle(&c, again, NULL);
    assert_complains(&c, "stored is 2, must be 1");
    end(&c);
}

static void is_reborn(rbt_server *server, rbt_outbox *said)
{
    (void)said;
    server->incarnation[0] = 1;
}

static void a_push_of_a_former_life_is_noticed(void **state)
{
    checked c;

    (void)state;
    begin(&c, 2, 3, &rbt_rule_sum, false);
    handle(&c, push_by_hand(&c.w, 0, 0, 0, 1), is_reborn);
    assert_complains(&c, "server 0 took a push of a former life of worker 0");
    end(&c);
}

static void change_value(rbt_server *server, rbt_outbox *said)
{
    (void)said;
    rbt_snap_writable(&server->cells.at[0].cell.value);
    server->cells.at[0].cell.value->f32[3] += 0.5f;
}

static void a_stored_value_that_is_wrong_is_noticed(void **state)
{
    checked c;

    (void)state;
    begin(&c, 2, 3, &rbt_rule_con, false);
    handle(&c, push_by_hand(&c.w, 0, 0, 0, 1), change_value);
    assert_complains(&c, "server 0, table 0, block 0, element 3 stored is 1, must be 0.5");
    end(&c);
}

static void become_nan(rbt_server *server, rbt_outbox *said)
{
    (void)said;
    rbt_snap_writable(&server->cells.at[0].cell.value);
    server->cells.at[0].cell.value->f32[0] = __builtin_nanf("");
}

static void a_nan_is_noticed(void **state)
{
    checked c;

    (void)state;
    begin(&c, 2, 3, &rbt_rule_sum, false);
    handle(&c, push_by_hand(&c.w, 0, 0, 0, 1), become_nan);
    assert_complains(&c, "element 0 stored is nan");
    end(&c);
}

static rbt_message *first_answer(rbt_outbox *said)
{
    rbt_message *message = said->first;

    while (message != NULL && message->type != RBT_MSG_BLOCKS)
        message = message->next;
    assert_non_null(message);
    return message;
}

static void change_answer(rbt_server *server, rbt_outbox *said)
{
    rbt_part *part = &first_answer(said)->parts.at[0];

    (void)server;
    rbt_snap_writable(&part->snap);
    part->snap->f32[5] = 9;
}

static void an_answer_with_other_values_is_noticed(void **state)
{
    checked c;

    (void)state;
    begin(&c, 2, 3, &rbt_rule_sum, false);
    handle(&c, push_by_hand(&c.w, 0, 0, 0, 1), NULL);
    assert_null(rbt_checker_broken(c.checker));
    handle(&c, pull_by_hand(&c.w, 1, 0, 0, 0, 1), change_answer);
    assert_complains(&c, "element 5 in an answer is 9, must be 1");
    end(&c);
}

static void tell_a_later_clock(rbt_server *server, rbt_outbox *said)
{
    (void)server;
    first_answer(said)->slowest = 4;
}

static void an_answer_that_claims_too_much_is_noticed(void **state)
{
    checked c;

    (void)state;
    begin(&c, 2, 3, &rbt_rule_sum, false);
    handle(&c, pull_by_hand(&c.w, 1, 0, 0, 0, 1), tell_a_later_clock);
    assert_complains(&c, "server 0 tells worker 1 that the slowest has finished 4 clocks, it has finished 0");
    end(&c);
}

static void keep_everything(rbt_server *server, rbt_outbox *said)
{
    (void)said;
    for (uint64_t number = 50; number < 54; number++) {
        rbt_cell_version version = {.number = number, .mean = rbt_snap_create_sparse(RBT_F32, 6, 0)};

        rbt_array_push(&server->cells.at[0].cell.versions, version);
    }
}

/* Two workers compute from version 0, one after the other. */
static void begin_adarev(checked *c)
{
    begin(c, 2, 3, &rbt_rule_adarev, false);
    for (uint32_t m = 0; m < 2; m++)
        handle(c, pull_by_hand(&c->w, m, 0, 0, 0, 1), NULL);
    handle(c, push_by_hand(&c->w, 0, 0, 0, 1), NULL);
}

static void a_delayed_gradient_that_is_revised_passes(void **state)
{
    checked c;

    (void)state;
    begin_adarev(&c);
    handle(&c, push_by_hand(&c.w, 1, 0, 0, 1), NULL); /* 1 - 1 / 4 of a step more: as one of 2 */
    assert_true(fabsf(c.server->cells.at[0].cell.value->f32[0] + 0.25f) < 1e-6f);
    assert_null(rbt_checker_broken(c.checker));
    end(&c);
}

static void a_version_forgotten_too_early_is_noticed(void **state)
{
    checked c;

    (void)state;
    begin_adarev(&c);
    rbt_cell_leave(&c.server->cells.at[0].cell, &c.w.topology.rule[0], 0);
    rbt_cell_leave(&c.server->cells.at[0].cell, &c.w.topology.rule[0], 1);
    handle(&c, push_by_hand(&c.w, 1, 0, 0, 1), NULL);
    assert_complains(&c, "stored is");
    end(&c);
}

static void lose_a_gradient(rbt_server *server, rbt_outbox *said)
{
    (void)said;
    server->cells.at[0].cell.memory[0] = 0;
}

static void a_sum_of_gradients_that_lacks_one_is_noticed(void **state)
{
    checked c;

    (void)state;
    begin(&c, 2, 3, &rbt_rule_adarev, false);
    handle(&c, push_by_hand(&c.w, 0, 0, 0, 1), lose_a_gradient);
    assert_complains(&c, "the sum of gradients is 0, must be 1");
    end(&c);
}

static void versions_kept_beyond_the_limit_are_noticed(void **state)
{
    checked c;

    (void)state;
    begin_adarev(&c);
    c.w.topology.rule[0].most_kept = 64;
    handle(&c, pull_by_hand(&c.w, 1, 0, 0, 0, 2), NULL); /* a second version */
    assert_null(rbt_checker_broken(c.checker));
    c.w.topology.rule[0].most_kept = 1;               /* which nobody looks at before the next read */
    handle(&c, push_by_hand(&c.w, 0, 7, 0, 1), NULL); /* refused */
    assert_complains(&c, "server 0 keeps 2 versions of block 0, at most 1 may be");
    end(&c);
}

static void stop_the_velocity(rbt_server *server, rbt_outbox *said)
{
    (void)said;
    rbt_snap_writable(&server->cells.at[0].cell.value);
    server->cells.at[0].cell.value->f32[1] -= server->cells.at[0].cell.memory[1];
}

static void a_velocity_that_does_not_go_on_is_noticed(void **state)
{
    checked c;

    (void)state;
    begin(&c, 2, 3, &rbt_rule_momentum, false);
    c.w.topology.rule[0].momentum = 0.5f;
    handle(&c, push_by_hand(&c.w, 0, 0, 0, 1), NULL);
    handle(&c, push_by_hand(&c.w, 0, 1, 0, 1), NULL);
    handle(&c, push_by_hand(&c.w, 1, 0, 0, 1), NULL);
    assert_null(rbt_checker_broken(c.checker));
    handle(&c, push_by_hand(&c.w, 0, 2, 0, 1), stop_the_velocity);
    assert_complains(&c, "element 1 stored is");
    end(&c);
}

static void versions_that_pile_up_are_noticed(void **state)
{
    checked c;

    (void)state;
    begin(&c, 2, 3, &rbt_rule_dyn, false);
    handle(&c, push_by_hand(&c.w, 0, 0, 0, 1), keep_everything);
    assert_complains(&c, "server 0 keeps 5 versions of block 0, staleness is 3");
    end(&c);
}

static void expire_early(rbt_server *server, rbt_outbox *said)
{
    const rbt_rule_config *rule = &server->topology->rule[0];

    (void)said;
    rule->rule->expire(rule, &server->cells.at[0].cell, 1);
}

static void a_version_that_expired_too_early_is_noticed(void **state)
{
    checked c;

    (void)state;
    begin(&c, 2, 3, &rbt_rule_dyn, false);
    handle(&c, push_by_hand(&c.w, 0, 0, 0, 1), expire_early);
    assert_null(rbt_checker_broken(c.checker)); /* not wrong yet ... */
    handle(&c, push_by_hand(&c.w, 1, 0, 0, 3), NULL);
    assert_complains(&c, "stored is 4, must be 2"); /* ... the second update of that version weighs one half no more */
    end(&c);
}

static void show_a_version_too_many(rbt_server *server, rbt_outbox *said)
{
    rbt_part *part = &first_answer(said)->parts.at[0];

    rbt_snap_unref(part->snap);
    part->snap = rbt_cell_read(&server->cells.at[0].cell, &server->topology->rule[0], RBT_UNBOUNDED, &part->version);
    part->version = 0;
}

static void a_synchronised_answer_with_versions_it_must_not_show_is_noticed(void **state)
{
    checked c;

    (void)state;
    begin(&c, 2, 3, &rbt_rule_dyn, true);
    handle(&c, push_by_hand(&c.w, 0, 0, 0, 1), NULL);
    handle(&c, pull_by_hand(&c.w, 1, 0, 0, 0, 1), NULL);
    assert_null(rbt_checker_broken(c.checker));
    handle(&c, pull_by_hand(&c.w, 1, 0, 0, 0, 2), show_a_version_too_many);
    assert_complains(&c, "in an answer is 1, must be 0");
    end(&c);
}

static void the_first_complaint_stays(void **state)
{
    checked c;

    (void)state;
    begin(&c, 1, 0, &rbt_rule_sum, false);
    assert_null(rbt_checker_broken(c.checker));
    rbt_checker_report(c.checker, "first %d", 1);
    rbt_checker_report(c.checker, "second");
    assert_string_equal(rbt_checker_broken(c.checker), "first 1");
    end(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sound_server_passes_under_every_rule),
        cmocka_unit_test(a_push_that_counts_twice_is_noticed),
        cmocka_unit_test(an_update_applied_twice_is_noticed),
        cmocka_unit_test(a_push_of_a_former_life_is_noticed),
        cmocka_unit_test(a_stored_value_that_is_wrong_is_noticed),
        cmocka_unit_test(a_nan_is_noticed),
        cmocka_unit_test(an_answer_with_other_values_is_noticed),
        cmocka_unit_test(an_answer_that_claims_too_much_is_noticed),
        cmocka_unit_test(a_delayed_gradient_that_is_revised_passes),
        cmocka_unit_test(a_version_forgotten_too_early_is_noticed),
        cmocka_unit_test(a_sum_of_gradients_that_lacks_one_is_noticed),
        cmocka_unit_test(versions_kept_beyond_the_limit_are_noticed),
        cmocka_unit_test(a_velocity_that_does_not_go_on_is_noticed),
        cmocka_unit_test(versions_that_pile_up_are_noticed),
        cmocka_unit_test(a_version_that_expired_too_early_is_noticed),
        cmocka_unit_test(a_synchronised_answer_with_versions_it_must_not_show_is_noticed),
        cmocka_unit_test(the_first_complaint_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
