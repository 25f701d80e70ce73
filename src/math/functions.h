/* Elementary functions that give the same bits on every machine.
 *
 * The C library picks other code paths (with fused multiply-add) on newer processors, so the last bit of exp() differs
 * between machines of one job. These use only +, -, *, / on doubles, and table-free range reduction. Within 2 ulp.
 * Proved by tests/unit/test_functions.c against the C library.
 */
#ifndef RBT_MATH_FUNCTIONS_H
#define RBT_MATH_FUNCTIONS_H

double rbt_exp(double x);
double rbt_ln(double x);       /* x > 0; -inf for 0 */
double rbt_log1p(double x);    /* x > -1 */
double rbt_sigmoid(double x);  /* 1/(1+exp(-x)), no overflow */
double rbt_softplus(double x); /* log(1+exp(x)), no overflow */

/* log(Gamma(x)) for x > 0, to 1e-11 absolutely or relatively, whichever is larger. */
double rbt_ln_gamma(double x);

#endif
