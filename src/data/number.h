/* Decimal numbers to and from text: the inner loop of every text reader and writer.
 *
 * Called by the text readers and writers of src/data. Always holds: parsing gives the very float that strtof gives in the "C" locale, whatever
 * the program's locale is, and printing gives text that parses back to the same float. Most numbers take a fast path
 * of one multiplication or division; the few that lie too near the middle between two floats go to the C library.
 * No allocation, no state. Proved by tests/unit/test_number.c (random and worst-case numbers against strtof).
 */
#ifndef RBT_DATA_NUMBER_H
#define RBT_DATA_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RBT_NUMBER_ROOM 32 /* enough for any printed float and its terminating zero */

/* Parses [+-]digits[.digits][e[+-]digits] from `at`, never reading `end` or beyond. Returns where the number stops, or
 * NULL when there is none ("nan", "inf", hexadecimal and empty text are none). A number too large for a float gives an
 * infinity: the caller says what it thinks of that. */
const char *rbt_number_parse(const char *at, const char *end, float *value);

/* Is the number [at, end), which was parsed as `value`, still the one that the float prints as? Numbers of up to 6 digits
 * always are; 16777217 is not, nor is any whole number of more digits, written in full, that the float is not exactly. */
bool rbt_number_is_kept(const char *at, const char *end, float value);

/* Prints a finite float in the fewest of 6 to 9 significant digits that parse back to it, as printf's %g would, but
 * whole numbers below 1e9 in full; returns the length. */
size_t rbt_number_print(float value, char out[RBT_NUMBER_ROOM]);

/* Prints a number with 9 significant digits, without trailing zeros, like printf's %.9g; returns the length. */
size_t rbt_number_print_rounded(double value, char out[RBT_NUMBER_ROOM]);

/* Prints a whole number, up to 20 digits and no terminating zero; returns the length. */
size_t rbt_number_print_count(uint64_t count, char *out);

#endif
