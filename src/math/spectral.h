/* What eigenvalues tell of a weight matrix: the gap |l1| - |l2| between the moduli of the two largest, and the room for
 * steps, the largest c for which no eigenvalue of W - c I is outside the unit circle.
 *
 * Called by src/sync/graph.c to say how fast news spread over a graph, and how large a step may be while they do. Callers who
 * need the same bits everywhere round what they get. Own dense routines, because that is all that is needed of linear algebra: a
 * symmetric matrix is made tridiagonal by reflections and diagonal by QL steps with implicit shifts (4/3 n^3
 * operations); any other is made Hessenberg and triangular by QR steps with Wilkinson's shifts in complex arithmetic.
 * Both keep eigenvalues to a few units of 1e-14 when the matrix is not far from normal; as everywhere, those of a
 * defective matrix (Jordan blocks of size m) are good to about 1e-16 to the power 1/m only. Proved by
 * tests/unit/test_spectral.c: closed forms of circulant matrices, each routine against the other, and both against a
 * third that squares the matrix again and again.
 */
#ifndef RBT_MATH_SPECTRAL_H
#define RBT_MATH_SPECTRAL_H

#include <stddef.h>
#include <stdint.h>

#define RBT_SPECTRAL_SYMMETRIC_MAX 1024u /* rows: about a second */
#define RBT_SPECTRAL_GENERAL_MAX   512u  /* rows: a few seconds */

typedef struct rbt_spectrum {
    double gap;
    double room; /* the least of Re l + sqrt(1 - (Im l)^2), which is 1 + l where all l are real; at most 2 */
} rbt_spectrum;

/* The matrix is n x n, row after row, and is destroyed. With one row the gap is |l1|. NaNs when the eigenvalues do not
 * settle, which happens only to a matrix with entries that are not finite. */
rbt_spectrum rbt_spectrum_symmetric(double *matrix, size_t n);
rbt_spectrum rbt_spectrum_general(double *matrix, size_t n);

/* The same of a circulant n x n matrix, whose row i has 1/count in the columns i + offset[k] mod n: any n. */
rbt_spectrum rbt_spectrum_circulant(uint32_t n, const uint32_t *offset, uint32_t count);

#endif
