/* --filter: what workers do not send, or not yet. Part of options.h; what the filters do stands in table/cache.h and method/l1lr.c.
 * Proved by tests/unit/test_options.c. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "job/options.h"
#include "job/text.h"
#include "job/trainee.h"
#include "method/method.h"

#define FILTER_OF_DYN 1e-6

/* Does an option of the method's own of that name say something else than the filter? Both are the same thing. */
static rbt_err check_twin(const rbt_options *o, const char *name, double x, rbt_error *error)
{
    size_t length = strlen(name);

    for (const char *at = o->settings != NULL ? o->settings : ""; *at != '\0';) {
        size_t n = strcspn(at, ",");
        char value[RBT_REAL_ROOM], text[RBT_REAL_ROOM];
        double own;

        if (strncmp(at, name, length) == 0 && at[length] == '=') {
            snprintf(value, sizeof value, "%.*s", (int)(n - length - 1), at + length + 1);
            rbt_text_from_real(x, text, sizeof text);
            if (rbt_text_to_real(name, value, &own, NULL) == RBT_OK && own != x)
                return rbt_fail(error, RBT_E_USAGE, "--filter %s=%s and --%s %s are one option; give it once", name,
                                text, name, value);
        }
        at += n + (at[n] == ',');
    }
    return RBT_OK;
}

/* One of them, NAME=X. */
static rbt_err set_one(rbt_options *o, const char *text, rbt_error *error)
{
    static const char *const NAMES[] = {"threshold", "significant", "kkt"};
    size_t name = 0, length = strcspn(text, "=");
    double x = 0;
    rbt_err err;

    while (name < 3 && (strlen(NAMES[name]) != length || strncmp(NAMES[name], text, length) != 0))
        name++;
    if (name == 3 || text[length] != '=')
        return rbt_fail(error, RBT_E_USAGE,
                        "--filter '%.60s' is unknown; give threshold=X, significant=X or kkt=X, several with commas",
                        text);
    err = rbt_text_to_real("--filter", text + length + 1, &x, error);
    if (err != RBT_OK)
        return err;
    if (!(x >= 0 && isfinite(x)) || (name > 0 && x > 1))
        return rbt_fail(error, RBT_E_USAGE, "--filter %.60s is out of range; give a %s", text,
                        name > 0 ? "share from 0 to 1" : "threshold of at least 0");
    if (name == 0) {
        o->filter = x;
        o->filter_given = true;
    } else if (name == 1) {
        o->significant = x;
        o->significant_given = true;
    } else {
        err = o->kkt_given ? RBT_OK : check_twin(o, "kkt", x, error);
        if (err == RBT_OK)
            err = rbt_options_put_setting(o, "kkt", text + length + 1, error);
        o->kkt_given = err == RBT_OK;
        o->kkt = x;
    }
    return err;
}

rbt_err rbt_options_set_filter(rbt_options *options, const char *value, rbt_error *error)
{
    rbt_options trial; /* a failed set changes nothing */
    rbt_err err = RBT_OK;

    rbt_options_init(&trial);
    rbt_options_copy(&trial, options);
    for (const char *at = value; err == RBT_OK;) {
        char text[RBT_REAL_ROOM + 64];
        size_t n = strcspn(at, ",");

        snprintf(text, sizeof text, "%.*s", (int)(n < sizeof text ? n : sizeof text - 1), at);
        err = set_one(&trial, text, error);
        if (at[n] == '\0')
            break;
        at += n + 1;
    }
    if (err == RBT_OK)
        rbt_options_copy(options, &trial);
    rbt_options_deinit(&trial);
    return err;
}

void rbt_options_print_filter(const rbt_options *options, char *value, size_t room)
{
    char threshold[RBT_REAL_ROOM], significant[RBT_REAL_ROOM];

    rbt_text_from_real(options->filter, threshold, sizeof threshold);
    rbt_text_from_real(options->significant, significant, sizeof significant);
    if (options->filter_given || options->filter > 0)
        snprintf(value, room, "threshold=%s%s%s", threshold, options->significant_given ? ",significant=" : "",
                 options->significant_given ? significant : "");
    else
        snprintf(value, room, "significant=%s", significant);
}

/* Has the method an option that the filter `significant` sets? */
static bool takes_over(const rbt_options *o)
{
    const rbt_method *method = rbt_trainee_method(o->model);

    return method != NULL && rbt_method_option_find(method, "significant") != NULL;
}

static rbt_err check_significant(const rbt_options *o, rbt_rule_kind rule, rbt_error *error)
{
    if (rule != RBT_RULE_SUM && rule != RBT_RULE_CON && rule != RBT_RULE_DYN)
        return rbt_fail(error, RBT_E_USAGE,
                        "--filter significant makes no sense where servers make the steps of what workers send: that "
                        "is no change of a parameter, to be compared with it; use --rule sum, con or dyn");
    if (o->on_worker_loss == RBT_LOSS_WAIT || (o->faults != NULL && strstr(o->faults, "crash") != NULL))
        return rbt_fail(error, RBT_E_USAGE,
                        "--filter significant makes no sense where workers come back after they were lost: what one "
                        "has held back is lost with it; use --on-worker-loss continue or stop, and no crashes");
    return RBT_OK;
}

rbt_err rbt_options_check_filter(const rbt_options *o, rbt_rule_kind rule, rbt_error *error)
{
    const rbt_method *method = rbt_trainee_method(o->model);
    bool significant = o->significant > 0 && !takes_over(o);
    rbt_err err = o->kkt_given ? check_twin(o, "kkt", o->kkt, error) : RBT_OK;

    if (err == RBT_OK && o->significant_given && takes_over(o))
        err = check_twin(o, "significant", o->significant, error);
    if (err != RBT_OK)
        return err;
    if (o->kkt_given && (method == NULL || rbt_method_option_find(method, "kkt") == NULL))
        return rbt_fail(
            error, RBT_E_USAGE,
            "--filter kkt makes no sense for %s, whose workers send %s; it takes the gradient over all rows "
            "to tell that a weight stays zero: train l1lr",
            o->model != NULL ? o->model : "a table program",
            method != NULL ? "no gradients" : "steps of their own rows");
    if (method != NULL && method->unfiltered != NULL && (o->filter_given || significant))
        return rbt_fail(error, RBT_E_USAGE, "--filter %s makes no sense for %s: %s; leave it out",
                        significant ? "significant" : "threshold", method->name, method->unfiltered);
    return significant ? check_significant(o, rule, error) : RBT_OK;
}

void rbt_options_settle_filter(rbt_options *o)
{
    char value[RBT_REAL_ROOM];

    if (!o->filter_given)
        o->filter = o->rule == RBT_RULE_DYN ? FILTER_OF_DYN : 0;
    if (o->significant_given && takes_over(o)) {
        rbt_text_from_real(o->significant, value, sizeof value);
        RBT_ASSERT(rbt_options_put_setting(o, "significant", value, NULL) == RBT_OK);
        o->significant = 0;
        o->significant_given = false;
    }
}
