/* Helpers of the tests that read and write files; see files.h. */
#include "unit/files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

int enter_folder(void **state)
{
    static char folder[64];

    (void)snprintf(folder, sizeof folder, "rbt-test-XXXXXX");
    *state = folder;
    return mkdtemp(folder) != NULL && chdir(folder) == 0 ? 0 : -1;
}

int remove_folder(void **state, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        (void)unlink(names[i]);
    return chdir("..") == 0 && rmdir(*state) == 0 ? 0 : -1;
}

void put_bytes(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

void put_file(const char *path, const char *text)
{
    put_bytes(path, text, strlen(text));
}

static void same_names(const rbt_ids *a, const rbt_ids *b)
{
    assert_int_equal(a != NULL, b != NULL);
    if (a == NULL)
        return;
    assert_int_equal(rbt_ids_count(a), rbt_ids_count(b));
    for (size_t i = 0; i < rbt_ids_count(a); i++)
        assert_string_equal(rbt_ids_name(a, i), rbt_ids_name(b, i));
}

void same_data(const rbt_data *a, const rbt_data *b)
{
    assert_int_equal(a->rows, b->rows);
    assert_int_equal(a->cols, b->cols);
    assert_int_equal(a->nnz, b->nnz);
    assert_memory_equal(a->start, b->start, (a->rows + 1) * sizeof *a->start);
    assert_memory_equal(a->index, b->index, a->nnz * sizeof *a->index);
    assert_memory_equal(a->value, b->value, a->nnz * sizeof *a->value);
    assert_memory_equal(a->label, b->label, a->rows * sizeof *a->label);
    assert_int_equal(a->weight != NULL, b->weight != NULL);
    if (a->weight != NULL)
        assert_memory_equal(a->weight, b->weight, a->rows * sizeof *a->weight);
    assert_int_equal(a->label_count, b->label_count);
    for (size_t i = 0; i < a->label_count; i++)
        assert_string_equal(a->label_names[i], b->label_names[i]);
    assert_int_equal(a->content, b->content);
    same_names(a->row_names, b->row_names);
    same_names(a->col_names, b->col_names);
}
