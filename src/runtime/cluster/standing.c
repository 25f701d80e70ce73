/* Where this process stands: see standing.h. */
#include "runtime/cluster/standing.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "runtime/cluster/hosts.h"

/* What is asked while a standing is found. */
typedef struct asking {
    rbt_standing_getenv *get;
    void *context;
    rbt_standing *standing;
    rbt_error *error;
} asking;

const char *rbt_standing_environment(void *context, const char *name)
{
    (void)context;
    return getenv(name); // NOLINT(concurrency-mt-unsafe): nothing here changes the environment
}

static const char *ask(const asking *a, const char *name)
{
    const char *value = a->get(a->context, name);

    return value && *value ? value : NULL;
}

/* A variable that must be there, since `because` is. */
static rbt_err ask_text(const asking *a, const char *name, const char *because, const char **value)
{
    *value = ask(a, name);
    if (!*value)
        return rbt_fail(a->error, RBT_E_USAGE,
                        "%s is set but %s is not: this process does not see its job's whole environment; start it as "
                        "the resource manager does, or unset %s",
                        because, name, because);
    return RBT_OK;
}

static rbt_err ask_number(const asking *a, const char *name, const char *because, uint64_t least, uint64_t *value)
{
    const char *text;
    rbt_err err = ask_text(a, name, because, &text);

    return err ? err : rbt_hosts_number(name, text, least, RBT_PROCESSES_MAX, value, a->error);
}

static rbt_err ask_rank_and_size(const asking *a, const char *rank_name, const char *size_name)
{
    uint64_t rank;
    uint64_t size;
    rbt_err err;

    if ((err = ask_number(a, rank_name, rank_name, 0, &rank)) || (err = ask_number(a, size_name, rank_name, 1, &size)))
        return err;
    if (rank >= size)
        return rbt_fail(a->error, RBT_E_USAGE,
                        "%s is %llu, but %s is %llu: ranks go from 0 to %llu; a job of several parts is started as one",
                        rank_name, (unsigned long long)rank, size_name, (unsigned long long)size,
                        (unsigned long long)size - 1);
    a->standing->rank = (uint32_t)rank;
    a->standing->size = (uint32_t)size;
    return RBT_OK;
}

void rbt_standing_add_lead(rbt_standing *standing, const char *host, size_t n)
{
    char *copy = rbt_alloc(n + 1, 1);

    memcpy(copy, host, n);
    for (size_t i = 0; i < standing->leads; i++)
        if (strcmp(standing->lead[i], copy) == 0) {
            rbt_free(copy);
            return;
        }
    standing->lead = rbt_realloc(standing->lead, standing->leads + 1, sizeof *standing->lead);
    standing->lead[standing->leads++] = copy;
}

void rbt_standing_name_job(rbt_standing *standing, const char *format, ...)
{
    va_list arguments;
    uint64_t hash;

    va_start(arguments, format);
    vsnprintf(standing->job, sizeof standing->job, format, arguments);
    va_end(arguments);
    hash = rbt_hash(standing->job, strlen(standing->job), 0);
    if (standing->port == 0)
        standing->port = (uint16_t)(RBT_STANDING_PORT_FIRST + hash % RBT_STANDING_PORTS);
}

/* RUBATO_LEAD=HOST:PORT, which the user has set: it decides. */
static rbt_err find_given_lead(const asking *a)
{
    const char *text = ask(a, "RUBATO_LEAD");
    const char *colon = text ? strrchr(text, ':') : NULL;
    const char *end = colon;
    uint64_t port;
    rbt_err err;

    if (!text)
        return RBT_OK;
    if (!colon || colon == text)
        return rbt_fail(a->error, RBT_E_USAGE, "RUBATO_LEAD is \"%.80s\": expected HOST:PORT, the lead's address",
                        text);
    if ((err = rbt_hosts_number("the port in RUBATO_LEAD", colon + 1, 1, UINT16_MAX, &port, a->error)))
        return err;
    if (*text == '[' && end[-1] == ']') {
        text++;
        end--;
    }
    rbt_standing_add_lead(a->standing, text, (size_t)(end - text));
    a->standing->port = (uint16_t)port;
    return RBT_OK;
}

/* ------------------------------------------------------------------------------------------------------- mpirun */

/* "73269248.0;tcp://10.0.0.254,192.168.1.4:37109;tcp6://[fd00::2]:47305": the hosts in it. */
static void add_uri_hosts(const asking *a, const char *uri)
{
    for (const char *at = strstr(uri, "://"); at; at = strstr(at, "://")) {
        size_t all;
        size_t n;

        at += 3;
        all = strcspn(at, ";");
        while (all > 0 && at[all - 1] != ':') /* the port */
            all--;
        if (*at == '[') {
            n = strcspn(at + 1, "]");
            rbt_standing_add_lead(a->standing, at + 1, n);
            continue;
        }
        for (size_t i = 0; i + 1 < all; i += n + 1) {
            n = strcspn(at + i, ",:");
            if (n > 0)
                rbt_standing_add_lead(a->standing, at + i, n);
        }
    }
}

