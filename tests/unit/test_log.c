#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "net/log.h"

static char line[LOG_LINE_MAX];

static json_t *parse(size_t len) {
        json_t *tree;

        assert_in_range(len, 2, LOG_LINE_MAX);
        assert_int_equal(line[len - 1], '\n');
        for (size_t i = 0; i + 1 < len; i++)
                assert_in_range(line[i], 0x20, 0x7E);
        tree = json_loadb(line, len, JSON_ALLOW_NUL, NULL);
        assert_non_null(tree);
        return tree;
}

static void test_a_line_is_one_json_object(void **state) {
        json_t *tree;

        (void)state;
        tree = parse(
                log_format(line, LOG_WARN, "snapshot", "origin away",
                           (const struct log_field[]){LOG_S("addr", "127.0.0.1:1"), LOG_I("ms", -5),
                                                      LOG_U("n", UINT64_MAX >> 1),
                                                      LOG_B("yes", true), LOG_S("none", NULL),
                                                      LOG_E("error", -ECONNREFUSED), LOG_END}));
        assert_string_equal(json_string_value(json_object_get(tree, "level")), "warn");
        assert_string_equal(json_string_value(json_object_get(tree, "area")), "snapshot");
        assert_string_equal(json_string_value(json_object_get(tree, "event")), "origin away");
        assert_string_equal(json_string_value(json_object_get(tree, "addr")), "127.0.0.1:1");
        assert_int_equal(json_integer_value(json_object_get(tree, "ms")), -5);
        assert_true(json_is_true(json_object_get(tree, "yes")));
        assert_true(json_is_null(json_object_get(tree, "none")));
        assert_string_equal(json_string_value(json_object_get(tree, "error")), "ECONNREFUSED");
        assert_non_null(json_object_get(tree, "at"));
        json_decref(tree);
}

static void test_foreign_bytes_break_no_line(void **state) {
        char all[256];
        json_t *tree;

        (void)state;
        for (size_t i = 0; i < sizeof(all); i++)
                all[i] = (char)i;
        tree = parse(
                log_format(line, LOG_INFO, "a", "\"},\n{\"",
                           (const struct log_field[]){
                                   LOG_SPAN("bytes", ((struct span){all, sizeof(all)})), LOG_END}));
        assert_string_equal(json_string_value(json_object_get(tree, "event")), "\"},\n{\"");
        assert_null(json_object_get(tree, "cut"));
        json_decref(tree);
}

static void test_what_does_not_fit_is_left_out_whole(void **state) {
        static char big[8192];
        json_t *tree;

        (void)state;
        memset(big, '\x1b', sizeof(big));
        for (size_t n = 200; n < 420; n++) {
                tree = parse(log_format(
                        line, LOG_INFO, "a", "b",
                        (const struct log_field[]){LOG_I("before", 1),
                                                   LOG_SPAN("big", ((struct span){big, n})),
                                                   LOG_I("after", 2), LOG_END}));
                assert_int_equal(json_integer_value(json_object_get(tree, "before")), 1);
                assert_true(!json_object_get(tree, "cut") ==
                            (json_object_get(tree, "big") && json_object_get(tree, "after")));
                json_decref(tree);
        }
        tree = parse(log_format(
                line, LOG_INFO, "a", "b",
                (const struct log_field[]){LOG_SPAN("big", ((struct span){big, sizeof(big)})),
                                           LOG_I("after", 2), LOG_END}));
        assert_true(json_is_true(json_object_get(tree, "cut")));
        assert_int_equal(json_integer_value(json_object_get(tree, "after")), 2);
        json_decref(tree);
}

static char folder[] = "/tmp/sluice-log-XXXXXX";
static char file[64], pipe_name[64];

static int make_folder(void **state) {
        (void)state;
        if (!mkdtemp(folder))
                return -1;
        (void)snprintf(file, sizeof(file), "%s/log", folder);
        (void)snprintf(pipe_name, sizeof(pipe_name), "%s/pipe", folder);
        return 0;
}

static int remove_folder(void **state) {
        (void)state;
        (void)unlink(file);
        (void)unlink(pipe_name);
        return rmdir(folder);
}

