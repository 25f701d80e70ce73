/* rubato graph: what a graph of peers is worth before anything is trained on it. */
#include "cli/cli.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/file.h"
#include "job/text.h"
#include "report/graph_svg.h"
#include "report/text.h"
#include "sync/gap.h"

#define NODES_LISTED 32 /* neighbours of more nodes are in the JSON alone */
#define EDGES_LISTED 512
#define TITLE_ROOM   128
#define NOTE_ROOM    160

typedef struct request {
    const char *what; /* a kind or a file */
    const char *nodes;
    const char *machines, *max_gap, *staleness, *backup, *svg, *json;
} request;

#define SETTINGS 8

/* A graph and what is known of it. */
typedef struct subject {
    rbt_graph graph;
    const char *name;
    bool two_rings;
    rbt_machines machines;
    uint64_t max_gap, staleness, backup;
    rbt_error unfit; /* why peers cannot train on it; no code: they can */
    bool connected;
    bool symmetric;
    bool bipartite;
    rbt_edge within;    /* why it is not */
    double step_factor; /* of a found step size, in parallel order */
    uint32_t diameter;
    double spectral_gap;
    uint32_t in_least, in_most, out_least, out_most;
    size_t both_ways, one_way, self_loops,
        between; /* edges; between: those that join machines, one of two ways counted */
    rbt_gap_setting setting[SETTINGS];
    rbt_gap_worst worst[SETTINGS];
} subject;

/* ------------------------------------------------------------------------------------------------- finding out */

static rbt_err unknown_kind(const char *what, rbt_error *error)
{
    rbt_nearest nearest = {.word = what};

    for (unsigned k = 0; k < RBT_GRAPH_KINDS; k++)
        rbt_nearest_offer(&nearest, rbt_graph_kind_name((rbt_graph_kind)k));
    if (rbt_nearest_found(&nearest) != NULL)
        return rbt_fail(error, RBT_E_USAGE, "'%s' is no kind of graph and no file; did you mean '%s'?", what,
                        rbt_nearest_found(&nearest));
    return rbt_fail(error, RBT_E_USAGE,
                    "'%s' is no kind of graph and no file that can be read; there are: ring, ring-based, double-ring, "
                    "complete, exponential, clique, or a file of edges",
                    what);
}

static rbt_err read_graph(const request *r, uint32_t nodes, subject *s, rbt_error *error)
{
    rbt_input input;
    rbt_error unread = {RBT_OK, ""};
    rbt_err err;

    if (rbt_input_open(r->what, &input, &unread) != RBT_OK)
        return unknown_kind(r->what, error);
    s->name = input.name;
    err = rbt_graph_parse(&s->graph, input.name, input.bytes, input.n, nodes, error);
    rbt_input_close(&input);
    return err;
}

static rbt_err make_graph(const request *r, subject *s, rbt_error *error)
{
    uint64_t nodes = 0;
    rbt_graph_kind kind = RBT_GRAPH_RING;
    rbt_err err = RBT_OK;

    if (r->what == NULL)
        return rbt_fail(error, RBT_E_USAGE,
                        "which graph? write `graph ring-based 16`, or `graph FILE` for one from a file of edges");
    bool known = rbt_graph_kind_find(r->what, &kind);
    if (known && r->nodes == NULL)
        return rbt_fail(error, RBT_E_USAGE, "of how many nodes? write `graph %s N`", r->what);
    if (r->nodes != NULL)
        err = rbt_text_to_count("N", r->nodes, 1, RBT_GRAPH_NODES_MAX, &nodes, error);
    if (err == RBT_OK && !known)
        err = read_graph(r, (uint32_t)nodes, s, error);
    if (err == RBT_OK && r->machines != NULL)
        err = rbt_machines_parse(r->machines, known ? (uint32_t)nodes : s->graph.nodes, &s->machines, error);
    if (err == RBT_OK && known && kind == RBT_GRAPH_CLIQUE && r->machines == NULL)
        err = rbt_fail(error, RBT_E_USAGE,
                       "clique: how many nodes are on each machine? give --machines 3,3,2 or a number");
    if (err == RBT_OK && known)
        err = rbt_graph_init(&s->graph, kind, (uint32_t)nodes, &s->machines, error);
    if (known)
        s->name = r->what;
    s->two_rings = known && kind == RBT_GRAPH_DOUBLE_RING;
    return err;
}

