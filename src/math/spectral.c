/* Spectral gaps; the contract is in spectral.h. */
#include "math/spectral.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/mem.h"

#define STEPS_MOST 60 /* for one eigenvalue; two or three are usual */
#define SHIFT_ODD  10 /* every so many steps the shift is an odd one, so that no matrix can go round in circles */

/* The two largest of all moduli, and the room for steps: for each eigenvalue the largest c with |l - c| <= 1. */
typedef struct top {
    double first;
    double second;
    double room;
} top;

static const top NONE = {0, 0, 2}; /* 2: that of the eigenvalue 1 */

static void top_add(top *t, double real, double imaginary)
{
    double modulus = hypot(real, imaginary), room = real + sqrt(fmax(0, 1 - imaginary * imaginary));

    if (modulus > t->first) {
        t->second = t->first;
        t->first = modulus;
    } else if (modulus > t->second) {
        t->second = modulus;
    }
    t->room = fmin(t->room, room);
}

static rbt_spectrum top_result(const top *t, bool settled)
{
    return settled ? (rbt_spectrum){t->first - t->second, fmax(0, t->room)} : (rbt_spectrum){NAN, NAN};
}

/* What is nothing beside the whole matrix: less than rounding has done to it anyway. */
static double nothing(const double *matrix, size_t n)
{
    double norm2 = 0;

    for (size_t i = 0; i < n * n; i++)
        norm2 += matrix[i] * matrix[i];
    return DBL_EPSILON * sqrt(norm2);
}

/* --------------------------------------------------------------------------------------------------- symmetric */

/* A reflection I - v v' / h that leads x (n numbers) to (alpha, 0, ..): v takes the place of x. 0: x is so already. */
static double reflect(double *x, size_t n, double *alpha)
{
    double scale = 0, norm2 = 0, h;

    for (size_t i = 1; i < n; i++)
        scale += fabs(x[i]);
    *alpha = x[0];
    if (scale == 0)
        return 0;
    for (size_t i = 0; i < n; i++)
        norm2 += x[i] * x[i];
    *alpha = x[0] > 0 ? -sqrt(norm2) : sqrt(norm2);
    h = norm2 - *alpha * x[0];
    x[0] -= *alpha;
    return h;
}

/* a (n x n, only the part below the diagonal and it are used) becomes tridiagonal: d on the diagonal, e beside it. */
static void tridiagonal(double *a, size_t n, double *d, double *e)
{
    double *v = rbt_alloc(n, sizeof *v), *p = rbt_alloc(n, sizeof *p);

    for (size_t k = 0; k + 1 < n; k++) {
        size_t m = n - k - 1;
        double h, dot = 0;

        d[k] = a[k * n + k];
        for (size_t i = 0; i < m; i++) {
            v[i] = a[(k + 1 + i) * n + k];
            p[i] = 0;
        }
        h = reflect(v, m, &e[k]);
        if (h == 0)
            continue;
        for (size_t i = 0; i < m; i++) { /* p = A v / h, row by row of the lower half */
            const double *row = a + (k + 1 + i) * n + k + 1;
            double sum = row[i] * v[i];

            for (size_t j = 0; j < i; j++) {
                sum += row[j] * v[j];
                p[j] += row[j] * v[i];
            }
            p[i] += sum;
        }
        for (size_t i = 0; i < m; i++) {
            p[i] /= h;
            dot += p[i] * v[i];
        }
        for (size_t i = 0; i < m; i++)
            p[i] -= dot / (2 * h) * v[i];
        for (size_t i = 0; i < m; i++) {
            double *row = a + (k + 1 + i) * n + k + 1;

            for (size_t j = 0; j <= i; j++)
                row[j] -= v[i] * p[j] + p[i] * v[j];
        }
    }
    d[n - 1] = a[n * n - 1];
    e[n - 1] = 0;
    rbt_free(v);
    rbt_free(p);
}

/* Where the block that begins at l ends: the first e from there on that is nothing. */
static size_t block_end(const double *e, size_t l, size_t n, double tiny)
{
    while (l + 1 < n && fabs(e[l]) > tiny)
        l++;
    return l;
}

