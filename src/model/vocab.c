/* Names of features; the contract is in vocab.h. */
#include "model/vocab.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/file.h"
#include "data/origin.h"

static rbt_err split(const rbt_input *input, rbt_vocab *vocab, rbt_error *error)
{
    size_t lines = 0, i = 0;
    for (size_t at = 0; at < input->n; at++)
        lines += input->bytes[at] == '\n' || at + 1 == input->n;
    vocab->text = rbt_try_alloc(input->n + 1, 1);
    vocab->name = rbt_try_alloc(lines, sizeof *vocab->name);
    if (vocab->text == NULL || vocab->name == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "%s: not enough memory for the names of %zu features", input->name, lines);
    if (input->n > 0)
        memcpy(vocab->text, input->bytes, input->n);
    if (memchr(vocab->text, '\0', input->n) != NULL)
        return rbt_fail(error, RBT_E_DATA, "%s: is no text: it has zero bytes; give a file with one name per line",
                        input->name);
    for (char *line = vocab->text + rbt_mark_bytes(vocab->text, input->n); i < lines; i++) {
        char *end = line + strcspn(line, "\n");
        *end = '\0';
        vocab->name[i] = line;
        line[strcspn(line, "\t\r")] = '\0';
        line = end + 1;
    }
    vocab->count = lines;
    return RBT_OK;
}

rbt_err rbt_vocab_read(const char *path, rbt_vocab *vocab, rbt_error *error)
{
    rbt_input input;
    rbt_vocab v = {0};
    rbt_err err = rbt_input_open(path, &input, error);
    if (err != RBT_OK)
        return err;
    err = split(&input, &v, error);
    rbt_input_close(&input);
    if (err == RBT_OK)
        *vocab = v;
    else
        rbt_vocab_deinit(&v);
    return err;
}

void rbt_vocab_of_origin(const char *text, rbt_vocab *vocab)
{
    rbt_origin origin;
    if (text == NULL || !rbt_origin_parse(text, &origin))
        return;
    char *end = vocab->text = rbt_alloc(strlen(text) + 1, 1); /* which has a line with each name */
    vocab->name = rbt_alloc(origin.column.count, sizeof *vocab->name);
    for (size_t i = 0; i < origin.column.count; i++) {
        const rbt_origin_column *c = &origin.column.at[i];
        if (c->kind != RBT_COLUMN_NUMBER || c->name == NULL)
            continue;
        memcpy(end, c->name, c->bytes);
        vocab->name[vocab->count++] = end;
        end += c->bytes + 1;
    }
    rbt_origin_deinit(&origin);
}

void rbt_vocab_deinit(rbt_vocab *vocab)
{
    rbt_free(vocab->text);
    rbt_free(vocab->name);
    *vocab = (rbt_vocab){0};
}

const char *rbt_vocab_name(const rbt_vocab *vocab, size_t feature)
{
    if (vocab == NULL || feature >= vocab->count || vocab->name[feature][0] == '\0')
        return NULL;
    return vocab->name[feature];
}
