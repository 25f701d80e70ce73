/* Libraries that are loaded when something needs them.
 *
 * What a program is linked with is read at every start, and most starts need little of it: no encryption, no sockets, no
 * compressed files. So such a library is loaded at run time: its headers say what its functions are, and a function F of
 * it is called as GROUP.F, where GROUP is a struct of pointers that loading fills in.
 *
 *     #define FUNCTIONS(F) F(inflate) F(inflateEnd)
 *     RBT_LIBRARY_DECLARE(zlib, FUNCTIONS);              where they are called
 *     RBT_LIBRARY_DEFINE(zlib, FUNCTIONS, "libz.so.1", "files packed by gzip need zlib", "zlib1g");       in one file
 *     ... rbt_library_load(&zlib_library, error) == RBT_OK ... zlib.inflate(&stream, Z_NO_FLUSH)
 *
 * What a header has as a macro around a function is written out by the caller. Always: all of a library's functions are
 * found, or none may be called. What was loaded stays until the process ends. Called by data/unpack.c, base/lz4.c and the
 * cluster runtime. Proved by tests/unit/test_library.c.
 */
#ifndef RBT_BASE_LIBRARY_H
#define RBT_BASE_LIBRARY_H

#include <stddef.h>

#include "rubato.h"

typedef struct rbt_library {
    const char *file;    /* as the system's loader knows it, with the version whose headers these are */
    const char *need;    /* what needs what, the beginning of a sentence: "keys and encryption need OpenSSL" */
    const char *package; /* Debian's */
    const char *const *names;
    size_t count;
    void *functions; /* so many pointers */
    enum { RBT_LIBRARY_UNTRIED, RBT_LIBRARY_LOADED, RBT_LIBRARY_REFUSED } state;
    rbt_error problem; /* of one that was refused */
} rbt_library;

#define RBT_LIBRARY_MEMBER(name) __typeof__(name) *name;
#define RBT_LIBRARY_NAME(name)   #name,

/* Declares the struct of pointers and the library. */
#define RBT_LIBRARY_DECLARE(group, FUNCTIONS)                                                                          \
    struct group##_functions {                                                                                         \
        FUNCTIONS(RBT_LIBRARY_MEMBER)                                                                                  \
    };                                                                                                                 \
    extern struct group##_functions group; /* to be called after rbt_library_load only */                              \
    extern rbt_library group##_library

#define RBT_LIBRARY_DEFINE(group, FUNCTIONS, file_, need_, package_)                                                   \
    struct group##_functions group;                                                                                    \
    static const char *const group##_names[] = {FUNCTIONS(RBT_LIBRARY_NAME)};                                          \
    _Static_assert(sizeof group##_names == sizeof group, "a pointer for each name");                                   \
    rbt_library group##_library = {.file = (file_),                                                                    \
                                   .need = (need_),                                                                    \
                                   .package = (package_),                                                              \
                                   .names = group##_names,                                                             \
                                   .count = sizeof group##_names / sizeof *group##_names,                              \
                                   .functions = &group}

/* Fails when the library is not there, or is not the one the headers are of. Any thread, any number of times. */
rbt_err rbt_library_load(rbt_library *library, rbt_error *error);

#endif
