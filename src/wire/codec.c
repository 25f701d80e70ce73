/* Encoding and decoding of messages; the contract is in codec.h.
 *
 * Layout: head (type, wire version, from, to, view), then the fields the type uses in the order of `fields` below, then
 * parts, members and applied clocks where the type has them; that is the head. The body is, part after part, the indices
 * (sparse) and the values. Little-endian throughout. */
#include "wire/codec.h"

#include <string.h>

#include "base/error.h"

/* Which fields a type carries. */
enum {
    WORKER = 1 << 0, /* worker and incarnation */
    CLOCK = 1 << 1,
    NEED = 1 << 2,
    SLOWEST = 1 << 3,
    INCLUDED = 1 << 4, /* included, reach and early */
    VERSION = 1 << 5,
    REQUEST = 1 << 6,
    HELD = 1 << 7,
    NUMBER = 1 << 8,
    PARTS = 1 << 9,
    MEMBERS = 1 << 10,
    APPLIED = 1 << 11,
    SLICE = 1 << 12, /* slice and more */
};

static const unsigned type_fields[RBT_MSG_TYPES] = {
    [RBT_MSG_PUSH] = WORKER | CLOCK | SLOWEST | SLICE | PARTS,
    [RBT_MSG_ACK] = WORKER | CLOCK,
    [RBT_MSG_PULL] = WORKER | CLOCK | NEED | VERSION | REQUEST | PARTS,
    [RBT_MSG_BLOCKS] = WORKER | SLOWEST | INCLUDED | REQUEST | HELD | PARTS | APPLIED,
    [RBT_MSG_RETIRE] = WORKER | CLOCK,
    [RBT_MSG_HELLO] = WORKER,
    [RBT_MSG_VIEW] = MEMBERS,
    [RBT_MSG_RESUME] = WORKER | REQUEST,
    [RBT_MSG_RESUMED] = WORKER | CLOCK | SLOWEST | VERSION | REQUEST,
    [RBT_MSG_REPORT] = SLOWEST | VERSION,
    [RBT_MSG_ASK] = WORKER | CLOCK | NEED | REQUEST,
    [RBT_MSG_STABLE] = WORKER | VERSION | REQUEST | HELD,
    [RBT_MSG_METRIC] = CLOCK | NUMBER,
    [RBT_MSG_STOP] = CLOCK,
    [RBT_MSG_LOST] = WORKER,
    [RBT_MSG_UPDATE] = WORKER | CLOCK | PARTS,
    [RBT_MSG_TOKEN] = WORKER | CLOCK,
    [RBT_MSG_USED] = WORKER | CLOCK,
    [RBT_MSG_CHUNK] = WORKER | CLOCK | REQUEST | PARTS,
    [RBT_MSG_EARLY] = WORKER | CLOCK | SLICE | PARTS,
    [RBT_MSG_GOT] = WORKER | CLOCK | SLICE,
    [RBT_MSG_ROWS] = WORKER | SLOWEST | INCLUDED | SLICE | PARTS,
};

/* The 64-bit fields, in the order they are written. */
static const struct field {
    unsigned bit;
    size_t offset;
} fields[] = {
    {CLOCK, offsetof(rbt_message, clock)},     {NEED, offsetof(rbt_message, need)},
    {SLOWEST, offsetof(rbt_message, slowest)}, {INCLUDED, offsetof(rbt_message, included)},
    {INCLUDED, offsetof(rbt_message, reach)},  {INCLUDED, offsetof(rbt_message, early)},
    {VERSION, offsetof(rbt_message, version)}, {REQUEST, offsetof(rbt_message, request)},
    {HELD, offsetof(rbt_message, held_ns)},    {SLICE, offsetof(rbt_message, slice)},
    {SLICE, offsetof(rbt_message, more)},      {NUMBER, offsetof(rbt_message, number)},
};

#define FIELDS        (sizeof fields / sizeof fields[0])
#define HEAD_BYTES    16 /* type, version, 2 spare, from, to, view */
#define PART_BYTES    20 /* table, block, version, then 4 of form: absent, dense or sparse, and type */
#define SNAP_BYTES    8  /* length, count */
#define APPLIED_BYTES 32 /* clocks, reach, early, life */

enum { FORM_ABSENT, FORM_DENSE, FORM_SPARSE };

size_t rbt_wire_head_size(const rbt_message *message)
{
    unsigned has = type_fields[message->type];
    size_t bytes = HEAD_BYTES + (has & WORKER ? 8 : 0);

    for (size_t i = 0; i < FIELDS; i++)
        bytes += has & fields[i].bit ? 8 : 0;
    if (has & PARTS) {
        bytes += 4 + message->parts.count * PART_BYTES;
        for (size_t i = 0; i < message->parts.count; i++)
            if (message->parts.at[i].snap != NULL)
                bytes += SNAP_BYTES;
    }
    if (has & MEMBERS)
        bytes += 4 + message->members.count * 8;
    if (has & APPLIED)
        bytes += 4 + message->applied.count * APPLIED_BYTES;
    return bytes;
}

