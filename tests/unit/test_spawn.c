/* Proves src/runtime/cluster/spawn.c: first line and end of the standard input, lines of the standard error, sentences
 * about ends, groups ended in time, and no orphan, also when the launcher itself is killed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "runtime/cluster/spawn.h"

#define CHILDREN 4

typedef struct seen {
    char lines[CHILDREN][8192]; /* with a '|' behind each */
    size_t line_count[CHILDREN];
    rbt_child_end end[CHILDREN];
    bool ended[CHILDREN];
} seen;

static void on_line(void *context, size_t child, const char *line)
{
    seen *s = context;
    size_t n = strlen(s->lines[child]);

    assert_true(child < CHILDREN && !s->ended[child]);
    s->line_count[child]++;
    snprintf(s->lines[child] + n, sizeof s->lines[child] - n, "%s|", line);
}

static void on_end(void *context, size_t child, const rbt_child_end *end)
{
    seen *s = context;

    assert_true(child < CHILDREN && !s->ended[child]);
    s->ended[child] = true;
    s->end[child] = *end;
}

static rbt_spawn *begin(seen *s)
{
    rbt_spawn_handler handler = {.line = on_line, .ended = on_end, .context = s};
    rbt_spawn *spawn;
    rbt_error error;

    memset(s, 0, sizeof *s);
    assert_int_equal(rbt_spawn_create(&handler, &spawn, &error), RBT_OK);
    return spawn;
}

static void start(rbt_spawn *spawn, const char *name, const char *host, const char *script, const char *first_line)
{
    const char *const words[] = {"sh", "-c", script, NULL};
    rbt_child_spec spec = {.name = name, .host = host, .words = words, .first_line = first_line};
    rbt_error error;

    if (rbt_spawn_start(spawn, &spec, &error))
        fail_msg("%s", error.text);
}

static void all(rbt_spawn *spawn)
{
    while (rbt_spawn_running(spawn) > 0)
        rbt_spawn_turn(spawn, -1);
}

static void the_first_line_goes_in_and_the_errors_come_back_by_lines(void **state)
{
    seen s;
    rbt_spawn *spawn = begin(&s);

    (void)state;
    start(spawn, "worker process 0", NULL, "read key; echo \"got $key\" >&2; printf 'no end' >&2", "the key");
    start(spawn, "worker process 1", NULL, "printf 'a\\r\\n\\nb\\n' >&2; head -c 5000 /dev/zero | tr '\\0' x >&2",
          NULL);
    all(spawn);
    assert_string_equal(s.lines[0], "got the key|no end|");
    assert_int_equal(s.line_count[1], 6); /* a, nothing, b, and three pieces */
    assert_int_equal(strncmp(s.lines[1], "a||b|xx", 7), 0);
    assert_int_equal(strlen(s.lines[1]), 5 + 5000 + 3);
    assert_int_equal(s.end[0].code, 0);
    rbt_spawn_destroy(spawn);
}

static void ends_are_told_as_sentences(void **state)
{
    seen s;
    rbt_spawn *spawn = begin(&s);
    char expected[160];
    long pid;

    (void)state;
    start(spawn, "worker process 3", NULL, "kill -9 $$", NULL);
    pid = (long)rbt_spawn_pid(spawn, 0);
    start(spawn, "worker process 4", "b", "echo out of memory >&2; exit 7", NULL);
    start(spawn, "worker process 5", "c", "exit 255", NULL);
    start(spawn, "worker process 6", "c", "echo done >&2", NULL);
    all(spawn);
    snprintf(expected, sizeof expected, "worker process 3 (pid %ld) on this host was killed by signal 9 (Killed)", pid);
    assert_string_equal(s.end[0].sentence, expected);
    assert_true(s.end[0].killed);
    assert_int_equal(s.end[0].code, 137);
    assert_string_equal(s.end[1].sentence,
                        "worker process 4 on host b ended with exit code 7; its last words: \"out of memory\"");
    assert_int_equal(s.end[1].code, 7);
    assert_non_null(strstr(s.end[2].sentence, "the host was not reached"));
    assert_string_equal(s.end[3].sentence, "worker process 6 on host c ended with exit code 0");
    assert_int_equal(rbt_spawn_pid(spawn, 0), -1);
    rbt_spawn_destroy(spawn);
}

static void what_cannot_be_executed_is_an_error_at_once(void **state)
{
    seen s;
    rbt_spawn *spawn = begin(&s);
    const char *const words[] = {"there-is-no-such-command", NULL};
    rbt_child_spec spec = {.name = "worker process 0", .host = "b", .words = words};
    rbt_error error;

    (void)state;
    assert_int_equal(rbt_spawn_start(spawn, &spec, &error), RBT_E_IO);
    assert_non_null(strstr(error.text, "cannot start worker process 0: there-is-no-such-command: No such file"));
    assert_non_null(strstr(error.text, "--rsh"));
    assert_int_equal(rbt_spawn_running(spawn), 0);
    rbt_spawn_destroy(spawn);
}

