/* A model that a test can follow and hold up: least squares, but while the file `slow` is in the current folder nobody comes to an end
 * with the loss, and while the file `held` is there no process goes beyond its first HELD_AFTER batches. Who is held up with the loss
 * makes the file `weighing`; who prepares data adds a byte to `prepared`. A shared object, for the tests beside it. */
#include <fcntl.h>
#include <rubato.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define HELD_AFTER 30

static void leave_mark(const char *path, size_t bytes)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);

    if (fd < 0 || write(fd, "x", bytes) != (ssize_t)bytes)
        abort();
    close(fd);
}

static size_t size(const rbt_shape *shape)
{
    return shape->cols + (shape->bias ? 1 : 0);
}

static size_t outputs(const rbt_shape *shape)
{
    (void)shape;
    return 1;
}

static rbt_err prepare(const rbt_data *data, rbt_shape *shape, rbt_error *error)
{
    leave_mark("prepared", 1);
    return rbt_shape_set_numbers(data, shape, error);
}

static void score(const rbt_shape *shape, const rbt_data *data, size_t row, const float *w, double *value)
{
    *value = shape->bias ? (double)w[shape->cols] : 0;
    for (size_t i = data->start[row]; i < data->start[row + 1]; i++)
        if (data->index[i] < shape->cols)
            *value += (double)w[data->index[i]] * (double)data->value[i];
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

static double loss(const rbt_shape *shape, const rbt_data *data, size_t first, size_t n, const float *w)
{
    double sum = 0, s;

    while (access("slow", F_OK) == 0) {
        leave_mark("weighing", 0);
        nap();
    }
    for (size_t row = first; row < first + n; row++) {
        score(shape, data, row, w, &s);
        sum += (s - (double)data->label[row]) * (s - (double)data->label[row]) / 2;
    }
    return sum;
}

static double gradient(const rbt_shape *shape, const rbt_data *data, const uint32_t *rows, size_t n, const float *w,
                       float *g)
{
    static atomic_int batches;
    double sum = 0, s;

    if (atomic_fetch_add(&batches, 1) >= HELD_AFTER)
        while (access("held", F_OK) == 0)
            nap();
    for (size_t k = 0; k < n; k++) {
        size_t row = rows[k];

        score(shape, data, row, w, &s);
        double slope = s - (double)data->label[row];

        sum += slope * slope / 2;
        for (size_t i = data->start[row]; i < data->start[row + 1]; i++)
            g[data->index[i]] += (float)(slope * (double)data->value[i]);
        if (shape->bias)
            g[shape->cols] += (float)slope;
    }
    return sum;
}

static double label(const rbt_shape *shape, const double *value)
{
    (void)shape;
    return *value;
}

static const rbt_model slow = {.name = "slow",
                               .about = "least squares that can be held up",
                               .numbers = true,
                               .size = size,
                               .outputs = outputs,
                               .prepare = prepare,
                               .gradient = gradient,
                               .loss = loss,
                               .score = score,
                               .label = label};

const rbt_plugin *rbt_plugin_entry(void);

const rbt_plugin *rbt_plugin_entry(void)
{
    static const rbt_plugin plugin = {.version = RBT_PLUGIN_VERSION, .model = &slow};

    return &plugin;
}
