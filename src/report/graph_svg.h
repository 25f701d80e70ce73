/* A graph of peers as a picture: SVG that stands on its own.
 *
 * Nodes stand on a circle, those of one machine on a circle of their own, a double ring on two. An edge both ways is a
 * line, a one-way edge an arrow; self-loops are not drawn. Light and dark follow the viewer. Used by `rubato graph`; proved
 * by tests/unit/test_graph_svg.c and tests/cli/test_graph.sh.
 */
#ifndef RBT_REPORT_GRAPH_SVG_H
#define RBT_REPORT_GRAPH_SVG_H

#include <stdio.h>

#include "sync/graph.h"

#define RBT_GRAPH_SVG_NODES_MAX 1024u
#define RBT_GRAPH_SVG_EDGES_MAX 65536u /* one-way */

typedef struct rbt_graph_drawing {
    const char *title;
    const char *note;             /* under it */
    const rbt_machines *machines; /* count 0 or 1: not grouped */
    bool two_rings;               /* the second half of the nodes on an inner circle */
} rbt_graph_drawing;

/* A graph too large to be looked at is refused. Output errors stay in the FILE. */
rbt_err rbt_graph_svg_write(const rbt_graph *graph, const rbt_graph_drawing *drawing, FILE *file, rbt_error *error);

#endif
