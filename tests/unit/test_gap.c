/* Proves src/sync/gap: distances against Floyd and Warshall, the bounds of Hop's Table 1 row by row, and that peers that
 * move at random within the rules never break them, and come up to them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "sync/gap.h"
#include "sync/token_queue.h"

#define N_MOST 12

/* A strongly connected graph: a one-way circle in random order, self-loops, and some more edges. */
static rbt_graph random_graph(rbt_rng *rng)
{
    uint32_t n = (uint32_t)(2 + rbt_rng_below(rng, N_MOST - 1)), order[N_MOST];
    bool has[N_MOST][N_MOST] = {{false}};
    rbt_edge edges[N_MOST * N_MOST];
    size_t count = 0;
    rbt_graph graph;

    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    rbt_rng_shuffle_u32(rng, order, n);
    for (uint32_t i = 0; i < n; i++)
        has[i][i] = has[order[i]][order[(i + 1) % n]] = true;
    for (uint64_t k = rbt_rng_below(rng, n); k > 0; k--)
        has[rbt_rng_below(rng, n)][rbt_rng_below(rng, n)] = true;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++)
            if (has[i][j])
                edges[count++] = (rbt_edge){i, j};
    assert_int_equal(rbt_graph_init_edges(&graph, n, edges, count, NULL), RBT_OK);
    return graph;
}

static void distances_are_those_of_floyd_and_warshall(void **state)
{
    rbt_rng rng = rbt_rng_stream(5, RBT_STREAM_TEST, 0);

    (void)state;
    for (int round = 0; round < 200; round++) {
        rbt_graph graph = random_graph(&rng);
        uint32_t n = graph.nodes, d[N_MOST][N_MOST], back[N_MOST], longest = 0;
        rbt_paths paths;

        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; j < n; j++)
                d[i][j] = i == j ? 0 : rbt_graph_has(&graph, i, j) ? 1 : 1000;
        for (uint32_t k = 0; k < n; k++)
            for (uint32_t i = 0; i < n; i++)
                for (uint32_t j = 0; j < n; j++)
                    if (d[i][k] + d[k][j] < d[i][j])
                        d[i][j] = d[i][k] + d[k][j];
        assert_int_equal(rbt_paths_init(&paths, &graph, NULL), RBT_OK);
        for (uint32_t j = 0; j < n; j++) {
            rbt_graph_hops_to(&graph, j, back);
            for (uint32_t i = 0; i < n; i++) {
                assert_int_equal(rbt_paths_hops(&paths, i, j), d[i][j]);
                assert_int_equal(back[i], d[i][j]);
                longest = d[i][j] > longest ? d[i][j] : longest;
            }
        }
        assert_int_equal(rbt_graph_diameter(&graph), longest);
        rbt_paths_deinit(&paths);
        rbt_graph_deinit(&graph);
    }
}

static void bounds_are_those_of_table_1(void **state)
{
    const rbt_gap_setting standard = {0}, ack = {.notify_ack = true}, stale = {.staleness = 3},
                          backup = {.backup = true}, tokens = {.max_gap = 5},
                          stale_tokens = {.staleness = 3, .max_gap = 5}, backup_tokens = {.backup = true, .max_gap = 5},
                          hybrid = {.backup = true, .staleness = 3, .max_gap = 5};

    (void)state;
    assert_true(rbt_gap_bound(&standard, 3, 1) == 3);
    assert_true(rbt_gap_bound(&ack, 3, 1) == 2 && rbt_gap_bound(&ack, 3, 2) == 3 && rbt_gap_bound(&ack, 1, 7) == 1);
    assert_true(rbt_gap_bound(&stale, 3, 1) == 12);
    assert_true(rbt_gap_bound(&backup, 1, 1) == RBT_UNBOUNDED);
    assert_true(rbt_gap_bound(&tokens, 9, 1) == 5 && rbt_gap_bound(&tokens, 9, 2) == 9);
    assert_true(rbt_gap_bound(&stale_tokens, 3, 1) == 5 && rbt_gap_bound(&stale_tokens, 1, 3) == 4);
    assert_true(rbt_gap_bound(&backup_tokens, 1, 3) == 15);
    assert_true(rbt_gap_bound(&hybrid, 1, 3) == 15);
    assert_true(rbt_gap_bound(&hybrid, 0, 0) == 0);
    assert_true(rbt_gap_bound(&standard, RBT_GRAPH_FAR, 1) == RBT_UNBOUNDED);
    assert_true(rbt_gap_bound(&(rbt_gap_setting){.staleness = RBT_UNBOUNDED}, 1, 1) == RBT_UNBOUNDED);
    assert_true(rbt_gap_bound(&(rbt_gap_setting){.staleness = RBT_UNBOUNDED - 2}, 4, 1) == RBT_UNBOUNDED);
    assert_true(rbt_token_queue_most(5, 2) == 15);
}

static void worst_bounds_of_a_ring_of_8(void **state)
{
    const rbt_gap_setting settings[] = {{0}, {.notify_ack = true}, {.staleness = 2, .max_gap = 4}, {.backup = true}};
    rbt_gap_worst worst[4];
    rbt_graph graph;

    (void)state;
    assert_int_equal(rbt_graph_init(&graph, RBT_GRAPH_RING, 8, NULL, NULL), RBT_OK);
    rbt_gap_worst_of(&graph, settings, 4, worst);
    assert_true(worst[0].over_sender == 1 && worst[0].over_receiver == 1 && worst[0].over_any == 4);
    assert_true(worst[1].over_sender == 1 && worst[1].over_receiver == 1 && worst[1].over_any == 4);
    assert_true(worst[2].over_sender == 3 && worst[2].over_receiver == 3 && worst[2].over_any == 12);
    assert_true(worst[3].over_sender == RBT_UNBOUNDED && worst[3].over_any == RBT_UNBOUNDED);
    rbt_graph_deinit(&graph);
}

