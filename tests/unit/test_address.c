/* Proves src/runtime/cluster/address.c: addresses as people write them, sentences for those that are none, connections
 * over TCP and Unix sockets between two ends in this process, and files passed over them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/cluster/address.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static rbt_address parsed(const char *text)
{
    rbt_error error = {RBT_OK, ""};
    rbt_address address;
    rbt_err err = rbt_address_parse(text, RBT_PORT, &address, &error);
    assert_string_equal(error.text, "");
    assert_int_equal(err, RBT_OK);
    return address;
}

static void an_address_is_read_and_shown(void **state)
{
    (void)state;
    static const struct {
        const char *text, *shown;
    } cases[] = {
        {"10.0.0.1:80", "10.0.0.1:80"},
        {"10.0.0.1", "10.0.0.1:7470"},
        {":0", "0.0.0.0:0"},
        {":7471", "0.0.0.0:7471"},
        {"[::1]:65535", "[::1]:65535"},
        {"[::1]", "[::1]:7470"},
        {"[::]:1", "[::]:1"},
        {"[2001:DB8::0:1]:00080", "[2001:db8::1]:80"},
        {"[::ffff:127.0.0.1]:5", "127.0.0.1:5"},
        {"localhost:9", "127.0.0.1:9"},
        {"unix:/run/a b.sock", "unix:/run/a b.sock"},
        {"unix:@name:1", "unix:@name:1"},
    };
    char shown[RBT_ADDRESS_ROOM];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rbt_address address = parsed(cases[i].text);
        rbt_address_text(&address, shown);
        assert_string_equal(shown, cases[i].shown);
    }
    rbt_address none = {.n = 0};
    rbt_address_text(&none, shown);
    assert_string_equal(shown, "(no address)");
}

static void what_is_no_address_is_refused_with_a_sentence(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "write HOST:PORT"},
        {"[]:1", "write HOST:PORT"},
        {"[::1]x:1", "write HOST:PORT"},
        {"::1:7470", "in brackets"},
        {"[::1:7470", "']' is missing"},
        {"[host]:1", "no IPv6 address"},
        {"[10.0.0.1]:1", "no IPv6 address"},
        {"a:", "'' is no port"},
        {"a:-1", "'-1' is no port"},
        {"a:65536", "'65536' is no port"},
        {"a:1 ", "'1 ' is no port"},
        {"a:http", "'http' is no port"},
        {"10.1:5", "no IPv4 address"},
        {"256.0.0.1:5", "no IPv4 address"},
        {"010.0.0.1:5", "no IPv4 address"},
        {"7470", "no IPv4 address"},
        {"unix:", "no path"},
        {"unix:@", "no path"},
    };
    rbt_error error;
    rbt_address address;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        error.text[0] = '\0';
        assert_int_equal(rbt_address_parse(cases[i].text, RBT_PORT, &address, &error), RBT_E_USAGE);
        if (strstr(error.text, cases[i].says) == NULL)
            fail_msg("'%s': %s", cases[i].text, error.text);
    }
    assert_int_equal(rbt_address_parse("no-such-host.invalid:1", RBT_PORT, &address, &error), RBT_E_IO);
    assert_non_null(strstr(error.text, "no-such-host.invalid"));
}

static void names_and_paths_have_limits(void **state)
{
    (void)state;
    rbt_error error;
    rbt_address address;
    char text[400], shown[RBT_ADDRESS_ROOM];
    for (size_t n = 100; n < 300; n++) {
        memset(text, 'a', sizeof text);
        memcpy(text, "unix:/", 6);
        text[n] = '\0';
        rbt_err err = rbt_address_parse(text, 1, &address, &error);
        assert_int_equal(err, n - 5 < 108 ? RBT_OK : RBT_E_USAGE);
        if (err == RBT_OK) {
            rbt_address_text(&address, shown);
            assert_string_equal(shown, text);
        }
    }
    memset(text, 'a', sizeof text);
    text[300] = '\0';
    assert_int_equal(rbt_address_parse(text, 1, &address, &error), RBT_E_USAGE);
    memcpy(text + 290, ":1", 3);
    assert_int_equal(rbt_address_parse(text, 1, &address, &error), RBT_E_USAGE);
}

static void loopback_any_and_port_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool loopback, any, is_unix;
        uint16_t port;
    } cases[] = {
        {"127.0.0.1:1", true, false, false, 1},
        {"127.9.9.9:2", true, false, false, 2},
        {"[::1]:3", true, false, false, 3},
        {"128.0.0.1:4", false, false, false, 4},
        {":5", false, true, false, 5},
        {"[::]:6", false, true, false, 6},
        {"[::2]:7", false, false, false, 7},
        {"unix:/x", true, false, true, 0},
        {"[::ffff:127.0.0.1]:8", true, false, false, 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rbt_address a = parsed(cases[i].text);
        assert_int_equal(rbt_address_is_loopback(&a), cases[i].loopback);
        assert_int_equal(rbt_address_is_any(&a), cases[i].any);
        assert_int_equal(rbt_address_is_unix(&a), cases[i].is_unix);
        assert_int_equal(rbt_address_port(&a), cases[i].port);
        rbt_address_set_port(&a, 900);
        assert_int_equal(rbt_address_port(&a), cases[i].is_unix ? 0 : 900);
    }
}

static void the_address_that_faces_loopback_is_loopback(void **state)
{
    (void)state;
    rbt_error error;
    rbt_address mine, there = parsed("127.0.0.1:7470");
    assert_int_equal(rbt_address_facing(&there, &mine, &error), RBT_OK);
    assert_true(rbt_address_is_loopback(&mine));
    assert_int_equal(rbt_address_port(&mine), 0);
    rbt_address_set_port(&there, 0);
    assert_int_equal(rbt_address_facing(&there, &mine, &error), RBT_OK);
    there = parsed("unix:@x");
    assert_int_equal(rbt_address_facing(&there, &mine, &error), RBT_OK);
    assert_true(rbt_address_is_loopback(&mine) && !rbt_address_is_unix(&mine));
}

/* ---------------------------------------------------------------------------------------------- connections */

