/* A gradient model as a shared object: Poisson regression, for counts. One decision value s per row, the expected count is
 * e^s, the loss e^s - y s. It runs under every protocol with servers, and under hop, adpsgd and allreduce, on every runtime:
 *
 *     cc -shared -fPIC -o poisson.so poisson.c $(pkg-config --cflags rubato) -lm
 *     rubato train ./poisson.so --data counts.svm --lr 0.05 --sync ssp --out counts.rbt
 *     rubato predict --model counts.rbt --plugin ./poisson.so --data counts.svm
 */
#include <math.h>
#include <rubato.h>

static size_t size(const rbt_shape *shape)
{
    return shape->cols + (shape->bias ? 1 : 0); /* the bias comes last */
}

static size_t outputs(const rbt_shape *shape)
{
    (void)shape;
    return 1;
}

static rbt_err prepare(const rbt_data *data, rbt_shape *shape, rbt_error *error)
{
    return rbt_shape_set_numbers(data, shape, error);
}

static void score(const rbt_shape *shape, const rbt_data *data, size_t row, const float *w, double *value)
{
    *value = shape->bias ? (double)w[shape->cols] : 0;
    for (size_t i = data->start[row]; i < data->start[row + 1]; i++)
        if (data->index[i] < shape->cols) /* a feature that the model has not seen says nothing */
            *value += (double)w[data->index[i]] * (double)data->value[i];
}

static double weight_of(const rbt_data *data, size_t row)
{
    return data->weight != NULL ? (double)data->weight[row] : 1;
}

static double loss(const rbt_shape *shape, const rbt_data *data, size_t first, size_t n, const float *w)
{
    double sum = 0, s;

    for (size_t row = first; row < first + n; row++) {
        score(shape, data, row, w, &s);
        sum += weight_of(data, row) * (exp(s) - (double)data->label[row] * s);
    }
    return sum;
}

static double gradient(const rbt_shape *shape, const rbt_data *data, const uint32_t *rows, size_t n, const float *w,
                       float *g)
{
    double sum = 0, s;

    for (size_t k = 0; k < n; k++) {
        size_t row = rows[k];

        score(shape, data, row, w, &s);
        double y = (double)data->label[row], slope = weight_of(data, row) * (exp(s) - y);

        sum += weight_of(data, row) * (exp(s) - y * s);
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
    return exp(*value);
}

static const rbt_model poisson = {.name = "poisson",
                                  .about = "Poisson regression",
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
    static const rbt_plugin plugin = {.version = RBT_PLUGIN_VERSION, .model = &poisson};

    return &plugin;
}
