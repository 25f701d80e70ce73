/* Generated images. Contract in generate.h; proved by tests/unit/test_generate_files.c.
 *
 * An image is a function of the seed and its number; its class is the first draw of its stream, so that the two files are
 * written independently. Both appear or none.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/draw.h"
#include "data/generate.h"
#include "math/functions.h"

#define PIECE_BYTES (size_t)131072
#define SPOTS       4
#define SHIFT       2 /* pixels by which an image is moved, at most */

enum { PURPOSE_CLASSES = 1 };

typedef struct images {
    const rbt_images_options *options;
    float *prototype; /* of the classes, side x side each, 0 = black to 255 = white */
} images;

static rbt_err check(const rbt_images_options *o, rbt_error *error)
{
    rbt_err err = rbt_generate_check_count("rows", o->images, INT32_MAX, error);
    if (err == RBT_OK)
        err = rbt_generate_check_count("side", o->side, RBT_IMAGES_SIDE_MOST, error);
    if (err == RBT_OK)
        err = rbt_generate_check_count("classes", o->classes, RBT_IMAGES_CLASSES_MOST, error);
    if (err == RBT_OK)
        err = rbt_generate_check_noise(o->noise, 10, error);
    return err == RBT_OK
               ? rbt_draw_check_memory((double)(o->side * o->side * o->classes) * 4, "one prototype per class", error)
               : err;
}

static void make_prototype(const rbt_images_options *o, size_t class, float *pixels)
{
    rbt_rng rng = rbt_rng_stream(o->seed, RBT_STREAM_GENERATE, RBT_GENERATE_OTHER(PURPOSE_CLASSES, class));
    double side = (double)o->side;
    for (int spot = 0; spot < SPOTS; spot++) {
        double x = (0.2 + 0.6 * rbt_rng_f64(&rng)) * side, y = (0.2 + 0.6 * rbt_rng_f64(&rng)) * side;
        double radius = (0.06 + 0.1 * rbt_rng_f64(&rng)) * side;
        for (size_t i = 0; i < o->side * o->side; i++) {
            size_t column = i % o->side, line = i / o->side;
            double dx = (double)column - x, dy = (double)line - y;
            double sum = (double)pixels[i] + 255 * rbt_exp(-(dx * dx + dy * dy) / (2 * radius * radius));
            pixels[i] = (float)(sum < 255 ? sum : 255);
        }
    }
}

static rbt_rng stream_of(const rbt_images_options *o, size_t image)
{
    return rbt_rng_stream(o->seed, RBT_STREAM_GENERATE, RBT_GENERATE_ROWS + (uint64_t)image);
}

/* Four bytes added up are near enough to a normal draw; this gives it deviation 1. */
static float noise_of(uint32_t bits)
{
    int sum = (int)((bits & 255) + (bits >> 8 & 255) + (bits >> 16 & 255) + (bits >> 24));
    return (float)(sum - 510) * (1 / 147.8016F);
}

static void print_image(const images *m, size_t image, unsigned char *out)
{
    const rbt_images_options *o = m->options;
    rbt_rng rng = stream_of(o, image);
    const float *prototype = m->prototype + (size_t)rbt_rng_below(&rng, o->classes) * o->side * o->side;
    ptrdiff_t dx = (ptrdiff_t)rbt_rng_below(&rng, 2 * SHIFT + 1) - SHIFT, side = (ptrdiff_t)o->side;
    ptrdiff_t dy = (ptrdiff_t)rbt_rng_below(&rng, 2 * SHIFT + 1) - SHIFT;
    float noise = (float)(255 * o->noise);
    uint64_t bits = 0;
    for (ptrdiff_t y = 0, i = 0; y < side; y++)
        for (ptrdiff_t x = 0; x < side; x++, i++) {
            bits = i % 2 == 0 ? rbt_rng_u64(&rng) : bits >> 32;
            ptrdiff_t px = x - dx, py = y - dy;
            bool inside = px >= 0 && px < side && py >= 0 && py < side;
            float pixel = (inside ? prototype[py * side + px] : 0) + noise * noise_of((uint32_t)bits) + 0.5F;
            out[i] = pixel <= 0 ? 0 : pixel >= 255 ? 255 : (unsigned char)pixel;
        }
}

static size_t images_in_a_piece(const rbt_images_options *o)
{
    return PIECE_BYTES / (o->side * o->side) + 1;
}

