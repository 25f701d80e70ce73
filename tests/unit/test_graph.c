/* Proves src/sync/graph*: every kind at every size passes the checks and has the neighbours it should; text, refusals with
 * the offending node, bipartite or not, spectral gaps, repair. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "sync/gap.h"

static rbt_graph make(rbt_graph_kind kind, uint32_t n)
{
    rbt_graph graph;
    rbt_error error = {RBT_OK, ""};

    if (rbt_graph_init(&graph, kind, n, NULL, &error) != RBT_OK)
        fail_msg("%s %u: %s", rbt_graph_kind_name(kind), n, error.text);
    return graph;
}

static rbt_graph parse(const char *text)
{
    rbt_graph graph;
    rbt_error error = {RBT_OK, ""};

    if (rbt_graph_parse(&graph, "g", text, strlen(text), 0, &error) != RBT_OK)
        fail_msg("%s", error.text);
    return graph;
}

static void must_pass(const rbt_graph *graph, const char *what)
{
    rbt_error error = {RBT_OK, ""};

    if (rbt_graph_check(graph, what, &error) != RBT_OK)
        fail_msg("%s", error.text);
}

/* The lists say the same in both directions, ascend, and rows and columns of W sum to 1. */
static void must_be_sound(const rbt_graph *graph)
{
    size_t in_edges = 0, out_edges = 0;

    for (uint32_t i = 0; i < graph->nodes; i++) {
        rbt_neighbours in = rbt_graph_in(graph, i), out = rbt_graph_out(graph, i);

        in_edges += in.count;
        out_edges += out.count;
        for (uint32_t k = 0; k < in.count; k++)
            assert_true((k == 0 || in.at[k - 1] < in.at[k]) && rbt_graph_has(graph, in.at[k], i));
        for (uint32_t k = 1; k < out.count; k++)
            assert_true(out.at[k - 1] < out.at[k]);
    }
    assert_true(in_edges == graph->edges && out_edges == graph->edges);
    for (uint32_t i = 0; i < graph->nodes; i++) {
        double row = 0, column = 0;

        for (uint32_t j = 0; j < graph->nodes; j++) {
            row += rbt_graph_weight(graph, i, j);
            column += rbt_graph_weight(graph, j, i);
        }
        assert_true(fabs(row - 1) < 1e-9 && fabs(column - 1) < 1e-9);
    }
}

static void neighbours_are(rbt_neighbours got, const uint32_t *expected, uint32_t count)
{
    assert_int_equal(got.count, count);
    assert_memory_equal(got.at, expected, count * sizeof *expected);
}

static void every_kind_at_every_size_passes_the_checks(void **state)
{
    (void)state;
    for (uint32_t kind = 0; kind < RBT_GRAPH_KINDS; kind++)
        for (uint32_t n = 1; n <= 40; n++) {
            if (kind == RBT_GRAPH_DOUBLE_RING && n % 2 != 0)
                continue;
            rbt_graph graph = make((rbt_graph_kind)kind, n);

            must_pass(&graph, rbt_graph_kind_name((rbt_graph_kind)kind));
            must_be_sound(&graph);
            assert_int_equal(rbt_graph_is_symmetric(&graph), kind != RBT_GRAPH_EXPONENTIAL || n <= 3);
            rbt_graph_deinit(&graph);
        }
}

