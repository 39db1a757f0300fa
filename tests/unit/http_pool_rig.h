/* tests/unit/http_pool_rig.h - a pool against a scripted peer, and the ends of
 * its calls counted by outcome.
 */
#ifndef TESTS_UNIT_HTTP_POOL_RIG_H
#define TESTS_UNIT_HTTP_POOL_RIG_H

#include "net/http_pool.h"
#include "tests/unit/fake_peer.h"

#define CALLS 1000
#define REFUSED_STREAM 7u

struct pool_rig {
        struct loop *loop;
        struct http_pool *pool;
        struct fake_peer peer;
        struct http_call calls[CALLS];
        size_t wanted;   /* ends to wait for */
        size_t ended[5]; /* by enum http_call_outcome */
        size_t n_ended;
        bool in_start;
        const char *method; /* of requests; POST when NULL */
        struct loop_timer timer;
        void (*done)(struct http_call *c, enum http_call_outcome outcome);
};

extern struct pool_rig rig;
extern const struct http_call_events events;

int setup(void **state);
int teardown(void **state);

/* 2 connections, 64 in flight, 1,000 waiting, 3 failures, 100 ms away. */
struct http_pool_conf conf_to(const char *address);
void make_pool(struct http_pool_conf conf);
/* Peer and pool. */
void begin(void (*script)(struct fake_conn *));
/* Nothing may be left in flight or waiting. */
void finish_peer(void);

int start(size_t i, int64_t deadline_ms);
/* Starts `n` calls and waits for their ends. */
void run_calls(size_t n, int64_t deadline_ms);
void pass_ms(int64_t ms);
/* Turns the loop until so many calls are in flight. */
void await_in_flight(size_t n);
void await_connections(size_t n);
/* So that short deadlines do not count the time it takes to connect. */
void connect_first(void);

/* Scripts, after the greeting and whole ones. */
void answer(struct fake_conn *c);
void answer_all(struct fake_conn *c);
void say_nothing(struct fake_conn *c);

#endif
