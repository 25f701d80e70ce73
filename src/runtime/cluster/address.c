/* Addresses as people write them, and the few system calls that make connections of them.
 *
 * Contract in address.h. Every socket made here is non-blocking, closed on exec and tuned. IPv4 addresses that come
 * wrapped in IPv6 (a listener on [::] sees such) are unwrapped at once, so that "is it loopback" has one answer.
 * Proved by tests/unit/test_address.c.
 */
#include "runtime/cluster/address.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <linux/tcp.h> /* for all of struct tcp_info */
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"

#define HOST_ROOM       256 /* the longest name of a host is 253 characters */
#define KEEP_IDLE_S     1
#define KEEP_INTERVAL_S 1
#define KEEP_COUNT      2
#define USER_TIMEOUT_MS 2500 /* looked at when a probe is due: an idle link may be down for 2 s, and is lost after 3 */
#define UNIX_BUFFER     (1 << 20)
#define UNIX_BEGIN      offsetof(struct sockaddr_un, sun_path)

/* ------------------------------------------------------------------------------------------------- as text */

static void set_ipv4(rbt_address *address, struct in_addr host, uint16_t port)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr = host, .sin_port = htons(port)};
    memset(address, 0, sizeof *address);
    memcpy(&address->sa, &sa, sizeof sa);
    address->n = sizeof sa;
}

static void unwrap_ipv4(rbt_address *address)
{
    struct sockaddr_in6 sa;
    struct in_addr host;

    if (address->sa.ss_family != AF_INET6)
        return;
    memcpy(&sa, &address->sa, sizeof sa);
    if (!IN6_IS_ADDR_V4MAPPED(&sa.sin6_addr))
        return;
    memcpy(&host, sa.sin6_addr.s6_addr + 12, sizeof host);
    set_ipv4(address, host, ntohs(sa.sin6_port));
}

static rbt_err parse_unix(const char *text, rbt_address *address, rbt_error *error)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    const char *path = text + strlen("unix:");
    bool abstract = path[0] == '@';
    size_t length = strlen(path);

    if (length == (abstract ? 1 : 0))
        return rbt_fail(error, RBT_E_USAGE, "address '%s' has no path after 'unix:'; write unix:PATH or unix:@NAME",
                        text);
    if (length >= sizeof sa.sun_path)
        return rbt_fail(error, RBT_E_USAGE,
                        "address '%s': the path has %zu characters and a Unix socket takes %zu; choose a shorter one",
                        text, length, sizeof sa.sun_path - 1);
    memcpy(sa.sun_path, path, length);
    if (abstract)
        sa.sun_path[0] = '\0';
    memset(address, 0, sizeof *address);
    memcpy(&address->sa, &sa, sizeof sa);
    address->n = (socklen_t)(UNIX_BEGIN + length + (abstract ? 0 : 1));
    return RBT_OK;
}

static rbt_err parse_port(const char *text, const char *digits, uint16_t *port, rbt_error *error)
{
    unsigned value = 0;
    size_t length = strlen(digits);

    for (size_t i = 0; i < length && i < 5; i++)
        value = value * 10 + (unsigned)(digits[i] - '0');
    if (length == 0 || length > 5 || strspn(digits, "0123456789") != length || value > UINT16_MAX)
        return rbt_fail(error, RBT_E_USAGE, "address '%s': '%s' is no port; give a number from 0 to 65535", text,
                        digits);
    *port = (uint16_t)value;
    return RBT_OK;
}

/* Cuts "HOST:PORT", "[HOST]:PORT", "HOST" or "[HOST]" in two. */
static rbt_err split(const char *text, char host[HOST_ROOM], uint16_t *port, rbt_error *error)
{
    const char *begin = text, *end = strchr(text, ':'), *after;

    if (text[0] == '[') {
        begin = text + 1;
        end = strchr(begin, ']');
        if (end == NULL)
            return rbt_fail(error, RBT_E_USAGE, "address '%s': the ']' is missing; write [IPV6]:PORT", text);
        after = end + 1;
    } else {
        if (end != NULL && strchr(end + 1, ':') != NULL)
            return rbt_fail(error, RBT_E_USAGE,
                            "address '%s' has several colons; an IPv6 address stands in brackets: [IPV6]:PORT", text);
        if (end == NULL)
            end = text + strlen(text);
        after = end;
    }
    if ((size_t)(end - begin) >= HOST_ROOM)
        return rbt_fail(error, RBT_E_USAGE, "address '%.40s...': the name of the host is longer than any can be", text);
    memcpy(host, begin, (size_t)(end - begin));
    host[end - begin] = '\0';
    if (text[0] == '\0' || (text[0] == '[' && host[0] == '\0') || (*after != '\0' && *after != ':'))
        return rbt_fail(error, RBT_E_USAGE,
                        "'%s' is no address; write HOST:PORT, [IPV6]:PORT, :PORT for every interface, or unix:PATH",
                        text);
    return *after == ':' ? parse_port(text, after + 1, port, error) : RBT_OK;
}

