/* One connection to another process: frames in both directions. The contract is in link.h; the greeting is greeting.c. */
#include "runtime/cluster/link.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/error.h"
#include "runtime/cluster/greeting.h"

#define WRITE_PIECES 256                 /* of one writev */
#define READ_ROUNDS  16                  /* then others have their turn */
#define LAST_ROUNDS  64                  /* of these, for what the other side had said when writing to it failed */
#define RING_STEP    ((size_t)512 << 10) /* of one body, what goes through the ring before the other side is told ... */
#define RING_TELL    ((size_t)128 << 10) /* ... and of several: it reads while this side goes on writing */
#define BODY_PAST    ((size_t)8 << 20)   /* bodies that are larger are written to where they stay past the cache */
#define TLS_BYTES    ((size_t)16 << 10)  /* a record: what is small is gathered into one */

rbt_link *rbt_link_create(const rbt_link_config *config, int fd, const rbt_address *remote, bool accepting)
{
    rbt_link *link = rbt_alloc(1, sizeof *link);

    link->config = config;
    link->fd = fd;
    link->remote = *remote;
    link->accepting = accepting;
    link->unsent_last = &link->unsent;
    rbt_address_text(remote, link->name);
    rbt_intake_init(&link->intake, config->head_max, config->body_max);
    rbt_greeting_begin(link);
    return link;
}

void rbt_link_destroy(rbt_link *link)
{
    while (link->unsent != NULL) {
        rbt_frame *frame = link->unsent;

        link->unsent = frame->next;
        rbt_frame_destroy(frame);
    }
    rbt_tls_close(link->tls);
    rbt_ring_deinit(&link->out_ring);
    rbt_ring_deinit(&link->in_ring);
    rbt_intake_deinit(&link->intake);
    rbt_array_free(&link->words);
    rbt_free(link->record);
    if (link->fd >= 0)
        close(link->fd);
    rbt_free(link);
}

void rbt_link_close(rbt_link *link, rbt_err code, const char *format, ...)
{
    char text[sizeof link->why.text];
    va_list list;

    if (link->state == RBT_LINK_CLOSED)
        return;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    rbt_fail(&link->why, code, "%s", text);
    link->state = RBT_LINK_CLOSED;
    link->wants = 0;
}

void rbt_link_close_broken(rbt_link *link, const char *what, int reason)
{
    const char *hint = rbt_socket_hint(reason);

    rbt_link_close(link, RBT_E_IO, "%s %s: %s%s%s", what, link->name, strerror(reason), hint[0] != '\0' ? "; " : "",
                   hint);
}

/* ------------------------------------------------------------------------------------------------- the socket */

static void close_ended(rbt_link *link)
{
    /* A reset that a write was told of looks like an end to the reader. */
    if (link->write_failed != 0 && link->write_failed != EPIPE)
        return;
    link->is_ended = true;
    rbt_link_close(link, RBT_E_IO, "%s closed the connection", link->name);
}

static void receive(rbt_link *link);
static void take_arrivals(rbt_link *link);

/* Gives bytes to TLS; false when it can take none now (or ever: then the link is closed, but for what has been read before). */
static bool give_tls(rbt_link *link, const uint8_t *bytes, size_t n, size_t *done)
{
    rbt_error error;
    rbt_tls_state state = rbt_tls_write(link->tls, bytes, n, done, &error);

    if (state == RBT_TLS_END || state == RBT_TLS_FAILED) {
        link->write_failed = EPIPE;
        take_arrivals(link);
    }
    if (state == RBT_TLS_END)
        close_ended(link);
    else if (state == RBT_TLS_FAILED)
        rbt_link_close(link, RBT_E_IO, "writing to %s: %s", link->name, error.text);
    return state == RBT_TLS_DONE;
}

/* Gives what has been gathered for TLS to the system; false when not all of it can go now (or ever). A record that was begun
 * must be finished with the same bytes, so they are kept. */