static void the_descriptor_is_readable_when_there_is_something_to_do(void **state)
{
    seen s;
    rbt_spawn *spawn = begin(&s);
    struct pollfd p = {.fd = rbt_spawn_fd(spawn), .events = POLLIN};

    (void)state;
    start(spawn, "child", NULL, "read line; echo heard >&2; read line", NULL);
    assert_int_equal(poll(&p, 1, 0), 0);
    rbt_spawn_turn(spawn, 0); /* nothing to do is fine */
    assert_false(s.ended[0]);
    kill(rbt_spawn_pid(spawn, 0), SIGKILL);
    while (!s.ended[0]) { /* the end of its errors may be seen before its own */
        assert_int_equal(poll(&p, 1, -1), 1);
        rbt_spawn_turn(spawn, 0);
    }
    assert_int_equal(poll(&p, 1, 0), 0);
    rbt_spawn_destroy(spawn);
}

/* Whether anybody of the group is left. Zombies count: whoever is ours has been reaped. */
static bool group_is_there(pid_t group)
{
    return kill(-group, 0) == 0 || errno != ESRCH;
}

/* Grandchildren that lost their parent come to this process (PR_SET_CHILD_SUBREAPER) and are reaped here. */
static void wait_until_gone(pid_t group)
{
    while (waitpid(-group, NULL, 0) > 0 || errno == EINTR)
        continue;
    assert_false(group_is_there(group));
}

static void ending_kills_those_who_do_not_listen_with_all_their_children(void **state)
{
    seen s;
    rbt_spawn *spawn = begin(&s);
    pid_t group[3];

    (void)state;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    start(spawn, "listens", NULL, "cat >/dev/null", NULL); /* to the end */
    start(spawn, "deaf", NULL, "trap '' TERM; sleep 1000 & echo ready >&2; while :; do wait; done", NULL); /* to all */
    start(spawn, "leaves", NULL, "sleep 1000 & exit 3", NULL);
    for (size_t i = 0; i < 3; i++)
        group[i] = rbt_spawn_pid(spawn, i);
    while (!s.ended[2] || s.line_count[1] == 0)
        rbt_spawn_turn(spawn, -1);
    wait_until_gone(group[2]);
    rbt_spawn_end(spawn, 100);
    assert_int_equal(rbt_spawn_running(spawn), 0);
    assert_int_equal(s.end[1].code, 137);
    assert_int_equal(s.end[2].code, 3);
    for (size_t i = 0; i < 2; i++)
        wait_until_gone(group[i]);
    rbt_spawn_end(spawn, 100); /* nobody is left: fine */
    rbt_spawn_destroy(spawn);
}

static void destroying_leaves_nobody(void **state)
{
    seen s;
    rbt_spawn *spawn = begin(&s);
    pid_t group;

    (void)state;
    start(spawn, "deaf", NULL, "trap '' TERM HUP; sleep 1000; sleep 1000", NULL);
    group = rbt_spawn_pid(spawn, 0);
    rbt_spawn_destroy(spawn);
    wait_until_gone(group);
    assert_false(s.ended[0]);
}

/* A launcher of its own: starts two children, tells their numbers, and waits for its end. */
static void launcher(int tell)
{
    seen *s = rbt_alloc(1, sizeof *s);
    rbt_spawn *spawn = begin(s);
    pid_t groups[2];

    start(spawn, "reads", NULL, "trap '' TERM; cat >/dev/null", "key");
    start(spawn, "does not read", "b", "trap '' TERM; exec sleep 1000", "key");
    groups[0] = rbt_spawn_pid(spawn, 0);
    groups[1] = rbt_spawn_pid(spawn, 1);
    if (write(tell, groups, sizeof groups) == sizeof groups)
        for (;;)
            pause();
    _exit(1);
}

static void no_orphan_is_left_when_the_launcher_is_killed(void **state)
{
    pid_t groups[2];
    int ends[2];
    pid_t pid;

    (void)state;
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* so that orphans come to us, and waiting for them is no guess */
    assert_int_equal(pipe(ends), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        launcher(ends[1]);
    assert_int_equal(read(ends[0], groups, sizeof groups), sizeof groups);
    assert_true(group_is_there(groups[0]) && group_is_there(groups[1]));
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    wait_until_gone(groups[0]);
    wait_until_gone(groups[1]);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_line_goes_in_and_the_errors_come_back_by_lines),
        cmocka_unit_test(ends_are_told_as_sentences),
        cmocka_unit_test(what_cannot_be_executed_is_an_error_at_once),
        cmocka_unit_test(the_descriptor_is_readable_when_there_is_something_to_do),
        cmocka_unit_test(ending_kills_those_who_do_not_listen_with_all_their_children),
        cmocka_unit_test(destroying_leaves_nobody),
        cmocka_unit_test(no_orphan_is_left_when_the_launcher_is_killed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
