/* Helper of the tests: a crew of threads of this process (src/base/crew.h). */
#ifndef TESTS_UNIT_CREW_H
#define TESTS_UNIT_CREW_H

#include "base/crew.h"

/* Runs `work` in `size` threads, each with its own rank. No assertions of cmocka in it: they would leave the thread. */
void run_crew(uint32_t size, void (*work)(rbt_crew *crew, void *context), void *context);

/* Their operation, for tests that put one of their own around it. */
rbt_err crew_swap(rbt_crew *crew, const rbt_bytes *out, rbt_bytes *in, rbt_error *error);

/* The most bytes that any one of them handed in at once for any other, so far in the running work. */
size_t crew_most_bytes(const rbt_crew *crew);

#endif
