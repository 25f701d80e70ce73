/* The simulator's event heap; the contract is in sim_queue.h. */
#include "runtime/sim_queue.h"

static bool is_earlier(const rbt_sim_event *a, const rbt_sim_event *b)
{
    return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->order < b->order;
}

void rbt_sim_queue_put(rbt_sim_queue *queue, rbt_sim_event event)
{
    size_t i = queue->heap.count;

    event.order = queue->count++;
    rbt_array_push(&queue->heap, event);
    while (i > 0 && is_earlier(&event, &queue->heap.at[(i - 1) / 2])) {
        queue->heap.at[i] = queue->heap.at[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    queue->heap.at[i] = event;
}

bool rbt_sim_queue_take(rbt_sim_queue *queue, rbt_sim_event *event)
{
    rbt_sim_event last;
    size_t i = 0, n;

    if (queue->heap.count == 0)
        return false;
    *event = queue->heap.at[0];
    last = queue->heap.at[n = --queue->heap.count];
    for (;;) {
        size_t child = 2 * i + 1;

        if (child >= n)
            break;
        if (child + 1 < n && is_earlier(&queue->heap.at[child + 1], &queue->heap.at[child]))
            child++;
        if (!is_earlier(&queue->heap.at[child], &last))
            break;
        queue->heap.at[i] = queue->heap.at[child];
        i = child;
    }
    if (n > 0)
        queue->heap.at[i] = last;
    return true;
}

void rbt_sim_queue_deinit(rbt_sim_queue *queue)
{
    for (size_t i = 0; i < queue->heap.count; i++)
        rbt_message_destroy(queue->heap.at[i].message);
    rbt_array_free(&queue->heap);
}
