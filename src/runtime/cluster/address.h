/* Addresses and sockets: where a process listens and whom it dials.
 *
 * An address is written HOST:PORT ("10.0.0.1:7470", "[::1]:7470", ":7470" = every interface, "name:7470") or unix:PATH,
 * where a PATH that begins with @ is an abstract name that needs no file. A typed number is taken literally; a name is
 * looked up, and its IPv4 address taken if it has one. All sockets are non-blocking and closed on exec. Every failure
 * names the address, the system's words and, where there is one, a remedy.
 *
 * Called by the hub, the launchers and `rubato doctor`. Proved by tests/unit/test_address.c.
 */
#ifndef RBT_RUNTIME_CLUSTER_ADDRESS_H
#define RBT_RUNTIME_CLUSTER_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "rubato.h"

#define RBT_PORT         7470 /* where a job's master listens when nothing else is said */
#define RBT_ADDRESS_ROOM 160  /* characters that hold any address as text, with the end */

typedef struct rbt_address {
    struct sockaddr_storage sa;
    socklen_t n;
} rbt_address;

/* `port` stands in when the text has none. Looking a name up may take a while. */
rbt_err rbt_address_parse(const char *text, uint16_t port, rbt_address *address, rbt_error *error);
void rbt_address_text(const rbt_address *address, char text[RBT_ADDRESS_ROOM]);

bool rbt_address_is_unix(const rbt_address *address);
bool rbt_address_is_loopback(const rbt_address *address); /* Unix sockets count as loopback */
bool rbt_address_is_any(const rbt_address *address);      /* 0.0.0.0 or :: */
uint16_t rbt_address_port(const rbt_address *address);    /* 0 for Unix sockets */
void rbt_address_set_port(rbt_address *address, uint16_t port);

/* The address of ours from which `towards` would be reached (no packet is sent); for what to advertise when nothing is
 * said. The port is 0; over a Unix socket it is 127.0.0.1. */
rbt_err rbt_address_facing(const rbt_address *towards, rbt_address *mine, rbt_error *error);

/* Listens; `bound` gets what it is (port 0 chooses a free one). An old Unix socket file that nobody listens on is
 * replaced; a new one has mode 0600. */
rbt_err rbt_socket_listen(const rbt_address *address, int *fd, rbt_address *bound, rbt_error *error);

/* Begins to connect; the connection is there, or has failed, when the socket is writable: ask rbt_socket_connected. */
rbt_err rbt_socket_dial(const rbt_address *address, int *fd, rbt_error *error);
rbt_err rbt_socket_connected(int fd, const rbt_address *address, rbt_error *error);

/* Takes a connection; *fd is -1 when there was none after all. `from` is who called. */
rbt_err rbt_socket_accept(int listener, int *fd, rbt_address *from, rbt_error *error);

/* TCP: no delay, keep-alive and TCP_USER_TIMEOUT so that a vanished host is an error within 3 s; large buffers for Unix
 * sockets. Dialling and accepting have done it already. */
void rbt_socket_tune(int fd, const rbt_address *address);

/* The greeting is over: without TCP_USER_TIMEOUT, which also ends connections to hosts that answer while a process there does not read what
 * waits for it. Whoever has the connection looks itself whether the host is gone (rbt_conn_is_silent); keep-alive stays. */
void rbt_socket_await(int fd, const rbt_address *address);

/* What the system knows of a TCP connection. */
typedef struct rbt_tcp_state {
    uint32_t unacked;     /* segments under way ... */
    uint32_t ack_age_ms;  /* ... and how long ago the last acknowledgement came */
    uint32_t unsent;      /* bytes that are not under way: the other side has no room for them */
    uint32_t segments_in; /* that have come, of whatever kind */
} rbt_tcp_state;

bool rbt_socket_state(int fd, rbt_tcp_state *state); /* false: it does not tell */

/* A remedy for a system error on a connection, or "". */
const char *rbt_socket_hint(int system_error);

/* Does the process at the other end of a Unix socket belong to this user? `uid` is whose it is. */
bool rbt_socket_is_ours(int fd, uint32_t *uid);

/* Passing an open file over a Unix socket, with one byte. Sending needs room for it in the socket. Receiving answers
 * -1 in *fd when nothing has come yet. */
rbt_err rbt_socket_send_file(int socket, int fd, rbt_error *error);
rbt_err rbt_socket_receive_file(int socket, int *fd, rbt_error *error);

#endif