/* Open MPI 4 gives no variable with rank 0's host, but fills hosts in the order of its list, with the host where mpirun
 * itself runs first if it takes part. Only processes on other hosts see the list (mpirun's own host is its first entry,
 * one more than there are nodes if it does not take part); those without one are beside mpirun, and so is rank 0. */
static rbt_err find_mpirun_lead(const asking *a)
{
    const char *regex = ask(a, "OMPI_MCA_orte_node_regex");
    const char *uri = ask(a, "OMPI_MCA_orte_hnp_uri");
    const char *nodes_text = ask(a, "OMPI_MCA_orte_num_nodes");
    rbt_hosts hosts = {0};
    uint64_t nodes = 0;
    bool apart; /* mpirun's host has no process of the job */
    rbt_err err = RBT_OK;
    char *names;

    if (!uri)
        return rbt_fail(a->error, RBT_E_USAGE,
                        "this version of mpirun does not say where rank 0 is (OMPI_MCA_orte_hnp_uri is not set); say "
                        "so: mpirun -x RUBATO_LEAD=HOST:PORT with the first host and a free port");
    if (nodes_text &&
        (err = rbt_hosts_number("OMPI_MCA_orte_num_nodes", nodes_text, 1, RBT_HOSTS_MAX, &nodes, a->error)))
        return err;
    if (regex) {
        names = rbt_strdup(regex);
        names[strcspn(names, "@")] = 0; /* behind it the daemons' numbers */
        err = rbt_hosts_parse("OMPI_MCA_orte_node_regex", names, &hosts, a->error);
        rbt_free(names);
        if (err)
            return err;
    }
    apart = nodes > 0 && hosts.count == nodes + 1;
    if (!apart)
        add_uri_hosts(a, uri);
    for (size_t i = apart; i < hosts.count; i++)
        rbt_standing_add_lead(a->standing, hosts.at[i].name, strlen(hosts.at[i].name));
    rbt_hosts_deinit(&hosts);
    return RBT_OK;
}

static rbt_err find_mpirun(const asking *a)
{
    const char *rank = "OMPI_COMM_WORLD_RANK";
    const char *job = ask(a, "PMIX_NAMESPACE");
    const char *random = ask(a, "OMPI_MCA_orte_precondition_transports");
    uint64_t local;
    rbt_err err;

    if ((err = ask_rank_and_size(a, rank, "OMPI_COMM_WORLD_SIZE")) ||
        (err = ask_number(a, "OMPI_COMM_WORLD_LOCAL_SIZE", rank, 1, &local)))
        return err;
    if (!job && (err = ask_text(a, "OMPI_MCA_ess_base_jobid", rank, &job)))
        return err;
    a->standing->kind = "mpirun";
    a->standing->one_host = local == a->standing->size;
    if (!a->standing->one_host && a->standing->leads == 0 && (err = find_mpirun_lead(a)))
        return err;
    /* The namespace alone is made from a host's name and a process number. */
    rbt_standing_name_job(a->standing, "mpirun %.100s.%08x", job,
                          random ? (unsigned)rbt_hash(random, strlen(random), 0) : 0U);
    return RBT_OK;
}

/* -------------------------------------------------------------------------------------------------------- Slurm */