/* One QL step with an implicit shift on the block l .. m. */
static void ql_step(double *d, double *e, size_t l, size_t m)
{
    double g = (d[l + 1] - d[l]) / (2 * e[l]), r = hypot(g, 1), s = 1, c = 1, p = 0;

    g = d[m] - d[l] + e[l] / (g + copysign(r, g));
    for (size_t i = m; i-- > l;) {
        double f = s * e[i], b = c * e[i];

        e[i + 1] = r = hypot(f, g);
        if (r == 0) { /* the block falls in two by itself */
            d[i + 1] -= p;
            e[m] = 0;
            return;
        }
        s = f / r;
        c = g / r;
        g = d[i + 1] - p;
        r = (d[i] - g) * s + 2 * c * b;
        p = s * r;
        d[i + 1] = g + p;
        g = c * r - b;
    }
    d[l] -= p;
    e[l] = g;
    e[m] = 0;
}

rbt_spectrum rbt_spectrum_symmetric(double *matrix, size_t n)
{
    double *d = rbt_alloc(n, sizeof *d), *e = rbt_alloc(n, sizeof *e);
    double tiny = nothing(matrix, n);
    top t = NONE;
    bool settled = isfinite(tiny);

    RBT_ASSERT(n > 0);
    tridiagonal(matrix, n, d, e);
    for (size_t l = 0; l < n && settled; l++) {
        size_t m = block_end(e, l, n, tiny);

        for (int step = 0; m != l && settled; step++) {
            ql_step(d, e, l, m);
            m = block_end(e, l, n, tiny);
            settled = step < STEPS_MOST && isfinite(d[l]);
        }
        settled = settled && isfinite(d[l]);
    }
    for (size_t i = 0; i < n; i++)
        top_add(&t, d[i], 0);
    rbt_free(d);
    rbt_free(e);
    return top_result(&t, settled);
}

/* ----------------------------------------------------------------------------------------------------- general */

/* a becomes Hessenberg: nothing below the diagonal beside the main one. */
static void hessenberg(double *a, size_t n)
{
    double *v = rbt_alloc(n, sizeof *v), *p = rbt_alloc(n, sizeof *p);

    for (size_t k = 0; k + 2 < n; k++) {
        size_t m = n - k - 1;
        double h, alpha;

        for (size_t i = 0; i < m; i++)
            v[i] = a[(k + 1 + i) * n + k];
        h = reflect(v, m, &alpha);
        if (h == 0)
            continue;
        for (size_t j = k; j < n; j++)
            p[j] = 0;
        for (size_t i = 0; i < m; i++) /* from the left: p = v' A / h */
            for (size_t j = k; j < n; j++)
                p[j] += v[i] / h * a[(k + 1 + i) * n + j];
        for (size_t i = 0; i < m; i++)
            for (size_t j = k; j < n; j++)
                a[(k + 1 + i) * n + j] -= v[i] * p[j];
        for (size_t i = 0; i < n; i++) { /* from the right */
            double *row = a + i * n + k + 1, dot = 0;

            for (size_t j = 0; j < m; j++)
                dot += row[j] * v[j];
            for (size_t j = 0; j < m; j++)
                row[j] -= dot / h * v[j];
        }
    }
    rbt_free(v);
    rbt_free(p);
}

/* x * y without the rescue of infinities that C's own product looks for. (CMPLX is not there with every compiler.) */
static inline double complex times(double complex x, double complex y)
{
    union {
        double part[2];
        double complex whole;
    } product = {{creal(x) * creal(y) - cimag(x) * cimag(y), creal(x) * cimag(y) + cimag(x) * creal(y)}};

    return product.whole;
}

/* The eigenvalue of the last 2 x 2 block that is nearer to its last element. */
static double complex wilkinson(const double complex *h, size_t n, size_t end)
{
    double complex a = h[(end - 1) * n + end - 1], b = h[(end - 1) * n + end], c = h[end * n + end - 1],
                   d = h[end * n + end];
    double complex half = (a - d) / 2, root = csqrt(times(half, half) + times(b, c));

    if (creal(half) * creal(root) + cimag(half) * cimag(root) < 0)
        root = -root;
    return cabs(half + root) > 0 ? d - times(b, c) / (half + root) : d;
}

