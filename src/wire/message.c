/* Messages in memory; the contract is in message.h. */
#include "wire/message.h"

#include "base/error.h"

rbt_message *rbt_message_create(rbt_message_type type, rbt_node from, rbt_node to)
{
    rbt_message *message = rbt_alloc(1, sizeof *message);

    message->type = type;
    message->from = from;
    message->to = to;
    return message;
}

rbt_message *rbt_message_copy(const rbt_message *message)
{
    rbt_message *copy = rbt_alloc(1, sizeof *copy);

    *copy = *message;
    copy->next = NULL;
    copy->parts.at = NULL;
    copy->parts.count = copy->parts.room = 0;
    copy->members.at = NULL;
    copy->members.count = copy->members.room = 0;
    copy->applied.at = NULL;
    copy->applied.count = copy->applied.room = 0;
    for (size_t i = 0; i < message->parts.count; i++) {
        rbt_part part = message->parts.at[i];

        if (part.snap != NULL)
            rbt_snap_ref(part.snap);
        rbt_array_push(&copy->parts, part);
    }
    for (size_t i = 0; i < message->members.count; i++)
        rbt_array_push(&copy->members, message->members.at[i]);
    for (size_t i = 0; i < message->applied.count; i++)
        rbt_array_push(&copy->applied, message->applied.at[i]);
    return copy;
}

void rbt_message_destroy(rbt_message *message)
{
    if (message == NULL)
        return;
    for (size_t i = 0; i < message->parts.count; i++)
        rbt_snap_unref(message->parts.at[i].snap);
    rbt_array_free(&message->parts);
    rbt_array_free(&message->members);
    rbt_array_free(&message->applied);
    rbt_free(message);
}

const char *rbt_message_name(rbt_message_type type)
{
    static const char *const names[RBT_MSG_TYPES] = {
        [RBT_MSG_PUSH] = "push",     [RBT_MSG_ACK] = "ack",       [RBT_MSG_PULL] = "pull",
        [RBT_MSG_BLOCKS] = "blocks", [RBT_MSG_RETIRE] = "retire", [RBT_MSG_HELLO] = "hello",
        [RBT_MSG_VIEW] = "view",     [RBT_MSG_RESUME] = "resume", [RBT_MSG_RESUMED] = "resumed",
        [RBT_MSG_REPORT] = "report", [RBT_MSG_ASK] = "ask",       [RBT_MSG_STABLE] = "stable",
        [RBT_MSG_METRIC] = "metric", [RBT_MSG_STOP] = "stop",     [RBT_MSG_LOST] = "lost",
        [RBT_MSG_UPDATE] = "update", [RBT_MSG_TOKEN] = "token",   [RBT_MSG_USED] = "used",
        [RBT_MSG_CHUNK] = "chunk",   [RBT_MSG_EARLY] = "early",   [RBT_MSG_GOT] = "got",
        [RBT_MSG_ROWS] = "rows",
    };

    return type > 0 && type < RBT_MSG_TYPES ? names[type] : "unknown";
}

void rbt_outbox_put(rbt_outbox *outbox, rbt_message *message)
{
    RBT_ASSERT(message->next == NULL);
    if (outbox->first == NULL)
        outbox->last = &outbox->first;
    *outbox->last = message;
    outbox->last = &message->next;
}

rbt_message *rbt_outbox_take(rbt_outbox *outbox)
{
    rbt_message *message = outbox->first;

    if (message != NULL) {
        outbox->first = message->next;
        message->next = NULL;
    }
    return message;
}
