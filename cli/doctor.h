/* What the two halves of `rubato doctor` have in common: the one that is asked for, and the one that it starts on each host.
 *
 * The helper says what it finds on its standard error, in lines that begin with DOCTOR_LINE: "version V", "host NAME",
 * "data TEXT", "listen ADDRESS", "no REASON". Then it calls back and says, in one line, the word that it was given on its
 * standard input, its number and its clock in seconds. What it is told there is addresses, one in a line; it dials each
 * and answers "ok" or the reason. The end of the connection is its end. */
#ifndef RBT_CLI_DOCTOR_H
#define RBT_CLI_DOCTOR_H

#include "cli/cli.h"

#define DOCTOR_LINE    "doctor: "
#define DOCTOR_WORD    64   /* characters of the word that the helper must know */
#define DOCTOR_TEXT    1200 /* characters of one line */
#define DOCTOR_DIAL_MS 3000
#define DOCTOR_LIFE_S  120 /* a helper ends by itself after so long */

/* What PATH is to this host: "2 files, 4711 bytes". false: text says what is wrong. */
bool doctor_look(const char *path, char text[DOCTOR_TEXT]);

/* Can it be reached? false: why has the reason. */
bool doctor_dial(const char *address, rbt_error *why);

double doctor_clock(void);

/* One line without its end, within the time; false when it does not come. */
bool doctor_read_line(int fd, char line[DOCTOR_TEXT], int timeout_ms);
bool doctor_write_line(int fd, const char *line);

/* The helper. */
int doctor_probe(const char *address, const char *number, const char *data);

#endif
