/* Sentences that are put together piece by piece in a buffer of a fixed size. What does not fit is cut, and nothing is written
 * past the end, however long a piece is: lists of what others have said go through here. Proved by tests/unit/test_text.c. */
#ifndef RBT_BASE_TEXT_H
#define RBT_BASE_TEXT_H

#include <stdarg.h>
#include <stddef.h>

/* Adds a piece to the first n characters of a text of `room` bytes, n < room; how long it is then, always less than `room`. */
size_t rbt_text_add(char *text, size_t room, size_t n, const char *format, ...) __attribute__((format(printf, 4, 5)));
size_t rbt_text_add_list(char *text, size_t room, size_t n, const char *format, va_list arguments)
    __attribute__((format(printf, 4, 0)));

#endif
