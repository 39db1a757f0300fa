#include "net/loop.h"

#include <ev.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

/* The library's watchers live in the `priv` words of ours; `data` of each
 * points back. A timer keeps its due instant in its last word. */
_Static_assert(sizeof(ev_io) <= sizeof(((struct loop_io *)0)->priv), "room for ev_io");
_Static_assert(sizeof(ev_timer) <= 7 * sizeof(uint64_t), "room for ev_timer and the due instant");
_Static_assert(sizeof(ev_async) <= sizeof(((struct loop_wake *)0)->priv), "room for ev_async");
_Static_assert(sizeof(ev_signal) <= sizeof(((struct loop_signal *)0)->priv), "room for ev_signal");
_Static_assert((int)LOOP_READ == (int)EV_READ && (int)LOOP_WRITE == (int)EV_WRITE,
               "events pass through as they are");

#define TIMER_DUE 7

struct loop {
        struct ev_loop *ev;
        int64_t now_ms;
        _Atomic uint64_t turns; /* that have ended; this thread writes */
        bool running;
        bool stopped;
        struct loop_defer *deferred;
        struct loop_defer **deferred_end;
};

static ev_io *ev_io_of(struct loop_io *io) {
        return (ev_io *)(void *)io->priv;
}

static ev_timer *ev_timer_of(const struct loop_timer *t) {
        return (ev_timer *)(uintptr_t)t->priv;
}

static ev_async *ev_async_of(struct loop_wake *w) {
        return (ev_async *)(void *)w->priv;
}

static ev_signal *ev_signal_of(struct loop_signal *s) {
        return (ev_signal *)(void *)s->priv;
}

