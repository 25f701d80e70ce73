/* The library's version as text, made from the numbers in rubato.h so that the two cannot differ.
 * Called by the command line and by users of the library. Proved by tests/unit/test_error.c. */
#include "rubato.h"

#define TEXT_OF(x)                        #x
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char *rbt_version(void)
{
    return VERSION_TEXT(RBT_VERSION_MAJOR, RBT_VERSION_MINOR, RBT_VERSION_PATCH);
}