static void kinds_have_the_neighbours_of_the_paper(void **state)
{
    rbt_graph graph = make(RBT_GRAPH_RING, 8);

    (void)state;
    neighbours_are(rbt_graph_in(&graph, 0), (uint32_t[]){0, 1, 7}, 3);
    assert_int_equal(rbt_graph_diameter(&graph), 4);
    rbt_graph_deinit(&graph);
    graph = make(RBT_GRAPH_RING_BASED, 8);
    neighbours_are(rbt_graph_in(&graph, 2), (uint32_t[]){1, 2, 3, 6}, 4);
    assert_int_equal(rbt_graph_diameter(&graph), 2);
    rbt_graph_deinit(&graph);
    graph = make(RBT_GRAPH_RING_BASED, 7); /* two are the most distant */
    neighbours_are(rbt_graph_out(&graph, 0), (uint32_t[]){0, 1, 3, 4, 6}, 5);
    rbt_graph_deinit(&graph);
    graph = make(RBT_GRAPH_DOUBLE_RING, 16);
    neighbours_are(rbt_graph_out(&graph, 9), (uint32_t[]){1, 8, 9, 10, 13}, 5);
    rbt_graph_deinit(&graph);
    graph = make(RBT_GRAPH_EXPONENTIAL, 8);
    neighbours_are(rbt_graph_out(&graph, 6), (uint32_t[]){0, 2, 6, 7}, 4);
    neighbours_are(rbt_graph_in(&graph, 6), (uint32_t[]){2, 4, 5, 6}, 4);
    rbt_graph_deinit(&graph);
    graph = make(RBT_GRAPH_COMPLETE, 3);
    neighbours_are(rbt_graph_out(&graph, 1), (uint32_t[]){0, 1, 2}, 3);
    assert_true(rbt_graph_weight(&graph, 0, 1) == 1.0 / 3);
    rbt_graph_deinit(&graph);
}

/* ---------------------------------------------------------------------------------------------------- machines */

static void machines_from_a_list_or_a_number(void **state)
{
    rbt_machines machines;
    rbt_error error = {RBT_OK, ""};

    (void)state;
    assert_int_equal(rbt_machines_parse("3", 8, &machines, &error), RBT_OK);
    assert_int_equal(machines.count, 3);
    assert_memory_equal(machines.nodes, ((uint32_t[]){3, 3, 2}), 12);
    assert_int_equal(rbt_machines_of(&machines, 2), 0);
    assert_int_equal(rbt_machines_of(&machines, 3), 1);
    assert_int_equal(rbt_machines_of(&machines, 7), 2);
    rbt_machines_deinit(&machines);
    assert_int_equal(rbt_machines_parse("4,2,2", 8, &machines, &error), RBT_OK);
    assert_memory_equal(machines.nodes, ((uint32_t[]){4, 2, 2}), 12);
    rbt_machines_deinit(&machines);
    for (size_t i = 0; i < 8; i++) {
        const char *bad[] = {"", "0", "9", "3,3", "3,,5", "4,4,", "a", "4, -4"};

        assert_int_equal(rbt_machines_parse(bad[i], 8, &machines, &error), RBT_E_USAGE);
        assert_non_null(strstr(error.text, "machines = "));
    }
}

/* All nodes of a machine know each other, edges between machines go only to the machines beside. */
static void must_be_cliques(const rbt_graph *graph, const rbt_machines *machines)
{
    for (uint32_t i = 0; i < graph->nodes; i++)
        for (uint32_t j = 0; j < graph->nodes; j++) {
            uint32_t a = rbt_machines_of(machines, i), b = rbt_machines_of(machines, j);
            uint32_t apart = (a + machines->count - b) % machines->count;

            if (apart == 0)
                assert_true(rbt_graph_has(graph, i, j));
            else if (apart != 1 && apart != machines->count - 1)
                assert_false(rbt_graph_has(graph, i, j));
        }
    for (uint32_t m = 0; m < machines->count; m++) {
        bool linked = machines->count == 1;

        for (uint32_t i = 0; i < graph->nodes && !linked; i++)
            for (uint32_t j = 0; j < graph->nodes && !linked; j++)
                linked = rbt_machines_of(machines, i) == m &&
                         rbt_machines_of(machines, j) == (m + 1) % machines->count && rbt_graph_has(graph, i, j);
        assert_true(linked);
    }
}

static void cliques_of_any_machines_are_joined_in_a_ring_or_refused(void **state)
{
    rbt_rng rng = rbt_rng_stream(3, RBT_STREAM_TEST, 0);
    int made = 0, even = 0;

    (void)state;
    for (int round = 0; round < 400; round++) {
        uint32_t size[6], nodes = 0, count = (uint32_t)(1 + rbt_rng_below(&rng, 6));
        rbt_machines machines = {count, size};
        rbt_error error = {RBT_OK, ""};
        rbt_graph graph;
        bool same = true;

        for (uint32_t m = 0; m < count; m++) {
            size[m] = round % 2 == 0 && m > 0 ? size[0] : (uint32_t)(1 + rbt_rng_below(&rng, 5));
            same = same && size[m] == size[0];
            nodes += size[m];
        }
        if (rbt_graph_init(&graph, RBT_GRAPH_CLIQUE, nodes, &machines, &error) != RBT_OK) {
            assert_false(same || count <= 3); /* these can always be joined */
            assert_non_null(strstr(error.text, "machines of one size"));
            continue;
        }
        made++;
        even += same;
        must_pass(&graph, "clique");
        must_be_sound(&graph);
        must_be_cliques(&graph, &machines);
        assert_true(rbt_graph_is_symmetric(&graph));
        rbt_graph_deinit(&graph);
    }
    assert_true(made > 250 && even > 150);
}

