/* The world that generated rows come from: how popular the features are, and the truth behind the labels.
 *
 * Called by generate.c only; its contract (generate.h) says what the kinds are. Always holds: a row is a function of the
 * world's options and its own number. Proved by tests/unit/test_generate.c.
 */
#ifndef RBT_DATA_GENERATE_WORLD_H
#define RBT_DATA_GENERATE_WORLD_H

#include "data/draw.h"
#include "data/generate.h"

typedef struct rbt_feature {
    float rarity; /* its idf */
    float truth;
} rbt_feature;

typedef struct rbt_world {
    const rbt_rows_options *options;
    uint32_t *column;          /* of a rank; clicks: field after field */
    rbt_feature *feature;      /* of a column */
    float *truths;             /* multiclass: of a column, one per class */
    rbt_popularity popularity; /* of the ranks */
    size_t *field;             /* clicks: where each field's columns begin, then cols */
    rbt_popularity *popular;   /* clicks: of each field's ranks */
    double bias;               /* clicks: gives the asked rate */
} rbt_world;

rbt_err rbt_world_init(rbt_world *world, const rbt_rows_options *options, rbt_error *error);
void rbt_world_deinit(rbt_world *world);

/* What a thread needs to make rows. */
typedef struct rbt_row_room {
    rbt_draw draw;
    double *scores; /* multiclass: one per class */
} rbt_row_room;

rbt_err rbt_row_room_init(rbt_row_room *room, const rbt_rows_options *options, rbt_error *error);
void rbt_row_room_deinit(rbt_row_room *room);

/* Makes the n features of a row, and returns its label. */
float rbt_world_row(const rbt_world *world, rbt_row_room *room, size_t row, size_t n, uint32_t *index, float *value);

/* The most features a row can have. */
size_t rbt_row_most(const rbt_rows_options *options);

#endif
