/* Peers that have the key and mean no good; run by test_hostile.sh against the processes of a live job.
 *
 *   hostile strangers KEY ADDRESS COUNT SEED   callers without a seat send COUNT mutated frames; each is to be cut off
 *   hostile silent KEY ADDRESS COUNT           COUNT callers that never say who they are; ends when all were cut off
 *   hostile hello KEY ADDRESS RANK             asks for a seat, prints the answer
 *   hostile crowd KEY ADDRESS N[,N...]         asks for a seat for each N, as a process of this host whose name is as long as any can be and whose
 *                                              address has N characters; ends when the lead is gone
 *   hostile iam KEY ADDRESS RANK               claims to be that rank, in a life that is none of its
 *   hostile seated KEY ADDRESS RANK LIKE COUNT SEED
 *                                              takes the seat of a worker that the job waits for, sends mutated frames to the
 *                                              process at LIKE (or to the lead: the same address) until it is cut off, and comes
 *                                              back, until COUNT frames have been sent
 *   hostile deaf KEY ADDRESS RANK LIKE COUNT
 *                                              takes that seat, asks the server at LIKE for blocks, and reads nothing; ends when it is cut off, at the latest after COUNT pulls
 *   hostile mad KEY ADDRESS RANK STYLE SEED    takes the seat and the work of a real process, and forges beside it
 *
 * `mad` runs the very code of `rubato node`; the linker puts __wrap_rbt_session_send before what it sends (see
 * tests/CMakeLists.txt). Exit codes: 0 as announced, 1 the other side did not do as it should, 3 it is gone. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/time.h"
#include "forge.h"
#include "job/cluster_job.h"
#include "runtime/cluster/roster.h"

#define GONE          3
#define CROWD_MOST    16
#define SANE_AT_FIRST 20 /* messages of a process that goes mad then */
#define FORGED_BESIDE 40 /* by a mad process, beside each message of its own */

/* ---------------------------------------------------------------------------------------------- strangers */

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

/* Says hello with the longest name of a host, and an address of so many characters. */
static void boast(caller *c, uint64_t life, size_t length)
{
    rbt_pack words = {0};
    rbt_seat me;

    rbt_seat_of_this(&me);
    memset(me.host, 'h', sizeof me.host - 1);
    memset(me.tcp, 'a', length);
    memcpy(me.tcp, "unix:@", length < 6 ? length : 6);
    snprintf(me.local, sizeof me.local, "unix:@nobody");
    introduce(c, life);
    rbt_pack_u32(&words, RBT_RANK_NONE);
    rbt_seat_pack_self(&words, &me);
    say(c, RBT_SAY_HELLO, &words);
    rbt_array_free(&words);
}

static int crowd(const caller *like, const char *lengths)
{
    caller all[CROWD_MOST];
    size_t count = 0, open = 1;

    for (char *end = NULL; count < CROWD_MOST && *lengths != '\0'; lengths = end + (*end == ',')) {
        size_t length = strtoull(lengths, &end, 10);

        if (length >= RBT_ADDRESS_ROOM || end == lengths)
            return 2;
        all[count] = *like;
        if (!call(&all[count]))
            return GONE;
        boast(&all[count], 1000 + count, length);
        turn(&all[count++], 100);
    }
    while (open > 0) {
        open = 0;
        for (size_t i = 0; i < count; i++) {
            turn(&all[i], 10);
            open += all[i].link->state == RBT_LINK_OPEN;
        }
    }
    for (size_t i = 0; i < count; i++)
        hang_up(&all[i]);
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
    frame = rbt_frame_of_message(push, 0, NULL);
    frame->header.sequence = ++c->sequence;
    send_frame(c, frame);
    listen_for(c, PATIENCE_NS / 1000000u, false);
    printf("%s\n", c->link->state == RBT_LINK_CLOSED ? "cut off" : "listened to");
    hang_up(c);
    return 0;
}

/* -------------------------------------------------------------------------------------------------- the seated */

#define SEATED_MOST 40 /* frames in one seat; then it leaves by itself */

