/* Each case runs a loop in a child, with its log in a pipe. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>

#include "net/log.h"
#include "net/watchdog.h"

#define REPORT_MS 100
#define ABORT_MS 400
#define TURNS 40

static struct loop *loop;
static struct watchdog dog;
static int turns_left;
static int go_on[2];

__attribute__((noinline)) static void spin(int64_t ms) {
        int64_t end_ms = loop_worked_ms() + ms;
        while (loop_worked_ms() < end_ms)
                continue;
}

static void spin_for_ever(struct loop_timer *t) {
        (void)t;
        spin(INT64_MAX / 2);
}

/* Reported, and no more: it ends. */
static void spin_for_long(struct loop_timer *t) {
        spin(2 * REPORT_MS);
        if (--turns_left > 0)
                loop_timer_start(t, 0);
        else
                loop_stop(t->loop);
}

/* Twice the time that ends a process, in turns that end. */
static void spin_shortly(struct loop_timer *t) {
        spin(2 * ABORT_MS / TURNS);
        if (--turns_left > 0)
                loop_timer_start(t, 0);
        else
                loop_stop(t->loop);
}

/* One turn that takes long because somebody else keeps it. */
static void wait_for_parent(struct loop_timer *t) {
        char c;
        assert_int_equal(read(go_on[0], &c, 1), 1);
        loop_stop(t->loop);
}

struct outcome {
        int status;
        int lines;
        char text[16384];
};

/* The child ends with the number of late turns that were counted. */
static pid_t start(void (*on_timer)(struct loop_timer *), int *log) {
        const struct watchdog_conf conf = {REPORT_MS, ABORT_MS};
        int to[2];
        assert_int_equal(pipe(to), 0);
        assert_int_equal(pipe(go_on), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
                struct loop_timer timer;
                if (dup2(to[1], STDERR_FILENO) < 0)
                        _exit(99);
                loop = loop_new();
                loop_timer_init(loop, &timer, on_timer);
                loop_timer_start(&timer, 0);
                watchdog_start(&dog, loop, "child", &conf);
                loop_run(loop);
                watchdog_stop(&dog);
                loop_free(&loop);
                _exit((int)metrics_read(&dog.late));
        }
        (void)close(to[1]);
        *log = to[0];
        return child;
}

static void finish(pid_t child, int log, struct outcome *o) {
        size_t len = 0;
        ssize_t n;
        while ((n = read(log, o->text + len, sizeof o->text - 1 - len)) > 0)
                len += (size_t)n;
        o->text[len] = '\0';
        o->lines = 0;
        for (const char *p = o->text; (p = strstr(p, "\"area\":\"watchdog\"")); p++)
                o->lines++;
        assert_int_equal(waitpid(child, &o->status, 0), child);
        (void)close(log);
        (void)close(go_on[0]);
        (void)close(go_on[1]);
}

static void test_who_spins_is_told_of_and_then_ended(void **state) {
        static struct outcome o;
        int log;
        (void)state;
        pid_t child = start(spin_for_ever, &log);
        finish(child, log, &o);
        assert_true(WIFSIGNALED(o.status));
        assert_int_equal(WTERMSIG(o.status), SIGABRT);
        assert_int_equal(o.lines, 2);
        assert_non_null(strstr(o.text, "a turn of the loop does not end"));
        assert_non_null(strstr(o.text, "has not ended; giving up"));
        assert_non_null(strstr(o.text, "\"thread\":\"child\""));
}

/* The place leads to the function that spins, among the innermost few. */
static void test_the_line_says_where(void **state) {
        static struct outcome o;
        char command[256], name[256] = "", self[128];
        bool is_found = false;
        int log;
        (void)state;
        ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
        assert_true(n > 0);
        self[n] = '\0';
        turns_left = 1;
        pid_t child = start(spin_for_long, &log);
        finish(child, log, &o);
        for (const char *p = o.text; !is_found && (p = strstr(p, "test_watchdog+0x")); p++) {
                snprintf(command, sizeof command, "addr2line -fe '%s' %.*s", self,
                         (int)strcspn(p + 14, " \""), p + 14);
                FILE *from = popen(command, "r");
                assert_non_null(from);
                while (!is_found && fgets(name, sizeof name, from))
                        is_found = strncmp(name, "spin_for_long", 13) == 0;
                (void)pclose(from);
        }
        assert_true(is_found);
}

static void test_each_late_turn_is_told_once(void **state) {
        static struct outcome o;
        int log;
        (void)state;
        turns_left = 3;
        pid_t child = start(spin_for_long, &log);
        finish(child, log, &o);
        assert_true(WIFEXITED(o.status));
        assert_int_equal(WEXITSTATUS(o.status), 3);
        assert_int_equal(o.lines, 3);
}

static void test_much_work_in_short_turns_is_fine(void **state) {
        static struct outcome o;
        int log;
        (void)state;
        turns_left = TURNS;
        pid_t child = start(spin_shortly, &log);
        finish(child, log, &o);
        assert_true(WIFEXITED(o.status));
        assert_int_equal(WEXITSTATUS(o.status), 0);
        assert_int_equal(o.lines, 0);
}

/* Stopped in the middle of a turn for longer than would end it. */
static void test_who_was_stopped_is_not_to_blame(void **state) {
        static struct outcome o;
        int log, status;
        (void)state;
        pid_t child = start(wait_for_parent, &log);
        assert_int_equal(kill(child, SIGSTOP), 0);
        assert_int_equal(waitpid(child, &status, WUNTRACED), child);
        assert_true(WIFSTOPPED(status));
        int64_t end_ms = loop_clock_ms() + ABORT_MS + REPORT_MS;
        while (loop_clock_ms() < end_ms)
                (void)poll(NULL, 0, (int)(end_ms - loop_clock_ms()));
        assert_int_equal(kill(child, SIGCONT), 0);
        assert_int_equal(write(go_on[1], "x", 1), 1);
        finish(child, log, &o);
        assert_true(WIFEXITED(o.status));
        assert_int_equal(WEXITSTATUS(o.status), 0);
        assert_int_equal(o.lines, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_who_spins_is_told_of_and_then_ended),
                cmocka_unit_test(test_the_line_says_where),
                cmocka_unit_test(test_each_late_turn_is_told_once),
                cmocka_unit_test(test_much_work_in_short_turns_is_fine),
                cmocka_unit_test(test_who_was_stopped_is_not_to_blame),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
