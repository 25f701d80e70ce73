/* Command lines for other hosts: what ssh, or what --rsh names instead, is given.
 *
 * A remote shell gets one string, so every word in it is quoted for a POSIX shell: no name of a file or a host can mean
 * anything else there. ssh never asks (BatchMode): a host that would is an error, not a job that hangs.
 *
 * Called by the launcher and `rubato doctor`. Proved by tests/unit/test_rsh.c, through a real shell.
 */
#ifndef RBT_RUNTIME_CLUSTER_RSH_H
#define RBT_RUNTIME_CLUSTER_RSH_H

#include "rubato.h"

#define RBT_RSH "ssh -T -o BatchMode=yes -o ConnectTimeout=10"

/* "cd DIRECTORY && exec WORD WORD ...", each word quoted where it must be. directory may be NULL. `words` ends with
 * NULL. Free with rbt_free. */
char *rbt_rsh_line(const char *directory, const char *const *words);

/* COMMAND split at its spaces, HOST, LINE, NULL: what to execute. command NULL = RBT_RSH. Free with rbt_rsh_words_free. */
char **rbt_rsh_words(const char *command, const char *host, const char *line);
void rbt_rsh_words_free(char **words);

#endif
