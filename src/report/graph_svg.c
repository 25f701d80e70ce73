/* A graph of peers as SVG; the contract is in graph_svg.h. */
#include "report/graph_svg.h"

#include <math.h>

#include "base/error.h"
#include "base/mem.h"
#include "report/chart.h"

#define TURN           6.283185307179586476925
#define RADIUS         400.0 /* of the circle everything is on; the picture is 1000 wide around (0, 0) */
#define INNER          0.6   /* the inner circle of two */
#define NODE_MOST      24.0
#define NODE_LEAST     2.0
#define LABEL_LEAST    5.5 /* radius of a node that has room for its number */
#define COLOURS        6
#define MACHINES_NAMED 24

typedef struct place {
    double x;
    double y;
    uint32_t machine;
} place;

typedef struct picture {
    const rbt_graph *graph;
    const rbt_graph_drawing *drawing;
    place *at;
    double node;    /* radius */
    bool grouped;   /* by machine */
    double centres; /* radius of the circle of machines */
    double group;   /* radius of a machine's circle */
} picture;

static void put_on_circle(place *at, uint32_t n, double radius, double start)
{
    for (uint32_t i = 0; i < n; i++) {
        double angle = TURN * (i + start) / n - TURN / 4; /* the first one on top */

        at[i].x = radius * cos(angle);
        at[i].y = radius * sin(angle);
    }
}

/* How large nodes can be when n of them are on a circle. */
static double node_radius(uint32_t n, double radius)
{
    double r = n > 1 ? 0.36 * 2 * radius * sin(TURN / 2 / n) : NODE_MOST;

    return r > NODE_MOST ? NODE_MOST : r < NODE_LEAST ? NODE_LEAST : r;
}

/* The direction in which a machine lies from the middle. */
static double machine_angle(const picture *p, uint32_t m)
{
    return TURN * m / p->drawing->machines->count - TURN / 4;
}

static void place_machines(picture *p)
{
    const rbt_machines *machines = p->drawing->machines;
    double half = sin(TURN / 2 / machines->count);
    uint32_t first = 0, most = 1;

    p->centres = RADIUS / (1 + 0.62 * half);
    p->group = 0.62 * half * p->centres;
    for (uint32_t m = 0; m < machines->count; m++)
        most = machines->nodes[m] > most ? machines->nodes[m] : most;
    p->node = node_radius(most, 0.85 * p->group);
    p->node = p->node < p->group / 2 ? p->node : p->group / 2;
    for (uint32_t m = 0; m < machines->count; m++) {
        double angle = machine_angle(p, m), inner = p->group - p->node;

        if (machines->nodes[m] == 1)
            inner = 0;
        for (uint32_t k = 0; k < machines->nodes[m] && first < p->graph->nodes; k++, first++) {
            double own = angle + TURN * (k + 0.5) / machines->nodes[m];

            p->at[first] =
                (place){p->centres * cos(angle) + inner * cos(own), p->centres * sin(angle) + inner * sin(own), m};
        }
    }
}

static void place_nodes(picture *p)
{
    uint32_t n = p->graph->nodes;

    if (p->grouped) {
        place_machines(p);
    } else if (p->drawing->two_rings && n >= 8) {
        put_on_circle(p->at, n / 2, RADIUS, 0);
        put_on_circle(p->at + n / 2, n - n / 2, INNER * RADIUS, 0.5); /* between the lines through the middle */
        p->node = node_radius(n - n / 2, INNER * RADIUS);
    } else {
        put_on_circle(p->at, n, n > 1 ? RADIUS : 0, 0);
        p->node = node_radius(n, RADIUS);
    }
}

/* -------------------------------------------------------------------------------------------------- writing */

static void write_head(const picture *p, double strength, FILE *file)
{
    static const char *const light[COLOURS] = {"#2563a8", "#c2571a", "#2c8a4b", "#8a4fa8", "#a87b12", "#b03060"};
    static const char *const dark[COLOURS] = {"#7ab1ea", "#f0a070", "#7ccf95", "#c9a0e0", "#e0bf60", "#f090b0"};

    fprintf(file, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-500 -500 1000 1080\" role=\"img\">\n<title>");
    rbt_html_escape(file, p->drawing->title);
    fprintf(file,
            "</title>\n<style>\n"
            "svg { background: #fff; font-family: system-ui, sans-serif; }\n"
            "line { stroke: #555; stroke-opacity: %.3g; stroke-width: %.3g; }\n"
            ".arrow { fill: #555; } .group { fill: #8882; stroke: none; }\n"
            "text { text-anchor: middle; fill: #222; } .node text { fill: #fff; dominant-baseline: central; }\n",
            strength, p->node > 10 ? 2.0 : 1.2);
    for (int c = 0; c < COLOURS; c++)
        fprintf(file, ".c%d circle { fill: %s; } line.c%d { stroke: %s; }\n", c, light[c], c, light[c]);
    fprintf(file, "@media (prefers-color-scheme: dark) {\n"
                  "svg { background: #16181c; } line { stroke: #aaa; } .arrow { fill: #aaa; } text { fill: #ddd; }\n"
                  ".node text { fill: #111; }\n");
    for (int c = 0; c < COLOURS; c++)
        fprintf(file, ".c%d circle { fill: %s; } line.c%d { stroke: %s; }\n", c, dark[c], c, dark[c]);
    fprintf(file, "}\n</style>\n<defs><marker id=\"arrow\" viewBox=\"0 0 10 10\" refX=\"10\" refY=\"5\" "
                  "markerWidth=\"6\" markerHeight=\"6\" orient=\"auto\"><path class=\"arrow\" d=\"M0 1L10 5L0 9z\"/>"
                  "</marker></defs>\n");
}