size_t rbt_wire_body_size(const rbt_message *message)
{
    size_t bytes = 0;

    if (type_fields[message->type] & PARTS)
        for (size_t i = 0; i < message->parts.count; i++)
            if (message->parts.at[i].snap != NULL)
                bytes += rbt_snap_bytes(message->parts.at[i].snap);
    return bytes;
}

size_t rbt_wire_size(const rbt_message *message)
{
    return rbt_wire_head_size(message) + rbt_wire_body_size(message);
}

/* -------------------------------------------------------------------------------------------- writing */

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "Rubato's formats are little-endian and this code copies them; add byte swapping for this machine"
#endif

static uint8_t *put(uint8_t *at, const void *bytes, size_t n)
{
    if (n > 0) /* an empty array has no address */
        memcpy(at, bytes, n);
    return at + n;
}

static uint8_t *put_u32(uint8_t *at, uint32_t x)
{
    return put(at, &x, sizeof x);
}

static uint8_t *put_part(uint8_t *at, const rbt_part *part)
{
    const rbt_snap *snap = part->snap;
    uint8_t form[4] = {0};

    if (snap != NULL) {
        form[0] = snap->form == RBT_DENSE ? FORM_DENSE : FORM_SPARSE;
        form[1] = (uint8_t)snap->type;
    }
    at = put_u32(at, part->table);
    at = put_u32(at, part->block);
    at = put(at, &part->version, sizeof part->version);
    at = put(at, form, sizeof form);
    if (snap == NULL)
        return at;
    at = put_u32(at, snap->length);
    return put_u32(at, snap->count);
}

void rbt_wire_encode_head(const rbt_message *message, uint8_t *bytes)
{
    unsigned has = type_fields[message->type];
    uint8_t head[4] = {(uint8_t)message->type, RBT_WIRE_VERSION};
    uint8_t *at = put(bytes, head, sizeof head);

    at = put_u32(at, message->from);
    at = put_u32(at, message->to);
    at = put_u32(at, message->view);
    if (has & WORKER) {
        at = put_u32(at, message->worker);
        at = put_u32(at, message->incarnation);
    }
    for (size_t i = 0; i < FIELDS; i++)
        if (has & fields[i].bit)
            at = put(at, (const char *)message + fields[i].offset, 8);
    if (has & PARTS) {
        at = put_u32(at, (uint32_t)message->parts.count);
        for (size_t i = 0; i < message->parts.count; i++)
            at = put_part(at, &message->parts.at[i]);
    }
    if (has & MEMBERS) {
        at = put_u32(at, (uint32_t)message->members.count);
        for (size_t i = 0; i < message->members.count; i++) {
            at = put_u32(at, message->members.at[i].incarnation);
            at = put_u32(at, message->members.at[i].state);
        }
    }
    if (has & APPLIED) {
        at = put_u32(at, (uint32_t)message->applied.count);
        for (size_t i = 0; i < message->applied.count; i++) {
            at = put(at, &message->applied.at[i].clocks, 8);
            at = put(at, &message->applied.at[i].reach, 8);
            at = put(at, &message->applied.at[i].early, 8);
            at = put(at, &message->applied.at[i].life, 8);
        }
    }
    RBT_ASSERT((size_t)(at - bytes) == rbt_wire_head_size(message));
}

void rbt_wire_body(const rbt_message *message, rbt_pieces *pieces)
{
    if (!(type_fields[message->type] & PARTS))
        return;
    for (size_t i = 0; i < message->parts.count; i++) {
        const rbt_snap *snap = message->parts.at[i].snap;

        if (snap == NULL || snap->count == 0)
            continue;
        if (snap->index != NULL)
            rbt_array_push(pieces, ((rbt_piece){snap->index, snap->count * sizeof *snap->index}));
        rbt_array_push(pieces, ((rbt_piece){snap->value, snap->count * rbt_type_size(snap->type)}));
    }
}

void rbt_wire_encode(const rbt_message *message, uint8_t *bytes)
{
    rbt_pieces pieces = {0};

    rbt_wire_encode_head(message, bytes);
    bytes += rbt_wire_head_size(message);
    rbt_wire_body(message, &pieces);
    for (size_t i = 0; i < pieces.count; i++)
        bytes = put(bytes, pieces.at[i].at, pieces.at[i].n);
    rbt_array_free(&pieces);
}

/* -------------------------------------------------------------------------------------------- reading */

typedef struct reader {
    const uint8_t *start;
    const uint8_t *at;
    const uint8_t *end;
    size_t body;      /* bytes of blocks announced so far ... */
    size_t body_most; /* ... and how many there can be */
    rbt_error *error;
} reader;