static void count_edges(subject *s)
{
    const rbt_graph *g = &s->graph;

    s->in_least = s->out_least = UINT32_MAX;
    for (uint32_t i = 0; i < g->nodes; i++) {
        rbt_neighbours in = rbt_graph_in(g, i), out = rbt_graph_out(g, i);

        s->in_least = in.count < s->in_least ? in.count : s->in_least;
        s->in_most = in.count > s->in_most ? in.count : s->in_most;
        s->out_least = out.count < s->out_least ? out.count : s->out_least;
        s->out_most = out.count > s->out_most ? out.count : s->out_most;
        for (uint32_t k = 0; k < out.count; k++) {
            uint32_t j = out.at[k];
            bool back = rbt_graph_has(g, j, i);

            s->self_loops += i == j;
            s->one_way += !back;
            s->both_ways += back && i < j;
            s->between += s->machines.count > 1 && (!back || i < j) &&
                          rbt_machines_of(&s->machines, i) != rbt_machines_of(&s->machines, j);
        }
    }
}

/* Every mix of settings that makes sense. */
static void study_gaps(subject *s)
{
    const rbt_gap_setting all[SETTINGS] = {
        {0, 0, false, false},
        {0, 0, false, true},
        {s->staleness, 0, false, false},
        {0, 0, true, false},
        {0, s->max_gap, false, false},
        {s->staleness, s->max_gap, false, false},
        {0, s->max_gap, true, false},
        {s->staleness, s->max_gap, true, false},
    };

    memcpy(s->setting, all, sizeof all);
    rbt_gap_worst_of(&s->graph, s->setting, SETTINGS, s->worst);
}

static void study(subject *s)
{
    if (rbt_graph_check(&s->graph, s->name, &s->unfit) == RBT_OK)
        s->unfit.code = RBT_OK;
    s->diameter = rbt_graph_diameter(&s->graph);
    s->connected = s->diameter != RBT_GRAPH_FAR;
    s->symmetric = rbt_graph_is_symmetric(&s->graph);
    s->bipartite = rbt_graph_is_bipartite(&s->graph, NULL, &s->within);
    s->step_factor = rbt_graph_step_room(&s->graph) / 2;
    s->spectral_gap = rbt_graph_spectral_gap(&s->graph);
    count_edges(s);
    study_gaps(s);
}

/* A node must wait for somebody besides itself. */
static rbt_err check_backup(const subject *s, rbt_error *error)
{
    if (s->backup + 1 < s->in_least || s->in_least == 0)
        return RBT_OK;
    return rbt_fail(
        error, RBT_E_USAGE,
        "backup = %" PRIu64
        ": there is a node with %u in-neighbours besides itself, and it would wait for none; give at most %u",
        s->backup, s->in_least - 1, s->in_least > 1 ? s->in_least - 2 : 0);
}

/* ----------------------------------------------------------------------------------------------------- telling */

/* "staleness 5, max-gap 5". */
static const char *setting_name(const subject *s, const rbt_gap_setting *setting, char *text, size_t room)
{
    size_t n = 0;

    text[0] = '\0';
    if (setting->notify_ack)
        n += (size_t)snprintf(text + n, room - n, "NOTIFY-ACK");
    if (setting->staleness > 0)
        n += (size_t)snprintf(text + n, room - n, "staleness %" PRIu64, setting->staleness);
    if (setting->backup)
        n += (size_t)snprintf(text + n, room - n, "%sbackup %" PRIu64, n > 0 ? ", " : "", s->backup);
    if (setting->max_gap > 0)
        n += (size_t)snprintf(text + n, room - n, "%smax-gap %" PRIu64, n > 0 ? ", " : "", setting->max_gap);
    if (n == 0)
        snprintf(text, room, "standard");
    return text;
}

static void add_bound(rbt_grid *grid, uint64_t bound)
{
    char cell[RBT_CELL_ROOM];

    if (bound == RBT_UNBOUNDED)
        snprintf(cell, sizeof cell, "unbounded");
    else
        snprintf(cell, sizeof cell, "%" PRIu64, bound);
    rbt_grid_add(grid, cell);
}

