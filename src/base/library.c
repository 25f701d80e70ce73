/* Loads libraries. Contract in library.h. */
#include "base/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "base/error.h"

static rbt_err load(const rbt_library *l, rbt_error *error)
{
    void *handle = dlopen(l->file, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        return rbt_fail(error, RBT_E_UNSUPPORTED, "%s, which cannot be loaded: %.300s; install it (Debian: %s)",
                        l->need, dlerror(), l->package);
    for (size_t i = 0; i < l->count; i++) {
        void *function = dlsym(handle, l->names[i]);
        if (function == NULL)
            return rbt_fail(error, RBT_E_UNSUPPORTED,
                            "%s, but %s has no function %s; install the version that comes with Debian 12, or a later "
                            "one (%s)",
                            l->need, l->file, l->names[i], l->package);
        memcpy((char *)l->functions + i * sizeof function, &function, sizeof function);
    }
    return RBT_OK;
}

rbt_err rbt_library_load(rbt_library *library, rbt_error *error)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    (void)pthread_mutex_lock(&lock);
    if (library->state == RBT_LIBRARY_UNTRIED)
        library->state = load(library, &library->problem) == RBT_OK ? RBT_LIBRARY_LOADED : RBT_LIBRARY_REFUSED;
    bool refused = library->state == RBT_LIBRARY_REFUSED;
    (void)pthread_mutex_unlock(&lock);
    if (!refused)
        return RBT_OK;
    if (error != NULL)
        *error = library->problem;
    return library->problem.code;
}
