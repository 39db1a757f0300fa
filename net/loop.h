/* net/loop.h - one event loop a thread: sockets, timers, wake-ups, signals,
 * and work put off to the end of the turn.
 *
 * A turn is: wait, run what is ready, then run deferred work once. Deferred
 * work is how output is gathered (one flush a connection a turn) and how
 * objects die (retire now, free at the end of the turn).
 *
 * Units      milliseconds of the monotonic clock; never wall time.
 * Ownership  watchers are embedded by value in their owner and must be
 *            stopped before the owner goes; the loop owns nothing.
 * Context    everything belongs to the thread that runs the loop, except
 *            loop_wake_send() and loop_clock_ms(), callable from any thread.
 */
#ifndef NET_LOOP_H
#define NET_LOOP_H

#include "net/base.h"

struct loop;

enum loop_events {
        LOOP_READ = 1,
        LOOP_WRITE = 2,
};

/* `priv` is the library's own watcher; see loop.c for the size check. */
struct loop_io {
        void (*on_ready)(struct loop_io *io, unsigned events);
        struct loop *loop;
        int fd;
        unsigned wanted; /* enum loop_events or'ed, as last asked for */
        uint64_t priv[6];
};

struct loop_timer {
        void (*on_timer)(struct loop_timer *t);
        struct loop *loop;
        uint64_t priv[8];
};

struct loop_wake {
        void (*on_wake)(struct loop_wake *w);
        struct loop *loop;
        uint64_t priv[8];
};

struct loop_signal {
        void (*on_signal)(struct loop_signal *s);
        struct loop *loop;
        uint64_t priv[8];
};

struct loop_defer {
        void (*on_turn_end)(struct loop_defer *d);
        struct loop_defer *next;
        struct loop_defer **link; /* what points at this one while queued */
        bool queued;
};

/* NULL when the kernel gives no descriptor (out of files or memory). */
struct loop *loop_new(void);
/* Runs what is still deferred first, so that retired objects are freed. */
void loop_free(struct loop **l);

/* Runs until loop_stop(); may be run again after that. Waits for ever when
 * nothing is watched. */
void loop_run(struct loop *l);
/* Ends loop_run() after the present turn, or the next loop_run() at once when
 * none is running. Same thread only. */
void loop_stop(struct loop *l);

/* Turns that have ended; any thread, and any signal handler. */
uint64_t loop_turns(const struct loop *l);

/* The turn's instant: read once a turn, the same for everyone in it; read anew
 * while the loop is not running. Never runs backwards. */
int64_t loop_now_ms(const struct loop *l);
/* The monotonic clock read anew, in ms and in us; any thread. */
int64_t loop_clock_ms(void);
int64_t loop_clock_us(void);
/* Processor time of the calling thread so far, in ms and in us; a system call. */
int64_t loop_worked_ms(void);
int64_t loop_worked_us(void);

/* `fd` stays the caller's. Nothing is watched until loop_io_want(). */
void loop_io_init(struct loop *l, struct loop_io *io, int fd,
                  void (*on_ready)(struct loop_io *, unsigned));
/* Watches exactly `events` from now on; 0 stops. Cheap when unchanged. */
void loop_io_want(struct loop_io *io, unsigned events);

void loop_timer_init(struct loop *l, struct loop_timer *t, void (*on_timer)(struct loop_timer *));
/* One shot, `after_ms` >= 0 from the turn's instant; restarts if started.
 * Inside on_timer loop_now_ms() is never before the instant asked for. */
void loop_timer_start(struct loop_timer *t, int64_t after_ms);
/* Idempotent; after it on_timer does not run. */
void loop_timer_cancel(struct loop_timer *t);
bool loop_timer_is_started(const struct loop_timer *t);

/* Wakes the loop from any thread; several sends may become one on_wake. */
void loop_wake_init(struct loop *l, struct loop_wake *w, void (*on_wake)(struct loop_wake *));
void loop_wake_send(struct loop_wake *w);
void loop_wake_fini(struct loop_wake *w);

/* Signals are delivered to one loop of the process (the control thread's). */
void loop_signal_start(struct loop *l, struct loop_signal *s, int signo,
                       void (*on_signal)(struct loop_signal *));
void loop_signal_cancel(struct loop_signal *s);

/* Runs on_turn_end once at the end of this turn; queuing twice is once.
 * What on_turn_end defers anew runs in the same end of turn, after it. */
void loop_defer(struct loop *l, struct loop_defer *d, void (*on_turn_end)(struct loop_defer *));
void loop_defer_cancel(struct loop *l, struct loop_defer *d);

#endif