/* One QR step on rows and columns begin .. end: a rotation for each element below the diagonal, from both sides. */
static void qr_step(double complex *h, size_t n, size_t begin, size_t end, double complex shift, double *cosine,
                    double complex *sine)
{
    for (size_t i = begin; i <= end; i++)
        h[i * n + i] -= shift;
    for (size_t i = begin; i < end; i++) {
        double complex *upper = h + i * n, *lower = h + (i + 1) * n;
        double a = cabs(upper[i]), b = cabs(lower[i]), r = hypot(a, b);

        cosine[i] = r > 0 ? a / r : 1; /* (c, s; -conj(s), c) leads (x, y) to (r, 0) with the phase of x */
        sine[i] = r > 0 ? times(a > 0 ? upper[i] / a : 1, conj(lower[i])) / r : 0;
        for (size_t j = i; j <= end; j++) {
            double complex x = upper[j], y = lower[j];

            upper[j] = cosine[i] * x + times(sine[i], y);
            lower[j] = cosine[i] * y - times(conj(sine[i]), x);
        }
    }
    for (size_t i = begin; i < end; i++)
        for (size_t k = begin; k <= (i + 1 < end ? i + 1 : end); k++) {
            double complex *x = &h[k * n + i], *y = x + 1, old = *x;

            *x = cosine[i] * old + times(conj(sine[i]), *y);
            *y = cosine[i] * *y - times(sine[i], old);
        }
    for (size_t i = begin; i <= end; i++)
        h[i * n + i] += shift;
}

/* Where the block that ends at `end` begins. */
static size_t block_begin(const double complex *h, size_t n, size_t end, double tiny)
{
    size_t l = end;

    while (l > 0 && cabs(h[l * n + l - 1]) > tiny)
        l--;
    return l;
}

rbt_spectrum rbt_spectrum_general(double *matrix, size_t n)
{
    double complex *h = rbt_alloc(n * n, sizeof *h), *sine = rbt_alloc(n, sizeof *sine);
    double *cosine = rbt_alloc(n, sizeof *cosine), tiny = nothing(matrix, n);
    top t = NONE;
    bool settled = isfinite(tiny);

    RBT_ASSERT(n > 0);
    hessenberg(matrix, n);
    for (size_t i = 0; i < n; i++)
        for (size_t j = i > 0 ? i - 1 : 0; j < n; j++)
            h[i * n + j] = matrix[i * n + j];
    for (size_t end = n; end-- > 0 && settled;) {
        size_t begin = block_begin(h, n, end, tiny);

        for (int step = 1; begin < end && settled; step++) {
            double complex shift =
                step % SHIFT_ODD == 0 ? h[end * n + end] + 0.75 * cabs(h[end * n + end - 1]) : wilkinson(h, n, end);

            qr_step(h, n, begin, end, shift, cosine, sine);
            begin = block_begin(h, n, end, tiny);
            settled = step < STEPS_MOST;
        }
        settled = settled && isfinite(cabs(h[end * n + end]));
        top_add(&t, creal(h[end * n + end]), cimag(h[end * n + end]));
    }
    rbt_free(h);
    rbt_free(sine);
    rbt_free(cosine);
    return top_result(&t, settled);
}

/* --------------------------------------------------------------------------------------------------- circulant */

rbt_spectrum rbt_spectrum_circulant(uint32_t n, const uint32_t *offset, uint32_t count)
{
    static const double turn = 6.283185307179586476925;
    top t = NONE;

    for (uint32_t k = 0; k < n; k++) {
        double real = 0, imaginary = 0;

        for (uint32_t o = 0; o < count; o++) {
            double angle = turn * (double)((uint64_t)k * offset[o] % n) / n;

            real += cos(angle);
            imaginary += sin(angle);
        }
        top_add(&t, count > 0 ? real / count : 0, count > 0 ? imaginary / count : 0);
    }
    return top_result(&t, true);
}