static void print_gaps(const subject *s)
{
    rbt_grid grid = {.columns = 4, .left = 1};
    char name[96];

    printf("\niterations a node can be ahead, at most\n");
    rbt_grid_add(&grid, "setting");
    rbt_grid_add(&grid, "of a sender");
    rbt_grid_add(&grid, "of a receiver");
    rbt_grid_add(&grid, "of any node");
    for (int k = 0; k < SETTINGS; k++) {
        rbt_grid_add(&grid, setting_name(s, &s->setting[k], name, sizeof name));
        add_bound(&grid, s->worst[k].over_sender);
        add_bound(&grid, s->worst[k].over_receiver);
        add_bound(&grid, s->worst[k].over_any);
    }
    rbt_grid_print(&grid, "  ", stdout);
    rbt_grid_deinit(&grid);
    printf("update queue with max-gap %" PRIu64 ": at most %" PRIu64 " updates\n", s->max_gap,
           (s->max_gap + 1) * s->in_most);
}

static void print_list(rbt_neighbours list, uint32_t node)
{
    for (uint32_t k = 0; k < list.count; k++)
        if (list.at[k] != node)
            printf(" %u", list.at[k]);
}

static void print_edges(const subject *s)
{
    if (s->graph.nodes > NODES_LISTED || s->graph.edges > EDGES_LISTED) {
        printf("\n%zu edges; --json has them all\n", s->graph.edges);
        return;
    }
    printf("\nnode  sends to%s\n", s->symmetric ? " and receives from" : " | receives from");
    for (uint32_t i = 0; i < s->graph.nodes; i++) {
        printf("%4u ", i);
        print_list(rbt_graph_out(&s->graph, i), i);
        if (!s->symmetric) {
            printf(" |");
            print_list(rbt_graph_in(&s->graph, i), i);
        }
        printf("\n");
    }
}

static void print_range(uint32_t least, uint32_t most)
{
    if (least == most)
        printf("%u", least);
    else
        printf("%u to %u", least, most);
}

static void print_machines(const subject *s)
{
    printf("machines      %u, with", s->machines.count);
    for (uint32_t m = 0; m < s->machines.count && m < NODES_LISTED; m++)
        printf("%s%u", m > 0 ? ", " : " ", s->machines.nodes[m]);
    printf("%s nodes; %zu edges between them\n", s->machines.count > NODES_LISTED ? ", ..." : "", s->between);
}

static void print_text(const subject *s)
{
    char cell[RBT_CELL_ROOM];

    printf("graph         %s, %u nodes\n", s->name, s->graph.nodes);
    if (s->machines.count > 0)
        print_machines(s);
    printf("edges         %zu both ways, %zu one way, %zu self-loops\n", s->both_ways, s->one_way, s->self_loops);
    printf("neighbours    ");
    print_range(s->in_least, s->in_most);
    printf(" to receive from, ");
    print_range(s->out_least, s->out_most);
    printf(" to send to, itself included\n");
    if (s->connected)
        printf("diameter      %u\n", s->diameter);
    else
        printf("diameter      none: not every node reaches every other\n");
    if (isnan(s->spectral_gap))
        printf("spectral gap  not worked out for a graph as large as this\n");
    else
        printf("spectral gap  %s of 1; the larger, the faster news spread\n", rbt_show_real(cell, s->spectral_gap));
    printf("steps         %s of a step size that was found is taken in parallel order\n",
           rbt_show_real(cell, s->step_factor));
    if (s->bipartite)
        printf("bipartite     yes%s\n", s->unfit.code == RBT_OK ? ", fit for AD-PSGD" : "");
    else
        printf("bipartite     no, as the edge between %u and %u shows; AD-PSGD needs a graph that is\n", s->within.from,
               s->within.to);
    printf("weights       %s\n", s->unfit.code == RBT_OK ? "doubly stochastic" : "peers cannot train on it, see below");
    print_gaps(s);
    print_edges(s);
}

static void json_bound(rbt_json *json, const char *key, uint64_t bound)
{
    if (bound == RBT_UNBOUNDED)
        rbt_json_null(json, key);
    else
        rbt_json_count(json, key, bound);
}