/* IPv4 first: that is what ":PORT" listens on, and a name such as localhost often has both. */
static rbt_err look_up(const char *host, bool bracketed, rbt_address *address, rbt_error *error)
{
    struct addrinfo hints = {.ai_family = bracketed ? AF_INET6 : AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = bracketed ? AI_NUMERICHOST : 0};
    struct addrinfo *found = NULL;
    int status = getaddrinfo(host, NULL, &hints, &found);

    if (status != 0 && bracketed)
        return rbt_fail(error, RBT_E_USAGE, "'%s' is no IPv6 address; write one between [ and ], and a name without",
                        host);
    if (status != 0)
        return rbt_fail(error, RBT_E_IO,
                        "the host '%s' cannot be looked up: %s; check the spelling, /etc/hosts and the name server, "
                        "or give its number",
                        host, status == EAI_SYSTEM ? strerror(errno) : gai_strerror(status));
    RBT_ASSERT(found != NULL);
    const struct addrinfo *best = found;
    for (const struct addrinfo *one = found; one != NULL && best->ai_family != AF_INET; one = one->ai_next)
        if (one->ai_family == AF_INET)
            best = one;
    memset(address, 0, sizeof *address);
    memcpy(&address->sa, best->ai_addr, best->ai_addrlen);
    address->n = best->ai_addrlen;
    freeaddrinfo(found);
    return RBT_OK;
}

rbt_err rbt_address_parse(const char *text, uint16_t port, rbt_address *address, rbt_error *error)
{
    char host[HOST_ROOM] = "";
    struct in_addr number = {.s_addr = htonl(INADDR_ANY)};
    rbt_address found;

    if (strncmp(text, "unix:", 5) == 0)
        return parse_unix(text, address, error);
    rbt_err err = split(text, host, &port, error);
    if (err != RBT_OK)
        return err;
    if (text[0] != '[' && (host[0] == '\0' || inet_pton(AF_INET, host, &number) == 1)) {
        set_ipv4(address, number, port);
        return RBT_OK;
    }
    /* The system would read "10.1" as 10.0.0.1 and "010.0.0.1" as 8.0.0.1. */
    if (text[0] != '[' && strspn(host, "0123456789.") == strlen(host))
        return rbt_fail(error, RBT_E_USAGE,
                        "address '%s': '%s' is no IPv4 address; give four numbers from 0 to 255 with dots between",
                        text, host);
    err = look_up(host, text[0] == '[', &found, error);
    if (err != RBT_OK)
        return err;
    *address = found;
    rbt_address_set_port(address, port);
    unwrap_ipv4(address);
    return RBT_OK;
}

static void unix_text(const rbt_address *address, char text[RBT_ADDRESS_ROOM])
{
    struct sockaddr_un sa;
    size_t n = address->n > UNIX_BEGIN ? address->n - UNIX_BEGIN : 0, length = 0;

    memcpy(&sa, &address->sa, sizeof sa);
    if (n > sizeof sa.sun_path)
        n = sizeof sa.sun_path;
    if (n == 0) {
        (void)snprintf(text, RBT_ADDRESS_ROOM, "unix:(unnamed)");
        return;
    }
    bool abstract = sa.sun_path[0] == '\0';
    memcpy(text, "unix:", 5);
    while (length < n && (sa.sun_path[length] != '\0' || abstract)) {
        char c = sa.sun_path[length];
        text[5 + length] = length == 0 && abstract ? '@' : '?';
        if (isprint((unsigned char)c))
            text[5 + length] = c;
        length++;
    }
    text[5 + length] = '\0';
}

void rbt_address_text(const rbt_address *address, char text[RBT_ADDRESS_ROOM])
{
    char host[HOST_ROOM];
    bool six = address->sa.ss_family == AF_INET6;

    if (address->sa.ss_family == AF_UNIX)
        unix_text(address, text);
    else if ((address->sa.ss_family == AF_INET || six) && getnameinfo((const struct sockaddr *)&address->sa, address->n,
                                                                      host, sizeof host, NULL, 0, NI_NUMERICHOST) == 0)
        (void)snprintf(text, RBT_ADDRESS_ROOM, "%s%.*s%s:%u", six ? "[" : "", RBT_ADDRESS_ROOM - 16, host,
                       six ? "]" : "", rbt_address_port(address));
    else
        (void)snprintf(text, RBT_ADDRESS_ROOM, "(no address)");
}

