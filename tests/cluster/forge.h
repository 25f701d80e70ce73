/* A caller that has the key and greets as one should, and frames that are wrong in every way; used by hostile.c. */
#ifndef RBT_TESTS_CLUSTER_FORGE_H
#define RBT_TESTS_CLUSTER_FORGE_H

#include "base/rng.h"
#include "runtime/cluster/session.h"
#include "wire/message.h"

#define PATIENCE_NS (30 * 1000000000ull) /* nobody may take longer than this to answer */
#define BYTES_MOST  (1u << 20)           /* of a forged frame */

typedef struct caller {
    rbt_link_config config;
    rbt_address address;
    rbt_link *link;
    uint32_t answer; /* the last control word that came */
    char answer_text[256];
    uint64_t sequence;
    uint64_t life;
    bool is_seated; /* speaks as a process that has joined: it must not say that it failed, which ends the job */
    rbt_node node;  /* its worker's */
    uint32_t worker, incarnation;
} caller;

/* Greets as one should. False: nobody is there any more. */
bool call(caller *c);
void hang_up(caller *c);
void turn(caller *c, int ms); /* lets the connection do what it wants, for `ms` at most */

/* Says who it is: a process with this life. */
void introduce(caller *c, uint64_t life);
void say(caller *c, uint32_t word, const rbt_pack *words);
void send_frame(caller *c, rbt_frame *frame);

/* Until it is cut off, or there is an answer, or `ms` have passed. */
void listen_for(caller *c, uint64_t ms, bool for_answer);
bool write_all(int fd, const uint8_t *bytes, size_t n);

uint64_t odd(rbt_rng *rng);
uint32_t small(rbt_rng *rng);

/* `is_sound`: what they hold is well-formed, and only what they are is wrong. */
void add_parts(rbt_rng *rng, bool is_sound, rbt_message *message);

/* The bytes of a frame that is wrong, or of no use: at most BYTES_MOST. */
size_t forge(rbt_rng *rng, caller *c, uint8_t *bytes);

#endif
