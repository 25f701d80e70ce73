/* Proves src/runtime/sim_hosts.c, and with sim_net.c what becomes of it: speeds in order and by name, lines of a cluster
 * file, refusals with their place; links of hosts that differ, hosts that several nodes share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "files.h"
#include "runtime/sim_net.h"

static const rbt_net LINK = {.bits_per_second = 8e6, .latency_ns = 500}; /* a byte takes a microsecond */

static void speed_is(const char *text, uint32_t workers, const double *expected)
{
    rbt_sim_hosts hosts;

    assert_int_equal(rbt_sim_hosts_init(&hosts, text, NULL, workers, &LINK, NULL), RBT_OK);
    assert_int_equal(hosts.groups.count, workers);
    assert_int_equal(hosts.workers, workers);
    for (uint32_t m = 0; m < workers; m++) {
        assert_int_equal(hosts.groups.at[m].count, 1);
        assert_int_equal(hosts.groups.at[m].workers, 1);
        assert_true(hosts.groups.at[m].speed == expected[m]);
        assert_int_equal(hosts.groups.at[m].link.latency_ns, 500);
    }
    rbt_sim_hosts_deinit(&hosts);
}

static void speeds_are_given_in_order_or_by_name(void **state)
{
    (void)state;
    speed_is("1,2,0.5", 3, (double[]){1, 2, 0.5});
    speed_is("0.25", 1, (double[]){0.25});
    speed_is("2=0.5", 4, (double[]){1, 1, 0.5, 1});
    speed_is("0=3,2-4=1e-1", 5, (double[]){3, 1, 0.1, 0.1, 0.1});
    speed_is("0-3=2,1=1", 4, (double[]){2, 1, 2, 2}); /* the later one holds */
}