/* Takes the seat: false when the lead is gone. */
static bool sit_down(caller *lead, uint32_t rank, uint64_t life)
{
    uint64_t until = rbt_now_ns() + PATIENCE_NS;

    while (rbt_now_ns() < until) {
        rbt_pack words = {0};
        rbt_seat me;

        if (!call(lead))
            return false;
        introduce(lead, life);
        rbt_seat_of_this(&me);
        snprintf(me.local, sizeof me.local, "unix:@nobody");
        rbt_pack_u32(&words, rank);
        rbt_seat_pack_self(&words, &me);
        say(lead, RBT_SAY_HELLO, &words);
        rbt_array_free(&words);
        listen_for(lead, PATIENCE_NS / 1000000u, true);
        if (lead->answer == RBT_SAY_WELCOME)
            return true;
        poll(NULL, 0, 2); /* its former life has not been missed yet */
        life += 2;
    }
    fprintf(stderr, "hostile: no seat: %s\n", lead->answer_text);
    exit(1);
}

/* Sends mutated frames until it is cut off; each is waited for, so that it has been read. */
static uint64_t provoke(caller *c, rbt_rng *rng, uint8_t *bytes, bool *cut)
{
    uint64_t frames = 0;

    while (c->link->state == RBT_LINK_OPEN && frames < SEATED_MOST) {
        size_t n = forge(rng, c, bytes);

        if (!write_all(c->link->fd, bytes, n))
            break;
        frames++;
        turn(c, 1);
        turn(c, 0);
    }
    *cut = c->link->state != RBT_LINK_OPEN || frames < SEATED_MOST;
    return frames;
}

static int seated(const caller *like, uint32_t rank, const char *target, uint64_t count, uint64_t seed)
{
    rbt_rng rng = rbt_rng_stream(seed, RBT_STREAM_TEST, 2);
    caller lead = *like, there = *like;
    uint8_t *bytes = rbt_alloc(BYTES_MOST, 1);
    uint64_t frames = 0, seats = 0, cuts = 0, expelled = 0, life = rbt_now_ns() | 1;
    bool cut, at_lead = strcmp(target, "lead") == 0;
    rbt_error error;

    if (!at_lead && rbt_address_parse(target, 0, &there.address, &error) != RBT_OK)
        return 2;
    lead.is_seated = there.is_seated = true;
    lead.worker = there.worker = rank - 1;
    lead.node = there.node = 1 + rank; /* one server */
    while (frames < count && sit_down(&lead, rank, life += 1000)) {
        rbt_pack words = {0};

        seats++;
        lead.incarnation = there.incarnation = (uint32_t)seats;
        if (at_lead) {
            frames += provoke(&lead, &rng, bytes, &cut);
        } else if (call(&there)) {
            introduce(&there, lead.life);
            rbt_pack_u32(&words, rank);
            say(&there, RBT_SAY_IAM, &words);
            rbt_array_free(&words);
            turn(&there, 3); /* by then it has been told who that is */
            frames += provoke(&there, &rng, bytes, &cut);
        } else {
            break;
        }
        cuts += cut;
        if (cut && !at_lead) /* the lead hears of it and cuts it off, too */
            listen_for(&lead, 2000, false);
        expelled += lead.link->state == RBT_LINK_CLOSED;
        hang_up(&there);
        hang_up(&lead);
    }
    rbt_free(bytes);
    printf("%llu frames in %llu seats, %llu times cut off by the other side, %llu times by the lead\n",
           (unsigned long long)frames, (unsigned long long)seats, (unsigned long long)cuts,
           (unsigned long long)expelled);
    return frames >= count ? 0 : GONE;
}

/* Many pulls, each as any worker's. */
static size_t many_pulls(caller *c, uint8_t *bytes)
{
    size_t n = 0;

    while (n + 4096 < BYTES_MOST) {
        rbt_message *pull = rbt_message_create(RBT_MSG_PULL, c->node, 1);
        rbt_frame *frame;

        pull->view = 1;
        pull->worker = c->worker;
        pull->incarnation = c->incarnation;
        pull->request = c->sequence;
        rbt_array_push(&pull->parts, ((rbt_part){.block = 0}));
        frame = rbt_frame_of_message(pull, 0, NULL);
        frame->header.sequence = ++c->sequence;
        rbt_frame_seal(frame);
        memcpy(bytes + n, frame->bytes, frame->n);
        n += frame->n;
        rbt_frame_destroy(frame);
    }
    return n;
}

