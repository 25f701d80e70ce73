/* Calling and forging; the contract is in forge.h. */
#include "forge.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/time.h"
#include "runtime/cluster/roster.h"
#include "table/snap.h"

#define MUTATIONS 12

/* ------------------------------------------------------------------------------------------------ a caller */

/* Which life of the seat it has been given, as the roster says. */
static void note_incarnation(caller *c, rbt_unpack words)
{
    uint32_t rank = rbt_unpack_u32(&words), size = 0;
    rbt_seat *seats = rbt_roster_unpack(&words, &size);

    if (seats != NULL && rank < size)
        c->incarnation = seats[rank].incarnation;
    rbt_free(seats);
}

static void on_arrival(rbt_link *link, rbt_arrival *arrival)
{
    caller *c = link->context;

    if (arrival->header.kind == RBT_FRAME_CONTROL) {
        rbt_unpack words = rbt_unpack_of(arrival->head, arrival->header.head);

        c->answer = rbt_unpack_u32(&words);
        if (c->answer == RBT_SAY_WELCOME)
            note_incarnation(c, words);
        (void)rbt_unpack_u32(&words);
        rbt_unpack_text(&words, c->answer_text, sizeof c->answer_text);
    }
    rbt_arrival_deinit(arrival);
}

static void on_sent(rbt_link *link, rbt_frame *frame)
{
    (void)link;
    rbt_frame_destroy(frame);
}

void hang_up(caller *c)
{
    if (c->link != NULL) {
        while (c->link->unsent != NULL) {
            rbt_frame *frame = c->link->unsent;

            c->link->unsent = frame->next;
            rbt_frame_destroy(frame);
        }
        rbt_link_destroy(c->link);
    }
    c->link = NULL;
}

/* Lets the connection do what it wants, for `ms` at most. */
void turn(caller *c, int ms)
{
    struct pollfd ready = {.fd = c->link->fd};

    ready.events =
        (short)((c->link->wants & RBT_LINK_READ ? POLLIN : 0) | (c->link->wants & RBT_LINK_WRITE ? POLLOUT : 0));
    if (poll(&ready, 1, ms) > 0)
        rbt_link_step(c->link, (ready.revents & (POLLIN | POLLHUP | POLLERR) ? RBT_LINK_READ : 0) |
                                   (ready.revents & (POLLOUT | POLLHUP) ? RBT_LINK_WRITE : 0));
}

/* Greets as one should. False: nobody is there any more. */
bool call(caller *c)
{
    uint64_t until = rbt_now_ns() + PATIENCE_NS;
    rbt_error error;
    int fd;

    hang_up(c);
    c->sequence = 0;
    c->answer = 0;
    if (rbt_socket_dial(&c->address, &fd, &error) != RBT_OK)
        return false;
    c->link = rbt_link_create(&c->config, fd, &c->address, false);
    c->link->context = c;
    c->link->on_arrival = on_arrival;
    c->link->on_sent = on_sent;
    while (c->link->state == RBT_LINK_GREETING) {
        turn(c, 100);
        if (rbt_now_ns() > until) {
            fprintf(stderr, "hostile: %s does not answer a greeting\n", c->link->name);
            exit(1);
        }
    }
    if (c->link->state != RBT_LINK_OPEN)
        fprintf(stderr, "hostile: %s\n", c->link->why.text);
    return c->link->state == RBT_LINK_OPEN;
}

void send_frame(caller *c, rbt_frame *frame)
{
    rbt_link_send(c->link, frame);
    rbt_link_flush(c->link);
}

/* Says who it is: a process with this life. */
void introduce(caller *c, uint64_t life)
{
    rbt_pack words = {0};

    c->life = life;
    rbt_pack_u64(&words, life);
    rbt_pack_u64(&words, 0);
    rbt_pack_text(&words, "");
    send_frame(c, rbt_frame_create(RBT_FRAME_SESSION, words.at, words.count, NULL, 0));
    rbt_array_free(&words);
}

static rbt_frame *control(uint32_t say, const rbt_pack *words, void *body, size_t n)
{
    rbt_pack head = {0};
    rbt_frame *frame;

    rbt_pack_u32(&head, say);
    if (words != NULL)
        rbt_pack_bytes(&head, words->at, words->count);
    frame = rbt_frame_create(RBT_FRAME_CONTROL, head.at, head.count, body, n);
    rbt_array_free(&head);
    return frame;
}

void say(caller *c, uint32_t word, const rbt_pack *words)
{
    rbt_frame *frame = control(word, words, NULL, 0);

    frame->header.sequence = ++c->sequence;
    send_frame(c, frame);
}