static int64_t clock_us(clockid_t clock) {
        struct timespec ts;
        int r = clock_gettime(clock, &ts);

        assert(r == 0);
        return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t loop_clock_us(void) {
        return clock_us(CLOCK_MONOTONIC);
}

int64_t loop_clock_ms(void) {
        return loop_clock_us() / 1000;
}

int64_t loop_worked_us(void) {
        return clock_us(CLOCK_THREAD_CPUTIME_ID);
}

int64_t loop_worked_ms(void) {
        return loop_worked_us() / 1000;
}

static void read_clock(struct loop *l) {
        int64_t now = loop_clock_ms();

        if (now > l->now_ms)
                l->now_ms = now;
}

/* The library calls this when it has waited and knows what is ready. */
static void invoke_pending(struct ev_loop *ev) {
        read_clock(ev_userdata(ev));
        ev_invoke_pending(ev);
}

struct loop *loop_new(void) {
        struct loop *l = calloc(1, sizeof(*l));

        if (!l)
                return NULL;
        l->ev = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
        if (!l->ev) {
                free(l);
                return NULL;
        }
        ev_set_userdata(l->ev, l);
        ev_set_invoke_pending_cb(l->ev, invoke_pending);
        /* Without this a loop that watches nothing would spin, not wait. */
        ev_ref(l->ev);
        l->deferred_end = &l->deferred;
        read_clock(l);
        return l;
}

static void run_deferred(struct loop *l) {
        while (l->deferred) {
                struct loop_defer *d = l->deferred;

                loop_defer_cancel(l, d);
                d->on_turn_end(d);
        }
}

void loop_free(struct loop **lp) {
        struct loop *l = *lp;

        if (!l)
                return;
        assert(!l->running);
        run_deferred(l);
        ev_loop_destroy(l->ev);
        free(l);
        *lp = NULL;
}

static void turn_end(struct loop *l) {
        atomic_store_explicit(&l->turns, loop_turns(l) + 1, memory_order_relaxed);
}

uint64_t loop_turns(const struct loop *l) {
        return atomic_load_explicit(&l->turns, memory_order_relaxed);
}

void loop_run(struct loop *l) {
        assert(!l->running);
        read_clock(l);
        l->running = true;
        run_deferred(l);
        while (!l->stopped) {
                ev_run(l->ev, EVRUN_ONCE);
                run_deferred(l);
                turn_end(l);
        }
        l->stopped = false;
        l->running = false;
}

void loop_stop(struct loop *l) {
        l->stopped = true;
}

int64_t loop_now_ms(const struct loop *l) {
        if (l->running)
                return l->now_ms;

        int64_t now = loop_clock_ms();

        return now > l->now_ms ? now : l->now_ms;
}

static void on_ev_io(struct ev_loop *ev, ev_io *w, int revents) {
        struct loop_io *io = w->data;
        unsigned events = (unsigned)revents & (LOOP_READ | LOOP_WRITE);

        (void)ev;
        /* EV_ERROR: the kernel refused to watch it. Its owner finds out why
         * by reading. */
        if (!events)
                events = io->wanted;
        io->on_ready(io, events);
}

void loop_io_init(struct loop *l, struct loop_io *io, int fd,
                  void (*on_ready)(struct loop_io *, unsigned)) {
        *io = (struct loop_io){.on_ready = on_ready, .loop = l, .fd = fd};

        ev_io *w = ev_io_of(io);

        ev_io_init(w, on_ev_io, fd, 0);
        w->data = io;
}

void loop_io_want(struct loop_io *io, unsigned events) {
        ev_io *w = ev_io_of(io);

        if (events == io->wanted)
                return;
        ev_io_stop(io->loop->ev, w);
        io->wanted = events;
        if (!events)
                return;
        ev_io_modify(w, (int)events);
        ev_io_start(io->loop->ev, w);
}

static void on_ev_timer(struct ev_loop *ev, ev_timer *w, int revents) {
        struct loop_timer *t = w->data;
        int64_t due = (int64_t)t->priv[TIMER_DUE];

        (void)ev;
        (void)revents;
        /* Two readings of one clock may round to different milliseconds. */
        if (t->loop->now_ms < due)
                t->loop->now_ms = due;
        t->on_timer(t);
}

void loop_timer_init(struct loop *l, struct loop_timer *t, void (*on_timer)(struct loop_timer *)) {
        *t = (struct loop_timer){.on_timer = on_timer, .loop = l};

        ev_timer *w = ev_timer_of(t);

        ev_timer_init(w, on_ev_timer, 0., 0.);
        w->data = t;
}

void loop_timer_start(struct loop_timer *t, int64_t after_ms) {
        struct loop *l = t->loop;
        ev_timer *w = ev_timer_of(t);

        assert(after_ms >= 0);
        /* The library counts from its last wait, which may be long ago. */
        if (!l->running) {
                ev_now_update(l->ev);
                read_clock(l);
        }
        ev_timer_stop(l->ev, w);
        ev_timer_set(w, (double)after_ms / 1000., 0.);
        t->priv[TIMER_DUE] = (uint64_t)(l->now_ms + after_ms);
        ev_timer_start(l->ev, w);
}

void loop_timer_cancel(struct loop_timer *t) {
        if (t->loop)
                ev_timer_stop(t->loop->ev, ev_timer_of(t));
}

bool loop_timer_is_started(const struct loop_timer *t) {
        return ev_is_active(ev_timer_of(t));
}

static void on_ev_async(struct ev_loop *ev, ev_async *w, int revents) {
        struct loop_wake *wake = w->data;

        (void)ev;
        (void)revents;
        wake->on_wake(wake);
}

void loop_wake_init(struct loop *l, struct loop_wake *w, void (*on_wake)(struct loop_wake *)) {
        *w = (struct loop_wake){.on_wake = on_wake, .loop = l};

        ev_async *a = ev_async_of(w);

        ev_async_init(a, on_ev_async);
        a->data = w;
        ev_async_start(l->ev, a);
}

void loop_wake_send(struct loop_wake *w) {
        ev_async_send(w->loop->ev, ev_async_of(w));
}

void loop_wake_fini(struct loop_wake *w) {
        if (w->loop)
                ev_async_stop(w->loop->ev, ev_async_of(w));
        w->loop = NULL;
}

static void on_ev_signal(struct ev_loop *ev, ev_signal *w, int revents) {
        struct loop_signal *s = w->data;

        (void)ev;
        (void)revents;
        s->on_signal(s);
}

void loop_signal_start(struct loop *l, struct loop_signal *s, int signo,
                       void (*on_signal)(struct loop_signal *)) {
        *s = (struct loop_signal){.on_signal = on_signal, .loop = l};

        ev_signal *w = ev_signal_of(s);

        ev_signal_init(w, on_ev_signal, signo);
        w->data = s;
        ev_signal_start(l->ev, w);
}

void loop_signal_cancel(struct loop_signal *s) {
        if (s->loop)
                ev_signal_stop(s->loop->ev, ev_signal_of(s));
        s->loop = NULL;
}

void loop_defer(struct loop *l, struct loop_defer *d, void (*on_turn_end)(struct loop_defer *)) {
        d->on_turn_end = on_turn_end;
        if (d->queued)
                return;
        d->next = NULL;
        d->link = l->deferred_end;
        d->queued = true;
        *l->deferred_end = d;
        l->deferred_end = &d->next;
}

void loop_defer_cancel(struct loop *l, struct loop_defer *d) {
        if (!d->queued)
                return;
        *d->link = d->next;
        if (d->next)
                d->next->link = d->link;
        else
                l->deferred_end = d->link;
        d->queued = false;
}
