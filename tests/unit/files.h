/* Helpers of the tests that read and write files: a folder of one's own, files in it, data compared. */
#ifndef TESTS_UNIT_FILES_H
#define TESTS_UNIT_FILES_H

#include "rubato.h"

/* Makes a new folder and goes there; *state is its name. For cmocka's setup. */
int enter_folder(void **state);

/* Removes the n named files (those that exist) and the folder; fails when a test has left anything else behind. */
int remove_folder(void **state, const char *const *names, size_t n);

void put_bytes(const char *path, const void *bytes, size_t n);
void put_file(const char *path, const char *text);

void same_data(const rbt_data *a, const rbt_data *b);

#endif
