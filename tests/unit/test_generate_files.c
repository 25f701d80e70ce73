/* Proves src/data/generate_ratings.c, generate_docs.c and generate_images.c: files of the right form and statistics,
 * the same whatever the threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "data/generate.h"
#include "unit/files.h"

#define WRITE(path_, threads_) (&(rbt_writing){.path = (path_), .threads = (threads_)})

static uint64_t hash_of_file(const char *path)
{
    rbt_input input;
    assert_int_equal(rbt_input_open(path, &input, NULL), RBT_OK);
    uint64_t hash = rbt_hash(input.bytes, input.n, 0);
    rbt_input_close(&input);
    return hash;
}

static int descending(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x < y) - (x > y);
}

/* How much of all falls on the most popular tenth. */
static double share_of_a_tenth(size_t *count, size_t n)
{
    double all = 0, popular = 0;
    qsort(count, n, sizeof *count, descending);
    for (size_t i = 0; i < n; i++) {
        all += (double)count[i];
        popular += i < n / 10 ? (double)count[i] : 0;
    }
    return popular / all;
}

/* ----------------------------------------------------------------------------------------------------- ratings */

enum { USERS = 300, ITEMS = 200 };

typedef struct line {
    unsigned user, item;
    double rating;
    unsigned long time;
} line;

/* Reads the ratings, and checks their form: in order, none twice, halves of stars. */
static size_t read_ratings(const char *path, line *lines, size_t room)
{
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    size_t n = 0;
    for (line l = {0}, last = {0}; fscanf(f, "%u::%u::%lf::%lu\n", &l.user, &l.item, &l.rating, &l.time) == 4; n++) {
        assert_true(n < room);
        assert_true(l.user >= 1 && l.user <= USERS && l.item >= 1 && l.item <= ITEMS);
        assert_true(l.user > last.user || (l.user == last.user && l.item > last.item && l.time >= last.time));
        assert_true(l.rating >= 0.5 && l.rating <= 5 && 2 * l.rating == floor(2 * l.rating));
        lines[n] = last = l;
    }
    assert_true(feof(f));
    assert_int_equal(fclose(f), 0);
    return n;
}

static void ratings_are_distinct_in_order_and_uneven(void **state)
{
    (void)state;
    rbt_ratings_options o = {10000, USERS, ITEMS, 5, 0.8, 0.5, 3};
    line *lines = calloc(USERS * ITEMS, sizeof *lines);
    size_t users[USERS] = {0}, items[ITEMS] = {0};
    assert_int_equal(rbt_generate_ratings(&o, false, WRITE("a", 0), NULL), RBT_OK);
    assert_int_equal(read_ratings("a", lines, 10000), 10000);
    for (size_t i = 0; i < 10000; i++) {
        users[lines[i].user - 1]++;
        items[lines[i].item - 1]++;
    }
    assert_true(share_of_a_tenth(users, USERS) > 0.15);
    assert_true(share_of_a_tenth(items, ITEMS) > 0.25);
    /* every user rates everything; one rating; more than a piece for one user */
    o.rows = (size_t)USERS * ITEMS;
    assert_int_equal(rbt_generate_ratings(&o, false, WRITE("a", 0), NULL), RBT_OK);
    assert_int_equal(read_ratings("a", lines, (size_t)USERS * ITEMS), (size_t)USERS * ITEMS);
    o.rows = 1;
    assert_int_equal(rbt_generate_ratings(&o, false, WRITE("a", 0), NULL), RBT_OK);
    assert_int_equal(read_ratings("a", lines, 1), 1);
    o = (rbt_ratings_options){20000, 2, 15000, 1, 2, 0, 1};
    assert_int_equal(rbt_generate_ratings(&o, true, WRITE("a", 0), NULL), RBT_OK);
    free(lines);
}