/* Until it is cut off, or there is an answer, or `ms` have passed. */
void listen_for(caller *c, uint64_t ms, bool for_answer)
{
    uint64_t until = rbt_now_ns() + ms * 1000000u;

    while (c->link->state == RBT_LINK_OPEN && !(for_answer && c->answer != 0) && rbt_now_ns() < until)
        turn(c, 50);
}

/* ------------------------------------------------------------------------------------------------ forging */

uint64_t odd(rbt_rng *rng)
{
    static const uint64_t ODD[] = {0,         1, 2, 3, 4, 5, 63, 1000, UINT32_MAX, (uint64_t)1 << 40, UINT64_MAX - 1,
                                   UINT64_MAX};
    uint64_t i = rbt_rng_below(rng, 2 * (sizeof ODD / sizeof ODD[0]));

    return i < sizeof ODD / sizeof ODD[0] ? ODD[i] : rbt_rng_u64(rng);
}

uint32_t small(rbt_rng *rng)
{
    return (uint32_t)(rbt_rng_below(rng, 8) > 0 ? rbt_rng_below(rng, 6) : odd(rng));
}

static rbt_snap *odd_snap(rbt_rng *rng, bool is_sound)
{
    uint32_t length = (uint32_t)rbt_rng_below(rng, 300);
    rbt_type type = (rbt_type)rbt_rng_below(rng, 3);
    rbt_snap *snap;

    if (rbt_rng_below(rng, 2) == 0)
        return rbt_snap_create(type, length + 1);
    snap = rbt_snap_create_sparse(type, length + 1, 1);
    snap->index[0] =
        is_sound ? length : (uint32_t)rbt_rng_below(rng, (uint64_t)length + 3); /* may lie behind its end */
    memset(snap->value, 0, rbt_type_size(type));
    return snap;
}

/* `is_sound`: what they hold is well-formed, and only what they are is wrong. */
void add_parts(rbt_rng *rng, bool is_sound, rbt_message *message)
{
    for (uint64_t n = rbt_rng_below(rng, 4); n > 0; n--) {
        rbt_part part = {.table = small(rng), .block = small(rng), .version = odd(rng)};

        if (rbt_rng_below(rng, 2) == 0)
            part.snap = odd_snap(rng, is_sound);
        rbt_array_push(&message->parts, part);
    }
}

/* A message of any kind with anything in it; what a kind does not carry stays at home. */
static rbt_message *any_message(rbt_rng *rng)
{
    rbt_message *message =
        rbt_message_create((rbt_message_type)(1 + rbt_rng_below(rng, RBT_MSG_TYPES - 1)), small(rng), small(rng));

    message->view = small(rng);
    message->worker = small(rng);
    message->incarnation = small(rng);
    message->clock = odd(rng);
    message->need = odd(rng);
    message->slowest = odd(rng);
    message->included = odd(rng);
    message->reach = odd(rng);
    message->early = odd(rng);
    message->slice = small(rng);
    message->more = rbt_rng_below(rng, 2);
    message->version = odd(rng);
    message->request = odd(rng);
    message->held_ns = odd(rng);
    message->number = -1;
    if (message->type == RBT_MSG_PUSH || message->type == RBT_MSG_PULL || message->type == RBT_MSG_BLOCKS ||
        message->type == RBT_MSG_EARLY || message->type == RBT_MSG_ROWS)
        add_parts(rng, false, message);
    for (uint64_t n = message->type == RBT_MSG_VIEW ? rbt_rng_below(rng, 5) : 0; n > 0; n--)
        rbt_array_push(&message->members, ((rbt_member){small(rng), (uint32_t)rbt_rng_below(rng, 3)}));
    for (uint64_t n = message->type == RBT_MSG_BLOCKS ? rbt_rng_below(rng, 3) : 0; n > 0; n--)
        rbt_array_push(&message->applied, ((rbt_applied){odd(rng), odd(rng), odd(rng), odd(rng)}));
    return message;
}

static rbt_frame *any_control(rbt_rng *rng)
{
    rbt_pack words = {0};
    size_t n = rbt_rng_below(rng, 3) == 0 ? (size_t)rbt_rng_below(rng, 5000) : 0;
    uint8_t *body = n > 0 ? rbt_alloc(n, 1) : NULL;
    rbt_frame *frame;

    for (uint64_t k = rbt_rng_below(rng, 12); k > 0; k--)
        rbt_pack_u32(&words, small(rng));
    if (rbt_rng_below(rng, 4) == 0)
        rbt_pack_text(&words, "\033[2Jmade of nothing");
    frame = control((uint32_t)rbt_rng_below(rng, RBT_SAY_OWN + 12), &words, body, n);
    rbt_array_free(&words);
    return frame;
}

/* The frame's bytes one behind the other, in memory of the caller's. */
static size_t flatten(const rbt_frame *frame, uint8_t *bytes)
{
    size_t n = frame->n;

    memcpy(bytes, frame->bytes, n);
    for (size_t i = 0; i < frame->body.count; i++) {
        memcpy(bytes + n, frame->body.at[i].at, frame->body.at[i].n);
        n += frame->body.at[i].n;
    }
    return n;
}

