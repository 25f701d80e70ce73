/* Ratings: lines of user, item and rating, as rows of users. The format is described in docs/formats.md.
 *
 * Called by read.c; the tests choose their own cuts. Every chunk numbers the users and items it meets by itself; the numbers
 * are made those of all chunks one after the other: so users and items are numbered as they first occur, whatever the cut.
 * Always holds: what chunks.h promises. With a portion the texts must be whole, and all of them one process's. Proved by
 * tests/unit/test_ratings.c and tests/fuzz/fuzz_ratings.c.
 */
#ifndef RBT_DATA_RATINGS_H
#define RBT_DATA_RATINGS_H

#include "data/chunks.h"
#include "data/triples.h"

#define RBT_RATINGS_NAME_MOST (size_t)1000 /* bytes of a user's or an item's name */

rbt_err rbt_ratings_parse(const rbt_source *source, const rbt_reading *reading, rbt_data *data, rbt_error *error);

typedef struct rbt_rating_list rbt_rating_list;

/* The same ratings in the order of their lines, also those that have a later one; for answers in the order of questions. A
 * triple's row and column are numbers of names. */
struct rbt_rating_list {
    rbt_ids *users;
    rbt_ids *items;
    rbt_triple *at;
    size_t n;
};

rbt_err rbt_ratings_list(const rbt_source *source, const rbt_reading *reading, rbt_rating_list *list, rbt_error *error);
void rbt_rating_list_deinit(rbt_rating_list *list);

/* Is the line a rating with "::" between its parts, which no other format has? */
bool rbt_ratings_recognise(const char *at, const char *end);

#endif