/* The variance of the ratings is the truth's and the noise's together, but for the ends of the scale. */
static double variance_of_ratings(double noise, line *lines)
{
    rbt_ratings_options o = {20000, USERS, ITEMS, 8, 0.5, noise, 7};
    double sum = 0, squares = 0;
    assert_int_equal(rbt_generate_ratings(&o, false, WRITE("a", 0), NULL), RBT_OK);
    size_t n = read_ratings("a", lines, 20000);
    for (size_t i = 0; i < n; i++) {
        sum += lines[i].rating;
        squares += lines[i].rating * lines[i].rating;
    }
    return squares / (double)n - sum / (double)n * (sum / (double)n);
}

static void noise_widens_the_ratings(void **state)
{
    (void)state;
    line *lines = calloc(20000, sizeof *lines);
    double none = variance_of_ratings(0, lines), some = variance_of_ratings(1, lines);
    assert_true(none > 0.5 && none < 1.1);
    assert_true(some > none + 0.4);
    free(lines);
}

static void ratings_as_csv_have_a_header(void **state)
{
    (void)state;
    rbt_ratings_options o = {50, 20, 30, 2, 0.8, 0.5, 3};
    char header[32];
    unsigned user, item, lines = 0;
    double rating;
    assert_int_equal(rbt_generate_ratings(&o, true, WRITE("a", 0), NULL), RBT_OK);
    FILE *f = fopen("a", "r");
    assert_non_null(f);
    assert_non_null(fgets(header, sizeof header, f));
    assert_string_equal(header, "user,item,rating\n");
    for (; fscanf(f, "%u,%u,%lf\n", &user, &item, &rating) == 3; lines++)
        assert_true(user >= 1 && user <= 20 && item >= 1 && item <= 30);
    assert_true(feof(f));
    assert_int_equal(lines, 50);
    assert_int_equal(fclose(f), 0);
}

/* --------------------------------------------------------------------------------------------------- documents */

/* Reads the documents into counts[doc * words + word] (or only checks them). */
static void read_docs(const rbt_docs_options *o, unsigned *counts)
{
    FILE *f = fopen("a", "r");
    assert_non_null(f);
    size_t docs, words, triples, seen = 0;
    unsigned doc, word, count, last_doc = 0, last_word = 0;
    assert_int_equal(fscanf(f, "%zu\n%zu\n%zu\n", &docs, &words, &triples), 3);
    assert_int_equal(docs, o->docs);
    assert_int_equal(words, o->words);
    for (; fscanf(f, "%u %u %u\n", &doc, &word, &count) == 3; seen++) {
        assert_true(doc >= 1 && doc <= docs && word >= 1 && word <= words && count >= 1);
        assert_true(doc == last_doc + 1 || (doc == last_doc && word > last_word));
        last_doc = doc;
        last_word = word;
        if (counts != NULL)
            counts[(doc - 1) * words + word - 1] = count;
    }
    assert_true(feof(f));
    assert_int_equal(fclose(f), 0);
    assert_int_equal(last_doc, docs);
    assert_int_equal(seen, triples);
}

static void documents_have_the_form_their_head_promises(void **state)
{
    (void)state;
    static const rbt_docs_options all[] = {{500, 1000, 40, 20, 1.1, 0.1, 1},
                                           {1, 1, 1, 1, 0, 0, 2},
                                           {30, 50, 50, 3, 10, 0, 3},
                                           {30, 64, 40, 100, 5, 1, 4},
                                           {2000, 100000, 20, 7, 0.5, 0, 5}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        assert_int_equal(rbt_generate_docs(&all[i], WRITE("a", 0), NULL), RBT_OK);
        read_docs(&all[i], NULL);
    }
}

/* Documents of one topic each use the same words; with noise 1 they use any. */
static double popular_words(double noise)
{
    rbt_docs_options o = {200, 1000, 30, 1, 1.1, noise, 9};
    unsigned *counts = calloc(o.docs * o.words, sizeof *counts);
    size_t total[1000] = {0};
    assert_int_equal(rbt_generate_docs(&o, WRITE("a", 0), NULL), RBT_OK);
    read_docs(&o, counts);
    for (size_t i = 0; i < o.docs * o.words; i++)
        total[i % o.words] += counts[i];
    free(counts);
    return share_of_a_tenth(total, 1000);
}