/* Machines of 3, 3 and 2: a triangle of machines in which everybody has four neighbours, with five edges between. */
static void cliques_take_as_few_edges_between_machines_as_they_can(void **state)
{
    uint32_t size[] = {3, 3, 2};
    rbt_machines machines = {3, size};
    rbt_graph graph;

    (void)state;
    assert_int_equal(rbt_graph_init(&graph, RBT_GRAPH_CLIQUE, 8, &machines, NULL), RBT_OK);
    assert_int_equal(graph.edges, 8 * 4);
    neighbours_are(rbt_graph_in(&graph, 0), (uint32_t[]){0, 1, 2, 3}, 4);
    assert_true(fabs(rbt_graph_spectral_gap(&graph) - 0.3170) < 5e-5);
    rbt_graph_deinit(&graph);
}

/* -------------------------------------------------------------------------------------------------- refusals */

static void refused(const char *text, const char *reason)
{
    rbt_graph graph = parse(text);
    rbt_error error = {RBT_OK, ""};

    assert_int_equal(rbt_graph_check(&graph, "g", &error), RBT_E_DATA);
    if (strstr(error.text, reason) == NULL)
        fail_msg("'%s' does not say '%s'", error.text, reason);
    rbt_graph_deinit(&graph);
}

static void checks_name_the_offending_node(void **state)
{
    (void)state;
    refused("0 0\n1 1\n0 - 1\n1 - 2", "node 2 has no self-loop");
    refused("0 0\n1 1\n3 3\n0 - 1\n1 - 3\n", "node 2 has no edge");
    refused("0 0\n1 1\n2 2\n0 - 1\n0 2", "no path from node 2 to node 0");
    refused("0 0\n1 1\n2 2\n0 - 1\n2 1", "no path from node 0 to node 2");
    refused("0 0\n1 1\n2 2\n3 3\n0 - 1\n2 - 3", "no path from node 0 to node 2");
    refused("0 0\n1 1\n2 2\n0 - 1\n1 - 2", "node 0 sends sum to 0.833333");
}

static void bad_text(const char *text, uint32_t nodes, const char *reason)
{
    rbt_graph graph;
    rbt_error error = {RBT_OK, ""};

    assert_int_equal(rbt_graph_parse(&graph, "g", text, strlen(text), nodes, &error), RBT_E_DATA);
    if (strstr(error.text, reason) == NULL)
        fail_msg("'%s' does not say '%s'", error.text, reason);
}

static void text_is_read_or_refused_by_its_line(void **state)
{
    rbt_graph graph = parse("# two nodes\n\n 0 0 # itself\r\n1\t1\n0 - 1");

    (void)state;
    assert_int_equal(graph.nodes, 2);
    assert_int_equal(graph.edges, 4);
    rbt_graph_deinit(&graph);
    graph = parse("0 - 0");
    assert_int_equal(graph.edges, 1);
    rbt_graph_deinit(&graph);
    bad_text("", 0, "g: there is no edge");
    bad_text("# nothing\n\n", 0, "g: there is no edge");
    bad_text("0 0\n0\n", 0, "g:2: '' where a node was expected");
    bad_text("0 0\n0 x\n", 0, "g:2: 'x' where a node was expected");
    bad_text("0 0\n-1 0\n", 0, "g:2: '-1 0' is no node");
    bad_text("0 0 1\n", 0, "g:1: '1' where a node was expected");
    bad_text("0 - - 1\n", 0, "g:1: '- 1' where a node was expected");
    bad_text("0 16384\n", 0, "g:1: node 16384 is out of range; the nodes are 0 to 16383");
    bad_text("0 9999999999\n", 0, "g:1: '9999999999' where");
    bad_text("0 0\n0 8\n", 8, "g:2: node 8 is out of range; the nodes are 0 to 7");
    bad_text("0 0\n0 1\n1 1\n1 - 0\n", 0, "g:4: the edge from 0 to 1 is there already, in line 2");
}

