/* Proves src/runtime/cluster/standing.c on the environments that Slurm 22.05, Open MPI 4.1, MPICH 4.0 and Kubernetes give,
 * and on halves of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "runtime/cluster/standing.h"

/* An environment: "NAME=value" lines up to NULL; `over` goes first, and may unset with "NAME=". */
typedef struct environment {
    const char *const *lines;
    const char *const *over;
} environment;

static const char *find(const char *const *lines, const char *name)
{
    size_t n = strlen(name);

    for (; lines && *lines; lines++)
        if (strncmp(*lines, name, n) == 0 && (*lines)[n] == '=')
            return *lines + n + 1;
    return NULL;
}

static const char *get(void *context, const char *name)
{
    const environment *e = context;
    const char *value = find(e->over, name);

    return value ? value : find(e->lines, name);
}

static const char *const slurm[] = {"SLURM_JOB_ID=2",
                                    "SLURM_STEP_ID=0",
                                    "SLURM_PROCID=4",
                                    "SLURM_NTASKS=5",
                                    "SLURM_STEP_NUM_TASKS=5",
                                    "SLURM_JOB_NODELIST=n[00-09]",
                                    "SLURM_STEP_NODELIST=n[01-03]",
                                    "SLURM_STEP_TASKS_PER_NODE=3,1(x2)",
                                    NULL};
static const char *const mpirun_apart[] = {"OMPI_COMM_WORLD_RANK=1",
                                           "OMPI_COMM_WORLD_SIZE=3",
                                           "OMPI_COMM_WORLD_LOCAL_SIZE=2",
                                           "OMPI_MCA_ess_base_jobid=73269249",
                                           "OMPI_MCA_orte_hnp_uri=73269248.0;tcp://10.77.0.254:37109",
                                           "OMPI_MCA_orte_node_regex=login,a,b@0(3)",
                                           "OMPI_MCA_orte_num_nodes=2",
                                           "OMPI_MCA_orte_precondition_transports=f46d0f0e20615356-0045b54560658fd9",
                                           "PMIX_NAMESPACE=73269249",
                                           "PMI_RANK=7",
                                           "SLURM_JOB_ID=4",
                                           "SLURM_STEP_ID=0",
                                           NULL};
static const char *const hydra[] = {"PMI_RANK=1", "PMI_SIZE=2", "PMI_FD=8", "MPI_LOCALNRANKS=2", NULL};
static const char *const kubernetes[] = {"JOB_COMPLETION_INDEX=3", "RUBATO_SIZE=4", "RUBATO_LEAD=rubato-0.rubato:7470",
                                         NULL};

static rbt_standing standing_of(const char *const *lines, const char *const *over)
{
    environment e = {lines, over};
    rbt_standing standing;
    rbt_error error;

    if (rbt_standing_find(get, &e, &standing, &error))
        fail_msg("%s", error.text);
    return standing;
}

static void slurm_gives_rank_size_first_host_and_a_port_of_the_step(void **state)
{
    rbt_standing standing = standing_of(slurm, NULL);
    rbt_standing other = standing_of(slurm, (const char *const[]){"SLURM_STEP_ID=1", "SLURM_PROCID=0", NULL});

    (void)state;
    assert_string_equal(standing.kind, "slurm");
    assert_int_equal(standing.rank, 4);
    assert_int_equal(standing.size, 5);
    assert_false(standing.one_host);
    assert_int_equal(standing.leads, 1);
    assert_string_equal(standing.lead[0], "n01");
    assert_string_equal(standing.job, "slurm 2.0");
    assert_in_range(standing.port, RBT_STANDING_PORT_FIRST, RBT_STANDING_PORT_FIRST + RBT_STANDING_PORTS - 1);
    assert_int_equal(other.rank, 0);
    assert_string_equal(other.job, "slurm 2.1");
    assert_int_not_equal(other.port, standing.port);
    assert_int_equal(standing.pmi_fd, -1);
    rbt_standing_deinit(&standing);
    rbt_standing_deinit(&other);
}

static void slurm_on_one_node_is_one_host_and_arbitrary_may_be_anywhere(void **state)
{
    rbt_standing one =
        standing_of(slurm, (const char *const[]){"SLURM_STEP_NODELIST=n7", "SLURM_STEP_TASKS_PER_NODE=5", NULL});
    rbt_standing any = standing_of(slurm, (const char *const[]){"SLURM_DISTRIBUTION=arbitrary", NULL});
    rbt_standing pmi2 = standing_of(slurm, (const char *const[]){"PMI_RANK=4", "PMI_SIZE=5", "PMI_FD=9", NULL});

    (void)state;
    assert_true(one.one_host);
    assert_int_equal(one.leads, 0);
    assert_int_equal(any.leads, 3);
    assert_string_equal(any.lead[2], "n03");
    assert_string_equal(pmi2.kind, "slurm");
    rbt_standing_deinit(&any);
    rbt_standing_deinit(&pmi2);
}

