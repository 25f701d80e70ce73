/* One connection to another process: greeting, then frames in both directions. Without threads and without an event
 * loop: the hub calls rbt_link_step when the socket is ready, and looks at `wants`.
 *
 * Greeting. Both sides send 72 bytes: who they are, which version they speak, which key and job they have, a nonce. The
 * acceptor answers with a refusal if something does not fit, so that both can say why. Then either TLS, whose handshake
 * proves the key, or (Unix sockets, loopback, --insecure) both prove in turn that they know the key. On a Unix socket
 * they then exchange rings if both want to.
 *
 * Sending. Frames are handed over in order (rbt_link_send) and are handed back (on_sent) when the last byte has been
 * given to the system; what is not handed back when the link closes is still `unsent`. Many small frames go out in one
 * writev. Receiving: each frame is handed to on_arrival. Proved by tests/unit/test_link.c.
 */
#ifndef RBT_RUNTIME_CLUSTER_LINK_H
#define RBT_RUNTIME_CLUSTER_LINK_H

#include "runtime/cluster/address.h"
#include "runtime/cluster/frame.h"
#include "runtime/cluster/ring.h"
#include "runtime/cluster/tls.h"
#include "base/pack.h"

#define RBT_GREETING    72
#define RBT_GREETING_MS 5000

/* On Unix sockets. Auto: if both sides can have one, else without; on: else the connection is not made. */
typedef enum rbt_rings { RBT_RINGS_OFF, RBT_RINGS_AUTO, RBT_RINGS_ON } rbt_rings;

typedef enum rbt_encryption { RBT_ENCRYPT_AUTO, RBT_ENCRYPT_ON, RBT_ENCRYPT_OFF } rbt_encryption;

/* What all links of a process have in common. */
typedef struct rbt_link_config {
    rbt_key key;
    rbt_tls *tls;              /* NULL: there is none */
    uint64_t job;              /* which job of those that use this key; 0: whichever the other side has */
    rbt_encryption encryption; /* auto: everything but Unix sockets and loopback */
    rbt_rings rings;
    size_t ring_bytes; /* of those that this side writes to; 0: RBT_RING_BYTES */
    uint64_t head_max;
    uint64_t body_max;
    uint64_t stranger_max; /* of both, from a caller whose rank nobody knows; 0: the same as from others */
    uint64_t greeting_ms;  /* how long a greeting may take; 0: RBT_GREETING_MS */
} rbt_link_config;

typedef enum rbt_link_state { RBT_LINK_GREETING, RBT_LINK_OPEN, RBT_LINK_CLOSED } rbt_link_state;

enum { RBT_LINK_READ = 1, RBT_LINK_WRITE = 2 };

typedef struct rbt_link {
    const rbt_link_config *config;
    int fd;
    bool accepting;
    rbt_address remote;
    char name[RBT_ADDRESS_ROOM]; /* the remote address, for messages */
    rbt_link_state state;
    unsigned wants; /* RBT_LINK_READ, RBT_LINK_WRITE */
    bool is_ended;  /* closed: the other side ended the connection (not an error of the network) */
    bool said_bye;  /* and it did so on purpose */
    bool is_held;   /* open: what comes is left where it is, but for what has been read already */
    rbt_error why;  /* closed: the reason */

    /* called by rbt_link_step; both may send */
    void (*on_arrival)(struct rbt_link *link, rbt_arrival *arrival); /* takes it */
    void (*on_sent)(struct rbt_link *link, rbt_frame *frame);        /* takes it */
    void *context;

    /* greeting */
    int phase;
    uint8_t greeting[RBT_GREETING + RBT_KEY_PROOF]; /* being read */
    size_t greeting_done, greeting_need;
    uint8_t reply[RBT_GREETING + RBT_KEY_PROOF]; /* being written */
    size_t reply_done, reply_n;
    uint8_t nonce[RBT_KEY_NONCE], their_nonce[RBT_KEY_NONCE];
    bool uses_tls, uses_rings;
    bool must_sum; /* the connection does not protect what it carries: plain TCP between hosts */

    /* open */
    rbt_tls_stream *tls;
    uint8_t *record; /* TLS: gathered, and not all of it given to the system yet */
    size_t record_n, record_sent;
    rbt_ring out_ring, in_ring;
    rbt_error
        ring_why; /* why there is none, or none any more to write to, though both sides wanted it; RBT_OK: there is */
    rbt_intake intake;
    rbt_frame *unsent, **unsent_last; /* in order */
    rbt_frame *unpacked;              /* the first frame that has not been sealed; NULL: all are */
    size_t sent;                      /* of the first unsent frame */
    rbt_pack words;                   /* short frames between others, being written */
    size_t words_sent;
    bool filling; /* the first frame's body is not wholly in the ring yet */
    size_t filled_piece, filled_at;
    int write_failed; /* the system's reason; 0: it has not */
    uint64_t acked;   /* goes into every header */
    uint64_t bytes_in, bytes_out;
} rbt_link;

/* Takes the socket. A dialled one may still be connecting. */
rbt_link *rbt_link_create(const rbt_link_config *config, int fd, const rbt_address *remote, bool accepting);
void rbt_link_destroy(rbt_link *link);

/* The socket is ready for what is given; goes as far as it can. After RBT_LINK_CLOSED only `why` and `unsent` matter. */
void rbt_link_step(rbt_link *link, unsigned ready);

/* Takes the frame; goes out with the next step or flush. */
void rbt_link_send(rbt_link *link, rbt_frame *frame);
void rbt_link_say(rbt_link *link, rbt_frame_kind kind); /* ACK, BYE */
void rbt_link_flush(rbt_link *link);

/* Reads and hands out nothing from now on: the other side finds that nobody reads, and waits. The second goes on; a step
 * for RBT_LINK_READ is to follow. */
void rbt_link_hold(rbt_link *link);
void rbt_link_resume(rbt_link *link);

bool rbt_link_is_busy(const rbt_link *link); /* something is not with the system yet */

/* Closes it with a reason, if it is not closed yet. */
void rbt_link_close(rbt_link *link, rbt_err code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same for what the system says: RBT_E_IO, with `what` was being done and a remedy. */
void rbt_link_close_broken(rbt_link *link, const char *what, int reason);

#endif
