/* Finds OpenSSL's functions. Contract in openssl.h.
 *
 * Always: all of them are found, or none is called. What was loaded stays: OpenSSL cleans up after itself when the
 * process ends. Proved by tests/unit/test_key.c.
 */
#include "runtime/cluster/openssl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "base/error.h"

#define TEXT(x)    #x
#define TEXT_OF(x) TEXT(x)
#define LIBRARY    "libssl.so." TEXT_OF(OPENSSL_SHLIB_VERSION) /* which brings libcrypto */

struct rbt_ssl rbt_ssl;
static rbt_error problem; /* of loading; its code is RBT_OK when there was none */

static void load(void)
{
    static const char *const names[] = {
#define NAME(name) #name,
        RBT_SSL_FUNCTIONS(NAME)};
    void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

    _Static_assert(sizeof names == sizeof rbt_ssl, "a pointer for each name");
    if (handle == NULL) {
        (void)rbt_fail(&problem, RBT_E_UNSUPPORTED,
                       "keys and encryption need OpenSSL, which cannot be loaded: %.300s; install it (Debian: libssl3)",
                       dlerror());
        return;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *symbol = dlsym(handle, names[i]);
        if (symbol == NULL) {
            (void)rbt_fail(&problem, RBT_E_UNSUPPORTED,
                           LIBRARY " has no function %s; install OpenSSL 3.0 or later (Debian: libssl3)", names[i]);
            return;
        }
        memcpy((char *)&rbt_ssl + i * sizeof symbol, &symbol, sizeof symbol);
    }
}

rbt_err rbt_ssl_load(rbt_error *error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, load);
    if (problem.code != RBT_OK && error != NULL)
        *error = problem;
    return problem.code;
}
