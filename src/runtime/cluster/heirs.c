/* Who takes over the rows of workers that were lost: the lead shares them out as losses.h says, and in each process one thread
 * takes over what falls to it, all that has come at once. Part of the cluster runtime (cluster.h). Proved by
 * tests/cluster/test_processes_rows.sh. */
#include <stdatomic.h>
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

/* How many rows of each lost worker were taken over, or why none. */
static void tell_shares(rbt_cluster *c, const rbt_rows_of *shares, const size_t *taken, size_t count,
                        const rbt_error *failed)
{
    char sentence[sizeof failed->text + 128];

    for (size_t i = 0; i < count; i++) {
        size_t rows = 0, before = 0;

        while (before < i && shares[before].worker != shares[i].worker)
            before++;
        if (before < i) /* told already */
            continue;
        for (size_t k = i; k < count; k++)
            rows += shares[k].worker == shares[i].worker ? taken[k] : 0;
        if (failed->code == RBT_OK)
            snprintf(sentence, sizeof sentence, "took over %zu rows of worker %u", rows, shares[i].worker);
        else
            snprintf(sentence, sizeof sentence, "rows of worker %u, which was lost, could not be taken over: %s",
                     shares[i].worker, failed->text);
        tell(c, failed->code == RBT_OK ? RBT_LOG_INFO : RBT_LOG_WARNING, sentence);
    }
}

/* What the runtime and a thread that takes over share; it outlives the runtime when the thread does. */
struct rbt_heirs {
    pthread_mutex_t lock; /* before that of the runtime */
    bool ended;           /* there is no runtime any more */
    atomic_uint users;
    rbt_cluster *cluster;
};

static void release(struct rbt_heirs *heirs)
{
    if (atomic_fetch_sub(&heirs->users, 1) > 1)
        return;
    pthread_mutex_destroy(&heirs->lock);
    rbt_free(heirs);
}

/* All shares that have come; NULL: none, and the thread ends. */
static rbt_rows_of *take_shares(rbt_cluster *c, size_t *count)
{
    rbt_rows_of *shares = NULL;

    pthread_mutex_lock(&c->lock);
    *count = c->ended ? 0 : c->estate.count;
    if (*count > 0) {
        shares = rbt_alloc(*count, sizeof *shares);
        memcpy(shares, c->estate.at, *count * sizeof *shares);
        c->estate.count = 0;
    } else {
        c->inherits = false;
    }
    pthread_mutex_unlock(&c->lock);
    return shares;
}

/* Reads and takes over what has come, all at once: the data is read once for it. False: there is no more. */
static bool take_over_some(struct rbt_heirs *heirs)
{
    const rbt_heir_work *work = NULL;
    rbt_rows_of *shares = NULL;
    rbt_error error = {RBT_OK, ""};
    void *estate = NULL;
    size_t count = 0;

    pthread_mutex_lock(&heirs->lock);
    if (!heirs->ended)
        shares = take_shares(heirs->cluster, &count);
    if (shares != NULL) {
        work = heirs->cluster->work.inherit;
        estate = work->open(heirs->cluster->work.context);
    }
    pthread_mutex_unlock(&heirs->lock);
    if (shares == NULL)
        return false;
    error.code = work->read(estate, &error);
    pthread_mutex_lock(&heirs->lock);
    if (!heirs->ended) {
        size_t *taken = rbt_alloc(count, sizeof *taken);

        if (error.code == RBT_OK)
            error.code = work->take(heirs->cluster->work.context, estate, shares, count, taken, &error);
        tell_shares(heirs->cluster, shares, taken, count, &error);
        rbt_free(taken);
    }
    pthread_mutex_unlock(&heirs->lock);
    work->close(estate);
    rbt_free(shares);
    return true;
}

static void *take_over(void *argument)
{
    struct rbt_heirs *heirs = argument;

    while (take_over_some(heirs))
        continue;
    release(heirs);
    return NULL;
}

/* Nobody waits for the thread: it may read from a disk that does not answer. */
static bool start_thread(rbt_cluster *c)
{
    pthread_t thread;

    if (c->heirs == NULL) {
        c->heirs = rbt_alloc(1, sizeof *c->heirs);
        c->heirs->cluster = c;
        atomic_init(&c->heirs->users, 1);
        pthread_mutex_init(&c->heirs->lock, NULL);
    }
    atomic_fetch_add(&c->heirs->users, 1);
    if (pthread_create(&thread, NULL, take_over, c->heirs) == 0) {
        pthread_detach(thread);
        return true;
    }
    atomic_fetch_sub(&c->heirs->users, 1);
    return false;
}

bool rbt_heirs_take(rbt_cluster *c, rbt_unpack *words)
{
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
    c->inherits = start_thread(c);
    if (!c->inherits)
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
    if (c->heirs != NULL) {
        pthread_mutex_lock(&c->heirs->lock); /* waits for rows that are being handed over, not for any that are read */
        c->heirs->ended = true;
        pthread_mutex_unlock(&c->heirs->lock);
        release(c->heirs);
    }
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
