/* Peers that have the key and mean no good; run by test_hostile.sh against the processes of a live job.
 *
 *   hostile strangers KEY ADDRESS COUNT SEED   callers without a seat send COUNT mutated frames; each is to be cut off
 *   hostile silent KEY ADDRESS COUNT           COUNT callers that never say who they are; ends when all were cut off
 *   hostile hello KEY ADDRESS RANK             asks for a seat, prints the answer
 *   hostile iam KEY ADDRESS RANK               claims to be that rank, in a life that is none of its
 *   hostile mad KEY ADDRESS RANK STYLE SEED    takes the seat and the work of a real process, and forges beside it
 *
 * `mad` runs the very code of `rubato node`; the linker puts __wrap_rbt_session_send before what it sends (see
 * tests/CMakeLists.txt). Exit codes: 0 as announced, 1 the other side did not do as it should, 3 it is gone. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/rng.h"
#include "base/time.h"
#include "job/cluster_job.h"
#include "runtime/cluster/link.h"
#include "table/snap.h"

#define PATIENCE_NS   (30 * 1000000000ull) /* nobody may take longer than this to answer */
#define GONE          3
#define MUTATIONS     12
#define BYTES_MOST    (1u << 20)
#define SANE_AT_FIRST 20 /* messages of a process that goes mad then */
#define FORGED_BESIDE 40 /* by a mad process, beside each message of its own */

/* ------------------------------------------------------------------------------------------------ a caller */

typedef struct caller {
    rbt_link_config config;
    rbt_address address;
    rbt_link *link;
    uint32_t answer; /* the last control word that came */
    char answer_text[256];
    uint64_t sequence;
} caller;

