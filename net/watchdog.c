#include "net/watchdog.h"

#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "net/log.h"

#define TICKS 4 /* within the shortest time that is judged */
#define TICK_MIN_MS 5
#define FRAMES_MAX 40
#define FRAMES_OWN 2 /* the handler's, and the kernel's way into it */
#define MODULES_MAX 48
#define NAME_MAX_BYTES 24
#define PLACES_BYTES 1200

/* ---- where an address is; found out beforehand, for a signal handler may not ask ---- */

struct module {
        uintptr_t base, end;
        char name[NAME_MAX_BYTES];
};

static struct module modules[MODULES_MAX];
static size_t module_count;

static int add_module(struct dl_phdr_info *info, size_t size, void *unused) {
        struct module m = {.base = info->dlpi_addr};
        const char *slash = strrchr(info->dlpi_name, '/');
        const char *name = slash ? slash + 1 : info->dlpi_name;
        (void)size;
        (void)unused;
        for (int i = 0; i < info->dlpi_phnum; i++) {
                const ElfW(Phdr) *p = &info->dlpi_phdr[i];
                uintptr_t end = info->dlpi_addr + p->p_vaddr + p->p_memsz;
                if (p->p_type == PT_LOAD && end > m.end)
                        m.end = end;
        }
        (void)snprintf(m.name, sizeof m.name, "%s", *name ? name : program_invocation_short_name);
        if (module_count < MODULES_MAX)
                modules[module_count++] = m;
        return 0;
}

/* The first backtrace loads what it needs; the next ones allocate nothing. */
static void prepare(void) {
        void *frames[1];
        (void)dl_iterate_phdr(add_module, NULL);
        (void)backtrace(frames, 1);
}

static size_t put_place(char *out, size_t cap, uintptr_t at) {
        const char *name = "?";
        uintptr_t base = 0;
        for (size_t i = 0; i < module_count; i++) {
                if (at >= modules[i].base && at < modules[i].end) {
                        name = modules[i].name;
                        base = modules[i].base;
                }
        }
        int n = snprintf(out, cap, "%s+0x%llx ", name, (unsigned long long)(at - base));
        return n > 0 && (size_t)n < cap ? (size_t)n : 0;
}

static struct span places(char out[PLACES_BYTES]) {
        void *frames[FRAMES_MAX];
        int n = backtrace(frames, FRAMES_MAX);
        size_t len = 0;
        for (int i = FRAMES_OWN; i < n; i++)
                len += put_place(out + len, PLACES_BYTES - len, (uintptr_t)frames[i]);
        return (struct span){out, len > 0 ? len - 1 : 0};
}

/* ---- the signal ---- */

static int64_t tick_ms(const struct watchdog_conf *conf) {
        uint32_t least = conf->report_ms > 0 ? conf->report_ms : conf->abort_ms;
        if (conf->abort_ms > 0 && conf->abort_ms < least)
                least = conf->abort_ms;
        return least / TICKS > TICK_MIN_MS ? least / TICKS : TICK_MIN_MS;
}

static void report(const struct watchdog *d, const char *event, int64_t burnt_ms) {
        char at[PLACES_BYTES];
        log_event(LOG_ERROR, "watchdog", event, LOG_S("thread", d->name),
                  LOG_I("processor_ms", burnt_ms), LOG_SPAN("at", places(at)));
}

/* Signals are counted, not time: a virtual machine that was paused may find all of
 * that on one thread's clock, but it comes as one signal. */
static void judge(struct watchdog *d) {
        uint64_t turn = loop_turns(d->loop);
        if (turn != d->turn) {
                d->turn = turn;
                d->ticks = 0;
                d->is_reported = false;
                return;
        }
        int64_t burnt_ms = ++d->ticks * tick_ms(&d->conf);
        if (d->conf.abort_ms > 0 && burnt_ms >= d->conf.abort_ms) {
                report(d, "a turn of the loop has not ended; giving up", burnt_ms);
                abort();
        }
        if (d->conf.report_ms > 0 && burnt_ms >= d->conf.report_ms && !d->is_reported) {
                d->is_reported = true;
                metrics_add(&d->late, 1);
                report(d, "a turn of the loop does not end", burnt_ms);
        }
}

/* It interrupts the very thread it judges, at any place; so it allocates nothing
 * and takes no lock. log_event() does neither. */
static void on_tick(int signo, siginfo_t *info, void *context) {
        int saved = errno;
        (void)signo;
        (void)context;
        judge(info->si_value.sival_ptr);
        errno = saved;
}

/* ---- start and stop ---- */

static int timer_begin(struct watchdog *d) {
        struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = WATCHDOG_SIGNAL};
        int64_t ms = tick_ms(&d->conf);
        struct timespec each = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
        const struct itimerspec times = {.it_interval = each, .it_value = each};
        event.sigev_value.sival_ptr = d;
        event._sigev_un._tid = gettid();
        if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &d->timer) != 0)
                return -errno;
        return timer_settime(d->timer, 0, &times, NULL) == 0 ? 0 : -errno;
}

static void own_signal(sigset_t *set) {
        (void)sigemptyset(set);
        (void)sigaddset(set, WATCHDOG_SIGNAL);
}

void watchdog_start(struct watchdog *d, const struct loop *l, const char *name,
                    const struct watchdog_conf *conf) {
        static pthread_once_t once = PTHREAD_ONCE_INIT;
        struct sigaction act = {.sa_sigaction = on_tick, .sa_flags = SA_SIGINFO | SA_RESTART};
        sigset_t own;
        if (conf->report_ms == 0 && conf->abort_ms == 0)
                return;
        (void)pthread_once(&once, prepare);
        d->conf = *conf;
        d->loop = l;
        d->name = name;
        d->turn = loop_turns(l);
        (void)sigemptyset(&act.sa_mask);
        (void)sigaction(WATCHDOG_SIGNAL, &act, NULL);
        own_signal(&own);
        (void)pthread_sigmask(SIG_UNBLOCK, &own, NULL);
        int r = timer_begin(d);
        d->is_started = r == 0;
        if (r < 0)
                log_event(LOG_WARN, "watchdog", "the kernel gives no timer", LOG_S("thread", name),
                          LOG_E("error", r));
}

void watchdog_stop(struct watchdog *d) {
        const struct timespec at_once = {0, 0};
        sigset_t own;
        if (!d->is_started)
                return;
        /* A signal that is under way has the address of what goes now. */
        own_signal(&own);
        (void)pthread_sigmask(SIG_BLOCK, &own, NULL);
        (void)timer_delete(d->timer);
        while (sigtimedwait(&own, NULL, &at_once) > 0)
                continue;
        d->is_started = false;
}