static size_t lines_of(const char *name) {
        FILE *in = fopen(name, "r");
        size_t n = 0;

        assert_non_null(in);
        while (fgets(line, sizeof(line), in)) {
                json_decref(parse(strlen(line)));
                n++;
        }
        (void)fclose(in);
        return n;
}

static void *write_many(void *unused) {
        for (int i = 0; i < 500; i++)
                log_event(LOG_INFO, "test", "line", LOG_I("i", i));
        return unused;
}

static void test_threads_write_whole_lines(void **state) {
        pthread_t threads[4];

        (void)state;
        assert_int_equal(log_init(LOG_INFO, file), 0);
        for (size_t i = 0; i < 4; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, write_many, NULL), 0);
        for (size_t i = 0; i < 4; i++)
                assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(lines_of(file), 2000);
}

static int evaluated;

static const char *evaluate(void) {
        evaluated++;
        return "x";
}

static void test_lower_levels_cost_nothing(void **state) {
        size_t before = lines_of(file);

        (void)state;
        log_event(LOG_DEBUG, "test", "line", LOG_S("x", evaluate()));
        assert_int_equal(evaluated, 0);
        assert_int_equal(lines_of(file), before);
        log_level_set(LOG_DEBUG);
        log_event(LOG_DEBUG, "test", "line", LOG_S("x", evaluate()));
        log_event(LOG_DEBUG, "test", "no fields");
        assert_int_equal(evaluated, 1);
        assert_int_equal(lines_of(file), before + 2);
        log_level_set(LOG_INFO);
}

static void test_a_noisy_place_is_cut_short(void **state) {
        size_t before = lines_of(file), after;

        (void)state;
        for (int i = 0; i < 1000; i++)
                log_event_limited(3, LOG_WARN, "test", "noise", LOG_I("i", i));
        after = lines_of(file);
        /* The second may turn once or twice on a slow machine. */
        assert_in_range(after - before, 3, 9);
}

static void test_a_renamed_file_is_opened_anew(void **state) {
        char old[80];

        (void)state;
        (void)snprintf(old, sizeof(old), "%s.1", file);
        assert_int_equal(rename(file, old), 0);
        assert_int_equal(log_init(LOG_INFO, file), 0);
        log_event(LOG_INFO, "test", "after");
        assert_int_equal(lines_of(file), 1);
        assert_int_equal(unlink(old), 0);
}

static void test_a_bad_file_leaves_the_old_one(void **state) {
        size_t before = lines_of(file);

        (void)state;
        assert_int_equal(log_init(LOG_INFO, "/nonexistent/log"), -ENOENT);
        log_event(LOG_INFO, "test", "still here");
        assert_int_equal(lines_of(file), before + 1);
}

static void test_a_full_pipe_drops_and_counts(void **state) {
        uint64_t before = log_dropped();
        int reader;

        (void)state;
        assert_int_equal(mkfifo(pipe_name, 0600), 0);
        reader = open(pipe_name, O_RDONLY | O_NONBLOCK);
        assert_true(reader >= 0);
        assert_int_equal(log_init(LOG_INFO, pipe_name), 0);
        for (int i = 0; i < 2000; i++)
                log_event(LOG_INFO, "test", "line", LOG_I("i", i));
        assert_true(log_dropped() > before);
        assert_int_equal(log_init(LOG_INFO, file), 0);
        assert_int_equal(close(reader), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_line_is_one_json_object),
                cmocka_unit_test(test_foreign_bytes_break_no_line),
                cmocka_unit_test(test_what_does_not_fit_is_left_out_whole),
                cmocka_unit_test(test_threads_write_whole_lines),
                cmocka_unit_test(test_lower_levels_cost_nothing),
                cmocka_unit_test(test_a_noisy_place_is_cut_short),
                cmocka_unit_test(test_a_renamed_file_is_opened_anew),
                cmocka_unit_test(test_a_bad_file_leaves_the_old_one),
                cmocka_unit_test(test_a_full_pipe_drops_and_counts),
        };

        return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
