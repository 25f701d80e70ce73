/* Sentences piece by piece; the contract is in text.h. */
#include "base/text.h"

#include <stdio.h>

#include "base/error.h"

size_t rbt_text_add_list(char *text, size_t room, size_t n, const char *format, va_list arguments)
{
    int more;

    RBT_ASSERT(n < room);
    more = vsnprintf(text + n, room - n, format, arguments);
    n += more > 0 ? (size_t)more : 0;
    return n < room ? n : room - 1;
}

size_t rbt_text_add(char *text, size_t room, size_t n, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    n = rbt_text_add_list(text, room, n, format, arguments);
    va_end(arguments);
    return n;
}
