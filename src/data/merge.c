/* The features of a row put in order. Contract in merge.h; proved by tests/unit/test_vw.c and test_ratings.c. */
#include "data/merge.h"

typedef struct feature {
    uint32_t index;
    float value;
} feature;

_Static_assert(2 * sizeof(feature) == RBT_MERGE_SCRATCH_BYTES, "room for two arrays of features");

#define RUN 16 /* features that are put in order by insertion */

/* A stable merge sort by index. `other` has room for n; the result is in the array returned. */
static feature *sort_features(feature *from, feature *other, size_t n)
{
    for (size_t run = 0; run < n; run += RUN) {
        size_t end = n - run < RUN ? n : run + RUN;
        for (size_t i = run + 1; i < end; i++) {
            feature f = from[i];
            size_t k = i;
            for (; k > run && from[k - 1].index > f.index; k--)
                from[k] = from[k - 1];
            from[k] = f;
        }
    }
    for (size_t width = RUN; width < n; width *= 2) {
        for (size_t a = 0; a < n; a += 2 * width) {
            size_t b = n - a < width ? n : a + width, b_end = n - b < width ? n : b + width, a_end = b, to = a;
            for (size_t i = a; i < a_end || b < b_end;)
                other[to++] = b == b_end || (i < a_end && from[i].index <= from[b].index) ? from[i++] : from[b++];
        }
        feature *swap = from;
        from = other;
        other = swap;
    }
    return from;
}

bool rbt_features_ascend(const uint32_t *index, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (index[i - 1] >= index[i])
            return false;
    return true;
}

size_t rbt_features_merge(uint32_t *index, float *value, size_t n, rbt_merge how, void *scratch)
{
    feature *features = scratch;
    size_t to = 0;
    for (size_t i = 0; i < n; i++)
        features[i] = (feature){index[i], value[i]};
    features = sort_features(features, features + n, n);
    for (size_t i = 0; i < n;) {
        uint32_t same = features[i].index;
        float made = 0;
        for (; i < n && features[i].index == same; i++)
            made = how == RBT_MERGE_SUM ? made + features[i].value : features[i].value;
        if (how == RBT_MERGE_LAST || made != 0) {
            index[to] = same;
            value[to++] = made;
        }
    }
    return to;
}
