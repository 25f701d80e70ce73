/* Proves src/runtime/cluster/pmi.c against a starter in the test: processes meet and learn the lead's hosts; answers that
 * break the protocol, and a starter that goes away, are errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/cluster/pmi.h"

#define RANKS 3

/* Reads one line; false at the end. */
static int line_read(int fd, char *line, size_t room)
{
    size_t n = 0;

    while (n + 1 < room && read(fd, line + n, 1) == 1)
        if (line[n++] == '\n') {
            line[n - 1] = 0;
            return 1;
        }
    return 0;
}

static void answer(int fd, const char *line)
{
    assert_int_equal(write(fd, line, strlen(line)), strlen(line));
}

/* What mpiexec does: all ranks pass each step before the next. */
static void starter(const int fds[RANKS])
{
    char value[256] = "";
    char line[512];

    for (int r = 0; r < RANKS; r++) {
        assert_true(line_read(fds[r], line, sizeof line));
        assert_string_equal(line, "cmd=init pmi_version=1 pmi_subversion=1");
        answer(fds[r], "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
        assert_true(line_read(fds[r], line, sizeof line));
        assert_string_equal(line, "cmd=get_my_kvsname");
        answer(fds[r], "cmd=my_kvsname kvsname=kvs_17_0_vm\n");
    }
    assert_true(line_read(fds[0], line, sizeof line));
    assert_int_equal(sscanf(line, "cmd=put kvsname=kvs_17_0_vm key=rubato-lead value=%255s", value), 1);
    answer(fds[0], "cmd=put_result rc=0 msg=success\n");
    for (int r = 0; r < RANKS; r++) {
        assert_true(line_read(fds[r], line, sizeof line));
        assert_string_equal(line, "cmd=barrier_in");
    }
    for (int r = 0; r < RANKS; r++) {
        answer(fds[r], "cmd=barrier_out\n");
        assert_true(line_read(fds[r], line, sizeof line));
        assert_string_equal(line, "cmd=get kvsname=kvs_17_0_vm key=rubato-lead");
        snprintf(line, sizeof line, "cmd=get_result rc=0 msg=success value=%s\n", value);
        answer(fds[r], line);
        assert_true(line_read(fds[r], line, sizeof line));
        assert_string_equal(line, "cmd=finalize");
        answer(fds[r], "cmd=finalize_ack\n");
    }
}

static void all_ranks_learn_where_rank_0_is(void **state)
{
    int here[RANKS];
    pid_t child[RANKS];

    (void)state;
    for (int r = 0; r < RANKS; r++) {
        int pair[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        child[r] = fork();
        assert_true(child[r] >= 0);
        if (child[r] == 0) {
            rbt_standing standing = {.kind = "pmi", .rank = (uint32_t)r, .size = RANKS, .pmi_fd = pair[1]};
            rbt_error error;
            int good;

            good = rbt_pmi_meet(&standing, r == 0 ? "vm0 10.0.0.1 fd00::1" : "other", &error) == RBT_OK &&
                   standing.leads == 3 && strcmp(standing.lead[0], "vm0") == 0 &&
                   strcmp(standing.lead[2], "fd00::1") == 0 && strcmp(standing.job, "pmi kvs_17_0_vm") == 0 &&
                   standing.port >= RBT_STANDING_PORT_FIRST && standing.pmi_fd == -1;
            rbt_standing_deinit(&standing);
            _exit(good ? 0 : 1);
        }
        close(pair[1]);
        here[r] = pair[0];
    }
    starter(here);
    for (int r = 0; r < RANKS; r++) {
        int status;

        assert_int_equal(waitpid(child[r], &status, 0), child[r]);
        assert_int_equal(status, 0);
        close(here[r]);
    }
}

/* Rank 1 hears these lines, whatever it says. */
static rbt_err meet_with(const char *lines, rbt_error *error)
{
    rbt_standing standing = {.kind = "pmi", .rank = 1, .size = 2};
    rbt_err err;
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    answer(pair[0], lines);
    shutdown(pair[0], SHUT_WR);
    standing.pmi_fd = pair[1];
    err = rbt_pmi_meet(&standing, "b", error);
    rbt_standing_deinit(&standing);
    close(pair[0]);
    return err;
}

static void what_breaks_the_protocol_is_an_error_with_a_way_out(void **state)
{
    static const struct {
        const char *lines;
        rbt_err code;
        const char *says;
    } cases[] = {
        {"", RBT_E_IO, "it has closed the connection"},
        {"cmd=response_to_init rc=-1\n", RBT_E_PROTOCOL, "response_to_init was expected"},
        {"cmd=init_response rc=0\n", RBT_E_PROTOCOL, "set RUBATO_LEAD"},
        {"cmd=response_to_init rc=0\ncmd=my_kvsname\n", RBT_E_PROTOCOL, "a value is missing"},
        {"cmd=response_to_init rc=0\ncmd=my_kvsname kvsname=\n", RBT_E_PROTOCOL, "empty or too long"},
        {"cmd=response_to_init rc=0\ncmd=my_kvsname kvsname=k\ncmd=barrier_out\ncmd=get_result rc=-1 msg=key\n",
         RBT_E_PROTOCOL, "get_result was expected"},
        {"cmd=response_to_init rc=0\ncmd=my_kvsname kvsname=k\ncmd=barrier_out\ncmd=get_result rc=0 value=a\n",
         RBT_E_IO, "finalize_ack"},
    };
    char endless[RBT_PMI_LINE_MAX * 2];
    rbt_error error;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(meet_with(cases[i].lines, &error), cases[i].code);
        if (!strstr(error.text, cases[i].says))
            fail_msg("%s gives: %s", cases[i].lines, error.text);
    }
    memset(endless, 'x', sizeof endless - 1);
    endless[sizeof endless - 1] = 0;
    assert_int_equal(meet_with(endless, &error), RBT_E_IO);
}

static void this_host_has_a_name(void **state)
{
    char hosts[RBT_PMI_VALUE_MAX];

    (void)state;
    rbt_pmi_here(hosts);
    assert_true(strlen(hosts) > 0);
    assert_null(strstr(hosts, "127.0.0.1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_ranks_learn_where_rank_0_is),
        cmocka_unit_test(what_breaks_the_protocol_is_an_error_with_a_way_out),
        cmocka_unit_test(this_host_has_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
