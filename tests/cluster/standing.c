/* Helper of the cluster tests: prints where it stands as its resource manager's environment says, then meets the other
 * processes at the lead: rank 0 listens at the port that was worked out, the others find it there.
 *
 *   slurm 2/5 here=n2 lead=n1 port=23456 job=slurm 1.0 met
 *
 * Used by tests/cluster/test_slurm.sh and test_mpirun.sh. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/cluster/address.h"
#include "runtime/cluster/pmi.h"
#include "runtime/cluster/standing.h"

#define TRIES 400 /* of 50 ms */

static int listener = -1;

static rbt_err lead(const rbt_standing *s, rbt_error *error)
{
    rbt_address any;
    rbt_address bound;
    char text[32];
    rbt_err err;

    snprintf(text, sizeof text, s->one_host ? "127.0.0.1:%u" : ":%u", s->port);
    if ((err = rbt_address_parse(text, 0, &any, error)) || (err = rbt_socket_listen(&any, &listener, &bound, error)))
        return err;
    for (uint32_t met = 1; met < s->size;) {
        struct pollfd p = {.fd = listener, .events = POLLIN};
        rbt_address from;
        int fd = -1;

        if (poll(&p, 1, TRIES * 50) != 1)
            break;
        if ((err = rbt_socket_accept(listener, &fd, &from, error)))
            return err;
        if (fd >= 0) {
            met++;
            (void)!write(fd, "!", 1);
            close(fd);
        }
    }
    return RBT_OK;
}

/* Whether the lead answers there within 50 ms. */
static int answers(const char *host, uint16_t port)
{
    struct pollfd p = {.fd = -1};
    rbt_address address;
    rbt_error error;
    char text[300];
    char byte = 0;

    snprintf(text, sizeof text, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port);
    if (rbt_address_parse(text, 0, &address, &error) || rbt_socket_dial(&address, &p.fd, &error))
        return 0;
    p.events = POLLOUT;
    if (poll(&p, 1, 50) == 1 && rbt_socket_connected(p.fd, &address, &error) == RBT_OK) {
        p.events = POLLIN;
        if (poll(&p, 1, TRIES * 50) != 1 || read(p.fd, &byte, 1) != 1)
            byte = 0;
    }
    close(p.fd);
    return byte == '!';
}

static const char *find_lead(const rbt_standing *s)
{
    for (int i = 0; i < TRIES; i++) {
        if (s->leads == 0 && answers("127.0.0.1", s->port))
            return "here";
        for (size_t k = 0; k < s->leads; k++)
            if (answers(s->lead[k], s->port))
                return s->lead[k];
        poll(NULL, 0, 50);
    }
    return NULL;
}

int main(void)
{
    rbt_standing s;
    rbt_error error;
    const char *met = "self";
    char mine[RBT_PMI_VALUE_MAX];
    char here[256] = "";

    rbt_pmi_here(mine);
    gethostname(here, sizeof here - 1);
    if (rbt_standing_find(rbt_standing_environment, NULL, &s, &error) ||
        (s.pmi_fd >= 0 && rbt_pmi_meet(&s, mine, &error)) || (s.kind && s.rank == 0 && lead(&s, &error))) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    if (!s.kind) {
        puts("nobody has started this");
        return 0;
    }
    if (s.rank > 0)
        met = find_lead(&s);
    printf("%s %u/%u here=%s met=%s port=%u job=%s\n", s.kind, s.rank, s.size, here, met ? met : "NOBODY", s.port,
           s.job);
    rbt_standing_deinit(&s);
    return met ? 0 : 1;
}