static void write_edge(const picture *p, uint32_t i, uint32_t j, bool arrow, FILE *file)
{
    const place *a = &p->at[i], *b = &p->at[j];
    double dx = b->x - a->x, dy = b->y - a->y, length = hypot(dx, dy);
    double cut = arrow && length > 0 ? (p->node + 1) / length : 0;

    fprintf(file, "<line");
    if (p->grouped && a->machine == b->machine)
        fprintf(file, " class=\"c%u\"", a->machine % COLOURS);
    fprintf(file, " x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"%s/>\n", a->x, a->y, b->x - cut * dx,
            b->y - cut * dy, arrow ? " marker-end=\"url(#arrow)\"" : "");
}

static void write_edges(const picture *p, FILE *file)
{
    for (uint32_t i = 0; i < p->graph->nodes; i++) {
        rbt_neighbours out = rbt_graph_out(p->graph, i);

        for (uint32_t k = 0; k < out.count; k++) {
            bool back = rbt_graph_has(p->graph, out.at[k], i);

            if (out.at[k] != i && (!back || i < out.at[k]))
                write_edge(p, i, out.at[k], !back, file);
        }
    }
}

/* Its colour's number: that of the machine, or of the ring. */
static uint32_t colour_of(const picture *p, uint32_t i)
{
    if (p->grouped)
        return p->at[i].machine % COLOURS;
    return p->drawing->two_rings && i >= p->graph->nodes / 2;
}

static void write_nodes(const picture *p, FILE *file)
{
    double font = p->graph->nodes > 100 ? 0.85 * p->node : 1.05 * p->node;

    for (uint32_t i = 0; i < p->graph->nodes; i++) {
        fprintf(file, "<g class=\"node c%u\"><circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/>", colour_of(p, i), p->at[i].x,
                p->at[i].y, p->node);
        if (p->node >= LABEL_LEAST)
            fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%.1f\">%u</text>", p->at[i].x, p->at[i].y, font, i);
        fprintf(file, "</g>\n");
    }
}

static void write_groups(const picture *p, FILE *file)
{
    for (uint32_t m = 0; p->grouped && m < p->drawing->machines->count; m++) {
        double angle = machine_angle(p, m), x = p->centres * cos(angle), y = p->centres * sin(angle);
        double away = p->group + 15; /* the name stands above a machine, below one of the lower half */

        fprintf(file, "<circle class=\"group\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/>\n", x, y, p->group + 8);
        if (p->drawing->machines->count <= MACHINES_NAMED)
            fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%d\">machine %u</text>\n", x,
                    y > 1 ? y + away + 12 : y - away, p->drawing->machines->count <= 8 ? 18 : 13, m);
    }
}

rbt_err rbt_graph_svg_write(const rbt_graph *graph, const rbt_graph_drawing *drawing, FILE *file, rbt_error *error)
{
    picture p = {.graph = graph, .drawing = drawing};
    double lines = (double)(graph->edges - graph->nodes) / (rbt_graph_is_symmetric(graph) ? 2 : 1);
    double strength = lines > 96 ? 0.8 * sqrt(96 / lines) : 0.8;

    if (graph->nodes > RBT_GRAPH_SVG_NODES_MAX || graph->edges > RBT_GRAPH_SVG_EDGES_MAX)
        return rbt_fail(error, RBT_E_LIMIT,
                        "a graph of %u nodes and %zu edges is too large to be drawn; at most %u and %u can be",
                        graph->nodes, graph->edges, RBT_GRAPH_SVG_NODES_MAX, RBT_GRAPH_SVG_EDGES_MAX);
    p.at = rbt_alloc(graph->nodes, sizeof *p.at);
    p.grouped = drawing->machines != NULL && drawing->machines->count > 1;
    place_nodes(&p);
    write_head(&p, strength < 0.15 ? 0.15 : strength, file);
    write_groups(&p, file);
    write_edges(&p, file);
    write_nodes(&p, file);
    fprintf(file, "<text y=\"515\" font-size=\"26\">");
    rbt_html_escape(file, drawing->title);
    fprintf(file, "</text>\n<text y=\"550\" font-size=\"19\">");
    rbt_html_escape(file, drawing->note);
    fprintf(file, "</text>\n</svg>\n");
    rbt_free(p.at);
    return RBT_OK;
}
