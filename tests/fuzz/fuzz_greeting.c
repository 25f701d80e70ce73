/* A caller that says arbitrary bytes to a link that accepts, and an acceptor that says them to a link that dials, each over
 * a socket pair: as they are, and behind a greeting that fits so that the proof and the frames are reached. Whatever comes,
 * the link is open or closed with a sentence. Run: fuzz_greeting CORPUS_FOLDER. */
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "runtime/cluster/link.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void on_arrival(rbt_link *link, rbt_arrival *arrival)
{
    (void)link;
    rbt_arrival_deinit(arrival);
}

static void on_sent(rbt_link *link, rbt_frame *frame)
{
    (void)link;
    rbt_frame_destroy(frame);
}

static void step(rbt_link *link)
{
    for (int i = 0; i < 4 && link->state != RBT_LINK_CLOSED; i++)
        rbt_link_step(link, RBT_LINK_READ | RBT_LINK_WRITE);
}

/* What a link that fits would say: greeting, and as a dialer its proof. `mine` is the greeting it was answered with. */
static void greet(const rbt_link_config *config, int fd, bool as_dialer, rbt_link *link)
{
    uint8_t greeting[RBT_GREETING] = "RUBATO\r\n", theirs[RBT_GREETING], proof[RBT_KEY_PROOF];

    greeting[8] = RBT_FRAME_VERSION;
    memcpy(greeting + 24, config->key.id, RBT_KEY_ID);
    if (!as_dialer && recv(fd, theirs, sizeof theirs, MSG_DONTWAIT) != sizeof theirs)
        return;
    (void)!write(fd, greeting, sizeof greeting);
    step(link);
    if (as_dialer && recv(fd, theirs, sizeof theirs, MSG_DONTWAIT) != sizeof theirs)
        return;
    if (as_dialer)
        rbt_key_prove(&config->key, "dialer", greeting + 40, theirs + 40, proof);
    else
        rbt_key_prove(&config->key, "acceptor", theirs + 40, greeting + 40, proof);
    (void)!write(fd, proof, sizeof proof);
    step(link);
}

static void talk(const uint8_t *bytes, size_t n, bool accepting, bool fits)
{
    rbt_link_config config = {.key = {.id = "fuzz"}, .head_max = 4096, .body_max = 100000};
    rbt_address address = {.n = sizeof(sa_family_t)};
    rbt_link *link;
    int fds[2];

    address.sa.ss_family = AF_UNIX;
    RBT_ASSERT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    link = rbt_link_create(&config, fds[0], &address, accepting);
    link->on_arrival = on_arrival;
    link->on_sent = on_sent;
    step(link);
    if (fits)
        greet(&config, fds[1], accepting, link);
    RBT_ASSERT(!fits || link->state == RBT_LINK_OPEN);
    if (n > 0)
        (void)!write(fds[1], bytes, n);
    step(link);
    close(fds[1]);
    step(link);
    RBT_ASSERT(link->state == RBT_LINK_CLOSED && link->why.text[0] != '\0' && link->wants == 0);
    rbt_link_destroy(link);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    n = n < 4096 ? n : 4096;
    for (int i = 0; i < 4; i++)
        talk(bytes, n, i % 2 == 0, i >= 2);
    return 0;
}