static int deaf(const caller *like, uint32_t rank, const char *target, uint64_t count)
{
    caller lead = *like, there = *like;
    uint8_t *bytes = rbt_alloc(BYTES_MOST, 1);
    rbt_pack words = {0};
    rbt_error error;
    bool cut = false;

    if (rbt_address_parse(target, 0, &there.address, &error) != RBT_OK || !sit_down(&lead, rank, rbt_now_ns() | 1) ||
        !call(&there))
        return GONE;
    there.worker = rank - 1;
    there.node = 1 + rank; /* one server */
    there.incarnation = lead.incarnation;
    introduce(&there, lead.life);
    rbt_pack_u32(&words, rank);
    say(&there, RBT_SAY_IAM, &words);
    rbt_array_free(&words);
    while (!cut && there.sequence < count)
        cut = !write_all(there.link->fd, bytes, many_pulls(&there, bytes));
    printf("%s after %llu pulls\n", cut ? "cut off" : "not cut off", (unsigned long long)there.sequence);
    listen_for(&lead, 5000, false); /* the lead hears of it and cuts it off, too */
    rbt_free(bytes);
    hang_up(&there);
    hang_up(&lead);
    return cut ? 0 : 1;
}

/* ------------------------------------------------------------------------------------------------- the mad */

size_t __real_rbt_session_send(rbt_session *session, uint32_t rank, rbt_message *message, unsigned codec);
size_t __wrap_rbt_session_send(rbt_session *session, uint32_t rank, rbt_message *message, unsigned codec);

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

size_t __wrap_rbt_session_send(rbt_session *session, uint32_t rank, rbt_message *message, unsigned codec)
{
    rbt_message *like = rbt_message_copy(message);
    uint32_t size = rbt_session_size(session);
    size_t bytes = __real_rbt_session_send(session, rank, message, codec);

    for (int i = 0; mad_sent > SANE_AT_FIRST && i < FORGED_BESIDE; i++, mad_forged++) {
        rbt_message *copy = rbt_message_copy(like);

        forge_quietly(copy);
        forge_loudly(copy);
        if (is_style("neighbour")) { /* another worker, to whom it has nothing to say */
            copy->to = like->from - 1;
            __real_rbt_session_send(session, 1, copy, codec);
        } else {
            bool anywhere = strcmp(style, "any") == 0;

            __real_rbt_session_send(session, anywhere ? (uint32_t)rbt_rng_below(&mad_rng, size) : rank, copy, codec);
        }
        speak_madly(session, (uint32_t)rbt_rng_below(&mad_rng, size));
    }
    mad_sent++;
    rbt_message_destroy(like);
    return bytes;
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
        fprintf(stderr,
                "usage: hostile strangers|silent|hello|crowd|iam|seated|deaf|mad KEY ADDRESS NUMBER [STYLE] [SEED]\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (strcmp(argv[1], "strangers") == 0 && argc > 5)
        return strangers(&c, number, strtoull(argv[5], NULL, 10));
    if (strcmp(argv[1], "silent") == 0)
        return silent(&c, number);
    if (strcmp(argv[1], "hello") == 0)
        return hello(&c, (uint32_t)number);
    if (strcmp(argv[1], "crowd") == 0)
        return crowd(&c, argv[4]);
    if (strcmp(argv[1], "iam") == 0)
        return iam(&c, (uint32_t)number);
    if (strcmp(argv[1], "seated") == 0 && argc > 7)
        return seated(&c, (uint32_t)number, argv[5], strtoull(argv[6], NULL, 10), strtoull(argv[7], NULL, 10));
    if (strcmp(argv[1], "deaf") == 0 && argc > 6)
        return deaf(&c, (uint32_t)number, argv[5], strtoull(argv[6], NULL, 10));
    if (strcmp(argv[1], "mad") == 0 && argc > 6) {
        style = argv[5];
        mad_rng = rbt_rng_stream(strtoull(argv[6], NULL, 10), RBT_STREAM_TEST, 1);
        return mad(&c.config.key, argv[3], (uint32_t)number);
    }
    return 2;
}