/* ----------------------------------------------------------------------------------------------- questions */

bool rbt_address_is_unix(const rbt_address *address)
{
    return address->sa.ss_family == AF_UNIX;
}

bool rbt_address_is_loopback(const rbt_address *address)
{
    if (address->sa.ss_family == AF_INET) {
        struct sockaddr_in sa;
        memcpy(&sa, &address->sa, sizeof sa);
        return ntohl(sa.sin_addr.s_addr) >> 24 == 127;
    }
    if (address->sa.ss_family == AF_INET6) {
        struct sockaddr_in6 sa;
        memcpy(&sa, &address->sa, sizeof sa);
        return IN6_IS_ADDR_LOOPBACK(&sa.sin6_addr);
    }
    return address->sa.ss_family == AF_UNIX;
}

bool rbt_address_is_any(const rbt_address *address)
{
    if (address->sa.ss_family == AF_INET) {
        struct sockaddr_in sa;
        memcpy(&sa, &address->sa, sizeof sa);
        return sa.sin_addr.s_addr == htonl(INADDR_ANY);
    }
    if (address->sa.ss_family == AF_INET6) {
        struct sockaddr_in6 sa;
        memcpy(&sa, &address->sa, sizeof sa);
        return IN6_IS_ADDR_UNSPECIFIED(&sa.sin6_addr);
    }
    return false;
}

/* The port lies at the same place for IPv4 and IPv6. */
_Static_assert(offsetof(struct sockaddr_in, sin_port) == offsetof(struct sockaddr_in6, sin6_port), "one place");
#define PORT_AT offsetof(struct sockaddr_in, sin_port)

static bool has_port(const rbt_address *address)
{
    return address->sa.ss_family == AF_INET || address->sa.ss_family == AF_INET6;
}

uint16_t rbt_address_port(const rbt_address *address)
{
    uint16_t port = 0;
    if (has_port(address))
        memcpy(&port, (const char *)&address->sa + PORT_AT, sizeof port);
    return ntohs(port);
}

void rbt_address_set_port(rbt_address *address, uint16_t port)
{
    port = htons(port);
    if (has_port(address))
        memcpy((char *)&address->sa + PORT_AT, &port, sizeof port);
}

/* ------------------------------------------------------------------------------------------------- sockets */

const char *rbt_socket_hint(int system_error)
{
    switch (system_error) {
    case EADDRINUSE:
        return "another job may use this port, choose another one with --listen";
    case EADDRNOTAVAIL:
        return "this host has no such address; `ip address` lists those it has";
    case ECONNREFUSED:
    case ENOENT:
        return "nothing listens there: is the process running, is the port right?";
    case EHOSTUNREACH:
    case ENETUNREACH:
        return "there is no way to this host: is it up, are both on one network?";
    case ETIMEDOUT:
        return "nobody answers: is the host up, does a firewall drop the packets?";
    case EACCES:
    case EPERM:
        return "this user may not: ports below 1024 belong to root, a socket file to its owner, and a firewall may "
               "refuse";
    case EAGAIN:
        return "too many call there at the same moment; try again";
    case EMFILE:
    case ENFILE:
        return "too many files are open; raise the limit with ulimit -n";
    case ECONNRESET:
    case EPIPE:
        return "the process there has ended or has cut the connection; see what it says";
    default:
        return "";
    }
}

static rbt_err fail(rbt_error *error, const char *what, const rbt_address *address, int reason)
{
    char text[RBT_ADDRESS_ROOM];
    const char *hint = rbt_socket_hint(reason);

    if (reason == EADDRINUSE && rbt_address_is_unix(address))
        hint = "another process listens there or a file is in the way, choose another path with --listen";
    rbt_address_text(address, text);
    return rbt_fail(error, RBT_E_IO, "cannot %s %s: %s%s%s", what, text, strerror(reason), hint[0] != '\0' ? "; " : "",
                    hint);
}

static void set_option(int fd, int level, int option, int value)
{
    (void)setsockopt(fd, level, option, &value, sizeof value);
}

void rbt_socket_tune(int fd, const rbt_address *address)
{
    if (rbt_address_is_unix(address)) {
        set_option(fd, SOL_SOCKET, SO_SNDBUF, UNIX_BUFFER);
        set_option(fd, SOL_SOCKET, SO_RCVBUF, UNIX_BUFFER);
        return;
    }
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEP_IDLE_S);
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEP_INTERVAL_S);
    set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEP_COUNT);
    set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, USER_TIMEOUT_MS);
}