static bool flush_record(rbt_link *link)
{
    while (link->record_sent < link->record_n) {
        size_t done = 0;

        if (!give_tls(link, link->record + link->record_sent, link->record_n - link->record_sent, &done))
            return false;
        link->record_sent += done;
    }
    link->record_n = link->record_sent = 0;
    return true;
}

/* Writing has failed. What the other side said before it went is still there to be heard or read, perhaps a goodbye. */
static void close_unwritable(rbt_link *link)
{
    uint64_t before = link->bytes_in - 1;

    link->write_failed = errno;
    take_arrivals(link); /* the reader may find the end before it comes to these */
    for (int i = 0; i < LAST_ROUNDS && link->state == RBT_LINK_OPEN && link->bytes_in != before; i++) {
        before = link->bytes_in;
        receive(link);
    }
    rbt_link_close_broken(link, "writing to", link->write_failed);
}

/* Nothing of the first unsent frame has gone out, or all of it: words may go now. */
static bool is_between_frames(const rbt_link *link)
{
    return link->sent == 0 || link->sent == rbt_frame_size(link->unsent);
}

/* Small pieces are gathered; a large one is taken from where it lies. Within a frame only: there the next try has the same bytes. */
static ssize_t write_tls(rbt_link *link, const struct iovec *pieces, size_t count)
{
    size_t done = 0;

    if (pieces[0].iov_len >= TLS_BYTES && !is_between_frames(link))
        return give_tls(link, pieces[0].iov_base, pieces[0].iov_len, &done) ? (ssize_t)done : -1;
    if (link->record == NULL)
        link->record = rbt_alloc(TLS_BYTES, 1);
    for (size_t i = 0; i < count && link->record_n < TLS_BYTES; i++) {
        size_t room = TLS_BYTES - link->record_n, part = pieces[i].iov_len < room ? pieces[i].iov_len : room;

        memcpy(link->record + link->record_n, pieces[i].iov_base, part);
        link->record_n += part;
    }
    return (ssize_t)link->record_n;
}