static rbt_err refuse(const reader *r, const char *what)
{
    return rbt_fail(r->error, RBT_E_PROTOCOL,
                    "message of %zu bytes, at byte %zu: %s; the peer is damaged or speaks another version",
                    (size_t)(r->end - r->start), (size_t)(r->at - r->start), what);
}

static rbt_err get(reader *r, void *to, size_t n)
{
    if ((size_t)(r->end - r->at) < n)
        return refuse(r, "it ends too early");
    memcpy(to, r->at, n);
    r->at += n;
    return RBT_OK;
}

/* Reads a count of things that take at least `size` bytes each, so that nothing large is allocated for a lie. */
static rbt_err get_count(reader *r, uint32_t most, size_t size, uint32_t *count)
{
    rbt_err err = get(r, count, sizeof *count);

    if (err != RBT_OK)
        return err;
    if (*count > most)
        return refuse(r, "a count is above its limit");
    if (*count > (size_t)(r->end - r->at) / size)
        return refuse(r, "a count is larger than what follows");
    return RBT_OK;
}

/* A block's place in the body: room is made for it, once it is known that it can be there. */
static rbt_err get_snap(reader *r, const uint8_t form[4], rbt_snap **out)
{
    uint32_t length = 0, count = 0;
    size_t bytes;
    rbt_err err;

    if (form[0] > FORM_SPARSE || form[1] > RBT_I64 || form[2] != 0 || form[3] != 0)
        return refuse(r, "a block has an unknown form or type");
    err = get(r, &length, sizeof length);
    if (err == RBT_OK)
        err = get(r, &count, sizeof count);
    if (err != RBT_OK)
        return err;
    if (length > RBT_WIRE_LENGTH_MAX || count > length)
        return refuse(r, "a block is longer than its limit");
    if (form[0] == FORM_DENSE && count != length)
        return refuse(r, "a dense block does not store all it stands for");
    bytes = count * (rbt_type_size((rbt_type)form[1]) + (form[0] == FORM_SPARSE ? sizeof(uint32_t) : 0));
    if (bytes > r->body_most - r->body)
        return refuse(r, "a count is larger than what follows");
    r->body += bytes;
    *out = rbt_snap_try_create((rbt_type)form[1], form[0] == FORM_DENSE ? RBT_DENSE : RBT_SPARSE, length, count);
    if (*out == NULL)
        return rbt_fail(r->error, RBT_E_MEMORY, "not enough memory for a block of %zu bytes that a peer sends", bytes);
    return RBT_OK;
}

static rbt_err get_parts(reader *r, rbt_message *message)
{
    uint32_t count = 0;
    rbt_err err = get_count(r, RBT_WIRE_PARTS_MAX, PART_BYTES, &count);

    for (uint32_t i = 0; err == RBT_OK && i < count; i++) {
        rbt_part part = {0};
        uint8_t form[4] = {0};

        err = get(r, &part.table, sizeof part.table);
        if (err == RBT_OK)
            err = get(r, &part.block, sizeof part.block);
        if (err == RBT_OK)
            err = get(r, &part.version, sizeof part.version);
        if (err == RBT_OK)
            err = get(r, form, sizeof form);
        if (err == RBT_OK && form[0] != FORM_ABSENT)
            err = get_snap(r, form, &part.snap);
        else if (err == RBT_OK && (form[1] != 0 || form[2] != 0 || form[3] != 0))
            err = refuse(r, "a block that is only named has a type");
        if (err == RBT_OK)
            rbt_array_push(&message->parts, part); /* with its block: destroyed with the message */
    }
    return err;
}

static rbt_err get_members(reader *r, rbt_message *message)
{
    uint32_t count = 0;
    rbt_err err = get_count(r, RBT_WIRE_MEMBERS_MAX, 8, &count);

    for (uint32_t i = 0; err == RBT_OK && i < count; i++) {
        rbt_member member = {0};

        err = get(r, &member.incarnation, sizeof member.incarnation);
        if (err == RBT_OK)
            err = get(r, &member.state, sizeof member.state);
        if (err == RBT_OK && member.state > RBT_MEMBER_RETIRED)
            err = refuse(r, "a member has an unknown state");
        if (err == RBT_OK)
            rbt_array_push(&message->members, member);
    }
    return err;
}

static rbt_err get_applied(reader *r, rbt_message *message)
{
    uint32_t count = 0;
    rbt_err err = get_count(r, RBT_WIRE_MEMBERS_MAX, APPLIED_BYTES, &count);

    for (uint32_t i = 0; err == RBT_OK && i < count; i++) {
        rbt_applied applied = {0};

        err = get(r, &applied.clocks, sizeof applied.clocks);
        if (err == RBT_OK)
            err = get(r, &applied.reach, sizeof applied.reach);
        if (err == RBT_OK)
            err = get(r, &applied.early, sizeof applied.early);
        if (err == RBT_OK)
            err = get(r, &applied.life, sizeof applied.life);
        if (err == RBT_OK)
            rbt_array_push(&message->applied, applied);
    }
    return err;
}