static void json_gaps(rbt_json *json, const subject *s)
{
    char name[96];

    rbt_json_array(json, "gaps");
    for (int k = 0; k < SETTINGS; k++) {
        rbt_json_object(json, NULL);
        rbt_json_text(json, "setting", setting_name(s, &s->setting[k], name, sizeof name));
        json_bound(json, "over_sender", s->worst[k].over_sender);
        json_bound(json, "over_receiver", s->worst[k].over_receiver);
        json_bound(json, "over_any", s->worst[k].over_any);
        rbt_json_end(json);
    }
    rbt_json_end(json);
}

static void json_edges(rbt_json *json, const subject *s)
{
    rbt_json_array(json, "edges");
    for (uint32_t i = 0; i < s->graph.nodes; i++) {
        rbt_neighbours out = rbt_graph_out(&s->graph, i);

        for (uint32_t k = 0; k < out.count; k++) {
            rbt_json_array(json, NULL);
            rbt_json_count(json, NULL, i);
            rbt_json_count(json, NULL, out.at[k]);
            rbt_json_end(json);
        }
    }
    rbt_json_end(json);
}

static rbt_err write_json(const char *path, const subject *s, rbt_error *error)
{
    rbt_jsonlines lines = {0};
    rbt_json *json = &lines.json;
    rbt_err err = rbt_jsonlines_open(&lines, path, error);

    if (err != RBT_OK)
        return err;
    rbt_json_object(json, NULL);
    rbt_json_text(json, "graph", s->name);
    rbt_json_count(json, "nodes", s->graph.nodes);
    if (s->machines.count > 0) {
        rbt_json_array(json, "machines");
        for (uint32_t m = 0; m < s->machines.count; m++)
            rbt_json_count(json, NULL, s->machines.nodes[m]);
        rbt_json_end(json);
        rbt_json_count(json, "between_machines", s->between);
    }
    rbt_json_count(json, "in_least", s->in_least);
    rbt_json_count(json, "in_most", s->in_most);
    rbt_json_count(json, "out_least", s->out_least);
    rbt_json_count(json, "out_most", s->out_most);
    json_bound(json, "diameter", s->connected ? s->diameter : RBT_UNBOUNDED);
    rbt_json_real(json, "spectral_gap", s->spectral_gap);
    rbt_json_bool(json, "symmetric", s->symmetric);
    rbt_json_bool(json, "bipartite", s->bipartite);
    rbt_json_real(json, "step_factor", s->step_factor);
    rbt_json_bool(json, "fit", s->unfit.code == RBT_OK);
    if (s->unfit.code != RBT_OK)
        rbt_json_text(json, "why_not", s->unfit.text);
    rbt_json_count(json, "update_queue", (s->max_gap + 1) * s->in_most);
    json_gaps(json, s);
    json_edges(json, s);
    rbt_json_end(json);
    return rbt_jsonlines_close(&lines, error);
}