static void mpirun_fills_the_first_host_of_its_list(void **state)
{
    rbt_standing apart = standing_of(mpirun_apart, NULL);
    rbt_standing part =
        standing_of(mpirun_apart, (const char *const[]){"OMPI_MCA_orte_node_regex=node[2:1-2]@0(2)",
                                                        "OMPI_MCA_orte_hnp_uri=1.0;tcp://10.0.0.1,192.0.2.1:"
                                                        "51363;tcp6://[fd00::2]:47305",
                                                        NULL});
    rbt_standing beside = standing_of(mpirun_apart, (const char *const[]){"OMPI_MCA_orte_node_regex=", NULL});
    rbt_standing one = standing_of(mpirun_apart, (const char *const[]){"OMPI_COMM_WORLD_LOCAL_SIZE=3", NULL});

    (void)state;
    assert_string_equal(apart.kind, "mpirun"); /* inside a Slurm job too */
    assert_int_equal(apart.rank, 1);
    assert_int_equal(apart.size, 3);
    assert_int_equal(strncmp(apart.job, "mpirun 73269249.", 16), 0);
    assert_int_equal(apart.leads, 2); /* mpirun runs on login, which has no process of the job */
    assert_string_equal(apart.lead[0], "a");
    assert_int_equal(part.leads, 5);
    assert_string_equal(part.lead[0], "10.0.0.1");
    assert_string_equal(part.lead[1], "192.0.2.1");
    assert_string_equal(part.lead[2], "fd00::2");
    assert_string_equal(part.lead[3], "node01");
    assert_int_equal(beside.leads, 1);
    assert_string_equal(beside.lead[0], "10.77.0.254");
    assert_true(one.one_host);
    assert_int_equal(one.leads, 0);
    assert_int_equal(one.port, apart.port);
    rbt_standing_deinit(&apart);
    rbt_standing_deinit(&part);
    rbt_standing_deinit(&beside);
}

static void mpiexec_says_the_rest_over_its_file(void **state)
{
    rbt_standing one = standing_of(hydra, NULL);
    rbt_standing two = standing_of(hydra, (const char *const[]){"MPI_LOCALNRANKS=1", NULL});
    rbt_standing inside = standing_of(slurm, (const char *const[]){"PMI_RANK=0", "PMI_SIZE=9", "PMI_FD=9", NULL});
    rbt_standing given = standing_of(hydra, (const char *const[]){"PMI_FD=", "RUBATO_LEAD=[fd00::1]:99", NULL});

    (void)state;
    assert_string_equal(one.kind, "pmi");
    assert_int_equal(one.rank, 1);
    assert_int_equal(one.size, 2);
    assert_int_equal(one.pmi_fd, 8);
    assert_true(one.one_host);
    assert_false(two.one_host);
    assert_string_equal(inside.kind, "pmi"); /* mpiexec numbers its processes anew inside a Slurm job */
    assert_int_equal(inside.size, 9);
    assert_int_equal(given.pmi_fd, -1);
    assert_string_equal(given.lead[0], "fd00::1");
    assert_int_equal(given.port, 99);
    rbt_standing_deinit(&given);
}

static void kubernetes_gives_the_index_and_the_manifest_the_rest(void **state)
{
    rbt_standing standing = standing_of(kubernetes, NULL);

    (void)state;
    assert_string_equal(standing.kind, "kubernetes");
    assert_int_equal(standing.rank, 3);
    assert_int_equal(standing.size, 4);
    assert_false(standing.one_host);
    assert_string_equal(standing.lead[0], "rubato-0.rubato");
    assert_int_equal(standing.port, 7470);
    rbt_standing_deinit(&standing);
}

static void a_lead_that_is_given_decides(void **state)
{
    rbt_standing standing = standing_of(mpirun_apart, (const char *const[]){"RUBATO_LEAD=c:1234", NULL});

    (void)state;
    assert_int_equal(standing.leads, 1);
    assert_string_equal(standing.lead[0], "c");
    assert_int_equal(standing.port, 1234);
    rbt_standing_deinit(&standing);
    standing = standing_of((const char *const[]){"PATH=/bin", NULL}, NULL); /* nobody has started it */
    assert_null(standing.kind);
}

