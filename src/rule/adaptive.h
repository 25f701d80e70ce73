/* What adagrad and adarev have in common, so that they are the same where there is no delay. The sums of squares start
 * at 0, not at 1 as in the papers: a start of 1 is large beside the squares of mean gradients, and makes the step
 * depend on the scale of the gradients (docs/protocols.md, section 2.7). */
#ifndef RBT_RULE_ADAPTIVE_H
#define RBT_RULE_ADAPTIVE_H

#define RBT_ADAPTIVE_FLOOR 1e-8f /* beside the root of a sum of squares: no division by 0 */

#endif
