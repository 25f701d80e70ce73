/* Proves src/report/graph_svg: every node and every edge is drawn once, inside the picture; what a file is called does no
 * harm; what is too large is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "report/graph_svg.h"

/* Not inlined: gcc 12 would take what it returns for a pointer to its own variable. */
__attribute__((noinline)) static char *draw(const rbt_graph *graph, const rbt_graph_drawing *drawing)
{
    char *text = NULL;
    size_t n = 0;
    FILE *file = open_memstream(&text, &n);

    assert_int_equal(rbt_graph_svg_write(graph, drawing, file, NULL), RBT_OK);
    assert_int_equal(fclose(file), 0);
    return text;
}

static size_t occurrences(const char *text, const char *word)
{
    size_t count = 0;

    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word))
        count++;
    return count;
}

/* All circles lie inside the view box. */
static void must_fit(const char *text)
{
    for (const char *at = strstr(text, "<circle"); at != NULL; at = strstr(at + 1, "<circle")) {
        double x = strtod(strstr(at, "cx=\"") + 4, NULL), y = strtod(strstr(at, "cy=\"") + 4, NULL);
        double r = strtod(strstr(at, " r=\"") + 4, NULL);

        assert_true(r > 0 && x - r >= -500 && x + r <= 500 && y - r >= -500 && y + r <= 500);
    }
}

static void every_node_and_edge_is_drawn_once_inside_the_picture(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 64; n += n < 8 ? 1 : 7)
        for (uint32_t kind = 0; kind < RBT_GRAPH_KINDS; kind++)
            for (uint32_t count = 0; count <= (n < 9 ? n : 9); count += 3) {
                rbt_machines machines = {0};
                rbt_graph graph;
                char number[16], *text;

                (void)snprintf(number, sizeof number, "%u", count);
                if (count > 0)
                    assert_int_equal(rbt_machines_parse(number, n, &machines, NULL), RBT_OK);
                if (rbt_graph_init(&graph, (rbt_graph_kind)kind, n, &machines, NULL) == RBT_OK) {
                    size_t lines = 0;

                    for (uint32_t i = 0; i < n; i++)
                        for (uint32_t j = 0; j < n; j++)
                            lines += i != j && rbt_graph_has(&graph, i, j) && (i < j || !rbt_graph_has(&graph, j, i));
                    text = draw(&graph, &(rbt_graph_drawing){"t", "n", &machines, kind == RBT_GRAPH_DOUBLE_RING});
                    assert_int_equal(occurrences(text, "<g class=\"node"), n);
                    assert_int_equal(occurrences(text, "<line"), lines);
                    must_fit(text);
                    free(text);
                    rbt_graph_deinit(&graph);
                }
                rbt_machines_deinit(&machines);
            }
}

static void one_way_edges_are_arrows_and_names_are_escaped(void **state)
{
    rbt_graph graph;
    char *text;

    (void)state;
    assert_int_equal(rbt_graph_init(&graph, RBT_GRAPH_EXPONENTIAL, 5, NULL, NULL), RBT_OK);
    text = draw(&graph, &(rbt_graph_drawing){"<a & b>", "", NULL, false});
    assert_int_equal(occurrences(text, "url(#arrow)"), 5); /* i to i + 2; 1 and 4 go both ways */
    assert_non_null(strstr(text, "&lt;a &amp; b&gt;"));
    free(text);
    rbt_graph_deinit(&graph);
}

static void too_large_a_graph_is_refused(void **state)
{
    rbt_graph graph;

    (void)state;
    assert_int_equal(rbt_graph_init(&graph, RBT_GRAPH_RING, RBT_GRAPH_SVG_NODES_MAX + 1, NULL, NULL), RBT_OK);
    assert_int_equal(rbt_graph_svg_write(&graph, &(rbt_graph_drawing){"", "", NULL, false}, stdout, NULL), RBT_E_LIMIT);
    rbt_graph_deinit(&graph);
    assert_int_equal(rbt_graph_init(&graph, RBT_GRAPH_COMPLETE, 257, NULL, NULL), RBT_OK);
    assert_int_equal(rbt_graph_svg_write(&graph, &(rbt_graph_drawing){"", "", NULL, false}, stdout, NULL), RBT_E_LIMIT);
    rbt_graph_deinit(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_node_and_edge_is_drawn_once_inside_the_picture),
        cmocka_unit_test(one_way_edges_are_arrows_and_names_are_escaped),
        cmocka_unit_test(too_large_a_graph_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
