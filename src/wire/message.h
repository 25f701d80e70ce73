/* Messages: all that nodes say to each other.
 *
 * A message is made by its sender, handed over as a pointer (no copy: blocks travel as snapshots), and destroyed by
 * whoever handled it. Every message also has an encoded form (codec.h), the one a socket would carry.
 *
 * One struct serves all types; which fields a type uses is a table in codec.c. Node numbers: the master is 0, servers
 * are 1 .. P, workers follow, observers (which read, but have no clock) come last: see node/topology.h.
 */
#ifndef RBT_WIRE_MESSAGE_H
#define RBT_WIRE_MESSAGE_H

#include "base/mem.h"
#include "table/process_cache.h"
#include "table/snap.h"

typedef uint32_t rbt_node;

typedef enum rbt_message_type {
    RBT_MSG_PUSH = 1, /* worker -> server: the updates of one clock, or a slice of them; the last one ends that clock */
    RBT_MSG_ACK,      /* server -> worker: the push of this clock has been applied */
    RBT_MSG_PULL,     /* worker -> server: send me these blocks when the slowest has finished `need` clocks */
    RBT_MSG_BLOCKS,   /* server -> worker: the answer to a pull, or (request 0) an eager push to a registered reader */
    RBT_MSG_RETIRE,   /* worker -> servers, master: I will push no more */
    RBT_MSG_HELLO,    /* restarted worker -> master: I am back */
    RBT_MSG_VIEW,     /* master -> all, server -> worker with an old view: who is in the job */
    RBT_MSG_RESUME,   /* restarted worker -> server: which of my clocks do you have? */
    RBT_MSG_RESUMED,  /* server -> worker: this many */
    RBT_MSG_REPORT,   /* server -> master: my slowest clock and my version (partition-synchronised dyn) */
    RBT_MSG_ASK,      /* worker -> master: which version may I pull? */
    RBT_MSG_STABLE,   /* master -> worker: this one */
    RBT_MSG_METRIC,   /* observer -> master: the objective after a clock */
    RBT_MSG_STOP,     /* master -> workers: end after the clock you are in */
    RBT_MSG_LOST,     /* runtime -> master: a worker has died; `incarnation` is the one that died */
    RBT_MSG_UPDATE,   /* peer -> out-neighbour: my parameters in iteration `clock` */
    RBT_MSG_TOKEN,    /* peer -> in-neighbour: I have entered iteration `clock` */
    RBT_MSG_USED,     /* peer -> in-neighbour: I have used your update of iteration `clock` (NOTIFY-ACK) */
    RBT_MSG_CHUNK,    /* all-reduce: worker -> next one in the ring; step `request` of round `clock` */
    RBT_MSG_EARLY,    /* worker -> server: a part of the updates of the clock under way; the `slice`-th of that clock */
    RBT_MSG_GOT,      /* server -> worker: `slice` early sends of this clock have been applied; and back, for ROWS */
    RBT_MSG_ROWS,     /* server -> registered reader: these elements of blocks have changed to these values */
    RBT_MSG_TYPES
} rbt_message_type;

/* A block named or carried by a message. */
typedef struct rbt_part {
    uint32_t table;
    uint32_t block;
    uint64_t version; /* of dyn and adarev: see rule/rule.h */
    rbt_snap *snap;   /* NULL: only named, or an update that changes nothing */
} rbt_part;

typedef enum rbt_member_state { RBT_MEMBER_LIVE, RBT_MEMBER_AWAY, RBT_MEMBER_RETIRED } rbt_member_state;

/* A worker as a view knows it. */
typedef struct rbt_member {
    uint32_t incarnation;
    uint32_t state; /* rbt_member_state */
} rbt_member;

typedef struct rbt_message {
    rbt_message_type type;
    rbt_node from;
    rbt_node to;
    uint32_t view;
    uint32_t worker;
    uint32_t incarnation; /* of the worker; BLOCKS, ROWS: the life that `early` is about */
    uint64_t clock;       /* PUSH, ACK: of the update; others: the worker's clock */
    uint64_t need;        /* PULL, ASK: what the slowest must have finished */
    uint64_t slowest;     /* BLOCKS, RESUMED, REPORT: what it has finished; PUSH: what the worker knew of it */
    uint64_t included; /* BLOCKS: this many of the receiver's own clocks are in the values; of all, for an observer */
    uint64_t reach;    /* BLOCKS: ... and one more in blocks before this place (rbt_applied); of a peer: jumped over */
    uint64_t early;    /* BLOCKS, ROWS: ... and in the others so many of its early sends of that clock */
    uint64_t version;  /* PULL, REPORT, STABLE: of partition-synchronised dyn */
    uint64_t request;  /* PULL, BLOCKS, ASK, STABLE, RESUME, RESUMED: which question this belongs to */
    uint64_t held_ns;  /* BLOCKS, STABLE: how long the answer was held back for others */
    uint64_t slice;    /* PUSH: which message of the clock's push this is, from 0; ROWS: bytes of all so far */
    uint64_t more;     /* PUSH: 1: it is not the last */
    double number;     /* METRIC: the objective */
    RBT_ARRAY(rbt_part) parts;
    RBT_ARRAY(rbt_member) members;  /* VIEW */
    RBT_ARRAY(rbt_applied) applied; /* BLOCKS: clocks in the values, of its process's workers; an observer's: of all */
    struct rbt_message *next;       /* the inbox it waits in */
} rbt_message;

/* What of its receiver's own is in the values of BLOCKS or ROWS. */
static inline rbt_applied rbt_message_applied(const rbt_message *message)
{
    return (rbt_applied){
        .clocks = message->included, .reach = message->reach, .early = message->early, .life = message->incarnation};
}

rbt_message *rbt_message_create(rbt_message_type type, rbt_node from, rbt_node to);
rbt_message *rbt_message_copy(const rbt_message *message); /* snapshots are shared */
void rbt_message_destroy(rbt_message *message);
const char *rbt_message_name(rbt_message_type type);

/* What a node has said while it handled one message; the runtime delivers it afterwards, in order. */
typedef struct rbt_outbox {
    rbt_message *first;
    rbt_message **last; /* where the next one goes; NULL when empty */
} rbt_outbox;

void rbt_outbox_put(rbt_outbox *outbox, rbt_message *message); /* takes the message */
rbt_message *rbt_outbox_take(rbt_outbox *outbox);              /* the oldest, or NULL */

#endif
