/* tests/fuzz/rig.h - a server session with a connection played around it.
 *
 * What becomes of a request is said by a script of a few bytes and by its
 * number, so that two sessions which show the same requests are treated alike.
 * The rig writes down what the server's side saw.
 *
 * Ownership  init .. fini; fini frees the session and checks that nothing of
 *            the pool is left.
 */
#ifndef TESTS_FUZZ_RIG_H
#define TESTS_FUZZ_RIG_H

#include "net/http_session.h"
#include "net/metrics.h"
#include "tests/fuzz/fuzz.h"

#define RIG_SCRIPT 16

/* Bytes of the script. */
enum rig_script {
        RIG_FLAGS,   /* enum rig_flag */
        RIG_SPLIT,   /* seed of where the input is cut */
        RIG_TURN,    /* events are looked at about every so many pieces, 0 each */
        RIG_NOTICE,  /* in this turn a drain begins; 0 never */
        RIG_FINAL,   /* in this turn it ends; 0 never */
        RIG_PULL,    /* seed of how much is pulled at once */
        RIG_LATE,    /* turns before a held stream goes on */
        RIG_CLOCK,   /* milliseconds that pass in a turn, times 8 */
        RIG_PLAN = 8 /* eight of them, enum rig_plan by the stream's number */
};

enum rig_flag {
        RIG_GREETED = 1,  /* the preface and settings are sent for the input */
        RIG_NARROW = 2,   /* few streams, short heads */
        RIG_UNKNOWN = 4,  /* unknown fields are kept */
        RIG_PATIENT = 8,  /* high rims for oddness, so that it goes on and on */
        RIG_FINISHED = 16 /* at the end all is answered and read */
};

enum rig_plan {
        RIG_PAGE,      /* a page at once */
        RIG_OTHER,     /* another one */
        RIG_SMALL,     /* a few fields of its own and a short body */
        RIG_FIELDS,    /* fields for almost a frame */
        RIG_TOO_MANY,  /* more than fit */
        RIG_LARGE,     /* a body of more than a window */
        RIG_STREAM,    /* pieces, turn by turn */
        RIG_HOLD,      /* a page, late */
        RIG_BREAK,     /* begins to stream, then breaks off */
        RIG_ABORT,     /* breaks off at once */
        RIG_READ,      /* reads the body, then a page */
        RIG_SLOW_READ, /* the same, giving windows back late */
        RIG_EMPTY,     /* 204 */
        RIG_KEEP,      /* never answered */
        RIG_PLANS
};

/* What the server's side saw of a request, in the order of their heads. */
struct rig_record {
        int32_t id;
        struct http_stream *st; /* while it is held */
        enum rig_plan plan;
        unsigned turns; /* since it was shown */
        int outcome;    /* of its head */
        char *request;  /* as text */
        uint64_t body_hash;
        size_t body_bytes;
        bool received_end;
        bool is_head; /* the method */
        bool gone;
};

struct rig {
        struct pool *pool;
        struct h2_coder *coder;
        struct h2_repeats *repeats;
        struct metrics_counter evicted;
        struct http_session_conf conf;
        struct http_session *session;
        uint8_t script[RIG_SCRIPT];
        struct rig_record *records;
        size_t n_records, room;
        unsigned turns;
        bool is_finishing; /* all is answered, nothing is broken off */
        bool is_http11;    /* streams have no numbers: the order counts */
};

/* The session is the caller's to make, with the rig's conf, and to put in. */
void rig_init(struct rig *r, const uint8_t script[RIG_SCRIPT]);
void rig_fini(struct rig *r);

/* Looks at the session's events. */
void rig_events(struct rig *r);
/* A turn: events, held streams go on, drains begin. */
void rig_turn(struct rig *r);

/* Of all bytes so far, however they are cut; `before` is 0 at first. */
uint64_t fuzz_hash(uint64_t before, const void *data, size_t n);

#endif
