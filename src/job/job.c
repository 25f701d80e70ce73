/* A job: creating and describing it, its events, what it leaves behind (rubato.h, section 5). Running one is run.c. */

#include "base/error.h"
#include "job/cluster_job.h"
#include "job/job_state.h"

/* ------------------------------------------------------------------------------------- creating, describing */

rbt_job *rbt_job_create(const char *model)
{
    rbt_job *job = rbt_alloc(1, sizeof *job);

    rbt_options_init(&job->options);
    job->stop = &job->interrupted;
    pthread_mutex_init(&job->handler_lock, NULL);
    rbt_free(job->options.model);
    job->options.model = model != NULL ? rbt_strdup(model) : NULL;
    return job;
}

void rbt_job_forget_texts(rbt_job *job)
{
    for (size_t i = 0; i < job->texts.count; i++)
        rbt_free(job->texts.at[i].value);
    rbt_array_free(&job->texts);
}

void rbt_job_destroy(rbt_job *job)
{
    if (job == NULL)
        return;
    rbt_job_forget_texts(job);
    rbt_job_forget_tables(job);
    rbt_options_deinit(&job->options);
    if (job->gathering != NULL)
        rbt_key_wipe(&job->gathering->key);
    rbt_free(job->gathering);
    rbt_free(job->reports);
    rbt_trained_deinit(&job->trained);
    rbt_fitted_deinit(&job->fitted);
    pthread_mutex_destroy(&job->handler_lock);
    rbt_free(job);
}

rbt_err rbt_job_set(rbt_job *job, const char *option, const char *value, rbt_error *error)
{
    rbt_job_forget_texts(job);
    return rbt_options_set(&job->options, option, value, error);
}

bool rbt_job_option(const rbt_job *job, size_t i, const char **name, const char **value)
{
    rbt_job *mine = (rbt_job *)job; /* the texts are a cache */
    char text[RBT_OPTION_ROOM];
    rbt_option_text one;

    while (mine->texts.count <= i) {
        if (!rbt_options_at(&job->options, mine->texts.count, &one.name, text, sizeof text))
            return false;
        one.value = rbt_strdup(text);
        rbt_array_push(&mine->texts, one);
    }
    *name = job->texts.at[i].name;
    *value = job->texts.at[i].value;
    return true;
}

void rbt_job_interrupt(rbt_job *job)
{
    atomic_store(&job->interrupted, true);
}

const rbt_result *rbt_job_result(const rbt_job *job)
{
    return job->has_result ? &job->result : NULL;
}

const float *rbt_job_parameters(const rbt_job *job, size_t *n)
{
    *n = job->has_result ? job->trained.n : 0;
    return job->has_result ? job->trained.w : NULL;
}

const rbt_fitted *rbt_job_fitted(const rbt_job *job)
{
    return job->has_result && job->fitted.method != NULL ? &job->fitted : NULL;
}

rbt_err rbt_job_save(const rbt_job *job, const char *path, rbt_error *error)
{
    if (job->has_result && job->fitted.method != NULL)
        return rbt_fitted_save(&job->fitted, path, error);
    if (!job->has_result || job->trained.model == NULL)
        return rbt_fail(error, RBT_E_USAGE, "there is nothing to save to %s: the job has not trained a model", path);
    return rbt_trained_save(&job->trained, path, error);
}

/* --------------------------------------------------------------------------------------------------- events */

void rbt_job_emit(rbt_job *job, const rbt_event *event)
{
    if (job->handler == NULL)
        return;
    pthread_mutex_lock(&job->handler_lock);
    job->handler(job->context, event);
    pthread_mutex_unlock(&job->handler_lock);
}

static void on_log(void *context, rbt_log_level level, const char *source, const char *sentence)
{
    rbt_job *job = context;

    (void)level;
    (void)source;
    rbt_job_emit(job, &(rbt_event){.kind = RBT_EVENT_NOTE, .job = job, .note = sentence});
}

rbt_log rbt_job_log(rbt_job *job)
{
    return (rbt_log){.write = on_log, .context = job, .least = RBT_LOG_INFO};
}