void rbt_socket_await(int fd, const rbt_address *address)
{
    if (!rbt_address_is_unix(address))
        set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 0);
}

bool rbt_socket_state(int fd, rbt_tcp_state *state)
{
    struct tcp_info info = {0};
    socklen_t n = sizeof info;

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n) != 0)
        return false;
    *state = (rbt_tcp_state){.unacked = info.tcpi_unacked,
                             .ack_age_ms = info.tcpi_last_ack_recv,
                             .unsent = info.tcpi_notsent_bytes,
                             .segments_in = info.tcpi_segs_in};
    return true;
}

static int open_socket(const rbt_address *address)
{
    return socket(address->sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

static int name_of(int fd, rbt_address *address)
{
    memset(address, 0, sizeof *address);
    address->n = sizeof address->sa;
    return getsockname(fd, (struct sockaddr *)&address->sa, &address->n);
}

/* A socket file outlives the process that made it. Is this one whom nobody listens on any more? */
static bool is_left_over(const rbt_address *address)
{
    struct sockaddr_un sa;
    struct stat status;

    memcpy(&sa, &address->sa, sizeof sa);
    if (!rbt_address_is_unix(address) || sa.sun_path[0] == '\0' || lstat(sa.sun_path, &status) != 0 ||
        !S_ISSOCK(status.st_mode))
        return false;
    int fd = open_socket(address);
    if (fd < 0)
        return false;
    bool refused = connect(fd, (const struct sockaddr *)&address->sa, address->n) != 0 && errno == ECONNREFUSED;
    (void)close(fd);
    return refused && unlink(sa.sun_path) == 0;
}

static int bind_to(int fd, const rbt_address *address)
{
    if (rbt_address_is_unix(address))
        (void)fchmod(fd, 0600); /* before bind: what mode the file is made with */
    else
        set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (address->sa.ss_family == AF_INET6)
        set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, !rbt_address_is_any(address));
    int status = bind(fd, (const struct sockaddr *)&address->sa, address->n);
    if (status != 0 && errno == EADDRINUSE) {
        if (is_left_over(address))
            return bind(fd, (const struct sockaddr *)&address->sa, address->n);
        errno = EADDRINUSE;
    }
    return status;
}

rbt_err rbt_socket_listen(const rbt_address *address, int *fd, rbt_address *bound, rbt_error *error)
{
    rbt_address name;
    int one = open_socket(address);

    if (one < 0)
        return fail(error, "listen on", address, errno);
    if (bind_to(one, address) != 0 || listen(one, SOMAXCONN) != 0 || name_of(one, &name) != 0) {
        rbt_err err = fail(error, "listen on", address, errno);
        (void)close(one);
        return err;
    }
    *fd = one;
    *bound = name;
    return RBT_OK;
}

rbt_err rbt_socket_dial(const rbt_address *address, int *fd, rbt_error *error)
{
    int one = open_socket(address);

    if (one < 0)
        return fail(error, "connect to", address, errno);
    rbt_socket_tune(one, address);
    if (connect(one, (const struct sockaddr *)&address->sa, address->n) != 0 && errno != EINPROGRESS &&
        errno != EINTR) {
        rbt_err err = fail(error, "connect to", address, errno);
        (void)close(one);
        return err;
    }
    *fd = one;
    return RBT_OK;
}

/* Dialling a free port of this host may, by the rules of TCP, end up connected to the dialling socket itself. */
static bool is_itself(int fd)
{
    rbt_address mine, theirs = {.n = sizeof theirs.sa};

    return name_of(fd, &mine) == 0 && has_port(&mine) &&
           getpeername(fd, (struct sockaddr *)&theirs.sa, &theirs.n) == 0 && mine.n == theirs.n &&
           memcmp(&mine.sa, &theirs.sa, mine.n) == 0;
}

rbt_err rbt_socket_connected(int fd, const rbt_address *address, rbt_error *error)
{
    int reason = 0;
    socklen_t n = sizeof reason;

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &reason, &n) != 0)
        reason = errno;
    if (reason == 0 && is_itself(fd))
        reason = ECONNREFUSED;
    return reason == 0 ? RBT_OK : fail(error, "connect to", address, reason);
}

