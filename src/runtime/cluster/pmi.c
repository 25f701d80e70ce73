/* PMI-1: see pmi.h. The wire is what MPICH's "simple PMI" client and hydra speak. */
#include "runtime/cluster/pmi.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "runtime/cluster/hosts.h"

#define KEY "rubato-lead"

typedef struct talk {
    int fd;
    rbt_error *error;
    char line[RBT_PMI_LINE_MAX]; /* the last answer */
} talk;

static rbt_err lost(const talk *t, const char *command)
{
    return rbt_fail(
        t->error, RBT_E_IO,
        "the starter (mpiexec) does not answer to PMI's %s over PMI_FD %d: %s; set RUBATO_LEAD=HOST:PORT for "
        "all processes and unset PMI_FD",
        command, t->fd, errno ? strerror(errno) : "it has closed the connection");
}

/* Says a line and hears one, which must begin with cmd=ANSWER and have no rc but 0. */
static rbt_err say(talk *t, const char *line, const char *answer)
{
    size_t n = strlen(line);
    size_t got = 0;
    size_t length = strlen(answer);
    const char *rc;

    for (size_t done = 0; done < n;) {
        ssize_t wrote = write(t->fd, line + done, n - done);

        if (wrote < 0 && errno != EINTR)
            return lost(t, answer);
        done += wrote > 0 ? (size_t)wrote : 0;
    }
    while (got == 0 || t->line[got - 1] != '\n') { /* a byte at a time: once per job, and nothing is read too far */
        ssize_t n_read = got + 1 < sizeof t->line ? read(t->fd, t->line + got, 1) : 0;

        if (n_read < 0 && errno == EINTR)
            continue;
        if (n_read <= 0) {
            errno = n_read ? errno : 0;
            return lost(t, answer);
        }
        got++;
    }
    t->line[got - 1] = 0;
    rc = strstr(t->line, " rc=");
    if (strncmp(t->line, "cmd=", 4) != 0 || strncmp(t->line + 4, answer, length) != 0 ||
        (t->line[4 + length] != 0 && t->line[4 + length] != ' ') || (rc && strncmp(rc + 4, "0", 1) != 0))
        return rbt_fail(t->error, RBT_E_PROTOCOL,
                        "the starter (mpiexec) said \"%.120s\" over PMI_FD %d where %s was expected; set RUBATO_LEAD="
                        "HOST:PORT for all processes and unset PMI_FD",
                        t->line, t->fd, answer);
    return RBT_OK;
}

/* The word behind KEY= in the last answer. */
static rbt_err word(const talk *t, const char *key, char *out, size_t room)
{
    char pattern[32];
    const char *at;
    size_t n;

    snprintf(pattern, sizeof pattern, " %s=", key);
    at = strstr(t->line, pattern);
    n = at ? strcspn(at + strlen(pattern), " ") : 0;
    if (n == 0 || n >= room)
        return rbt_fail(t->error, RBT_E_PROTOCOL, "the starter (mpiexec) said \"%.120s\" over PMI_FD %d: %s", t->line,
                        t->fd, at ? "a value is empty or too long" : "a value is missing");
    memcpy(out, at + strlen(pattern), n);
    out[n] = 0;
    return RBT_OK;
}

/* The lead's hosts come with commas: values have no spaces. */
static void add_leads(rbt_standing *standing, const char *hosts)
{
    for (size_t n; *hosts; hosts += n + (hosts[n] != 0)) {
        n = strcspn(hosts, ",");
        if (n > 0)
            rbt_standing_add_lead(standing, hosts, n);
    }
}

static rbt_err meet(talk *t, rbt_standing *standing, char value[RBT_PMI_VALUE_MAX])
{
    char space[RBT_STANDING_JOB_ROOM - 8];
    char line[RBT_PMI_LINE_MAX];
    rbt_err err;

    if ((err = say(t, "cmd=init pmi_version=1 pmi_subversion=1\n", "response_to_init")) ||
        (err = say(t, "cmd=get_my_kvsname\n", "my_kvsname")) || (err = word(t, "kvsname", space, sizeof space)))
        return err;
    if (standing->rank == 0) {
        snprintf(line, sizeof line, "cmd=put kvsname=%s key=" KEY " value=%s\n", space, value);
        if ((err = say(t, line, "put_result")))
            return err;
    }
    snprintf(line, sizeof line, "cmd=get kvsname=%s key=" KEY "\n", space);
    if ((err = say(t, "cmd=barrier_in\n", "barrier_out")) || (err = say(t, line, "get_result")) ||
        (err = word(t, "value", value, RBT_PMI_VALUE_MAX)) || (err = say(t, "cmd=finalize\n", "finalize_ack")))
        return err;
    if (standing->leads == 0 && !standing->one_host)
        add_leads(standing, value);
    rbt_standing_name_job(standing, "pmi %s", space);
    return RBT_OK;
}

rbt_err rbt_pmi_meet(rbt_standing *standing, const char *mine, rbt_error *error)
{
    talk t = {.fd = standing->pmi_fd, .error = error};
    char value[RBT_PMI_VALUE_MAX];
    rbt_err err;

    RBT_ASSERT(standing->pmi_fd >= 0 && strlen(mine) < sizeof value);
    snprintf(value, sizeof value, "%s", mine);
    for (char *c = value; *c; c++)
        if (*c == ' ')
            *c = ',';
    err = meet(&t, standing, value);
    close(standing->pmi_fd);
    standing->pmi_fd = -1;
    return err;
}

void rbt_pmi_here(char hosts[RBT_PMI_VALUE_MAX])
{
    struct ifaddrs *interfaces = NULL;
    size_t n;

    if (gethostname(hosts, RBT_HOST_BYTES_MAX) != 0)
        hosts[0] = 0;
    hosts[RBT_HOST_BYTES_MAX - 1] = 0;
    n = strlen(hosts);
    if (getifaddrs(&interfaces) != 0)
        return;
    for (struct ifaddrs *i = interfaces; i; i = i->ifa_next) {
        char text[INET6_ADDRSTRLEN];
        const void *address = NULL;

        if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) || (i->ifa_flags & IFF_LOOPBACK))
            continue;
        if (i->ifa_addr->sa_family == AF_INET)
            address = &((const struct sockaddr_in *)(const void *)i->ifa_addr)->sin_addr;
        else if (i->ifa_addr->sa_family == AF_INET6) {
            const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)i->ifa_addr;

            address = IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr) ? NULL : &six->sin6_addr; /* needs an interface's name */
        }
        if (!address || !inet_ntop(i->ifa_addr->sa_family, address, text, sizeof text) ||
            n + 1 + strlen(text) >= RBT_PMI_VALUE_MAX)
            continue;
        n += (size_t)snprintf(hosts + n, RBT_PMI_VALUE_MAX - n, "%s%s", n ? " " : "", text);
    }
    freeifaddrs(interfaces);
}
