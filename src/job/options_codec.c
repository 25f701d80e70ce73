/* What --codec does not go with, and why; part of rbt_options_check (options.h). Proved by tests/unit/test_options.c and
 * tests/cli/test_codec.sh. */
#include "base/error.h"
#include "base/mem.h"
#include "comm/squeeze.h"
#include "job/options.h"
#include "job/trainee.h"

bool rbt_options_squeeze(const rbt_options *o)
{
    unsigned codec = 0;

    return rbt_codec_parse(o->codec, &codec, NULL) != RBT_OK || codec != 0;
}

rbt_err rbt_options_check_codec(const rbt_options *o, rbt_sync sync, rbt_rule_kind rule, rbt_error *error)
{
    const rbt_method *method = o->model != NULL ? rbt_trainee_method(o->model) : NULL;
    unsigned codec = 0;
    rbt_err err = rbt_codec_parse(o->codec, &codec, error);

    if (err != RBT_OK || !(codec & RBT_CODEC_FP16))
        return err;
    if (sync >= RBT_SYNC_HOP && sync <= RBT_SYNC_ALLREDUCE)
        return rbt_fail(
            error, RBT_E_USAGE,
            "--codec fp16 makes no sense with --sync %s, where peers send parameters, not updates whose rest could "
            "follow; leave fp16 out",
            rbt_sync_name(sync));
    if (rule == RBT_RULE_ADAGRAD || rule == RBT_RULE_ADAREV)
        return rbt_fail(
            error, RBT_E_USAGE,
            "--codec fp16 makes no sense with --rule %s, which makes steps of gradients: the rest of one is no part "
            "of the next; leave fp16 out, or use --rule sum, con, dyn or momentum",
            rule == RBT_RULE_ADAREV ? "adarev" : "adagrad");
    if (method != NULL && method->needs_sums)
        return rbt_fail(
            error, RBT_E_USAGE,
            "--codec fp16 makes no sense for %s, whose tables must hold exact sums after every clock; leave fp16 "
            "out",
            method->name);
    return RBT_OK;
}

void rbt_options_drop_codec(rbt_options *o, bool all)
{
    char text[RBT_CODEC_ROOM];
    unsigned codec = 0;

    if (o->codec == NULL || rbt_codec_parse(o->codec, &codec, NULL) != RBT_OK || (!all && !(codec & RBT_CODEC_FP16)))
        return; /* what is wrong is told later */
    codec = all ? 0 : codec & ~(unsigned)RBT_CODEC_FP16;
    rbt_codec_text(codec, text);
    rbt_free(o->codec);
    o->codec = codec != 0 ? rbt_strdup(text) : NULL;
}