static rbt_err find_slurm(const asking *a)
{
    const char *step = "SLURM_STEP_ID";
    const char *size = ask(a, "SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
    const char *list = ask(a, "SLURM_STEP_NODELIST") ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST";
    const char *tasks = ask(a, "SLURM_STEP_TASKS_PER_NODE");
    const char *distribution = ask(a, "SLURM_DISTRIBUTION");
    const char *job;
    const char *nodes;
    rbt_hosts hosts = {0};
    bool anywhere = distribution && strncmp(distribution, "arbitrary", 9) == 0;
    rbt_err err;

    if ((err = ask_rank_and_size(a, "SLURM_PROCID", size)) || (err = ask_text(a, "SLURM_JOB_ID", step, &job)) ||
        (err = ask_text(a, list, step, &nodes)) || (err = rbt_hosts_parse(list, nodes, &hosts, a->error)))
        return err;
    if (tasks && (err = rbt_hosts_count("SLURM_STEP_TASKS_PER_NODE", tasks, &hosts, a->error)))
        goto hosts;
    if (tasks && hosts.processes != a->standing->size) {
        err = rbt_fail(a->error, RBT_E_USAGE,
                       "SLURM_STEP_TASKS_PER_NODE is \"%.80s\", which makes %u processes, but %s is %u", tasks,
                       hosts.processes, size, a->standing->size);
        goto hosts;
    }
    a->standing->kind = "slurm";
    a->standing->one_host = hosts.count == 1;
    /* Slurm puts rank 0 on the first node, unless the user has said for each rank where it goes. */
    if (!a->standing->one_host && a->standing->leads == 0)
        for (size_t i = 0; i < (anywhere ? hosts.count : 1); i++)
            rbt_standing_add_lead(a->standing, hosts.at[i].name, strlen(hosts.at[i].name));
    rbt_standing_name_job(a->standing, "slurm %s.%s", job, ask(a, step));
hosts:
    rbt_hosts_deinit(&hosts);
    return err;
}

/* Under srun --mpi=pmi2 both are there and say the same; mpiexec inside a Slurm job numbers its processes anew. */
static bool slurm_agrees_with_pmi(const asking *a)
{
    const char *pmi = ask(a, "PMI_RANK");
    const char *procid = ask(a, "SLURM_PROCID");
    const char *pmi_size = ask(a, "PMI_SIZE");
    const char *tasks = ask(a, "SLURM_STEP_NUM_TASKS");

    if (!pmi)
        return true;
    return procid && pmi_size && tasks && strcmp(pmi, procid) == 0 && strcmp(pmi_size, tasks) == 0;
}

/* ---------------------------------------------------------------------------------------------- PMI, Kubernetes */

static rbt_err find_pmi(const asking *a)
{
    const char *fd = ask(a, "PMI_FD");
    const char *lead = ask(a, "RUBATO_LEAD");
    const char *local_text = ask(a, "MPI_LOCALNRANKS");
    uint64_t local = 0;
    uint64_t number;
    rbt_err err;

    if ((err = ask_rank_and_size(a, "PMI_RANK", "PMI_SIZE")))
        return err;
    if (local_text && (err = rbt_hosts_number("MPI_LOCALNRANKS", local_text, 1, RBT_PROCESSES_MAX, &local, a->error)))
        return err;
    a->standing->kind = "pmi";
    a->standing->one_host = local == a->standing->size;
    if (fd) {
        if ((err = rbt_hosts_number("PMI_FD", fd, 0, INT16_MAX, &number, a->error)))
            return err;
        a->standing->pmi_fd = (int)number;
        return RBT_OK;
    }
    if (!lead)
        return rbt_fail(a->error, RBT_E_USAGE,
                        "PMI_RANK is set but PMI_FD is not: this starter does not say where rank 0 is; set RUBATO_LEAD="
                        "HOST:PORT for all processes, with rank 0's host and a free port");
    rbt_standing_name_job(a->standing, "pmi %.120s", lead);
    return RBT_OK;
}

static rbt_err find_kubernetes(const asking *a)
{
    const char *index = "JOB_COMPLETION_INDEX";
    const char *lead;
    rbt_err err;

    if (!ask(a, "RUBATO_SIZE") || !ask(a, "RUBATO_LEAD"))
        return rbt_fail(a->error, RBT_E_USAGE,
                        "%s is set but %s is not: the Job's manifest sets RUBATO_SIZE (its completions) and "
                        "RUBATO_LEAD (HOST:PORT of index 0); deploy/k8s has one",
                        index, ask(a, "RUBATO_SIZE") ? "RUBATO_LEAD" : "RUBATO_SIZE");
    if ((err = ask_rank_and_size(a, index, "RUBATO_SIZE")) || (err = ask_text(a, "RUBATO_LEAD", index, &lead)))
        return err;
    a->standing->kind = "kubernetes";
    a->standing->one_host = a->standing->size == 1;
    rbt_standing_name_job(a->standing, "kubernetes %.120s", lead);
    return RBT_OK;
}

rbt_err rbt_standing_find(rbt_standing_getenv *get, void *context, rbt_standing *standing, rbt_error *error)
{
    rbt_standing found = {.pmi_fd = -1};
    asking a = {.get = get, .context = context, .standing = &found, .error = error};
    rbt_err err = find_given_lead(&a);

    if (err)
        goto found;
    if (ask(&a, "OMPI_COMM_WORLD_RANK"))
        err = find_mpirun(&a);
    else if (ask(&a, "SLURM_STEP_ID") && slurm_agrees_with_pmi(&a))
        err = find_slurm(&a);
    else if (ask(&a, "PMI_RANK"))
        err = find_pmi(&a);
    else if (ask(&a, "JOB_COMPLETION_INDEX"))
        err = find_kubernetes(&a);
    else if (ask(&a, "SLURM_JOB_ID"))
        err = rbt_fail(error, RBT_E_USAGE,
                       "this is inside Slurm job %.40s, but srun has not started it (SLURM_STEP_ID is not set): put "
                       "srun before the command",
                       ask(&a, "SLURM_JOB_ID"));
found:
    if (err)
        rbt_standing_deinit(&found);
    else
        *standing = found;
    return err;
}

void rbt_standing_deinit(rbt_standing *standing)
{
    for (size_t i = 0; i < standing->leads; i++)
        rbt_free(standing->lead[i]);
    rbt_free(standing->lead);
    standing->lead = NULL;
    standing->leads = 0;
}

rbt_err rbt_standing_key_file(rbt_standing_getenv *get, void *context, const rbt_standing *standing, const char *option,
                              bool insecure, const char **path, rbt_error *error)
{
    asking a = {.get = get, .context = context, .error = error};
    const char *file = option ? option : ask(&a, "RUBATO_KEY_FILE");

    if (!file && !standing->one_host && !insecure)
        return rbt_fail(error, RBT_E_USAGE,
                        "this job spans several hosts and has no key: make one where all of them can read it (rubato "
                        "key new job.key), and say --key job.key or set RUBATO_KEY_FILE");
    *path = file;
    return RBT_OK;
}
