/* Feeds arbitrary text to the reader of graphs and checks the promises of what it accepts: edges in range, in ascending
 * lists that say the same in both directions; and that checking and studying it end. Run: fuzz_graph CORPUS_FOLDER. */
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "sync/gap.h"

#define STUDIED 64 /* nodes: larger ones take too long for a fuzzer */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void check_list(const rbt_graph *graph, rbt_neighbours list)
{
    for (uint32_t k = 0; k < list.count; k++)
        RBT_ASSERT(list.at[k] < graph->nodes && (k == 0 || list.at[k - 1] < list.at[k]));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    rbt_graph graph;
    rbt_error error = {RBT_OK, ""};
    rbt_err err = rbt_graph_parse(&graph, "fuzz", (const char *)bytes, n, 0, &error);

    if (err != RBT_OK) {
        RBT_ASSERT(error.code == err && strstr(error.text, "fuzz") != NULL);
        return 0;
    }
    for (uint32_t i = 0; i < graph.nodes; i++) {
        rbt_neighbours in = rbt_graph_in(&graph, i);

        check_list(&graph, in);
        check_list(&graph, rbt_graph_out(&graph, i));
        for (uint32_t k = 0; k < in.count; k++)
            RBT_ASSERT(rbt_graph_has(&graph, in.at[k], i));
    }
    err = rbt_graph_check(&graph, "fuzz", &error);
    if (graph.nodes <= STUDIED) {
        double gap = rbt_graph_spectral_gap(&graph);

        RBT_ASSERT(gap > -1e-9 && gap < 1 + 1e-9);
        RBT_ASSERT(err != RBT_OK || rbt_graph_diameter(&graph) < graph.nodes);
        RBT_ASSERT(rbt_graph_step_room(&graph) > 0 && rbt_graph_step_room(&graph) <= 2);
    }
    rbt_graph_deinit(&graph);
    return 0;
}
