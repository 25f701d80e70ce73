/* Matrix factorisation: what its parts know of each other.
 *
 * mf.c plans and keeps, mf_work.c is the program of workers with tables, mf_shared.c a pass of threads in one memory,
 * mf_peers.c a clock of peers without servers, mf_fitted.c what is done with a fitted model. Values in here are in units of the ratings' standard deviation, around
 * their mean; keep turns them into ratings. Proved by tests/unit/test_mf.c and tests/cli/test_mf.sh.
 */
#ifndef RBT_METHOD_MF_H
#define RBT_METHOD_MF_H

#include "method/method.h"
#include "method/mf_step.h"

enum { RBT_MF_USERS, RBT_MF_ITEMS };

/* Threads in one memory: all factors, and how the ratings are cut. */
typedef struct rbt_mf_shared {
    size_t stride;        /* of a vector, a multiple of RBT_MF_LANES */
    float *vectors[2];    /* of users, of items */
    rbt_mf_side *side[2]; /* likewise */
    size_t *first;        /* per worker, and one more: its first user */
    uint32_t blocks;      /* of items, with about as many ratings each */
    uint32_t *cut;        /* per user blocks + 1: how many of its ratings lie before each block */
} rbt_mf_shared;

/* A peer: what it remembers of users and then items, apart from the parameters. */
typedef struct rbt_mf_peer {
    rbt_mf_side *side;
    float *crowd; /* per item: how many times as many ratings as here there are in all */
    size_t owns;  /* rows that it alone changes: its users, items that nobody else's have rated */
    size_t *own_row;
    float *own; /* owns x cols: what its steps have made of them */
} rbt_mf_peer;

typedef struct rbt_mf_state {
    size_t users, items, rank;
    size_t cols; /* of a table: the rank, and the bias if there is one */
    rbt_mf_rates rates;
    bool share_users;
    uint64_t seed;
    rbt_table table[2];
    uint32_t *rated; /* per item: by how many users */
    float *start;    /* the items' first vectors, without biases; not in shared memory. Peers: the first parameters */
    rbt_mf_shared shared;
    rbt_mf_peer *peer; /* per worker; made in its first clock */
} rbt_mf_state;

/* The first vector of a user or an item: the same in every process, whoever asks. `out` has room for the rank. */
void rbt_mf_start(const rbt_mf_state *state, int of, size_t row, float *out);

rbt_err rbt_mf_work(rbt_worker *worker, rbt_plan *plan, rbt_error *error);

rbt_err rbt_mf_shared_init(rbt_mf_state *state, const rbt_plan *plan, rbt_error *error);
void rbt_mf_shared_deinit(rbt_mf_state *state);
rbt_err rbt_mf_pass(rbt_plan *plan, uint32_t worker, uint64_t pass, rbt_told *told, rbt_error *error);

/* Parameters of peers: a table's row for each user, then for each item; what is added to the first ones. */
rbt_err rbt_mf_peers_init(rbt_mf_state *state, const rbt_plan *plan, rbt_error *error);
void rbt_mf_peers_deinit(rbt_mf_state *state, const rbt_plan *plan);
size_t rbt_mf_size(const rbt_plan *plan);
rbt_err rbt_mf_update(rbt_plan *plan, uint32_t worker, uint64_t clock, const uint32_t *rows, size_t n, float *w,
                      float *u, rbt_told *told, rbt_error *error);
double rbt_mf_losses(const rbt_plan *plan, const uint32_t *rows, size_t n, const float *w, uint64_t *weight);

/* How far a row goes for one whose steps have pulled it by `pull`, in units of what these have changed it by. If they take away
 * the share 1 - exp(-pull) of the distance to the optimum, those of `crowd` times as many in sequence take 1 - exp(-crowd pull),
 * which is that many times as much. */
double rbt_mf_stretch(double pull, double crowd);

rbt_err rbt_mf_open(const rbt_fitted *fitted, rbt_error *error);
rbt_err rbt_mf_predict(const rbt_fitted *fitted, const rbt_data *data, size_t row, FILE *out, rbt_error *error);
rbt_err rbt_mf_predict_one(const rbt_fitted *fitted, const char *user, const char *item, FILE *out, rbt_error *error);
rbt_err rbt_mf_evaluate(const rbt_fitted *fitted, const rbt_data *data, rbt_figure *figures, size_t *n,
                        rbt_error *error);
rbt_err rbt_mf_recommend(const rbt_fitted *fitted, const rbt_data *known, const char *user, size_t n, FILE *out,
                         rbt_error *error);
void rbt_mf_describe(const rbt_fitted *fitted, FILE *out);

#endif
