/* What a job trains, by its name. Contract in trainee.h. */
#include "job/trainee.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "job/text.h"

bool rbt_trainee_is_path(const char *name)
{
    size_t n = strlen(name);

    return strchr(name, '/') != NULL || (n > 3 && strcmp(name + n - 3, ".so") == 0);
}

/* What a model or a method must have and has not, or NULL. rubato.h says the same. */
static const char *lacks_model(const rbt_model *m)
{
    return m->name == NULL       ? "name"
           : m->about == NULL    ? "about"
           : m->size == NULL     ? "size"
           : m->outputs == NULL  ? "outputs"
           : m->prepare == NULL  ? "prepare"
           : m->gradient == NULL ? "gradient"
           : m->loss == NULL     ? "loss"
           : m->score == NULL    ? "score"
           : m->label == NULL    ? "label"
                                 : NULL;
}

static const char *lacks_method(const rbt_method *m)
{
    return m->name == NULL                             ? "name"
           : m->about == NULL                          ? "about"
           : m->plan == NULL                           ? "plan"
           : m->work == NULL                           ? "work"
           : m->keep == NULL                           ? "keep"
           : m->update != NULL && m->size == NULL      ? "size, which goes with update"
           : m->update != NULL && m->losses == NULL    ? "losses, which goes with update"
           : (m->facts == NULL) != (m->survey == NULL) ? "both of facts and survey"
                                                       : NULL;
}

/* More options than there is room for are not counted any further: the list may have no end. */
static bool has_too_many_options(const rbt_method *m)
{
    size_t n = 0;

    while (m != NULL && m->options != NULL && n <= RBT_METHOD_OPTIONS_MOST && m->options[n].name != NULL)
        n++;
    return n > RBT_METHOD_OPTIONS_MOST;
}

static rbt_err open_plugin(const char *path, rbt_trainee *kind, rbt_error *error)
{
    char here[4200];
    const rbt_plugin *(*entry)(void) = NULL;
    const rbt_plugin *plugin = NULL;
    const char *lacks;
    void *handle, *symbol;

    snprintf(here, sizeof here, "%s%.4096s", strchr(path, '/') != NULL ? "" : "./", path);
    handle = dlopen(here, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        return rbt_fail(error, RBT_E_IO, "%s cannot be loaded: %.700s", path, dlerror());
    symbol = dlsym(handle, RBT_PLUGIN);
    if (symbol == NULL)
        return rbt_fail(error, RBT_E_USAGE, "%s has no function " RBT_PLUGIN "; docs/writing-a-model.md shows one",
                        path);
    memcpy(&entry, &symbol, sizeof entry);
    plugin = entry();
    if (plugin == NULL || plugin->version != RBT_PLUGIN_VERSION || (plugin->model != NULL) == (plugin->method != NULL))
        return rbt_fail(error, RBT_E_USAGE,
                        "%s was made for another version of Rubato, or gives not just one of a model and a method; "
                        "compile it with this version's rubato.h",
                        path);
    lacks = plugin->model != NULL ? lacks_model(plugin->model) : lacks_method(plugin->method);
    if (lacks != NULL)
        return rbt_fail(error, RBT_E_USAGE, "%s: its %s has no %s; rubato.h says what each must have", path,
                        plugin->model != NULL ? "model" : "method", lacks);
    if (has_too_many_options(plugin->method))
        return rbt_fail(error, RBT_E_LIMIT,
                        "%s: its method has more than %d options, or their list does not end with a name that is NULL; "
                        "make them fewer",
                        path, RBT_METHOD_OPTIONS_MOST);
    *kind = (rbt_trainee){plugin->model, plugin->method, true};
    return RBT_OK;
}

static void list(char *known, size_t room, const char *name, rbt_nearest *nearest)
{
    size_t used = strlen(known);

    snprintf(known + used, room - used, "%s%s", used > 0 ? ", " : "", name);
    rbt_nearest_offer(nearest, name);
}

rbt_err rbt_trainee_find(const char *name, rbt_trainee *kind, rbt_error *error)
{
    rbt_nearest nearest = {.word = name != NULL ? name : ""};
    char known[256] = "";

    *kind = (rbt_trainee){0};
    if (name != NULL && rbt_trainee_is_path(name))
        return open_plugin(name, kind, error);
    if (name != NULL)
        *kind = (rbt_trainee){rbt_model_find(name), rbt_method_find(name), false};
    if (kind->model != NULL || kind->method != NULL)
        return RBT_OK;
    for (size_t i = 0; rbt_model_at(i) != NULL; i++)
        list(known, sizeof known, rbt_model_at(i)->name, &nearest);
    for (size_t i = 0; rbt_method_at(i) != NULL; i++)
        list(known, sizeof known, rbt_method_at(i)->name, &nearest);
    if (name == NULL)
        return rbt_fail(error, RBT_E_USAGE, "which model? give its name: %s", known);
    if (rbt_nearest_found(&nearest) != NULL)
        return rbt_fail(error, RBT_E_USAGE, "unknown model '%.60s'; did you mean '%s'?", name,
                        rbt_nearest_found(&nearest));
    return rbt_fail(error, RBT_E_USAGE, "unknown model '%.60s'; there are: %s", name, known);
}

bool rbt_trainee_needs_servers(const char *name)
{
    rbt_trainee trainee;

    if (rbt_trainee_find(name, &trainee, NULL) != RBT_OK)
        return false;
    return trainee.method != NULL ? trainee.method->pass == NULL : trainee.is_plugin;
}

const rbt_method *rbt_trainee_method(const char *name)
{
    rbt_trainee kind;

    return name != NULL && rbt_trainee_find(name, &kind, NULL) == RBT_OK ? kind.method : NULL;
}