static void speeds_without_sense_are_refused(void **state)
{
    static const struct {
        const char *text, *part;
    } bad[] = {
        {"", "'' is not a speed"},
        {"1,1", "has 2 speeds, but the job has 3 workers"},
        {"1,1,1,1", "has 4 speeds, but the job has 3 workers"},
        {"1,,1", "'' is not a speed"},
        {"1,0,1", "'0' is not a speed from 1e-06 to 1e+06"},
        {"1,-1,1", "'-1' is not a speed"},
        {"1,nan,1", "'nan' is not a speed"},
        {"1,1,2x", "'2x' is not a speed"},
        {"3=0.5", "'3' names no workers of the job, which has 0 to 2"},
        {"2-1=0.5", "'2-1' names no workers"},
        {"0.5=2", "'0.5' names no workers"},
        {"-=2", "'-' names no workers"},
        {"=2", "'' names no workers"},
        {"1=", "'' is not a speed"},
        {"1,2=0.5", "some speeds say which workers"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        rbt_error error = {0};
        rbt_sim_hosts hosts;

        assert_int_equal(rbt_sim_hosts_init(&hosts, bad[i].text, NULL, 3, &LINK, &error), RBT_E_USAGE);
        if (strstr(error.text, bad[i].part) == NULL)
            fail_msg("'%s': %s", bad[i].text, error.text);
    }
}

static void a_line_of_a_cluster_file_is_a_kind_of_host(void **state)
{
    rbt_sim_hosts hosts;

    (void)state;
    put_file("hosts", "# two racks\ncount=3,workers=2,speed=2,bw=16Mbit,lat=1us,jitter=3us # fast\n\r\n"
                      "  workers=1,servers=2,speed=0.5\r\nservers=1,bw=1Mbit");
    assert_int_equal(rbt_sim_hosts_init(&hosts, NULL, "hosts", 0, &LINK, NULL), RBT_OK);
    assert_int_equal(hosts.workers, 7);
    assert_int_equal(hosts.servers, 3);
    assert_int_equal(hosts.groups.count, 3);
    assert_int_equal(hosts.groups.at[0].count, 3);
    assert_true(hosts.groups.at[0].speed == 2);
    assert_true(hosts.groups.at[0].link.bits_per_second == 16e6);
    assert_int_equal(hosts.groups.at[0].link.latency_ns, 1000);
    assert_int_equal(hosts.groups.at[0].link.jitter_ns, 3000);
    assert_int_equal(hosts.groups.at[1].count, 1);
    assert_int_equal(hosts.groups.at[1].link.latency_ns, 500); /* that of --net */
    assert_true(hosts.groups.at[1].link.bits_per_second == 8e6);
    assert_true(hosts.groups.at[2].speed == 1);
    rbt_sim_hosts_deinit(&hosts);
}

static void bad_cluster_files_are_refused_with_file_and_line(void **state)
{
    static const struct {
        const char *text, *part;
    } bad[] = {
        {"", "hosts: no host has workers"},
        {"servers=1\n", "hosts: no host has workers"},
        {"\n# x\nspeed=2\n", "hosts:3: nobody lives on these hosts"},
        {"workers=1\nworkers=1 speed=2\n", "hosts:2: 'workers=1 speed=2' has blanks in it"},
        {"workers=1,sped=2\n", "hosts:1: 'sped' is not a key; the keys are count, workers, servers, speed"},
        {"workers=1,speed=0\n", "hosts:1: speed is '0', but it must lie between"},
        {"workers=1,bw=3\n", "hosts:1: bw is '3', but it takes a rate with its unit"},
        {"workers=1.5\n", "hosts:1: workers is '1.5', but it takes a whole number"},
        {"count=0,workers=1\n", "hosts:1: count is '0'"},
        {"workers=9\ncount=100000,workers=100000\n", "hosts:2: with these hosts there are more than 100000 workers"},
        {"count=2,workers=1,servers=60000\n", "hosts:1: with these hosts there are more than 100000 servers"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        rbt_error error = {0};
        rbt_sim_hosts hosts;

        put_file("hosts", bad[i].text);
        assert_int_not_equal(rbt_sim_hosts_init(&hosts, NULL, "hosts", 0, &LINK, &error), RBT_OK);
        if (strstr(error.text, bad[i].part) == NULL)
            fail_msg("'%s': %s", bad[i].text, error.text);
    }
}

/* ------------------------------------------------------------------------------------------ on the links */

/* A master, two servers, four workers, an observer, on the hosts of a file. */
typedef struct placed {
    rbt_sim_options options;
    rbt_topology topology;
    rbt_sim_net net;
} placed;

static void place(placed *p, const char *file, rbt_cost cost)
{
    *p = (placed){.options = {.seed = 1, .net = LINK, .cost = cost},
                  .topology = {.workers = 4, .servers = 2, .observers = 1}};
    put_file("hosts", file);
    assert_int_equal(rbt_sim_hosts_init(&p->options.hosts, NULL, "hosts", 0, &LINK, NULL), RBT_OK);
    rbt_sim_net_init(&p->net, &p->options, rbt_topology_nodes(&p->topology));
    rbt_sim_net_place(&p->net, &p->topology);
}

static void unplace(placed *p)
{
    rbt_sim_net_deinit(&p->net);
    rbt_sim_hosts_deinit(&p->options.hosts);
}

static void between_hosts_the_slower_link_decides_and_latencies_are_averaged(void **state)
{
    placed p;

    (void)state;
    place(&p, "servers=2\nworkers=3\nworkers=1,bw=80Mbit,lat=1500ns\n", (rbt_cost){0});
    /* from the fast one, worker 3, to a server: sent in a tenth of the time, read no sooner than the slow link lets it */
    assert_int_equal(rbt_sim_net_send(&p.net, 6, 1, 100, 0), 10000 + 1000);
    assert_int_equal(rbt_sim_net_receive(&p.net, 6, 1, 100, 11000), 1000 + 100000);
    /* and the other way: all of it has come in when the last bit does */
    assert_int_equal(rbt_sim_net_send(&p.net, 1, 6, 100, 0), 100000 + 1000);
    assert_int_equal(rbt_sim_net_receive(&p.net, 1, 6, 100, 101000), 101000);
    unplace(&p);
}

static void nodes_of_one_host_share_its_link_and_do_not_use_it_among_themselves(void **state)
{
    placed p;

    (void)state;
    place(&p, "count=2,workers=2,servers=1\n", (rbt_cost){.message_ns = 300});
    assert_int_equal(p.net.host_of[3], 1); /* workers 0 and 1 with server 0 */
    assert_int_equal(p.net.host_of[4], 1);
    assert_int_equal(p.net.host_of[5], 2);
    assert_int_equal(p.net.host_of[0], 0); /* the master alone */
    assert_int_equal(rbt_sim_net_send(&p.net, 3, 1, 100, 0), 0);
    assert_int_equal(rbt_sim_net_receive(&p.net, 3, 1, 100, 0), 300);
    assert_int_equal(rbt_sim_net_receive(&p.net, 4, 1, 100, 0), 600); /* one after the other */
    assert_int_equal(rbt_sim_net_send(&p.net, 3, 2, 100, 0), 100500);
    assert_int_equal(rbt_sim_net_send(&p.net, 4, 2, 100, 0), 200500);
    unplace(&p);
}

static void a_slow_host_handles_messages_slowly(void **state)
{
    placed p;

    (void)state;
    place(&p, "servers=2,speed=0.25\nworkers=4,speed=2\n", (rbt_cost){.byte_ns = 2, .message_ns = 300});
    assert_int_equal(rbt_sim_net_receive(&p.net, 3, 1, 100, 100500), 100500 + 4 * 500);
    assert_int_equal(rbt_sim_net_receive(&p.net, 1, 3, 100, 100500), 100500 + 250);
    assert_true(rbt_sim_net_speed(&p.net, 6) == 2);
    assert_true(rbt_sim_net_speed(&p.net, 0) == 1);
    unplace(&p);
}

static void without_servers_those_of_the_file_stay_empty(void **state)
{
    placed p = {.options = {.seed = 1, .net = LINK}, .topology = {.workers = 2, .servers = 0, .observers = 1}};

    (void)state;
    put_file("hosts", "servers=3\nworkers=1,servers=1,speed=4\nworkers=1\n");
    assert_int_equal(rbt_sim_hosts_init(&p.options.hosts, NULL, "hosts", 0, &LINK, NULL), RBT_OK);
    rbt_sim_net_init(&p.net, &p.options, rbt_topology_nodes(&p.topology));
    rbt_sim_net_place(&p.net, &p.topology);
    assert_true(rbt_sim_net_speed(&p.net, 1) == 4);
    assert_true(rbt_sim_net_speed(&p.net, 2) == 1);
    unplace(&p);
}

static int leave_folder(void **state)
{
    static const char *const names[] = {"hosts"};

    return remove_folder(state, names, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(speeds_are_given_in_order_or_by_name),
        cmocka_unit_test(speeds_without_sense_are_refused),
        cmocka_unit_test(a_line_of_a_cluster_file_is_a_kind_of_host),
        cmocka_unit_test(bad_cluster_files_are_refused_with_file_and_line),
        cmocka_unit_test(between_hosts_the_slower_link_decides_and_latencies_are_averaged),
        cmocka_unit_test(nodes_of_one_host_share_its_link_and_do_not_use_it_among_themselves),
        cmocka_unit_test(a_slow_host_handles_messages_slowly),
        cmocka_unit_test(without_servers_those_of_the_file_stay_empty),
    };

    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
