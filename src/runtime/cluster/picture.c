/* Pictures of a running job; the contract is in picture.h. */
#include "runtime/cluster/picture.h"

#include <math.h>

#define PROCESS_LEAST 24 /* bytes that a process takes at least, and that a worker takes */
#define WORKER_BYTES  48

void rbt_picture_deinit(rbt_picture *picture)
{
    rbt_array_free(&picture->processes);
    rbt_array_free(&picture->workers);
    *picture = (rbt_picture){0};
}

void rbt_picture_pack(const rbt_picture *picture, rbt_pack *pack)
{
    rbt_pack_u32(pack, (uint32_t)picture->phase);
    rbt_pack_u32(pack, (uint32_t)picture->end.code);
    rbt_pack_text(pack, picture->end.code != RBT_OK ? picture->end.text : "");
    rbt_pack_u64(pack, picture->elapsed_ns);
    rbt_pack_u64(pack, picture->bytes);
    rbt_pack_u64(pack, picture->messages);
    rbt_pack_f64(pack, picture->loss);
    rbt_pack_text(pack, picture->title);
    rbt_pack_u32(pack, (uint32_t)picture->processes.count);
    rbt_pack_u32(pack, (uint32_t)picture->workers.count);
    for (size_t i = 0; i < picture->processes.count; i++) {
        const rbt_picture_process *process = &picture->processes.at[i];

        rbt_pack_u32(pack, (uint32_t)process->state);
        rbt_pack_u32(pack, process->first_worker);
        rbt_pack_u32(pack, process->workers);
        rbt_pack_u32(pack, process->first_server);
        rbt_pack_u32(pack, process->servers);
        rbt_pack_text(pack, process->host);
    }
    for (size_t i = 0; i < picture->workers.count; i++) {
        const rbt_picture_worker *worker = &picture->workers.at[i];

        rbt_pack_u64(pack, worker->clock);
        rbt_pack_u64(pack, worker->rows);
        rbt_pack_u64(pack, worker->compute_ns);
        rbt_pack_u64(pack, worker->wait_ns);
        rbt_pack_u64(pack, worker->communication_ns);
        rbt_pack_u64(pack, worker->waiting_ns);
    }
}

static uint32_t unpack_up_to(rbt_unpack *unpack, uint32_t most)
{
    uint32_t x = rbt_unpack_u32(unpack);

    if (x <= most)
        return x;
    unpack->bad = true;
    return 0;
}

static void unpack_process(rbt_unpack *unpack, rbt_picture_process *process)
{
    process->state = (rbt_picture_state)unpack_up_to(unpack, RBT_PICTURE_AWAY);
    process->first_worker = unpack_up_to(unpack, RBT_PICTURE_WORKERS);
    process->workers = unpack_up_to(unpack, RBT_PICTURE_WORKERS);
    process->first_server = unpack_up_to(unpack, RBT_PICTURE_WORKERS);
    process->servers = unpack_up_to(unpack, RBT_PICTURE_WORKERS);
    rbt_unpack_printable(unpack, process->host, sizeof process->host);
}

static void unpack_worker(rbt_unpack *unpack, rbt_picture_worker *worker)
{
    worker->clock = rbt_unpack_u64(unpack);
    worker->rows = rbt_unpack_u64(unpack);
    worker->compute_ns = rbt_unpack_u64(unpack);
    worker->wait_ns = rbt_unpack_u64(unpack);
    worker->communication_ns = rbt_unpack_u64(unpack);
    worker->waiting_ns = rbt_unpack_u64(unpack);
}

bool rbt_picture_unpack(rbt_unpack *unpack, rbt_picture *picture)
{
    uint32_t processes, workers;

    *picture = (rbt_picture){.phase = (rbt_picture_phase)unpack_up_to(unpack, RBT_PICTURE_OVER)};
    picture->end.code = (rbt_err)unpack_up_to(unpack, RBT_E_LOST);
    rbt_unpack_printable(unpack, picture->end.text, sizeof picture->end.text);
    picture->elapsed_ns = rbt_unpack_u64(unpack);
    picture->bytes = rbt_unpack_u64(unpack);
    picture->messages = rbt_unpack_u64(unpack);
    picture->loss = rbt_unpack_f64(unpack);
    rbt_unpack_printable(unpack, picture->title, sizeof picture->title);
    processes = unpack_up_to(unpack, RBT_PICTURE_RANKS);
    workers = unpack_up_to(unpack, RBT_PICTURE_WORKERS);
    if ((size_t)(unpack->end - unpack->at) < (size_t)processes * PROCESS_LEAST + (size_t)workers * WORKER_BYTES)
        unpack->bad = true;
    for (uint32_t i = 0; !unpack->bad && i < processes; i++) {
        rbt_picture_process process = {0};

        unpack_process(unpack, &process);
        rbt_array_push(&picture->processes, process);
    }
    for (uint32_t i = 0; !unpack->bad && i < workers; i++) {
        rbt_picture_worker worker;

        unpack_worker(unpack, &worker);
        rbt_array_push(&picture->workers, worker);
    }
    if (rbt_unpack_done(unpack))
        return true;
    rbt_picture_deinit(picture);
    return false;
}

const rbt_picture_process *rbt_picture_home(const rbt_picture *picture, uint32_t worker)
{
    for (size_t i = 0; i < picture->processes.count; i++) {
        const rbt_picture_process *process = &picture->processes.at[i];

        if (worker >= process->first_worker && worker - process->first_worker < process->workers)
            return process;
    }
    return NULL;
}

uint32_t rbt_picture_awaited(const rbt_picture *picture)
{
    uint64_t least = UINT64_MAX;
    uint32_t awaited = UINT32_MAX;
    bool is_any_away = false;

    for (size_t i = 0; i < picture->processes.count; i++) {
        const rbt_picture_process *process = &picture->processes.at[i];

        if (process->state == RBT_PICTURE_LOST || process->state == RBT_PICTURE_DONE)
            continue;
        for (uint32_t k = 0; k < process->workers && process->first_worker + k < picture->workers.count; k++) {
            const rbt_picture_worker *worker = &picture->workers.at[process->first_worker + k];
            bool is_away = process->state == RBT_PICTURE_AWAY;

            if (is_away ? is_any_away && worker->clock >= least
                        : is_any_away || worker->waiting_ns > 0 || worker->clock >= least)
                continue;
            least = worker->clock;
            awaited = process->first_worker + k;
            is_any_away = is_away;
        }
    }
    return awaited;
}
