/* Frames: what a connection carries.
 *
 * A frame is a header of fixed size, then a head (an encoded message without its blocks, or a few words of the cluster's
 * own), then a body (the blocks' values). docs/formats.md has it byte by byte. A frame is sent from where its parts lie
 * and received to where they will stay: the body goes straight into the snapshots that decoding the head has made. The body
 * of a message may be squeezed (comm/squeeze.h); it is then received as it is, and made a message when it is complete.
 *
 * rbt_intake is the receiving side as a state machine without a socket: it says where the next bytes are to go, is told
 * how many came, and hands out frames. It trusts nothing: every length is checked against its limit before anything is
 * allocated, checksums cover header and head, and the body where the connection itself does not (plain TCP). Called by
 * link.c. Proved by tests/unit/test_frame.c and test_frame_refusals.c, fuzzed by tests/fuzz/fuzz_frame.c.
 */
#ifndef RBT_RUNTIME_CLUSTER_FRAME_H
#define RBT_RUNTIME_CLUSTER_FRAME_H

#include "comm/squeeze.h"

#define RBT_FRAME_MAGIC    0x46544252u /* "RBTF" */
#define RBT_FRAME_VERSION  3u          /* of everything two processes say to each other */
#define RBT_FRAME_HEADER   64
#define RBT_FRAME_HEAD_MAX (32u << 20) /* bytes: names, members, a million blocks named */
#define RBT_FRAME_BODY_MAX                                                                                             \
    ((uint64_t)1 << 40)       /* what a job's tables may hold is a tighter bound, given to the intake */
#define RBT_FRAME_INLINE 1024 /* bodies up to this are copied behind the head: one piece to send */

typedef enum rbt_frame_kind {
    RBT_FRAME_MESSAGE = 1, /* between nodes */
    RBT_FRAME_CONTROL,     /* between processes: session.h */
    RBT_FRAME_SESSION,     /* the first frame of a connection: who speaks, and what it has received. Here and below:
                              not numbered, never sent again */
    RBT_FRAME_ACK,         /* all up to `acked` has been received */
    RBT_FRAME_MORE,        /* more of the body under way is in the ring */
    RBT_FRAME_ROOM,        /* the ring has room again */
    RBT_FRAME_BYE,         /* the connection ends on purpose */
    RBT_FRAME_KINDS
} rbt_frame_kind;

enum {
    RBT_FRAME_IN_RING = 1 << 0,  /* the body comes through the shared memory */
    RBT_FRAME_SUMMED = 1 << 1,   /* body_sum covers the body */
    RBT_FRAME_SQUEEZED = 1 << 2, /* MESSAGE: the body is squeezed */
    RBT_FRAME_FLAGS = 7
};

typedef struct rbt_frame_header {
    uint8_t kind;
    uint8_t flags;
    uint32_t view; /* MESSAGE: as in the message, like from and to; else 0, and ranks */
    uint32_t from;
    uint32_t to;
    uint32_t head;     /* bytes */
    uint64_t body;     /* bytes */
    uint64_t sequence; /* counts numbered frames from 1; else 0 */
    uint64_t acked;    /* all numbered frames up to this one have been received */
    uint64_t body_sum;
} rbt_frame_header;

/* A frame on its way out. */
typedef struct rbt_frame {
    struct rbt_frame *next;
    rbt_frame_header header;
    uint8_t *bytes; /* header (written last, when the frame is sent), head, and a small body */
    size_t n;
    rbt_message *message; /* whose blocks are the body; or NULL */
    rbt_pieces body;      /* what is not in `bytes` */
    void *owned;          /* a body of bytes that is freed with the frame; or NULL */
    bool is_answer;       /* the hub's: to what its receiver has said */
} rbt_frame;

/* Takes the message. With a codec its body is squeezed, if that makes it smaller; `keys` is the sender's, or NULL. */
rbt_frame *rbt_frame_of_message(rbt_message *message, unsigned codec, rbt_keys *keys);

/* `body` (taken, may be NULL) for what is large; `head` is copied. */
rbt_frame *rbt_frame_create(rbt_frame_kind kind, const void *head, size_t n, void *body, size_t body_n);

/* The same with the values of the message's blocks, which are dense, as the body; takes the message. */
rbt_frame *rbt_frame_of_blocks(rbt_frame_kind kind, const void *head, size_t n, rbt_message *blocks);
void rbt_frame_destroy(rbt_frame *frame);

/* Works out the body's checksum; may be done on any thread before the frame is sent. */
void rbt_frame_sum_body(rbt_frame *frame);

/* Writes the header as it stands into the frame's bytes. */
void rbt_frame_seal(rbt_frame *frame);

/* A frame that is a header alone (ACK, MORE, ROOM, BYE). */
void rbt_frame_word(rbt_frame_kind kind, uint64_t acked, uint8_t bytes[RBT_FRAME_HEADER]);
rbt_frame_kind rbt_frame_word_kind(const uint8_t bytes[RBT_FRAME_HEADER]);

/* All bytes that the frame takes on a connection, without those that go through the ring. */
size_t rbt_frame_size(const rbt_frame *frame);

/* ------------------------------------------------------------------------------------------------ receiving */

typedef struct rbt_arrival {
    rbt_frame_header header;
    rbt_message *message; /* MESSAGE: decoded and checked; the taker destroys it */
    uint8_t *head;        /* else: the bytes, the taker frees both; a byte 0 stands behind the head */
    uint8_t *body;
} rbt_arrival;

void rbt_arrival_deinit(rbt_arrival *arrival);

typedef struct rbt_intake {
    uint64_t head_max;
    uint64_t body_max;
    uint64_t expected; /* the number of the next numbered frame; one that is lower is a repeat and dropped */
    rbt_keys *keys;    /* what the frames before that one have brought: of the peer, not the connection; or NULL */

    uint8_t *staging; /* bytes that came and are not taken yet: at .. end */
    size_t at, end;
    rbt_arrival under_way;
    bool has_header, has_head; /* of it */
    uint8_t *head;             /* being received, head_done bytes so far */
    size_t head_done;
    rbt_pieces body; /* where the body goes */
    size_t piece, piece_done;
    uint64_t body_done;
} rbt_intake;

#define RBT_INTAKE_STAGING ((size_t)64 << 10)
#define RBT_INTAKE_PIECES  16

void rbt_intake_init(rbt_intake *intake, uint64_t head_max, uint64_t body_max);
void rbt_intake_deinit(rbt_intake *intake);

/* Where bytes from the connection go now: up to RBT_INTAKE_PIECES pieces, at least one byte. */
size_t rbt_intake_room(rbt_intake *intake, rbt_piece room[RBT_INTAKE_PIECES]);

/* n bytes have been put there. */
void rbt_intake_put(rbt_intake *intake, size_t n);

/* The body of the frame under way comes through the ring, and this is where its next bytes go; NULL: nothing of that. */
uint8_t *rbt_intake_ring_room(rbt_intake *intake, size_t *n);
void rbt_intake_ring_put(rbt_intake *intake, size_t n);

/* The next frame that is complete; *got is false when more bytes are needed, or when a frame has begun whose body comes
 * through the ring: what is in the ring is put first (rbt_intake_ring_room), then this is called again, because what
 * follows on the connection may be behind that body. RBT_E_PROTOCOL: the other side is not to be listened to any more. */
rbt_err rbt_intake_next(rbt_intake *intake, rbt_arrival *arrival, bool *got, rbt_error *error);

#endif