static void limits_are_kept(void **state)
{
    rbt_graph graph;
    rbt_error error = {RBT_OK, ""};
    const rbt_edge twice[] = {{0, 0}, {0, 0}}, outside[] = {{0, 1}};

    (void)state;
    assert_int_equal(rbt_graph_init(&graph, RBT_GRAPH_RING, 0, NULL, &error), RBT_E_USAGE);
    assert_int_equal(rbt_graph_init(&graph, RBT_GRAPH_RING, RBT_GRAPH_NODES_MAX + 1, NULL, &error), RBT_E_USAGE);
    assert_int_equal(rbt_graph_init(&graph, RBT_GRAPH_COMPLETE, 4097, NULL, &error), RBT_E_LIMIT);
    assert_int_equal(rbt_graph_init(&graph, RBT_GRAPH_CLIQUE, 4097, NULL, &error), RBT_E_LIMIT);
    assert_int_equal(rbt_graph_init(&graph, RBT_GRAPH_DOUBLE_RING, 9, NULL, &error), RBT_E_USAGE);
    assert_non_null(strstr(error.text, "even number"));
    assert_int_equal(rbt_graph_init_edges(&graph, 1, twice, 2, &error), RBT_E_DATA);
    assert_int_equal(rbt_graph_init_edges(&graph, 1, outside, 1, &error), RBT_E_DATA);
    graph = make(RBT_GRAPH_RING_BASED, RBT_GRAPH_NODES_MAX);
    assert_false(isnan(rbt_graph_spectral_gap(&graph)));
    rbt_graph_deinit(&graph);
    graph = make(RBT_GRAPH_DOUBLE_RING, 1026);
    assert_true(isnan(rbt_graph_spectral_gap(&graph)));
    rbt_graph_deinit(&graph);
}

/* ------------------------------------------------------------------------------------------------- properties */

static void rings_are_bipartite_when_even(void **state)
{
    uint8_t side[12];

    (void)state;
    for (uint32_t n = 2; n <= 12; n++) {
        rbt_graph graph = make(RBT_GRAPH_RING, n);

        assert_int_equal(rbt_graph_is_bipartite(&graph, side, NULL), n % 2 == 0);
        for (uint32_t i = 0; n % 2 == 0 && i < n; i++)
            assert_true(side[i] != side[(i + 1) % n]);
        rbt_graph_deinit(&graph);
    }
    rbt_graph graph = make(RBT_GRAPH_RING_BASED, 10); /* 5 apart: odd */
    assert_true(rbt_graph_is_bipartite(&graph, NULL, NULL));
    rbt_graph_deinit(&graph);
    graph = make(RBT_GRAPH_RING_BASED, 8);
    assert_false(rbt_graph_is_bipartite(&graph, NULL, NULL));
    rbt_graph_deinit(&graph);
    graph = parse("0 0\n1 1\n2 2\n3 3\n0 1\n2 1\n3 2"); /* found also against the direction of the edges */
    assert_true(rbt_graph_is_bipartite(&graph, NULL, NULL));
    rbt_graph_deinit(&graph);
}

/* Hop's figure 21 has 4, 2 and 2 workers on three machines and gives 0.6667, 0.2682 and 0.2688. These are what comes out
 * without self-loops, when the second largest eigenvalue is taken with its sign. With self-loops, by modulus, as the
 * text says: 0.5, 0.1808 and 0.1885; the last two have weights that are not doubly stochastic. */
