/* What the two halves of `rubato doctor` have in common: the one that is asked for, and the one that it starts on each host.
 *
 * The helper says what it finds on its standard error, in lines that begin with DOCTOR_LINE: "version V", "host NAME",
 * "data TEXT", "listen ADDRESS", "no REASON". Then it calls back, over TLS from a key that is made for this one examination and
 * that it was given on its standard input, and says, in one line, its number and its clock in seconds. What it is told
 * there is addresses, one in a line; it dials each and answers "ok" or the reason. The end of the connection is its end.
 *
 * Nothing is said unencrypted: who has not the key is cut off, and who says nothing is not waited for. Where a helper listens
 * it only lets itself be reached; the system takes the calls, and nothing is read. */
#ifndef RBT_CLI_DOCTOR_H
#define RBT_CLI_DOCTOR_H

#include "cli/cli.h"
#include "runtime/cluster/tls.h"

#define DOCTOR_LINE    "doctor: "
#define DOCTOR_TEXT    1200 /* characters of one line */
#define DOCTOR_DIAL_MS 3000
#define DOCTOR_LIFE_S  120 /* a helper ends by itself after so long */

/* What PATH is to this host: "2 files, 4711 bytes". false: text says what is wrong. */
bool doctor_look(const char *path, char text[DOCTOR_TEXT]);

/* Can it be reached? false: why has the reason. */
bool doctor_dial(const char *address, rbt_error *why);

double doctor_clock(void);

/* A connection between the two halves. */
typedef struct doctor_call {
    int fd; /* -1: none */
    rbt_tls_stream *tls;
    bool is_open; /* both have shown that they have the key */
    bool waits_to_write;
    uint64_t until_ns; /* whoever calls has so long to say who it is */
    size_t n;
    char line[DOCTOR_TEXT]; /* what came, without the end of the line and all of it printable */
} doctor_call;

typedef enum doctor_news { DOCTOR_WAITS, DOCTOR_SAYS, DOCTOR_GONE } doctor_news;

bool doctor_call_open(doctor_call *call, rbt_tls *tls, int fd, bool accepting, rbt_error *why); /* takes the socket */
void doctor_call_close(doctor_call *call);

/* Goes as far as it can without waiting; DOCTOR_SAYS: a line has come. */
doctor_news doctor_call_step(doctor_call *call);

/* Waits for a line, or until one is sent; false when that did not happen in time. */
bool doctor_call_read(doctor_call *call, int timeout_ms);
bool doctor_call_write(doctor_call *call, const char *line, int timeout_ms);

/* The helper. */
int doctor_probe(const char *address, const char *number, const char *data);

#endif
