/* Where this process stands in a job that a resource manager has started: its rank, how many there are, where the lead
 * (rank 0) can be reached. All of it comes from the environment; nobody has to write a file.
 *
 *   mpirun      OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_SIZE; OMPI_MCA_orte_node_regex, _num_nodes, _hnp_uri: where rank 0 is
 *   slurm       SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_STEP_NODELIST, SLURM_STEP_TASKS_PER_NODE, SLURM_JOB_ID,
 *               SLURM_STEP_ID: only processes that srun started have the last
 *   pmi         PMI_RANK, PMI_SIZE, PMI_FD, MPI_LOCALNRANKS: mpiexec of MPICH and its kin; the rest over PMI_FD (pmi.h)
 *   kubernetes  JOB_COMPLETION_INDEX of an indexed Job, RUBATO_SIZE and RUBATO_LEAD=HOST:PORT from its manifest
 *
 * They are looked for in this order, because mpirun and mpiexec run inside Slurm jobs and pods too. RUBATO_LEAD=HOST:PORT
 * always decides where the lead is. What is half there is an error that names the variable. Ranks agree on the port and
 * on the job's name because both follow from what all of them see; the port is a different one for each job and lies
 * below those that systems give out by themselves.
 *
 * Called by the cluster runtime. Proved by tests/unit/test_standing.c on the environments that the real ones give, and by
 * tests/cluster under the real ones.
 */
#ifndef RBT_RUNTIME_CLUSTER_STANDING_H
#define RBT_RUNTIME_CLUSTER_STANDING_H

#include <stddef.h>

#include "rubato.h"

#define RBT_STANDING_PORT_FIRST 20000 /* derived ports: from here */
#define RBT_STANDING_PORTS      10000 /* so many */
#define RBT_STANDING_JOB_ROOM   160   /* characters that hold a job's name, with the end */

typedef struct rbt_standing {
    const char *kind; /* "mpirun", "slurm", "pmi", "kubernetes"; NULL: no resource manager has started this process */
    uint32_t rank;
    uint32_t size;
    bool one_host; /* all processes of the job are on this host */
    char **lead;   /* hosts where the lead may be, the likeliest first; names or addresses as numbers */
    size_t leads;  /* 0: this host */
    uint16_t port; /* where it listens */
    char job[RBT_STANDING_JOB_ROOM]; /* a name that no other job has at the same time, as "slurm 1234.0" */
    int pmi_fd;                      /* >= 0: the job's name and, with several hosts, the lead come from rbt_pmi_meet */
} rbt_standing;

/* How the environment is asked: getenv, or a test's own. NULL is unset; an empty value counts as unset. */
typedef const char *rbt_standing_getenv(void *context, const char *name);

rbt_err rbt_standing_find(rbt_standing_getenv *get, void *context, rbt_standing *standing, rbt_error *error);
void rbt_standing_deinit(rbt_standing *standing);

/* Asks the process's own environment. */
const char *rbt_standing_environment(void *context, const char *name);

/* The file of the job's key: what --key says, else RUBATO_KEY_FILE. NULL is right on one host, where only loopback and
 * Unix sockets are used; across hosts it is an error, which says how to make a key, unless the job is `insecure`. */
rbt_err rbt_standing_key_file(rbt_standing_getenv *get, void *context, const rbt_standing *standing, const char *option,
                              bool insecure, const char **path, rbt_error *error);

/* For those who fill in a standing (pmi.c, tests): one more host where the lead may be; the job's name, and the port that
 * follows from it unless the lead's is known. */
void rbt_standing_add_lead(rbt_standing *standing, const char *host, size_t n);
void rbt_standing_name_job(rbt_standing *standing, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