static void wait_for(int fd, short events)
{
    struct pollfd p = {.fd = fd, .events = events};
    assert_int_equal(poll(&p, 1, 10000), 1);
}

/* Connects both ends of `text`; what the acceptor sees of the caller is in `from`. */
static void connect_both(const char *text, int ends[2], rbt_address *from)
{
    rbt_error error = {RBT_OK, ""};
    rbt_address wanted = parsed(text), bound;
    int listener;
    assert_int_equal(rbt_socket_listen(&wanted, &listener, &bound, &error), RBT_OK);
    assert_int_equal(rbt_socket_accept(listener, &ends[1], from, &error), RBT_OK);
    assert_int_equal(ends[1], -1); /* nobody yet */
    assert_int_equal(rbt_socket_dial(&bound, &ends[0], &error), RBT_OK);
    wait_for(ends[0], POLLOUT);
    assert_int_equal(rbt_socket_connected(ends[0], &bound, &error), RBT_OK);
    wait_for(listener, POLLIN);
    assert_int_equal(rbt_socket_accept(listener, &ends[1], from, &error), RBT_OK);
    assert_true(ends[1] >= 0);
    close(listener);
}

static int option_of(int fd, int level, int option)
{
    int value = -1;
    socklen_t n = sizeof value;
    assert_int_equal(getsockopt(fd, level, option, &value, &n), 0);
    return value;
}

static void both_ends_are_non_blocking_and_closed_on_exec(const int ends[2])
{
    for (int i = 0; i < 2; i++) {
        assert_true((fcntl(ends[i], F_GETFL) & O_NONBLOCK) != 0);
        assert_true((fcntl(ends[i], F_GETFD) & FD_CLOEXEC) != 0);
    }
}

static void tcp_connects_and_both_ends_are_tuned(void **state)
{
    (void)state;
    int ends[2];
    rbt_address from;
    connect_both("127.0.0.1:0", ends, &from);
    assert_true(rbt_address_is_loopback(&from));
    assert_int_not_equal(rbt_address_port(&from), 0);
    both_ends_are_non_blocking_and_closed_on_exec(ends);
    for (int i = 0; i < 2; i++) {
        assert_int_not_equal(option_of(ends[i], IPPROTO_TCP, TCP_NODELAY), 0);
        assert_int_not_equal(option_of(ends[i], SOL_SOCKET, SO_KEEPALIVE), 0);
        assert_int_equal(option_of(ends[i], IPPROTO_TCP, TCP_KEEPIDLE), 1);
        assert_int_equal(option_of(ends[i], IPPROTO_TCP, TCP_KEEPINTVL), 1);
        assert_int_equal(option_of(ends[i], IPPROTO_TCP, TCP_KEEPCNT), 2);
        assert_int_equal(option_of(ends[i], IPPROTO_TCP, TCP_USER_TIMEOUT), 2500);
        close(ends[i]);
    }
}