static void flip(rbt_rng *rng, uint8_t *bytes, size_t n)
{
    for (uint64_t k = 1 + rbt_rng_below(rng, 8); k > 0 && n > 0; k--)
        bytes[rbt_rng_below(rng, n)] ^= (uint8_t)(1u << rbt_rng_below(rng, 8));
}

/* Makes a frame wrong before it is sealed: its checksum will be right. */
static void damage(rbt_rng *rng, uint64_t mutation, rbt_frame *frame)
{
    rbt_frame_header *h = &frame->header;

    switch (mutation) {
    case 1: /* what it says */
        flip(rng, frame->bytes + RBT_FRAME_HEADER, frame->n - RBT_FRAME_HEADER);
        break;
    case 2: /* how long it is; the head stays within what is there to be summed */
        h->body = odd(rng);
        if (rbt_rng_below(rng, 2) == 0 && h->head > 0)
            h->head = (uint32_t)rbt_rng_below(rng, h->head);
        break;
    case 3: /* who speaks to whom */
        h->from = small(rng);
        h->to = small(rng);
        h->view = small(rng);
        break;
    case 4: /* its number: again, none, or one to come */
        h->sequence = rbt_rng_below(rng, 2) == 0 ? h->sequence - 1 : odd(rng);
        break;
    case 5:
        h->kind = (uint8_t)rbt_rng_below(rng, 256);
        break;
    case 6:
        h->flags = (uint8_t)rbt_rng_below(rng, 256);
        break;
    case 7:
        h->acked = odd(rng);
        break;
    default: /* sound, but from nobody */
        break;
    }
}

/* A worker's word in its own name that makes no sense: a server reads all of it before it refuses it. */
static rbt_message *own_message(rbt_rng *rng, const caller *c)
{
    rbt_message *message = any_message(rng);

    message->type = rbt_rng_below(rng, 2) == 0 ? RBT_MSG_PULL : RBT_MSG_PUSH;
    message->from = c->node;
    message->to = 1;
    message->worker = c->worker;
    message->incarnation = c->incarnation;
    message->clock = 1000000000 + rbt_rng_below(rng, 1000); /* none that comes next */
    message->need = RBT_UNBOUNDED - 1;
    message->members.count = message->applied.count = 0;
    if (message->parts.count == 0)
        add_parts(rng, rbt_rng_below(rng, 2) == 0, message);
    return message;
}

/* Whoever has a seat ends the job by the word that it failed; that is no attack. */
static void hold_back(rbt_frame *frame)
{
    uint8_t *say = frame->bytes + RBT_FRAME_HEADER;

    if (frame->header.kind == RBT_FRAME_CONTROL && frame->header.head >= 4 && say[0] == RBT_SAY_FAILED)
        say[0] = RBT_SAY_NOTE;
}

static rbt_frame *any_frame(rbt_rng *rng, const caller *c)
{
    if (rbt_rng_below(rng, 2) == 0)
        return any_control(rng);
    return rbt_frame_of_message(c->is_seated && rbt_rng_below(rng, 2) == 0 ? own_message(rng, c) : any_message(rng),
                                rbt_rng_below(rng, 2) == 0 ? RBT_CODEC_DELTA | RBT_CODEC_ZEROS : 0, NULL);
}

size_t forge(rbt_rng *rng, caller *c, uint8_t *bytes)
{
    uint64_t mutation = rbt_rng_below(rng, MUTATIONS);
    rbt_frame *frame = any_frame(rng, c);
    size_t n;

    frame->header.sequence = ++c->sequence;
    damage(rng, mutation, frame);
    if (c->is_seated)
        hold_back(frame);
    rbt_frame_seal(frame);
    n = flatten(frame, bytes);
    if (mutation == 0)
        flip(rng, bytes, n);
    else if (mutation == 8)
        n = (size_t)rbt_rng_below(rng, n);
    else if (mutation == 9)
        for (size_t i = 0; i < n; i++)
            bytes[i] = (uint8_t)rbt_rng_below(rng, 256);
    rbt_frame_destroy(frame);
    return n;
}

bool write_all(int fd, const uint8_t *bytes, size_t n)
{
    uint64_t until = rbt_now_ns() + PATIENCE_NS;

    while (n > 0) {
        ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        struct pollfd ready = {.fd = fd, .events = POLLOUT};

        if (sent > 0) {
            bytes += sent;
            n -= (size_t)sent;
        } else if (errno != EAGAIN || rbt_now_ns() > until) {
            return false;
        } else {
            poll(&ready, 1, 100);
        }
    }
    return true;
}
