/* Lists of hosts as people and resource managers write them: "a,b:4,c", "n[001-003,7],login", "node[2:1-3]".
 *
 * A list is names with commas between. A name may have brackets with numbers and ranges (Slurm's way; leading zeros
 * stay), in Open MPI's way with a number of digits and a colon before them, and may end in :N, how many processes
 * that host gets; 1 when nothing is said. A typed IPv6 address stands in brackets: "[fd00::1]:4". Names are checked
 * here because they go to ssh: none is empty, begins with '-' or has a character that no host name and no user@host
 * has. A text that makes more than RBT_HOSTS_MAX hosts is refused before it makes them.
 *
 * Called by standing.c and the launcher. Proved by tests/unit/test_hosts.c.
 */
#ifndef RBT_RUNTIME_CLUSTER_HOSTS_H
#define RBT_RUNTIME_CLUSTER_HOSTS_H

#include <stddef.h>

#include "rubato.h"

#define RBT_HOSTS_MAX      65536       /* hosts of one list */
#define RBT_HOST_BYTES_MAX 255         /* characters of one name */
#define RBT_HOST_HERE      "localhost" /* needs no remote shell */
#define RBT_PROCESSES_MAX  1000000     /* processes of one list, all hosts together */

typedef struct rbt_host {
    char *name;
    uint32_t processes;
} rbt_host;

typedef struct rbt_hosts {
    rbt_host *at;
    size_t count;
    size_t room;
    uint32_t processes; /* of all hosts */
} rbt_hosts;

/* Reads a list; `what` is how messages name it: "--hosts", "SLURM_STEP_NODELIST". A host may appear twice. */
rbt_err rbt_hosts_parse(const char *what, const char *text, rbt_hosts *hosts, rbt_error *error);
void rbt_hosts_deinit(rbt_hosts *hosts);

/* The name as the network knows it, without "user@". */
const char *rbt_host_bare(const char *name);

/* How many processes the hosts have, one number after the other, as Slurm writes it: "2(x3),1" = 2,2,2,1. There must be
 * one for each host. */
rbt_err rbt_hosts_count(const char *what, const char *text, rbt_hosts *hosts, rbt_error *error);

/* A whole number from `least` to `most`, the whole text and nothing else. */
rbt_err rbt_hosts_number(const char *what, const char *text, uint64_t least, uint64_t most, uint64_t *value,
                         rbt_error *error);

#endif