static void spectral_gaps_of_the_paper_s_graphs(void **state)
{
    static const char *const text[] = {
        "0 - 1\n0 - 2\n0 - 3\n1 - 2\n1 - 3\n2 - 3\n4 - 5\n6 - 7\n0 - 4\n4 - 6\n6 - 0\n",
        "0 - 1\n0 - 2\n0 - 3\n1 - 2\n1 - 3\n2 - 3\n4 - 5\n6 - 7\n0 - 4\n5 - 6\n7 - 1\n",
    };
    static const double gap[] = {0.1808, 0.1885};
    rbt_graph graph = make(RBT_GRAPH_RING_BASED, 8);

    (void)state;
    assert_true(fabs(rbt_graph_spectral_gap(&graph) - 0.5) < 1e-12);
    rbt_graph_deinit(&graph);
    for (int i = 0; i < 2; i++) {
        char all[256] = "0 0\n1 1\n2 2\n3 3\n4 4\n5 5\n6 6\n7 7\n";

        graph = parse(strcat(all, text[i]));
        assert_true(fabs(rbt_graph_spectral_gap(&graph) - gap[i]) < 5e-5);
        assert_int_equal(rbt_graph_check(&graph, "g", NULL), RBT_E_DATA);
        rbt_graph_deinit(&graph);
    }
}

/* How much x grows in 400 rounds of x+ = W x - c x, from a start with every part in it. */
static double growth(const rbt_graph *graph, double c)
{
    double x[64], next[64], norm = 0, first = 0;

    for (uint32_t i = 0; i < graph->nodes; i++) {
        x[i] = i % 7 - 2.5 + 0.1 * i;
        first += x[i] * x[i];
    }
    for (int round = 0; round < 400; round++) {
        for (uint32_t j = 0; j < graph->nodes; j++) {
            rbt_neighbours in = rbt_graph_in(graph, j);

            next[j] = -c * x[j];
            for (uint32_t k = 0; k < in.count; k++)
                next[j] += x[in.at[k]] / in.count;
        }
        memcpy(x, next, sizeof x);
    }
    for (uint32_t i = 0; i < graph->nodes; i++)
        norm += x[i] * x[i];
    return sqrt(norm / first);
}

static void a_step_within_its_room_never_grows_and_one_beyond_does(void **state)
{
    static const struct {
        rbt_graph_kind kind;
        uint32_t nodes;
        double room; /* 0: no closed form */
    } cases[] = {
        {RBT_GRAPH_RING, 8, 2.0 / 3},   {RBT_GRAPH_RING_BASED, 8, 0.646447},
        {RBT_GRAPH_COMPLETE, 8, 1},     {RBT_GRAPH_EXPONENTIAL, 8, 0},
        {RBT_GRAPH_EXPONENTIAL, 13, 0}, {RBT_GRAPH_DOUBLE_RING, 12, 0},
        {RBT_GRAPH_RING_BASED, 16, 0},  {RBT_GRAPH_RING, 7, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rbt_graph graph = make(cases[i].kind, cases[i].nodes);
        double room = rbt_graph_step_room(&graph);

        assert_true(cases[i].room == 0 || fabs(room - cases[i].room) < 1e-5);
        assert_true(growth(&graph, room - 1e-4) < 1);
        assert_true(growth(&graph, room + 0.1) > 1e3);
        rbt_graph_deinit(&graph);
    }
}

/* Found by the fuzzer: most eigenvalues are 0 and defective, and QR steps did not settle. */
static void spectral_gap_of_a_graph_with_dead_ends_is_a_number(void **state)
{
    rbt_graph graph = parse("4 0\n1 3\n2 2\n0 - 11\n6 - 40\n44 01\n1 - 52\n6 - 0\n");
    double gap = rbt_graph_spectral_gap(&graph);

    (void)state;
    assert_true(gap >= -1e-9 && gap <= 1 + 1e-9);
    rbt_graph_deinit(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_at_every_size_passes_the_checks),
        cmocka_unit_test(kinds_have_the_neighbours_of_the_paper),
        cmocka_unit_test(machines_from_a_list_or_a_number),
        cmocka_unit_test(cliques_of_any_machines_are_joined_in_a_ring_or_refused),
        cmocka_unit_test(cliques_take_as_few_edges_between_machines_as_they_can),
        cmocka_unit_test(checks_name_the_offending_node),
        cmocka_unit_test(text_is_read_or_refused_by_its_line),
        cmocka_unit_test(limits_are_kept),
        cmocka_unit_test(rings_are_bipartite_when_even),
        cmocka_unit_test(spectral_gaps_of_the_paper_s_graphs),
        cmocka_unit_test(a_step_within_its_room_never_grows_and_one_beyond_does),
        cmocka_unit_test(spectral_gap_of_a_graph_with_dead_ends_is_a_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