static void words_are_popular_within_a_topic(void **state)
{
    (void)state;
    assert_true(popular_words(0) > 0.6);
    assert_true(popular_words(1) < 0.25);
}

/* ------------------------------------------------------------------------------------------------------ images */

static unsigned char *bytes_of(const char *path, size_t n)
{
    unsigned char *bytes = malloc(n + 1);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_int_equal(fread(bytes, 1, n + 1, f), n);
    assert_int_equal(fclose(f), 0);
    return bytes;
}

/* The nearest prototype, as the mean image of each class in the first half, finds the class of the second half. */
static double accuracy_of_the_mean_images(double noise)
{
    enum { IMAGES = 2000, SIDE = 28, PIXELS = SIDE * SIDE, CLASSES = 5 };
    rbt_images_options o = {IMAGES, SIDE, CLASSES, noise, 6};
    static double mean[CLASSES][PIXELS];
    double count[CLASSES] = {0};
    memset(mean, 0, sizeof mean);
    assert_int_equal(rbt_generate_images(&o, WRITE("i", 0), NULL), RBT_OK);
    unsigned char *pixels = bytes_of("i-images-idx3-ubyte", 16 + IMAGES * PIXELS);
    unsigned char *labels = bytes_of("i-labels-idx1-ubyte", 8 + IMAGES);
    assert_memory_equal(pixels, "\0\0\10\3\0\0\7\320\0\0\0\34\0\0\0\34", 16);
    assert_memory_equal(labels, "\0\0\10\1\0\0\7\320", 8);
    size_t right = 0;
    for (size_t i = 0; i < IMAGES; i++) {
        const unsigned char *image = pixels + 16 + i * PIXELS;
        size_t label = labels[8 + i], best = 0;
        assert_true(label < CLASSES);
        count[label] += i < IMAGES / 2;
        for (size_t p = 0; i < IMAGES / 2 && p < PIXELS; p++)
            mean[label][p] += (double)image[p];
        double least = 1e18;
        for (size_t k = 0; i >= IMAGES / 2 && k < CLASSES; k++) {
            double distance = 0;
            for (size_t p = 0; p < PIXELS; p++) {
                double by = (double)image[p] - mean[k][p] / count[k];
                distance += by * by;
            }
            best = distance < least ? k : best;
            least = distance < least ? distance : least;
        }
        right += i >= IMAGES / 2 && best == label;
    }
    free(pixels);
    free(labels);
    return (double)right / (IMAGES - IMAGES / 2);
}

static void images_can_be_told_apart_as_far_as_noise_allows(void **state)
{
    (void)state;
    double clean = accuracy_of_the_mean_images(0.1), noisy = accuracy_of_the_mean_images(5);
    assert_true(clean > 0.8);
    assert_true(noisy < clean - 0.2);
}

static void images_that_cannot_be_written_leave_neither_file(void **state)
{
    (void)state;
    rbt_images_options o = {100, 28, 10, 0.1, 1};
    rbt_error error;
    assert_int_equal(rbt_generate_images(&o, WRITE("-", 0), &error), RBT_E_USAGE);
    assert_non_null(strstr(error.text, "two files"));
    assert_int_equal(rbt_generate_images(&o, WRITE("no/folder", 0), &error), RBT_E_IO);
    assert_non_null(strstr(error.text, "no/folder-images-idx3-ubyte: cannot be created"));
    atomic_bool stop = true;
    rbt_writing how = {.path = "j", .stop = &stop};
    assert_int_equal(rbt_generate_images(&o, &how, &error), RBT_E_INTERRUPTED);
    assert_int_not_equal(access("j-images-idx3-ubyte", F_OK), 0);
    assert_int_not_equal(access("j-labels-idx1-ubyte", F_OK), 0);
}

/* ------------------------------------------------------------------------------------------------- all of them */