static rbt_err print_images(void *context, size_t piece, rbt_buffer *out, rbt_error *error)
{
    const images *m = context;
    const rbt_images_options *o = m->options;
    size_t n = images_in_a_piece(o), image = piece * n;
    n = o->images - image < n ? o->images - image : n;
    rbt_err err = rbt_buffer_reserve(out, n * o->side * o->side, error);
    if (err != RBT_OK)
        return err;
    for (size_t i = 0; i < n; i++, out->n += o->side * o->side)
        print_image(m, image + i, (unsigned char *)out->at + out->n);
    return RBT_OK;
}

static rbt_err print_labels(void *context, size_t piece, rbt_buffer *out, rbt_error *error)
{
    const images *m = context;
    size_t image = piece * PIECE_BYTES, left = m->options->images - image, n = left < PIECE_BYTES ? left : PIECE_BYTES;
    rbt_err err = rbt_buffer_reserve(out, n, error);
    if (err != RBT_OK)
        return err;
    for (size_t i = 0; i < n; i++) {
        rbt_rng rng = stream_of(m->options, image + i);
        out->at[out->n++] = (char)rbt_rng_below(&rng, m->options->classes);
    }
    return RBT_OK;
}

/* ------------------------------------------------------------------------------------------------------- files */

/* One of the two: its numbers, big-endian, then its bytes. */
static rbt_err put_file(const rbt_making *pieces, const uint32_t *head, size_t n, const rbt_writing *how,
                        rbt_output *output, rbt_error *error)
{
    rbt_err err = RBT_OK;
    for (size_t i = 0; err == RBT_OK && i < n; i++) {
        const unsigned char bytes[] = {(unsigned char)(head[i] >> 24), (unsigned char)(head[i] >> 16),
                                       (unsigned char)(head[i] >> 8), (unsigned char)head[i]};
        err = rbt_output_put(output, bytes, sizeof bytes, error);
    }
    return err == RBT_OK ? rbt_making_write(pieces, how, output, error) : err;
}

static rbt_err write_files(images *m, const char *pixels_path, const char *labels_path, const rbt_writing *how,
                           rbt_error *error)
{
    const rbt_images_options *o = m->options;
    uint32_t n = (uint32_t)o->images, side = (uint32_t)o->side;
    size_t per_piece = images_in_a_piece(o);
    rbt_making shown = {.count = (n + per_piece - 1) / per_piece, .make = print_images, .context = m};
    rbt_making named = {.count = (n + PIECE_BYTES - 1) / PIECE_BYTES, .make = print_labels, .context = m};
    rbt_output pixels, labels;
    rbt_err err = rbt_output_open(pixels_path, &pixels, error);
    if (err != RBT_OK)
        return err;
    err = rbt_output_open(labels_path, &labels, error);
    if (err != RBT_OK)
        goto abandon_pixels;
    err = put_file(&named, (const uint32_t[]){0x801, n}, 2, how, &labels, error);
    if (err == RBT_OK)
        err = put_file(&shown, (const uint32_t[]){0x803, n, side, side}, 4, how, &pixels, error);
    if (err != RBT_OK)
        goto abandon_labels;
    err = rbt_output_finish(&pixels, false, error);
    if (err != RBT_OK) {
        rbt_output_abandon(&labels);
        return err;
    }
    err = rbt_output_finish(&labels, false, error);
    if (err != RBT_OK)
        (void)unlink(pixels_path);
    return err;
abandon_labels:
    rbt_output_abandon(&labels);
abandon_pixels:
    rbt_output_abandon(&pixels);
    return err;
}

rbt_err rbt_generate_images(const rbt_images_options *options, const rbt_writing *how, rbt_error *error)
{
    rbt_err err = check(options, error);
    if (err != RBT_OK)
        return err;
    if (strcmp(how->path, "-") == 0)
        return rbt_fail(error, RBT_E_USAGE, "images are two files, which the standard output cannot hold; give a name");
    size_t pixels = options->side * options->side, room = strlen(how->path) + 32;
    images m = {.options = options, .prototype = rbt_try_alloc(pixels * options->classes, sizeof *m.prototype)};
    if (m.prototype == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for %zu prototypes of %zu pixels; use fewer",
                        options->classes, pixels);
    for (size_t class = 0; class < options->classes; class ++)
        make_prototype(options, class, m.prototype + class * pixels);
    char *images_path = rbt_alloc(room, 1), *labels_path = rbt_alloc(room, 1);
    (void)snprintf(images_path, room, "%s-images-idx3-ubyte", how->path);
    (void)snprintf(labels_path, room, "%s-labels-idx1-ubyte", how->path);
    err = write_files(&m, images_path, labels_path, how, error);
    rbt_free(images_path);
    rbt_free(labels_path);
    rbt_free(m.prototype);
    return err;
}