static rbt_err get_message(reader *r, rbt_message *message)
{
    uint8_t head[4] = {0};
    unsigned has = 0;
    rbt_err err = get(r, head, sizeof head);

    if (err == RBT_OK && (head[0] == 0 || head[0] >= RBT_MSG_TYPES))
        err = refuse(r, "the type is unknown");
    if (err == RBT_OK && (head[1] != RBT_WIRE_VERSION || head[2] != 0 || head[3] != 0))
        err = refuse(r, "the wire version is another one");
    if (err == RBT_OK) {
        message->type = (rbt_message_type)head[0];
        has = type_fields[message->type];
        err = get(r, &message->from, sizeof message->from);
    }
    if (err == RBT_OK)
        err = get(r, &message->to, sizeof message->to);
    if (err == RBT_OK)
        err = get(r, &message->view, sizeof message->view);
    if (err == RBT_OK && has & WORKER)
        err = get(r, &message->worker, sizeof message->worker);
    if (err == RBT_OK && has & WORKER)
        err = get(r, &message->incarnation, sizeof message->incarnation);
    for (size_t i = 0; err == RBT_OK && i < FIELDS; i++)
        if (has & fields[i].bit)
            err = get(r, (char *)message + fields[i].offset, 8);
    if (err == RBT_OK && message->more > 1)
        err = refuse(r, "it is neither the last of its push nor not");
    if (err == RBT_OK && has & PARTS)
        err = get_parts(r, message);
    if (err == RBT_OK && has & MEMBERS)
        err = get_members(r, message);
    if (err == RBT_OK && has & APPLIED)
        err = get_applied(r, message);
    return err;
}

/* Looks at all of them without a branch, so that the compiler makes vectors of it: this is done for every block received. */
static bool ascends(const uint32_t *index, uint32_t count)
{
    uint32_t falls = 0;

    for (uint32_t k = 1; k < count; k++)
        falls |= index[k] <= index[k - 1];
    return falls == 0;
}

rbt_err rbt_wire_check_body(const rbt_message *message, rbt_error *error)
{
    for (size_t i = 0; i < message->parts.count; i++) {
        const rbt_snap *snap = message->parts.at[i].snap;

        if (snap != NULL && snap->index != NULL && snap->count > 0)
            if (snap->index[snap->count - 1] >= snap->length || !ascends(snap->index, snap->count))
                return rbt_fail(error, RBT_E_PROTOCOL,
                                "message with %zu blocks: the indices of a sparse block do not ascend or leave the "
                                "block; the peer is damaged or speaks another version",
                                message->parts.count);
    }
    return RBT_OK;
}

/* Blocks whose content has not come hold whatever was in memory: nobody may see them. */
rbt_err rbt_wire_decode_head(const uint8_t *bytes, size_t n, size_t body, rbt_message **out, rbt_error *error)
{
    reader r = {.start = bytes, .at = bytes, .end = bytes + n, .body_most = body, .error = error};
    rbt_message *message = rbt_message_create(RBT_MSG_PUSH, 0, 0);
    rbt_err err = get_message(&r, message);

    if (err == RBT_OK && (r.at != r.end || r.body != body))
        err = refuse(&r, "it goes on after its end");
    if (err == RBT_OK)
        *out = message;
    else
        rbt_message_destroy(message);
    return err;
}

static rbt_err get_body(reader *r, const rbt_message *message)
{
    rbt_pieces pieces = {0};
    rbt_err err = (size_t)(r->end - r->at) == r->body ? RBT_OK : refuse(r, "it goes on after its end");

    if (err == RBT_OK)
        rbt_wire_body(message, &pieces);
    for (size_t i = 0; err == RBT_OK && i < pieces.count; i++)
        err = get(r, pieces.at[i].at, pieces.at[i].n);
    rbt_array_free(&pieces);
    return err;
}

rbt_err rbt_wire_decode(const uint8_t *bytes, size_t n, rbt_message **out, rbt_error *error)
{
    reader r = {.start = bytes, .at = bytes, .end = bytes + n, .body_most = n, .error = error};
    rbt_message *message = rbt_message_create(RBT_MSG_PUSH, 0, 0);
    rbt_err err = get_message(&r, message);

    if (err == RBT_OK)
        err = get_body(&r, message);
    if (err == RBT_OK)
        err = rbt_wire_check_body(message, error);
    if (err == RBT_OK)
        *out = message;
    else
        rbt_message_destroy(message);
    return err;
}