static void on_arrival(rbt_link *link, rbt_arrival *arrival)
{
    caller *c = link->context;

    if (arrival->header.kind == RBT_FRAME_CONTROL) {
        rbt_unpack words = rbt_unpack_of(arrival->head, arrival->header.head);

        c->answer = rbt_unpack_u32(&words);
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

static void hang_up(caller *c)
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
static void turn(caller *c, int ms)
{
    struct pollfd ready = {.fd = c->link->fd};

    ready.events =
        (short)((c->link->wants & RBT_LINK_READ ? POLLIN : 0) | (c->link->wants & RBT_LINK_WRITE ? POLLOUT : 0));
    if (poll(&ready, 1, ms) > 0)
        rbt_link_step(c->link, (ready.revents & (POLLIN | POLLHUP | POLLERR) ? RBT_LINK_READ : 0) |
                                   (ready.revents & (POLLOUT | POLLHUP) ? RBT_LINK_WRITE : 0));
}

/* Greets as one should. False: nobody is there any more. */
static bool call(caller *c)
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

static void send_frame(caller *c, rbt_frame *frame)
{
    rbt_link_send(c->link, frame);
    rbt_link_flush(c->link);
}

/* Says who it is: a process with this life. */
static void introduce(caller *c, uint64_t life)
{
    rbt_pack words = {0};

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

static void say(caller *c, uint32_t word, const rbt_pack *words)
{
    rbt_frame *frame = control(word, words, NULL, 0);

    frame->header.sequence = ++c->sequence;
    send_frame(c, frame);
}

/* Until it is cut off, or there is an answer, or `ms` have passed. */
static void listen_for(caller *c, uint64_t ms, bool for_answer)
{
    uint64_t until = rbt_now_ns() + ms * 1000000u;

    while (c->link->state == RBT_LINK_OPEN && !(for_answer && c->answer != 0) && rbt_now_ns() < until)
        turn(c, 50);
}

/* ------------------------------------------------------------------------------------------------ forging */

static uint64_t odd(rbt_rng *rng)
{
    static const uint64_t ODD[] = {0,         1, 2, 3, 4, 5, 63, 1000, UINT32_MAX, (uint64_t)1 << 40, UINT64_MAX - 1,
                                   UINT64_MAX};
    uint64_t i = rbt_rng_below(rng, 2 * (sizeof ODD / sizeof ODD[0]));

    return i < sizeof ODD / sizeof ODD[0] ? ODD[i] : rbt_rng_u64(rng);
}

static uint32_t small(rbt_rng *rng)
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
static void add_parts(rbt_rng *rng, bool is_sound, rbt_message *message)
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
    message->slice = rbt_rng_below(rng, 3) == 0 ? odd(rng) : rbt_rng_below(rng, 3);
    message->more = rbt_rng_below(rng, 2);
    message->version = odd(rng);
    message->request = odd(rng);
    message->held_ns = odd(rng);
    message->number = -1;
    if (message->type == RBT_MSG_PUSH || message->type == RBT_MSG_PULL || message->type == RBT_MSG_BLOCKS)
        add_parts(rng, false, message);
    for (uint64_t n = message->type == RBT_MSG_VIEW ? rbt_rng_below(rng, 5) : 0; n > 0; n--)
        rbt_array_push(&message->members, ((rbt_member){small(rng), (uint32_t)rbt_rng_below(rng, 3)}));
    for (uint64_t n = message->type == RBT_MSG_BLOCKS ? rbt_rng_below(rng, 3) : 0; n > 0; n--)
        rbt_array_push(&message->applied, ((rbt_applied){odd(rng), odd(rng)}));
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

static size_t forge(rbt_rng *rng, caller *c, uint8_t *bytes)
{
    uint64_t mutation = rbt_rng_below(rng, MUTATIONS);
    rbt_frame *frame = rbt_rng_below(rng, 2) == 0 ? any_control(rng) : rbt_frame_of_message(any_message(rng));
    size_t n;

    frame->header.sequence = ++c->sequence;
    damage(rng, mutation, frame);
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

/* ---------------------------------------------------------------------------------------------- strangers */

static bool write_all(int fd, const uint8_t *bytes, size_t n)
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

/* A caller sends some frames and waits to see whether it is cut off; those that are waited for (a truncated frame) hang
 * up themselves. */
static int strangers(caller *c, uint64_t count, uint64_t seed)
{
    rbt_rng rng = rbt_rng_stream(seed, RBT_STREAM_TEST, 0);
    uint8_t *bytes = rbt_alloc(BYTES_MOST, 1);
    uint64_t frames = 0, calls = 0, cut = 0;

    while (frames < count && call(c)) {
        uint64_t some = 1 + rbt_rng_below(&rng, 8);

        calls++;
        if (rbt_rng_below(&rng, 16) > 0)
            introduce(c, rbt_rng_below(&rng, 32) > 0 ? rbt_rng_u64(&rng) | 1 : odd(&rng));
        for (; some > 0 && c->link->state == RBT_LINK_OPEN; some--) {
            size_t n = forge(&rng, c, bytes);

            frames++;
            if (!write_all(c->link->fd, bytes, n))
                break;
            turn(c, 0);
        }
        listen_for(c, rbt_rng_below(&rng, 4) == 0 ? 20 : 2, false);
        cut += c->link->state == RBT_LINK_CLOSED;
    }
    hang_up(c);
    rbt_free(bytes);
    printf("%llu frames in %llu calls, %llu of them cut off by the other side\n", (unsigned long long)frames,
           (unsigned long long)calls, (unsigned long long)cut);
    return frames >= count ? 0 : GONE;
}

/* ------------------------------------------------------------------------------------ callers with manners */

static int silent(const caller *like, uint64_t count)
{
    caller *all = rbt_alloc(count, sizeof *all);
    uint64_t until = rbt_now_ns() + PATIENCE_NS, open = count;

    for (uint64_t i = 0; i < count; i++) {
        all[i] = *like;
        if (!call(&all[i]))
            return GONE;
        if (i % 2 == 0) /* the others do not even introduce themselves */
            introduce(&all[i], 1000 + i);
    }
    while (open > 0 && rbt_now_ns() < until) {
        open = 0;
        for (uint64_t i = 0; i < count; i++) {
            if (all[i].link->state != RBT_LINK_OPEN)
                continue;
            turn(&all[i], 1);
            open += all[i].link->state == RBT_LINK_OPEN;
        }
        poll(NULL, 0, 50);
    }
    for (uint64_t i = 0; i < count; i++)
        hang_up(&all[i]);
    rbt_free(all);
    printf("%llu of %llu callers were not cut off\n", (unsigned long long)open, (unsigned long long)count);
    return open == 0 ? 0 : 1;
}

static int hello(caller *c, uint32_t rank)
{
    rbt_pack words = {0};

    if (!call(c))
        return GONE;
    introduce(c, rbt_now_ns() | 1);
    rbt_pack_u32(&words, rank);
    rbt_pack_u64(&words, 1);
    rbt_pack_u32(&words, 1);
    rbt_pack_text(&words, "nowhere");
    rbt_pack_text(&words, "");
    rbt_pack_text(&words, "unix:@nobody");
    say(c, RBT_SAY_HELLO, &words);
    rbt_array_free(&words);
    listen_for(c, PATIENCE_NS / 1000000u, true);
    printf("%s: %s\n",
           c->answer == RBT_SAY_SORRY     ? "sorry"
           : c->answer == RBT_SAY_WELCOME ? "welcome"
                                          : "cut off",
           c->answer_text);
    hang_up(c);
    return 0;
}

/* Claims to be a rank and speaks as that rank would. */
static int iam(caller *c, uint32_t rank)
{
    rbt_pack words = {0};
    rbt_message *push = rbt_message_create(RBT_MSG_PUSH, 1 + rank, 1);
    rbt_frame *frame;

    if (!call(c))
        return GONE;
    introduce(c, rbt_now_ns() | 1);
    rbt_pack_u32(&words, rank);
    say(c, RBT_SAY_IAM, &words);
    rbt_array_free(&words);
    push->view = 1;
    push->worker = rank - 1;
    frame = rbt_frame_of_message(push);
    frame->header.sequence = ++c->sequence;
    send_frame(c, frame);
    listen_for(c, PATIENCE_NS / 1000000u, false);
    printf("%s\n", c->link->state == RBT_LINK_CLOSED ? "cut off" : "listened to");
    hang_up(c);
    return 0;
}

/* ------------------------------------------------------------------------------------------------- the mad */

void __real_rbt_session_send(rbt_session *session, uint32_t rank, rbt_message *message);
void __wrap_rbt_session_send(rbt_session *session, uint32_t rank, rbt_message *message);

static const char *style = "";
static rbt_rng mad_rng;
static uint64_t mad_sent, mad_forged;

static bool is_style(const char *name)
{
    return strcmp(style, name) == 0 || (strcmp(style, "any") == 0 && rbt_rng_below(&mad_rng, 8) == 0);
}

/* What a server refuses and does not take amiss. */
static void forge_quietly(rbt_message *copy)
{
    if (is_style("clock")) {
        copy->clock += 100000 + rbt_rng_below(&mad_rng, UINT32_MAX);
    } else if (is_style("parts")) {
        copy->clock++;
        add_parts(&mad_rng, true, copy);
        rbt_array_push(&copy->parts, ((rbt_part){.table = 7}));
    } else if (is_style("pulls")) {
        copy->type = RBT_MSG_PULL;
        copy->need = RBT_UNBOUNDED - 1;
        copy->request = rbt_rng_u64(&mad_rng);
        add_parts(&mad_rng, true, copy);
    } else if (is_style("past")) {
        copy->view = 0;
    } /* else: the same again */
}

/* What gets it cut off. */
static void forge_loudly(rbt_message *copy)
{
    if (is_style("name")) {
        copy->worker = copy->worker == 0 ? 1 : 0;
    } else if (is_style("life")) {
        copy->incarnation++;
    } else if (is_style("node")) {
        copy->from = small(&mad_rng);
    } else if (is_style("kind")) {
        static const rbt_message_type KINDS[] = {RBT_MSG_VIEW, RBT_MSG_STOP,   RBT_MSG_METRIC, RBT_MSG_LOST,
                                                 RBT_MSG_ACK,  RBT_MSG_BLOCKS, RBT_MSG_REPORT, RBT_MSG_STABLE};

        copy->type = KINDS[rbt_rng_below(&mad_rng, sizeof KINDS / sizeof KINDS[0])];
        copy->number = -1;
    }
}

static void speak_madly(rbt_session *session, uint32_t to)
{
    rbt_pack words = {0};

    for (uint64_t k = rbt_rng_below(&mad_rng, 8); k > 0; k--)
        rbt_pack_u32(&words, small(&mad_rng));
    if (is_style("word"))
        rbt_session_say(session, to, 1000, &words, NULL, 0);
    else if (is_style("ready"))
        rbt_session_say(session, to, RBT_SAY_READY, NULL, NULL, 0);
    else if (is_style("swap"))
        rbt_session_say(session, to, RBT_SAY_SWAP, NULL, rbt_alloc(100000, 1), 100000);
    else if (is_style("control"))
        rbt_session_say(session, to, 1 + (uint32_t)rbt_rng_below(&mad_rng, RBT_SAY_OWN + 8), &words, NULL, 0);
    rbt_array_free(&words);
}

void __wrap_rbt_session_send(rbt_session *session, uint32_t rank, rbt_message *message)
{
    rbt_message *like = rbt_message_copy(message);
    uint32_t size = rbt_session_size(session);

    __real_rbt_session_send(session, rank, message);
    for (int i = 0; mad_sent > SANE_AT_FIRST && i < FORGED_BESIDE; i++, mad_forged++) {
        rbt_message *copy = rbt_message_copy(like);

        forge_quietly(copy);
        forge_loudly(copy);
        if (is_style("neighbour")) { /* another worker, to whom it has nothing to say */
            copy->to = like->from - 1;
            __real_rbt_session_send(session, 1, copy);
        } else {
            bool anywhere = strcmp(style, "any") == 0;

            __real_rbt_session_send(session, anywhere ? (uint32_t)rbt_rng_below(&mad_rng, size) : rank, copy);
        }
        speak_madly(session, (uint32_t)rbt_rng_below(&mad_rng, size));
    }
    mad_sent++;
    rbt_message_destroy(like);
}

static int mad(const rbt_key *key, const char *address, uint32_t rank)
{
    rbt_session_config config = {.key = *key, .has_key = true, .join_timeout_ms = 60000};
    rbt_error error = {RBT_OK, ""};
    bool joined = false;
    rbt_err err = rbt_cluster_job_join(&config, address, rank, &joined, &error);

    fprintf(stderr, "hostile: %llu forged; %s\n", (unsigned long long)mad_forged, err == RBT_OK ? "done" : error.text);
    return joined ? 0 : GONE;
}

/* ------------------------------------------------------------------------------------------------- command */

int main(int argc, char **argv)
{
    caller c = {.config = {.head_max = 1 << 20, .body_max = 1 << 20}};
    uint64_t number = argc > 4 ? strtoull(argv[4], NULL, 10) : 0;
    rbt_error error;

    if (argc < 5 || rbt_key_read(argv[2], &c.config.key, &error) != RBT_OK ||
        rbt_address_parse(argv[3], 0, &c.address, &error) != RBT_OK) {
        fprintf(stderr, "usage: hostile strangers|silent|hello|iam|mad KEY ADDRESS NUMBER [STYLE] [SEED]\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (strcmp(argv[1], "strangers") == 0 && argc > 5)
        return strangers(&c, number, strtoull(argv[5], NULL, 10));
    if (strcmp(argv[1], "silent") == 0)
        return silent(&c, number);
    if (strcmp(argv[1], "hello") == 0)
        return hello(&c, (uint32_t)number);
    if (strcmp(argv[1], "iam") == 0)
        return iam(&c, (uint32_t)number);
    if (strcmp(argv[1], "mad") == 0 && argc > 6) {
        style = argv[5];
        mad_rng = rbt_rng_stream(strtoull(argv[6], NULL, 10), RBT_STREAM_TEST, 1);
        return mad(&c.config.key, argv[3], (uint32_t)number);
    }
    return 2;
}