/* Failures of the caller's connection, which the system reports on the listener; it is fine. */
static bool is_callers(int reason)
{
    return reason == EAGAIN || reason == EINTR || reason == ECONNABORTED || reason == EPROTO || reason == EPERM ||
           reason == ENETDOWN || reason == ENOPROTOOPT || reason == EHOSTDOWN || reason == ENONET ||
           reason == EHOSTUNREACH || reason == EOPNOTSUPP || reason == ENETUNREACH || reason == ETIMEDOUT;
}

rbt_err rbt_socket_accept(int listener, int *fd, rbt_address *from, rbt_error *error)
{
    rbt_address caller = {.n = sizeof caller.sa}, here;
    int one = accept4(listener, (struct sockaddr *)&caller.sa, &caller.n, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (one < 0 && !is_callers(errno)) {
        int reason = errno;
        if (name_of(listener, &here) != 0)
            memset(&here, 0, sizeof here);
        return fail(error, "take a call on", &here, reason);
    }
    if (one >= 0) {
        unwrap_ipv4(&caller);
        rbt_socket_tune(one, &caller);
        *from = caller;
    }
    *fd = one;
    return RBT_OK;
}

rbt_err rbt_address_facing(const rbt_address *towards, rbt_address *mine, rbt_error *error)
{
    rbt_address there = *towards, found;

    if (rbt_address_is_unix(towards)) { /* both are on this host */
        set_ipv4(mine, (struct in_addr){htonl(INADDR_LOOPBACK)}, 0);
        return RBT_OK;
    }
    if (rbt_address_port(&there) == 0)
        rbt_address_set_port(&there, RBT_PORT);
    /* Connecting a datagram socket only asks the routing table. */
    int fd = socket(there.sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&there.sa, there.n) != 0 || name_of(fd, &found) != 0) {
        rbt_err err = fail(error, "find a way to", towards, errno);
        if (fd >= 0)
            (void)close(fd);
        return err;
    }
    (void)close(fd);
    *mine = found;
    rbt_address_set_port(mine, 0);
    unwrap_ipv4(mine);
    return RBT_OK;
}

bool rbt_socket_is_ours(int fd, uint32_t *uid)
{
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t n = sizeof peer;

    (void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n);
    *uid = peer.uid;
    return peer.uid == geteuid();
}

/* --------------------------------------------------------------------------------------------- passing files */

/* Room for one descriptor; the padding may hold a second one, which receive_file looks for. */
typedef union control {
    struct cmsghdr head;
    char room[CMSG_SPACE(sizeof(int))];
} control;

rbt_err rbt_socket_send_file(int socket, int fd, rbt_error *error)
{
    char byte = 'f';
    struct iovec part = {&byte, 1};
    control c = {.room = {0}};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c};
    ssize_t sent;

    c.head.cmsg_level = SOL_SOCKET;
    c.head.cmsg_type = SCM_RIGHTS;
    c.head.cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(&c.head), &fd, sizeof fd);
    do {
        sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0)
        return rbt_fail(error, RBT_E_IO, "cannot pass an open file over the Unix socket: %s; use --shm off",
                        strerror(errno));
    return RBT_OK;
}

/* Takes what files came with a message: the only one, or none; several are closed again. */
static size_t take_files(struct msghdr *message, int *fd)
{
    size_t count = 0;

    *fd = -1;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t at = 0; CMSG_LEN(at + sizeof(int)) <= c->cmsg_len; at += sizeof(int)) {
            int one;
            memcpy(&one, CMSG_DATA(c) + at, sizeof one);
            if (count++ == 0)
                *fd = one;
            else
                (void)close(one);
        }
    }
    if (count > 1) {
        (void)close(*fd);
        *fd = -1;
    }
    return count;
}

rbt_err rbt_socket_receive_file(int socket, int *fd, rbt_error *error)
{
    char byte;
    struct iovec part = {&byte, 1};
    control c = {.room = {0}};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c};
    ssize_t got;

    do {
        got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    if (got < 0 && errno == EAGAIN) {
        *fd = -1;
        return RBT_OK;
    }
    if (got <= 0)
        return rbt_fail(error, RBT_E_IO, "cannot receive an open file over the Unix socket: %s; use --shm off",
                        got < 0 ? strerror(errno) : "the other side has closed it");
    int one;
    size_t count = take_files(&message, &one);
    if (count == 0 && (message.msg_flags & MSG_CTRUNC) != 0)
        return rbt_fail(error, RBT_E_LIMIT, "cannot receive an open file: %s", rbt_socket_hint(EMFILE));
    if (count != 1)
        return rbt_fail(error, RBT_E_PROTOCOL, "the other side of the Unix socket passed %zu files instead of one",
                        count);
    *fd = one;
    return RBT_OK;
}