static void the_bytes_do_not_depend_on_the_threads(void **state)
{
    (void)state;
    rbt_ratings_options ratings = {50000, 2000, 500, 5, 0.8, 0.5, 3};
    rbt_docs_options docs = {2000, 3000, 40, 20, 1.1, 0.1, 1};
    rbt_images_options images = {3000, 28, 10, 0.2, 1};
    uint64_t first[4] = {0};
    for (unsigned threads = 1; threads < 5; threads++) {
        assert_int_equal(rbt_generate_ratings(&ratings, false, WRITE("a", threads), NULL), RBT_OK);
        uint64_t hash[4] = {hash_of_file("a")};
        assert_int_equal(rbt_generate_docs(&docs, WRITE("a", threads), NULL), RBT_OK);
        hash[1] = hash_of_file("a");
        assert_int_equal(rbt_generate_images(&images, WRITE("i", threads), NULL), RBT_OK);
        hash[2] = hash_of_file("i-images-idx3-ubyte");
        hash[3] = hash_of_file("i-labels-idx1-ubyte");
        if (threads == 1)
            memcpy(first, hash, sizeof first);
        assert_memory_equal(first, hash, sizeof first);
    }
}

static void refused(rbt_err err, const rbt_error *error, const char *piece)
{
    assert_int_equal(err, RBT_E_USAGE);
    if (strstr(error->text, piece) == NULL)
        fail_msg("'%s' is not in: %s", piece, error->text);
}

static void options_without_sense_are_refused_by_name(void **state)
{
    (void)state;
    rbt_error e;
    const rbt_writing *how = WRITE("b", 0);
    refused(rbt_generate_ratings(&(rbt_ratings_options){101, 10, 10, 1, 1, 0, 1}, false, how, &e), &e, "--rows 101");
    refused(rbt_generate_ratings(&(rbt_ratings_options){1, 0, 10, 1, 1, 0, 1}, false, how, &e), &e, "--users 0");
    refused(rbt_generate_ratings(&(rbt_ratings_options){1, 1, 1, 5000, 1, 0, 1}, false, how, &e), &e, "--rank 5000");
    refused(rbt_generate_ratings(&(rbt_ratings_options){1, 1, 1, 1, 1, -1, 1}, false, how, &e), &e, "--noise -1");
    refused(rbt_generate_docs(&(rbt_docs_options){0, 10, 1, 1, 1, 0, 1}, how, &e), &e, "--docs 0");
    refused(rbt_generate_docs(&(rbt_docs_options){1, 10, 11, 1, 1, 0, 1}, how, &e), &e,
            "--nnz 11 is out of range; give a number from 1 to 10");
    refused(rbt_generate_docs(&(rbt_docs_options){1, 10, 1, 0, 1, 0, 1}, how, &e), &e, "--topics 0");
    refused(rbt_generate_docs(&(rbt_docs_options){1, 10, 1, 1, 11, 0, 1}, how, &e), &e, "--skew 11");
    refused(rbt_generate_images(&(rbt_images_options){1, 5000, 2, 0, 1}, how, &e), &e, "--side 5000");
    refused(rbt_generate_images(&(rbt_images_options){1, 5, 257, 0, 1}, how, &e), &e, "--classes 257");
    assert_int_not_equal(access("b", F_OK), 0);
}

static int leave(void **state)
{
    return remove_folder(state, (const char *const[]){"a", "i-images-idx3-ubyte", "i-labels-idx1-ubyte"}, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ratings_are_distinct_in_order_and_uneven),
        cmocka_unit_test(noise_widens_the_ratings),
        cmocka_unit_test(ratings_as_csv_have_a_header),
        cmocka_unit_test(documents_have_the_form_their_head_promises),
        cmocka_unit_test(words_are_popular_within_a_topic),
        cmocka_unit_test(images_can_be_told_apart_as_far_as_noise_allows),
        cmocka_unit_test(images_that_cannot_be_written_leave_neither_file),
        cmocka_unit_test(the_bytes_do_not_depend_on_the_threads),
        cmocka_unit_test(options_without_sense_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave);
}
