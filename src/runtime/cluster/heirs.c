/* Who takes over the rows of workers that were lost: the lead shares them out as losses.h says, and in each process one thread
 * takes over what falls to it, all that has come at once. Part of the cluster runtime (cluster.h). Proved by
 * tests/cluster/test_processes_rows.sh. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "runtime/cluster/cluster_state.h"

static void tell(rbt_cluster *c, rbt_log_level level, const char *sentence)
{
    if (c->leads)
        rbt_log_event(&c->run->log, level, "cluster", "rank 0: %s", sentence);
    else
        rbt_session_log(c->session, level, "cluster", sentence);
}

static void tell_share(rbt_cluster *c, const rbt_rows_of *share, size_t taken, const rbt_error *failed)
{
    char sentence[sizeof failed->text + 128];

    if (failed->code == RBT_OK)
        snprintf(sentence, sizeof sentence, "took over %zu rows of worker %u", taken, share->worker);
    else
        snprintf(sentence, sizeof sentence, "rows of worker %u, which was lost, could not be taken over: %s",
                 share->worker, failed->text);
    tell(c, failed->code == RBT_OK ? RBT_LOG_INFO : RBT_LOG_WARNING, sentence);
}

/* All that is there at once: the data is read once for it. */
static void *take_over(void *argument)
{
    rbt_cluster *c = argument;

    pthread_mutex_lock(&c->lock);
    while (c->estate.count > 0 && !c->ended) {
        size_t count = c->estate.count;
        rbt_rows_of *shares = rbt_alloc(count, sizeof *shares);
        size_t *taken = rbt_alloc(count, sizeof *taken);
        rbt_error error = {RBT_OK, ""};

        memcpy(shares, c->estate.at, count * sizeof *shares);
        c->estate.count = 0;
        pthread_mutex_unlock(&c->lock);
        error.code = c->work.inherit(c->work.context, shares, count, taken, &error);
        for (size_t i = 0; i < count; i++)
            tell_share(c, &shares[i], taken[i], &error);
        rbt_free(shares);
        rbt_free(taken);
        pthread_mutex_lock(&c->lock);
    }
    c->inherits = false;
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

bool rbt_heirs_take(rbt_cluster *c, rbt_unpack *words)
{
    pthread_t thread;

    while (!words->bad && words->at < words->end) {
        rbt_rows_of share = {.worker = rbt_unpack_u32(words)};

        share.first = rbt_unpack_u32(words);
        share.step = rbt_unpack_u32(words);
        if (words->bad || share.worker >= c->run->topology->workers || share.first >= share.step)
            return false;
        rbt_array_push(&c->estate, share);
    }
    if (c->work.inherit == NULL || c->inherits || c->estate.count == 0)
        return true;
    c->inherits = pthread_create(&thread, NULL, take_over, c) == 0;
    if (c->inherits)
        rbt_array_push(&c->heirs, thread);
    else
        tell(c, RBT_LOG_WARNING,
             "the system refused a thread, so rows of workers that were lost are left out here; raise the limit with "
             "ulimit -u");
    return true;
}

void rbt_heirs_end(rbt_cluster *c)
{
    pthread_mutex_lock(&c->lock);
    c->ended = true;
    pthread_mutex_unlock(&c->lock);
    for (size_t i = 0; i < c->heirs.count; i++)
        pthread_join(c->heirs.at[i], NULL);
    rbt_array_free(&c->heirs);
    rbt_array_free(&c->estate);
}

/* Tells everybody its shares at once. The lock is held. */
static void hand_out(rbt_cluster *c, const rbt_bequests *bequests)
{
    uint32_t size = rbt_session_size(c->session);
    rbt_pack *words = rbt_alloc(size, sizeof *words);

    for (size_t i = 0; i < bequests->count; i++) {
        const rbt_bequest *b = &bequests->at[i];

        rbt_pack_u32(&words[b->rank], b->rows.worker);
        rbt_pack_u32(&words[b->rank], b->rows.first);
        rbt_pack_u32(&words[b->rank], b->rows.step);
    }
    for (uint32_t r = 0; r < size; r++) {
        rbt_unpack mine = rbt_unpack_of(words[r].at, words[r].count);

        if (r == 0)
            (void)rbt_heirs_take(c, &mine);
        else if (words[r].count > 0)
            rbt_session_say(c->session, r, SAY_INHERIT, &words[r], NULL, 0);
        rbt_array_free(&words[r]);
    }
    rbt_free(words);
}

void rbt_heirs_share(rbt_cluster *c, uint32_t rank)
{
    rbt_bequests bequests;

    if (c->work.inherit == NULL) { /* in a method's job: what a worker has made of its rows is known to it alone */
        rbt_log_event(&c->run->log, RBT_LOG_WARNING, "cluster",
                      "nobody can take over its part of the data, which is left out from now on: the result is that of "
                      "the rest; --on-worker-loss stop ends the job instead");
        return;
    }
    bequests = rbt_session_bequeath(c->session, rank);
    pthread_mutex_lock(&c->lock);
    hand_out(c, &bequests);
    pthread_mutex_unlock(&c->lock);
    rbt_log_event(&c->run->log, RBT_LOG_INFO, "cluster",
                  bequests.count > 0 ? "the others with workers take over its rows"
                                     : "nobody takes over its rows: the others have done their work");
    rbt_array_free(&bequests);
}