static rbt_err write_svg(const char *path, const subject *s, rbt_error *error)
{
    char title[TITLE_ROOM], note[NOTE_ROOM], gap[RBT_CELL_ROOM], diameter[32] = "not connected", *bytes = NULL;
    size_t n = 0;
    FILE *memory = open_memstream(&bytes, &n);
    rbt_err err;

    if (memory == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for a picture");
    snprintf(title, sizeof title, "%.90s, %u nodes", s->name, s->graph.nodes);
    if (s->connected)
        snprintf(diameter, sizeof diameter, "diameter %u", s->diameter);
    snprintf(note, sizeof note, "%s%u%s, %s, spectral gap %s%s", s->in_least == s->in_most ? "" : "up to ", s->in_most,
             " neighbours each", diameter, rbt_show_real(gap, s->spectral_gap), s->bipartite ? ", bipartite" : "");
    rbt_graph_drawing drawing = {title, note, &s->machines, s->two_rings};
    err = rbt_graph_svg_write(&s->graph, &drawing, memory, error);
    if (fclose(memory) != 0 && err == RBT_OK)
        err = rbt_fail(error, RBT_E_MEMORY, "not enough memory for a picture");
    if (err == RBT_OK)
        err = rbt_output_whole(path, bytes, n, false, error);
    free(bytes);
    return err;
}

/* ----------------------------------------------------------------------------------------------------- command */

static rbt_err numbers_of(const request *r, subject *s, rbt_error *error)
{
    rbt_err err = RBT_OK;

    s->max_gap = s->staleness = 5;
    s->backup = 1;
    if (r->max_gap != NULL)
        err = rbt_text_to_count("--max-gap", r->max_gap, 1, UINT32_MAX, &s->max_gap, error);
    if (err == RBT_OK && r->staleness != NULL)
        err = rbt_text_to_count("--staleness", r->staleness, 1, UINT32_MAX, &s->staleness, error);
    if (err == RBT_OK && r->backup != NULL)
        err = rbt_text_to_count("--backup", r->backup, 1, RBT_GRAPH_NODES_MAX, &s->backup, error);
    return err;
}

static bool is_stdout(const char *path)
{
    return path != NULL && strcmp(path, "-") == 0;
}

/* Neither output over the graph's file, nor over the other. */
static rbt_err keep_apart(const request *r, rbt_error *error)
{
    const cli_output outputs[] = {{"svg", r->svg}, {"json", r->json}};
    rbt_graph_kind kind;
    const char *file = r->what != NULL && rbt_graph_kind_find(r->what, &kind) ? NULL : r->what;
    rbt_err err = cli_keep_outputs_apart(outputs, 2, error);

    for (size_t i = 0; i < 2 && err == RBT_OK; i++)
        err = cli_keep_apart(file, outputs[i].path, error);
    return err;
}

static rbt_err run(const request *r, rbt_error *error)
{
    subject s = {.name = ""};
    rbt_err err = numbers_of(r, &s, error);

    if (err == RBT_OK)
        err = keep_apart(r, error);
    if (err == RBT_OK)
        err = make_graph(r, &s, error);
    if (err == RBT_OK) {
        study(&s);
        if (r->backup != NULL)
            err = check_backup(&s, error);
    }
    if (err == RBT_OK && !is_stdout(r->svg) && !is_stdout(r->json)) {
        print_text(&s);
        err = cli_flush(error);
    }
    if (err == RBT_OK && r->json != NULL)
        err = write_json(r->json, &s, error);
    if (err == RBT_OK && r->svg != NULL)
        err = write_svg(r->svg, &s, error);
    if (err == RBT_OK && s.unfit.code != RBT_OK) {
        *error = s.unfit;
        err = s.unfit.code;
    }
    rbt_graph_deinit(&s.graph);
    rbt_machines_deinit(&s.machines);
    return err;
}

int cli_graph(const cli_command *command, int argc, char **argv)
{
    rbt_error error = {RBT_OK, ""};
    request r = {0};
    const cli_option own[] = {
        {"machines", "3,3,2|N", "How many nodes are on each machine, or on how many they are spread.", &r.machines},
        {"max-gap", "G", "Token queues that keep neighbours within G iterations. [5]", &r.max_gap},
        {"staleness", "S", "Updates that are S iterations old will do. [5]", &r.staleness},
        {"backup", "B", "In-neighbours that are not waited for. [1]", &r.backup},
        {"svg", "FILE", "Draws the graph; - = standard output, without the text.", &r.svg},
        {"json", "FILE", "Writes all as one JSON object; - = standard output, without the text.", &r.json},
    };
    const char *words[2] = {NULL, NULL};
    cli_arguments arguments = {.own = own, .own_count = sizeof own / sizeof own[0], .words = words, .words_room = 2};
    rbt_err err = cli_parse(&arguments, argc, argv, &error);

    if (err == RBT_OK && arguments.help) {
        cli_help(command, &arguments);
        printf(
            "\nKinds: ring, ring-based, double-ring, complete, exponential, clique (needs --machines); or a file with "
            "an\n"
            "edge on each line: '3 5' from 3 to 5, '3 - 5' both ways. Exit code 1: peers cannot train on the graph.\n");
        return 0;
    }
    r.what = words[0];
    r.nodes = words[1];
    if (err == RBT_OK)
        err = run(&r, &error);
    return err == RBT_OK ? 0 : cli_fail(command, &error);
}
