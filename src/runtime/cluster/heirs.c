/* Who takes over the rows of workers that were lost: the lead shares them out as losses.h says, and in each process one thread
 * takes over what falls to it, one share after the other. Part of the cluster runtime (cluster.h). Proved by
 * tests/cluster/test_processes_rows.sh. */
#include <stdio.h>

#include "base/error.h"
#include "runtime/cluster/cluster_state.h"

static void tell(rbt_cluster *c, rbt_log_level level, const char *sentence)
{
    if (c->leads)
        rbt_log_event(&c->run->log, level, "cluster", "rank 0: %s", sentence);
    else
        rbt_session_log(c->session, level, "cluster", sentence);
}

static void *take_over(void *argument)
{
    rbt_cluster *c = argument;

    pthread_mutex_lock(&c->lock);
    while (c->estate.count > 0 && !c->ended) {
        rbt_rows_of rows = c->estate.at[--c->estate.count];
        rbt_error error;
        char sentence[sizeof error.text + 128];
        size_t taken;
        bool fine;

        pthread_mutex_unlock(&c->lock);
        fine = c->work.inherit(c->work.context, &rows, &taken, &error) == RBT_OK;
        if (fine)
            snprintf(sentence, sizeof sentence, "took over %zu rows of worker %u", taken, rows.worker);
        else
            snprintf(sentence, sizeof sentence, "rows of worker %u, which was lost, could not be taken over: %s",
                     rows.worker, error.text);
        tell(c, fine ? RBT_LOG_INFO : RBT_LOG_WARNING, sentence);
        pthread_mutex_lock(&c->lock);
    }
    c->inherits = false;
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

void rbt_heirs_begin(rbt_cluster *c, const rbt_rows_of *rows)
{
    pthread_t thread;

    if (c->work.inherit == NULL)
        return;
    rbt_array_push(&c->estate, *rows);
    if (c->inherits)
        return;
    c->inherits = pthread_create(&thread, NULL, take_over, c) == 0;
    if (c->inherits)
        rbt_array_push(&c->heirs, thread);
}

void rbt_heirs_end(rbt_cluster *c)
{
    for (size_t i = 0; i < c->heirs.count; i++)
        pthread_join(c->heirs.at[i], NULL);
    rbt_array_free(&c->heirs);
    rbt_array_free(&c->estate);
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
    for (size_t i = 0; i < bequests.count; i++) {
        const rbt_bequest *b = &bequests.at[i];
        rbt_pack words = {0};

        rbt_pack_u32(&words, b->rows.worker);
        rbt_pack_u32(&words, b->rows.first);
        rbt_pack_u32(&words, b->rows.step);
        if (b->rank == 0)
            rbt_heirs_begin(c, &b->rows);
        else
            rbt_session_say(c->session, b->rank, SAY_INHERIT, &words, NULL, 0);
        rbt_array_free(&words);
    }
    pthread_mutex_unlock(&c->lock);
    rbt_log_event(&c->run->log, RBT_LOG_INFO, "cluster",
                  bequests.count > 0 ? "the others with workers take over its rows"
                                     : "nobody takes over its rows: the others have done their work");
    rbt_array_free(&bequests);
}