static void unix_sockets_connect_by_path_and_by_name(void **state)
{
    (void)state;
    int ends[2];
    rbt_address from;
    char name[64], shown[RBT_ADDRESS_ROOM];
    (void)snprintf(name, sizeof name, "unix:@rubato-test-%ld", (long)getpid());
    connect_both(name, ends, &from);
    both_ends_are_non_blocking_and_closed_on_exec(ends);
    rbt_address_text(&from, shown);
    assert_string_equal(shown, "unix:(unnamed)");
    close(ends[0]);
    close(ends[1]);
    connect_both("unix:path.sock", ends, &from);
    struct stat status;
    assert_int_equal(stat("path.sock", &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    close(ends[0]);
    close(ends[1]);
    connect_both("unix:path.sock", ends, &from); /* the file is there, its listener is not */
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(unlink("path.sock"), 0);
}

static void an_ipv4_caller_at_an_ipv6_listener_has_its_ipv4_address(void **state)
{
    (void)state;
    rbt_error error;
    rbt_address wanted = parsed("[::]:0"), bound, from;
    int listener, caller, taken;
    if (rbt_socket_listen(&wanted, &listener, &bound, &error) != RBT_OK)
        skip(); /* no IPv6 here */
    rbt_address there = parsed("127.0.0.1");
    rbt_address_set_port(&there, rbt_address_port(&bound));
    assert_int_equal(rbt_socket_dial(&there, &caller, &error), RBT_OK);
    wait_for(listener, POLLIN);
    assert_int_equal(rbt_socket_accept(listener, &taken, &from, &error), RBT_OK);
    assert_int_equal(from.sa.ss_family, AF_INET);
    assert_true(rbt_address_is_loopback(&from));
    close(taken);
    close(caller);
    close(listener);
}

static void a_used_address_is_refused_with_the_remedy(void **state)
{
    (void)state;
    rbt_error error;
    rbt_address wanted = parsed("127.0.0.1:0"), bound, again;
    char shown[RBT_ADDRESS_ROOM], says[512];
    int listener, other;
    assert_int_equal(rbt_socket_listen(&wanted, &listener, &bound, &error), RBT_OK);
    assert_int_equal(rbt_socket_listen(&bound, &other, &again, &error), RBT_E_IO);
    rbt_address_text(&bound, shown);
    (void)snprintf(says, sizeof says,
                   "cannot listen on %s: Address already in use; another job may use this port, choose another one "
                   "with --listen",
                   shown);
    assert_string_equal(error.text, says);
    close(listener);

    wanted = parsed("unix:used.sock");
    assert_int_equal(rbt_socket_listen(&wanted, &listener, &bound, &error), RBT_OK);
    assert_int_equal(rbt_socket_listen(&wanted, &other, &again, &error), RBT_E_IO);
    assert_non_null(strstr(error.text, "another process listens there"));
    close(listener);
    assert_int_equal(unlink("used.sock"), 0);
}

static void a_file_that_is_no_socket_is_kept(void **state)
{
    (void)state;
    rbt_error error;
    rbt_address wanted = parsed("unix:precious"), bound;
    int listener, file = open("precious", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    close(file);
    assert_int_equal(rbt_socket_listen(&wanted, &listener, &bound, &error), RBT_E_IO);
    assert_non_null(strstr(error.text, "a file is in the way"));
    assert_int_equal(unlink("precious"), 0);
}

static void an_address_of_another_host_is_refused_with_the_remedy(void **state)
{
    (void)state;
    rbt_error error;
    rbt_address wanted = parsed("192.0.2.1:0"), bound; /* set aside for documentation */
    int listener;
    assert_int_equal(rbt_socket_listen(&wanted, &listener, &bound, &error), RBT_E_IO);
    assert_non_null(strstr(error.text, "192.0.2.1:0"));
    assert_non_null(strstr(error.text, "this host has no such address"));
}

static void dialling_where_nobody_listens_fails_with_the_remedy(void **state)
{
    (void)state;
    rbt_error error = {RBT_OK, ""};
    rbt_address wanted = parsed("127.0.0.1:0"), bound;
    int listener, fd;
    assert_int_equal(rbt_socket_listen(&wanted, &listener, &bound, &error), RBT_OK);
    close(listener);
    rbt_err err = rbt_socket_dial(&bound, &fd, &error);
    if (err == RBT_OK) {
        wait_for(fd, POLLOUT);
        err = rbt_socket_connected(fd, &bound, &error);
        close(fd);
    }
    assert_int_equal(err, RBT_E_IO);
    assert_non_null(strstr(error.text, "Connection refused; nothing listens there"));
    wanted = parsed("unix:nowhere.sock");
    assert_int_equal(rbt_socket_dial(&wanted, &fd, &error), RBT_E_IO);
    assert_non_null(strstr(error.text, "nothing listens there"));
}

/* Dials from the very port it dials: what happens by chance when a port of the system's own range is dialled often. */
static void a_socket_connected_to_itself_is_no_connection(void **state)
{
    (void)state;
    rbt_error error;
    rbt_address mine = parsed("127.0.0.1:0");
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&mine.sa, mine.n), 0);
    mine.n = sizeof mine.sa;
    assert_int_equal(getsockname(fd, (struct sockaddr *)&mine.sa, &mine.n), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&mine.sa, mine.n), 0);
    assert_int_equal(rbt_socket_connected(fd, &mine, &error), RBT_E_IO);
    assert_non_null(strstr(error.text, "nothing listens there"));
    close(fd);
}

