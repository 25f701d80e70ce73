/* Spectral gaps: |l1| - |l2|, the moduli of the two largest eigenvalues of a weight matrix.
 *
 * Called by src/sync/graph.c to say how fast news spread over a graph; nothing in training depends on it, so it does not
 * have to give the same bits everywhere. Own dense routines, because that is all that is needed of linear algebra: a
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

/* The matrix is n x n, row after row, and is destroyed. With one row the gap is |l1|. A NaN when the eigenvalues do not
 * settle, which happens only to a matrix with entries that are not finite. */
double rbt_spectral_gap_symmetric(double *matrix, size_t n);
double rbt_spectral_gap_general(double *matrix, size_t n);

/* The same of a circulant n x n matrix, whose row i has 1/count in the columns i + offset[k] mod n: any n. */
double rbt_spectral_gap_circulant(uint32_t n, const uint32_t *offset, uint32_t count);

#endif