/* May i enter its next iteration? It has used updates of all in-neighbours that are at most s old (an update of
 * iteration k is sent on entering it), and there are tokens. */
static bool may_enter(const rbt_graph *graph, const rbt_gap_setting *setting, const uint64_t *iter, uint32_t i,
                      rbt_token_queue queue[N_MOST][N_MOST])
{
    rbt_neighbours in = rbt_graph_in(graph, i), out = rbt_graph_out(graph, i);
    uint32_t fresh = 0;

    for (uint32_t k = 0; k < in.count; k++)
        fresh += iter[in.at[k]] + setting->staleness >= iter[i];
    if (setting->backup ? fresh + 1 < in.count : fresh < in.count)
        return false;
    for (uint32_t k = 0; k < out.count && setting->max_gap > 0; k++)
        if (out.at[k] != i && queue[out.at[k]][i].size == 0)
            return false;
    return true;
}

static void enter(const rbt_graph *graph, const rbt_gap_setting *setting, uint64_t *iter, uint32_t i,
                  rbt_token_queue queue[N_MOST][N_MOST])
{
    rbt_neighbours in = rbt_graph_in(graph, i), out = rbt_graph_out(graph, i);

    iter[i]++;
    for (uint32_t k = 0; k < out.count && setting->max_gap > 0; k++)
        if (out.at[k] != i)
            rbt_token_queue_take(&queue[out.at[k]][i], 1);
    for (uint32_t k = 0; k < in.count && setting->max_gap > 0; k++)
        if (in.at[k] != i)
            rbt_token_queue_tell(&queue[i][in.at[k]], iter[i]);
}

/* After every step: no pair beyond its bound, every token queue as the identity says. True when a bound is reached. */
static bool check_all(const rbt_graph *graph, const rbt_paths *paths, const rbt_gap_setting *setting,
                      const uint64_t *iter, rbt_token_queue queue[N_MOST][N_MOST])
{
    bool reached = false;

    for (uint32_t i = 0; i < graph->nodes; i++)
        for (uint32_t j = 0; j < graph->nodes; j++) {
            uint64_t bound = rbt_gap_bound(setting, rbt_paths_hops(paths, j, i), rbt_paths_hops(paths, i, j));

            assert_true(iter[i] <= iter[j] || iter[i] - iter[j] <= bound);
            reached = reached || (i != j && iter[i] == iter[j] + bound);
            if (setting->max_gap > 0 && i != j && rbt_graph_has(graph, i, j)) {
                assert_true(rbt_token_queue_holds(&queue[j][i], iter[j], iter[i], 0));
                assert_true((uint64_t)queue[j][i].size <=
                            rbt_token_queue_most(setting->max_gap, rbt_paths_hops(paths, j, i)));
            }
        }
    return reached;
}

static void peers_that_keep_the_rules_keep_the_bounds_and_come_up_to_them(void **state)
{
    rbt_rng rng = rbt_rng_stream(6, RBT_STREAM_TEST, 0);
    int reached = 0;

    (void)state;
    for (int round = 0; round < 300; round++) {
        rbt_graph graph = random_graph(&rng);
        rbt_gap_setting setting = {.staleness = rbt_rng_below(&rng, 4),
                                   .max_gap = rbt_rng_below(&rng, 3) == 0 ? 0 : 1 + rbt_rng_below(&rng, 5),
                                   .backup = rbt_rng_below(&rng, 4) == 0};
        rbt_token_queue queue[N_MOST][N_MOST];
        uint64_t iter[N_MOST] = {0};
        bool came_up = false;
        rbt_paths paths;

        for (uint32_t i = 0; i < N_MOST && setting.max_gap > 0; i++)
            for (uint32_t j = 0; j < N_MOST; j++)
                queue[i][j] = rbt_token_queue_of(setting.max_gap, 0, 0);
        assert_int_equal(rbt_paths_init(&paths, &graph, NULL), RBT_OK);
        for (int step = 0; step < 400; step++) {
            /* now and then one node sleeps, so that the others run into their bounds */
            uint32_t i = (uint32_t)rbt_rng_below(&rng, graph.nodes), asleep = (uint32_t)(step / 100) % graph.nodes;

            if (i == asleep || !may_enter(&graph, &setting, iter, i, queue))
                continue;
            enter(&graph, &setting, iter, i, queue);
            came_up = check_all(&graph, &paths, &setting, iter, queue) || came_up;
        }
        reached += came_up;
        rbt_paths_deinit(&paths);
        rbt_graph_deinit(&graph);
    }
    assert_true(reached > 200);
}

static void paths_of_too_many_nodes_are_refused(void **state)
{
    rbt_graph graph;
    rbt_paths paths;

    (void)state;
    assert_int_equal(rbt_graph_init(&graph, RBT_GRAPH_RING, RBT_PATHS_NODES_MAX + 1, NULL, NULL), RBT_OK);
    assert_int_equal(rbt_paths_init(&paths, &graph, NULL), RBT_E_LIMIT);
    rbt_graph_deinit(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distances_are_those_of_floyd_and_warshall),
        cmocka_unit_test(bounds_are_those_of_table_1),
        cmocka_unit_test(worst_bounds_of_a_ring_of_8),
        cmocka_unit_test(peers_that_keep_the_rules_keep_the_bounds_and_come_up_to_them),
        cmocka_unit_test(paths_of_too_many_nodes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