static void hints_are_known_for_what_users_meet(void **state)
{
    (void)state;
    static const int known[] = {EADDRINUSE,  EADDRNOTAVAIL, ECONNREFUSED, EHOSTUNREACH,
                                ENETUNREACH, ETIMEDOUT,     EACCES,       EMFILE};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        assert_true(strlen(rbt_socket_hint(known[i])) > 10);
    assert_string_equal(rbt_socket_hint(0), "");
    assert_string_equal(rbt_socket_hint(EBADF), "");
}

/* -------------------------------------------------------------------------------------------- passing files */

static void an_open_file_passes_over_a_unix_socket(void **state)
{
    (void)state;
    rbt_error error;
    int pair[2], pipes[2], got;
    char byte = 0;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    assert_int_equal(rbt_socket_receive_file(pair[1], &got, &error), RBT_OK);
    assert_int_equal(got, -1);
    assert_int_equal(rbt_socket_send_file(pair[0], pipes[1], &error), RBT_OK);
    close(pipes[1]);
    assert_int_equal(rbt_socket_receive_file(pair[1], &got, &error), RBT_OK);
    assert_true(got >= 0);
    assert_true((fcntl(got, F_GETFD) & FD_CLOEXEC) != 0);
    assert_int_equal(write(got, "x", 1), 1);
    assert_int_equal(read(pipes[0], &byte, 1), 1);
    assert_int_equal(byte, 'x');
    close(got);
    close(pipes[0]);

    assert_int_equal(write(pair[0], "x", 1), 1); /* a byte alone */
    assert_int_equal(rbt_socket_receive_file(pair[1], &got, &error), RBT_E_PROTOCOL);
    close(pair[0]);
    assert_int_equal(rbt_socket_receive_file(pair[1], &got, &error), RBT_E_IO);
    assert_non_null(strstr(error.text, "has closed it"));
    close(pair[1]);
}

static int lowest_free(void)
{
    int fd = dup(STDOUT_FILENO);
    close(fd);
    return fd;
}

static void several_files_at_once_are_refused_and_closed(void **state)
{
    (void)state;
    rbt_error error;
    int pair[2], got;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    for (size_t count = 2; count <= 5; count++) {
        union {
            struct cmsghdr head;
            char room[CMSG_SPACE(5 * sizeof(int))];
        } c = {.room = {0}};
        char byte = 'f';
        struct iovec part = {&byte, 1};
        struct msghdr message = {
            .msg_iov = &part, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = CMSG_SPACE(count * sizeof(int))};
        c.head.cmsg_level = SOL_SOCKET;
        c.head.cmsg_type = SCM_RIGHTS;
        c.head.cmsg_len = CMSG_LEN(count * sizeof(int));
        for (size_t i = 0; i < count; i++)
            memcpy(CMSG_DATA(&c.head) + i * sizeof(int), &pair[0], sizeof(int));
        assert_int_equal(sendmsg(pair[0], &message, 0), 1);
        int before = lowest_free();
        assert_int_equal(rbt_socket_receive_file(pair[1], &got, &error), RBT_E_PROTOCOL);
        assert_int_equal(lowest_free(), before);
    }
    close(pair[0]);
    close(pair[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_is_read_and_shown),
        cmocka_unit_test(what_is_no_address_is_refused_with_a_sentence),
        cmocka_unit_test(names_and_paths_have_limits),
        cmocka_unit_test(loopback_any_and_port_are_told),
        cmocka_unit_test(the_address_that_faces_loopback_is_loopback),
        cmocka_unit_test(tcp_connects_and_both_ends_are_tuned),
        cmocka_unit_test(unix_sockets_connect_by_path_and_by_name),
        cmocka_unit_test(an_ipv4_caller_at_an_ipv6_listener_has_its_ipv4_address),
        cmocka_unit_test(a_used_address_is_refused_with_the_remedy),
        cmocka_unit_test(a_file_that_is_no_socket_is_kept),
        cmocka_unit_test(an_address_of_another_host_is_refused_with_the_remedy),
        cmocka_unit_test(dialling_where_nobody_listens_fails_with_the_remedy),
        cmocka_unit_test(a_socket_connected_to_itself_is_no_connection),
        cmocka_unit_test(hints_are_known_for_what_users_meet),
        cmocka_unit_test(an_open_file_passes_over_a_unix_socket),
        cmocka_unit_test(several_files_at_once_are_refused_and_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