static void half_an_environment_names_the_variable(void **state)
{
    static const struct {
        const char *const *lines;
        const char *over;
        const char *says;
    } cases[] = {
        {slurm, "SLURM_PROCID=", "SLURM_PROCID is not"},
        {slurm, "SLURM_PROCID=x", "SLURM_PROCID is \"x\": expected a whole number"},
        {slurm, "SLURM_PROCID=-1", "SLURM_PROCID is \"-1\""},
        {slurm, "SLURM_PROCID=5", "SLURM_PROCID is 5, but SLURM_STEP_NUM_TASKS is 5"},
        {slurm, "SLURM_STEP_NUM_TASKS=0", "SLURM_STEP_NUM_TASKS is \"0\""},
        {slurm, "SLURM_STEP_NUM_TASKS=6", "makes 5 processes, but SLURM_STEP_NUM_TASKS is 6"},
        {slurm, "SLURM_JOB_ID=", "SLURM_JOB_ID is not"},
        {slurm, "SLURM_STEP_NODELIST=n[", "SLURM_STEP_NODELIST: a '['"},
        {slurm, "SLURM_STEP_TASKS_PER_NODE=5",
         "SLURM_STEP_TASKS_PER_NODE is \"5\": expected a number for each of the 3"},
        {slurm, "SLURM_STEP_ID=", "put srun before the command"},
        {mpirun_apart, "OMPI_COMM_WORLD_SIZE=", "OMPI_COMM_WORLD_SIZE is not"},
        {mpirun_apart, "OMPI_COMM_WORLD_LOCAL_SIZE=", "OMPI_COMM_WORLD_LOCAL_SIZE is not"},
        {mpirun_apart, "OMPI_MCA_orte_hnp_uri=", "mpirun -x RUBATO_LEAD=HOST:PORT"},
        {mpirun_apart, "OMPI_MCA_orte_node_regex=a b", "OMPI_MCA_orte_node_regex: no host name"},
        {mpirun_apart, "OMPI_MCA_orte_num_nodes=x", "OMPI_MCA_orte_num_nodes is \"x\""},
        {hydra, "PMI_SIZE=", "PMI_SIZE is not"},
        {hydra, "PMI_FD=", "set RUBATO_LEAD=HOST:PORT"},
        {hydra, "PMI_FD=99999999", "PMI_FD is \"99999999\""},
        {hydra, "MPI_LOCALNRANKS=x", "MPI_LOCALNRANKS is \"x\""},
        {kubernetes, "RUBATO_SIZE=", "RUBATO_SIZE is not"},
        {kubernetes, "RUBATO_LEAD=", "RUBATO_LEAD is not"},
        {kubernetes, "RUBATO_LEAD=7470", "expected HOST:PORT"},
        {kubernetes, "RUBATO_LEAD=a:0", "the port in RUBATO_LEAD is \"0\""},
        {kubernetes, "RUBATO_SIZE=3", "JOB_COMPLETION_INDEX is 3, but RUBATO_SIZE is 3"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const over[] = {cases[i].over, NULL};
        environment e = {cases[i].lines, over};
        rbt_standing standing;
        rbt_error error;

        assert_int_equal(rbt_standing_find(get, &e, &standing, &error), RBT_E_USAGE);
        if (!strstr(error.text, cases[i].says))
            fail_msg("%s gives: %s", cases[i].over, error.text);
    }
}

static void a_key_is_needed_across_hosts_only(void **state)
{
    environment none = {NULL, NULL};
    environment one = {(const char *const[]){"RUBATO_KEY_FILE=/shared/job.key", NULL}, NULL};
    rbt_standing here = {.one_host = true};
    rbt_standing there = {.one_host = false};
    const char *path = "";
    rbt_error error;

    (void)state;
    assert_int_equal(rbt_standing_key_file(get, &one, &there, "own.key", false, &path, &error), RBT_OK);
    assert_string_equal(path, "own.key");
    assert_int_equal(rbt_standing_key_file(get, &one, &there, NULL, false, &path, &error), RBT_OK);
    assert_string_equal(path, "/shared/job.key");
    assert_int_equal(rbt_standing_key_file(get, &none, &here, NULL, false, &path, &error), RBT_OK);
    assert_null(path);
    assert_int_equal(rbt_standing_key_file(get, &none, &there, NULL, true, &path, &error), RBT_OK);
    assert_int_equal(rbt_standing_key_file(get, &none, &there, NULL, false, &path, &error), RBT_E_USAGE);
    assert_non_null(strstr(error.text, "rubato key new job.key"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slurm_gives_rank_size_first_host_and_a_port_of_the_step),
        cmocka_unit_test(slurm_on_one_node_is_one_host_and_arbitrary_may_be_anywhere),
        cmocka_unit_test(mpirun_fills_the_first_host_of_its_list),
        cmocka_unit_test(mpiexec_says_the_rest_over_its_file),
        cmocka_unit_test(kubernetes_gives_the_index_and_the_manifest_the_rest),
        cmocka_unit_test(a_lead_that_is_given_decides),
        cmocka_unit_test(half_an_environment_names_the_variable),
        cmocka_unit_test(a_key_is_needed_across_hosts_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
