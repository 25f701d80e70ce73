/* The roster; the contract is in roster.h. */
#include "runtime/cluster/roster.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"

#define SEAT_LEAST 52 /* bytes that a packed seat takes at least */

static uint64_t hash_file(const char *path)
{
    char text[128];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text) : -1;

    if (fd >= 0)
        close(fd);
    return n > 0 ? rbt_hash(text, (size_t)n, 0) : 0;
}

void rbt_seat_of_this(rbt_seat *seat)
{
    char space[128];
    ssize_t n = readlink("/proc/self/ns/net", space, sizeof space);

    memset(seat, 0, sizeof *seat);
    if (gethostname(seat->host, sizeof seat->host - 1) != 0)
        snprintf(seat->host, sizeof seat->host, "unknown");
    seat->pid = (uint32_t)getpid();
    seat->host_id =
        rbt_hash_mix(hash_file("/proc/sys/kernel/random/boot_id"), n > 0 ? rbt_hash(space, (size_t)n, 0) : 0);
}

void rbt_seat_pack_self(rbt_pack *pack, const rbt_seat *seat)
{
    rbt_pack_u64(pack, seat->host_id);
    rbt_pack_u32(pack, seat->pid);
    rbt_pack_text(pack, seat->host);
    rbt_pack_text(pack, seat->tcp);
    rbt_pack_text(pack, seat->local);
}

void rbt_seat_unpack_self(rbt_unpack *unpack, rbt_seat *seat)
{
    seat->host_id = rbt_unpack_u64(unpack);
    seat->pid = rbt_unpack_u32(unpack);
    rbt_unpack_text(unpack, seat->host, sizeof seat->host);
    rbt_unpack_printable(unpack, seat->tcp, sizeof seat->tcp);
    rbt_unpack_printable(unpack, seat->local, sizeof seat->local);
    for (char *c = seat->host; *c != '\0'; c++) /* one word in a sentence */
        if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 127)
            *c = '?';
}

void rbt_seat_copy_self(rbt_seat *to, const rbt_seat *from)
{
    to->host_id = from->host_id;
    to->pid = from->pid;
    memcpy(to->host, from->host, sizeof to->host);
    memcpy(to->tcp, from->tcp, sizeof to->tcp);
    memcpy(to->local, from->local, sizeof to->local);
}

void rbt_roster_pack(rbt_pack *pack, const rbt_seat *seats, uint32_t size)
{
    rbt_pack_u32(pack, size);
    for (uint32_t r = 0; r < size; r++) {
        rbt_pack_u32(pack, seats[r].first_worker);
        rbt_pack_u32(pack, seats[r].workers);
        rbt_pack_u32(pack, seats[r].first_server);
        rbt_pack_u32(pack, seats[r].servers);
        rbt_pack_u32(pack, seats[r].incarnation);
        rbt_pack_u64(pack, seats[r].life);
        rbt_seat_pack_self(pack, &seats[r]);
    }
}

rbt_seat *rbt_roster_unpack(rbt_unpack *unpack, uint32_t *size)
{
    rbt_seat *seats;

    *size = rbt_unpack_u32(unpack);
    if (unpack->bad || *size < 1 || *size > RBT_RANKS_LIMIT || *size > (size_t)(unpack->end - unpack->at) / SEAT_LEAST)
        return NULL;
    seats = rbt_alloc(*size, sizeof *seats);
    for (uint32_t r = 0; r < *size; r++) {
        seats[r].first_worker = rbt_unpack_u32(unpack);
        seats[r].workers = rbt_unpack_u32(unpack);
        seats[r].first_server = rbt_unpack_u32(unpack);
        seats[r].servers = rbt_unpack_u32(unpack);
        seats[r].incarnation = rbt_unpack_u32(unpack);
        seats[r].life = rbt_unpack_u64(unpack);
        rbt_seat_unpack_self(unpack, &seats[r]);
    }
    if (unpack->bad) {
        rbt_free(seats);
        return NULL;
    }
    return seats;
}

void rbt_roster_assign(rbt_seat *seats, uint32_t size, bool lead_works, uint32_t each, uint32_t workers,
                       uint32_t servers, bool apart)
{
    uint32_t first = lead_works ? 0 : 1, apart_count = apart ? servers : 0, working = size - first - apart_count;
    uint32_t worker = 0, server = 0;

    memset(seats, 0, size * sizeof *seats);
    for (uint32_t i = 0; i < working; i++) {
        rbt_seat *seat = &seats[first + i];

        seat->first_worker = worker;
        seat->workers = workers - worker < each ? workers - worker : each;
        worker += seat->workers;
        if (apart)
            continue;
        seat->first_server = server;
        seat->servers = servers / working + (i < servers % working);
        server += seat->servers;
    }
    for (uint32_t i = 0; i < apart_count; i++) {
        seats[first + working + i].first_worker = worker; /* none, where they would come */
        seats[first + working + i].first_server = i;
        seats[first + working + i].servers = 1;
    }
}