/* Bytes written, or -1 when none can be now (or ever: then the link is closed). */
static ssize_t write_pieces(rbt_link *link, const struct iovec *pieces, size_t count)
{
    struct msghdr message = {.msg_iov = (struct iovec *)pieces, .msg_iovlen = count};
    ssize_t n;

    if (link->tls != NULL)
        return write_tls(link, pieces, count);
    do
        n = sendmsg(link->fd, &message, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
        close_unwritable(link);
    return n < 0 ? -1 : n;
}

static ssize_t read_tls(rbt_link *link, const rbt_piece *room, size_t count)
{
    size_t total = 0;

    for (size_t i = 0; i < count; i++)
        for (size_t at = 0; at < room[i].n;) {
            size_t done = 0;
            rbt_error error;
            rbt_tls_state state = rbt_tls_read(link->tls, (uint8_t *)room[i].at + at, room[i].n - at, &done, &error);

            if (state !=
                RBT_TLS_DONE) { /* an end or a failure stays, and is told when what came before it has been heard */
                if (state == RBT_TLS_END && total == 0)
                    close_ended(link);
                else if (state == RBT_TLS_FAILED && total == 0)
                    rbt_link_close(link, RBT_E_IO, "reading from %s: %s", link->name, error.text);
                return total > 0 ? (ssize_t)total : -1;
            }
            at += done;
            total += done;
        }
    return (ssize_t)total;
}

static ssize_t read_pieces(rbt_link *link, const rbt_piece *room, size_t count)
{
    struct iovec pieces[RBT_INTAKE_PIECES];
    ssize_t n;

    if (link->tls != NULL)
        return read_tls(link, room, count);
    for (size_t i = 0; i < count; i++)
        pieces[i] = (struct iovec){room[i].at, room[i].n};
    do
        n = readv(link->fd, pieces, (int)count);
    while (n < 0 && errno == EINTR);
    if (n == 0)
        close_ended(link);
    else if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
        rbt_link_close_broken(link, "reading from", errno);
    return n <= 0 ? -1 : n;
}

/* --------------------------------------------------------------------------------------------------- sending */

void rbt_link_send(rbt_link *link, rbt_frame *frame)
{
    frame->next = NULL;
    *link->unsent_last = frame;
    link->unsent_last = &frame->next;
    if (link->unpacked == NULL)
        link->unpacked = frame;
}

void rbt_link_say(rbt_link *link, rbt_frame_kind kind)
{
    uint8_t word[RBT_FRAME_HEADER];
    size_t at = (link->words_sent + sizeof word - 1) / sizeof word * sizeof word;

    link->acked = link->intake.expected - 1;
    rbt_frame_word(kind, link->acked, word);
    while (at < link->words.count && rbt_frame_word_kind(link->words.at + at) != kind)
        at += sizeof word;
    if (at < link->words.count) /* one that has not gone out says the same, or less */
        memcpy(link->words.at + at, word, sizeof word);
    else
        rbt_pack_bytes(&link->words, word, sizeof word);
}

/* Puts more of the body that is under way into the ring: a step, so that the other side begins while this one goes on. */
static void fill(rbt_link *link, const rbt_frame *frame)
{
    size_t done = 0;

    while (link->filled_piece < frame->body.count) {
        const rbt_piece *piece = &frame->body.at[link->filled_piece];
        size_t left = piece->n - link->filled_at, most = left < RING_STEP - done ? left : RING_STEP - done;
        size_t n = rbt_ring_put(&link->out_ring, (uint8_t *)piece->at + link->filled_at, most);

        if (n == RBT_RING_BROKEN) {
            rbt_link_close(link, RBT_E_PROTOCOL, "%s broke the shared memory", link->name);
            return;
        }
        done += n;
        link->filled_at += n;
        if (link->filled_at == piece->n) {
            link->filled_piece++;
            link->filled_at = 0;
        } else if (done == RING_STEP || (n == 0 && !rbt_ring_wish(&link->out_ring))) {
            return; /* the flush goes on, or ROOM will be said */
        }
    }
    link->filling = false;
}

/* A frame's turn has come: its number is in the header already, what has been received goes in now. */
static void seal(rbt_link *link, rbt_frame *frame)
{
    frame->header.acked = link->acked = link->intake.expected - 1;
    frame->header.flags &= (uint8_t)~RBT_FRAME_IN_RING;
    if (link->must_sum)
        rbt_frame_sum_body(frame);
    if (link->uses_rings && frame->body.count > 0 && link->ring_why.code == RBT_OK &&
        rbt_ring_reserve(&link->out_ring, (size_t)frame->header.body, &link->ring_why) == RBT_OK) {
        frame->header.flags = (frame->header.flags & RBT_FRAME_SQUEEZED) | RBT_FRAME_IN_RING;
        frame->header.body_sum = 0;
        link->filling = true;
        link->filled_piece = link->filled_at = 0;
        fill(link, frame);
    }
    rbt_frame_seal(frame);
    link->unpacked = frame->next;
}

/* Hands back the frames that have gone out; the one that is being filled into the ring has not. */
static void hand_back(rbt_link *link)
{
    while (link->unsent != NULL && link->unsent != link->unpacked && link->sent == rbt_frame_size(link->unsent) &&
           !(link->filling && link->unsent->next == link->unpacked)) {
        rbt_frame *frame = link->unsent;

        link->unsent = frame->next;
        if (link->unsent == NULL)
            link->unsent_last = &link->unsent;
        link->sent = 0;
        frame->next = NULL;
        link->on_sent(link, frame);
    }
}

static void add_piece(struct iovec *pieces, size_t *count, void *at, size_t n, size_t *skip)
{
    if (*skip >= n) {
        *skip -= n;
        return;
    }
    pieces[(*count)++] = (struct iovec){(uint8_t *)at + *skip, n - *skip};
    *skip = 0;
}

/* What is to be written next. Words go between frames: a frame that is partly written is finished alone first. */
static size_t gather(rbt_link *link, struct iovec pieces[WRITE_PIECES])
{
    size_t count = 0, skip = link->sent, put = 0;
    bool between = is_between_frames(link);

    if (between && link->words.count > link->words_sent)
        pieces[count++] = (struct iovec){link->words.at + link->words_sent, link->words.count - link->words_sent};
    for (rbt_frame *frame = link->unsent; frame != NULL && count < WRITE_PIECES; frame = frame->next) {
        if (frame == link->unpacked) {
            if (link->filling)
                break;
            seal(link, frame);
            if (link->state == RBT_LINK_CLOSED)
                return 0;
        }
        add_piece(pieces, &count, frame->bytes, frame->n, &skip);
        if (!(frame->header.flags & RBT_FRAME_IN_RING))
            for (size_t i = 0; i < frame->body.count && count < WRITE_PIECES; i++)
                add_piece(pieces, &count, frame->body.at[i].at, frame->body.at[i].n, &skip);
        else
            put += (size_t)frame->header.body;
        if (!between || put >= RING_TELL)
            break;
    }
    return count;
}

/* n bytes of what was gathered are out. */
static void advance(rbt_link *link, size_t n)
{
    link->bytes_out += n;
    if (is_between_frames(link)) {
        size_t left = link->words.count - link->words_sent, part = n < left ? n : left;

        link->words_sent += part;
        n -= part;
        if (link->words_sent == link->words.count)
            link->words.count = link->words_sent = 0;
    }
    for (hand_back(link); n > 0; hand_back(link)) {
        size_t left = rbt_frame_size(link->unsent) - link->sent, part = n < left ? n : left;

        link->sent += part;
        n -= part;
    }
}

void rbt_link_flush(rbt_link *link)
{
    while (link->state == RBT_LINK_OPEN && link->write_failed == 0) {
        struct iovec pieces[WRITE_PIECES];
        size_t count;
        ssize_t n;

        if (link->filling) {
            const rbt_frame *frame = link->unsent;
            size_t piece = link->filled_piece, at = link->filled_at;

            while (frame->next != link->unpacked)
                frame = frame->next;
            fill(link, frame);
            if (piece != link->filled_piece || at != link->filled_at)
                rbt_link_say(link, RBT_FRAME_MORE);
        }
        hand_back(link);
        if (link->tls != NULL && !flush_record(link)) {
            link->wants |= link->state == RBT_LINK_OPEN ? RBT_LINK_WRITE : 0;
            return;
        }
        count = gather(link, pieces);
        if (count == 0) {
            link->wants &= ~(unsigned)RBT_LINK_WRITE;
            return;
        }
        n = write_pieces(link, pieces, count);
        if (n < 0) {
            link->wants |= link->state == RBT_LINK_OPEN ? RBT_LINK_WRITE : 0;
            return;
        }
        advance(link, (size_t)n);
    }
}

bool rbt_link_is_busy(const rbt_link *link)
{
    return link->unsent != NULL || link->words.count > 0 || link->record_n > 0;
}

/* ------------------------------------------------------------------------------------------------- receiving */

/* Takes what is in the ring for the body under way. A writer that waits for room is told when half of the ring is free:
 * later it would find an empty ring's reader asleep, earlier it would be woken for little. */
static void pull_ring(rbt_link *link)
{
    uint8_t *to;
    size_t n;
    const rbt_frame_header *header = &link->intake.under_way.header;
    bool past_cache = header->body >= BODY_PAST && !(header->flags & RBT_FRAME_SQUEEZED);

    while ((to = rbt_intake_ring_room(&link->intake, &n)) != NULL && link->state == RBT_LINK_OPEN) {
        size_t most = n < RING_STEP ? n : RING_STEP;
        size_t got = link->uses_rings ? rbt_ring_get(&link->in_ring, to, most, past_cache) : RBT_RING_BROKEN;

        if (got == RBT_RING_BROKEN) {
            rbt_link_close(link, RBT_E_PROTOCOL, "%s broke the shared memory", link->name);
            return;
        }
        if (got == 0)
            return;
        rbt_intake_ring_put(&link->intake, got);
        link->bytes_in += got;
        if (rbt_ring_filled(&link->in_ring) <= link->in_ring.bytes / 2 && rbt_ring_wished(&link->in_ring)) {
            rbt_link_say(link, RBT_FRAME_ROOM);
            rbt_link_flush(link);
        }
    }
}

/* What has come cannot be taken: it breaks the protocol, or there is no room for it here, of which the sender knows nothing. */
static void close_refused(rbt_link *link, const rbt_error *why)
{
    if (why->code == RBT_E_MEMORY)
        rbt_link_close(
            link, RBT_E_MEMORY,
            "the receiver of what %s sends has no room for it: %s; give its host more memory, or start fewer "
            "processes there",
            link->name, why->text);
    else
        rbt_link_close(link, RBT_E_PROTOCOL, "%s was cut off: %s", link->name, why->text);
}

/* A header that has just come may have its body in the ring: that is looked at before what follows the header. */
static void take_arrivals(rbt_link *link)
{
    while (link->state == RBT_LINK_OPEN && !link->is_held) {
        bool had_room, got = false;
        rbt_arrival arrival;
        rbt_error error;

        pull_ring(link);
        had_room = rbt_intake_ring_room(&link->intake, &(size_t){0}) != NULL;
        if (link->state != RBT_LINK_OPEN)
            return;
        if (rbt_intake_next(&link->intake, &arrival, &got, &error) != RBT_OK) {
            close_refused(link, &error);
            return;
        }
        if (!got && (had_room || rbt_intake_ring_room(&link->intake, &(size_t){0}) == NULL))
            return;
        if (!got) /* a header has just come, and its body may be in the ring */
            continue;
        if (arrival.header.kind == RBT_FRAME_BYE)
            link->said_bye = true;
        link->on_arrival(link, &arrival);
    }
}

static void receive(rbt_link *link)
{
    /* What TLS has taken from the socket already, the socket will not tell of again. */
    for (int round = 0; link->state == RBT_LINK_OPEN && !link->is_held &&
                        (round < READ_ROUNDS || (link->tls != NULL && rbt_tls_pending(link->tls) > 0));
         round++) {
        rbt_piece room[RBT_INTAKE_PIECES];
        size_t count = rbt_intake_room(&link->intake, room), total = 0;
        ssize_t n = read_pieces(link, room, count);

        if (n < 0)
            return;
        link->bytes_in += (uint64_t)n;
        rbt_intake_put(&link->intake, (size_t)n);
        take_arrivals(link);
        for (size_t i = 0; i < count; i++)
            total += room[i].n;
        if ((size_t)n < total && link->tls == NULL)
            return; /* that was all */
    }
}

void rbt_link_hold(rbt_link *link)
{
    link->is_held = true;
    link->wants &= ~(unsigned)RBT_LINK_READ;
}

void rbt_link_resume(rbt_link *link)
{
    if (!link->is_held || link->state != RBT_LINK_OPEN)
        return;
    link->is_held = false;
    link->wants |= RBT_LINK_READ;
    take_arrivals(link);
}

void rbt_link_step(rbt_link *link, unsigned ready)
{
    if (link->state == RBT_LINK_GREETING)
        rbt_greeting_step(link);
    if (link->state == RBT_LINK_OPEN && ready & RBT_LINK_READ)
        receive(link);
    rbt_link_flush(link);
}
