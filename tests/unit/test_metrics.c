#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>
#include <pthread.h>

#include "net/metrics.h"
#include "net/random.h"

static struct metrics_out out;

static void assert_text(const char *expected) {
        struct span text = metrics_out_done(&out);

        assert_non_null(text.p);
        assert_int_equal(text.len, strlen(expected));
        assert_memory_equal(text.p, expected, text.len);
        metrics_out_fini(&out);
}

static void test_samples_are_prometheus_text(void **state) {
        const struct metrics_label labels[] = {{"sale", SPAN("a\"b\\c\nd\x01")},
                                               {"answer", SPAN("flag")}};

        (void)state;
        metrics_out_init(&out, 4096);
        metrics_family(&out, "sluice_requests_total", METRICS_COUNTER, "Requests answered.");
        metrics_sample(&out, "sluice_requests_total", labels, 2, 7);
        metrics_sample(&out, "sluice_connections", NULL, 0, 0);
        metrics_sample_int(&out, "sluice_gate_gap", labels + 1, 1, -3);
        metrics_sample_real(&out, "x", NULL, 0, 0.5);
        metrics_sample_real(&out, "x", NULL, 0, INFINITY);
        assert_text("# HELP sluice_requests_total Requests answered.\n"
                    "# TYPE sluice_requests_total counter\n"
                    "sluice_requests_total{sale=\"a\\\"b\\\\c\\nd?\",answer=\"flag\"} 7\n"
                    "sluice_connections 0\n"
                    "sluice_gate_gap{answer=\"flag\"} -3\n"
                    "x 0.5\n"
                    "x +Inf\n");
}

static void test_text_grows_to_its_ceiling_only(void **state) {
        (void)state;
        metrics_out_init(&out, 10000);
        for (int i = 0; i < 2500; i++)
                metrics_sample(&out, "a", NULL, 0, 1);
        assert_int_equal(metrics_out_done(&out).len, 10000);
        metrics_sample(&out, "a", NULL, 0, 1);
        assert_null(metrics_out_done(&out).p);
        assert_in_range(out.cap, 0, 10000);
        metrics_out_fini(&out);
}

static const char *find(struct span text, const char *part) {
        return memmem(text.p, text.len, part, strlen(part));
}

static void test_histograms_are_summed_and_cumulative(void **state) {
        static struct metrics_histogram a, b;
        const struct metrics_histogram *const parts[] = {&a, &b};
        const struct metrics_label kind = {"kind", SPAN("hold")};
        struct span whole;

        (void)state;
        metrics_out_init(&out, 65536);
        metrics_observe(&a, 0);
        metrics_observe(&a, 10);
        metrics_observe(&a, 11);
        metrics_observe(&b, 1000000);
        metrics_observe(&b, 10000001);
        assert_int_equal(metrics_histogram_count(&a), 3);
        metrics_sample_histogram(&out, "t", &kind, parts, 2);
        whole = metrics_out_done(&out);
        assert_non_null(find(whole, "t_bucket{kind=\"hold\",le=\"1e-05\"} 2\n"));
        assert_non_null(find(whole, "t_bucket{kind=\"hold\",le=\"2e-05\"} 3\n"));
        assert_non_null(find(whole, "t_bucket{kind=\"hold\",le=\"0.5\"} 3\n"));
        assert_non_null(find(whole, "t_bucket{kind=\"hold\",le=\"1\"} 4\n"));
        assert_non_null(find(whole, "t_bucket{kind=\"hold\",le=\"10\"} 4\n"));
        assert_non_null(find(whole, "t_bucket{kind=\"hold\",le=\"+Inf\"} 5\n"));
        assert_non_null(find(whole, "t_sum{kind=\"hold\"} 11.00002"));
        assert_non_null(find(whole, "t_count{kind=\"hold\"} 5\n"));
        metrics_out_fini(&out);
}

static struct metrics_counter own, shared;
static _Atomic bool stop;

static void *count(void *mine) {
        for (int i = 0; i < 100000; i++) {
                if (mine)
                        metrics_add(&own, 1);
                metrics_add_shared(&shared, 1);
        }
        return NULL;
}

static void *scrape(void *unused) {
        uint64_t last = 0;

        while (!atomic_load(&stop)) {
                uint64_t now = metrics_read(&own);

                if (now < last)
                        abort();
                last = now;
        }
        return unused;
}

static void test_counters_are_read_while_they_move(void **state) {
        pthread_t counters[2], scraper;

        (void)state;
        assert_int_equal(pthread_create(&scraper, NULL, scrape, NULL), 0);
        assert_int_equal(pthread_create(&counters[0], NULL, count, &own), 0);
        assert_int_equal(pthread_create(&counters[1], NULL, count, NULL), 0);
        assert_int_equal(pthread_join(counters[0], NULL), 0);
        assert_int_equal(pthread_join(counters[1], NULL), 0);
        atomic_store(&stop, true);
        assert_int_equal(pthread_join(scraper, NULL), 0);
        assert_int_equal(metrics_read(&own), 100000);
        assert_int_equal(metrics_read(&shared), 200000);
        metrics_set(&own, 5);
        assert_int_equal(metrics_read(&own), 5);
}

static void test_equal_seeds_give_equal_numbers_in_range(void **state) {
        struct random_fast a, b, c;
        size_t seen[7] = {0};

        (void)state;
        random_fast_init(&a, 42);
        random_fast_init(&b, 42);
        random_fast_init(&c, 43);
        assert_int_equal(random_fast_next(&a), random_fast_next(&b));
        assert_int_not_equal(random_fast_next(&a), random_fast_next(&c));
        for (int i = 0; i < 70000; i++) {
                uint64_t near = random_fast_jitter(&a, 1000, 20);
                double unit = random_fast_unit(&a);

                seen[random_fast_below(&a, 7)]++;
                assert_in_range(near, 800, 1200);
                assert_true(unit >= 0 && unit < 1);
        }
        for (size_t i = 0; i < 7; i++)
                assert_in_range(seen[i], 9500, 10500);
        assert_int_equal(random_fast_below(&a, 0), 0);
        assert_int_equal(random_fast_below(&a, 1), 0);
        assert_int_equal(random_fast_jitter(&a, 7, 0), 7);
}

static void test_kernel_bytes_differ(void **state) {
        uint8_t a[300] = {0}, b[300] = {0};

        (void)state;
        random_bytes(a, sizeof(a));
        random_bytes(b, sizeof(b));
        assert_memory_not_equal(a, b, sizeof(a));
        random_bytes(a, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_samples_are_prometheus_text),
                cmocka_unit_test(test_text_grows_to_its_ceiling_only),
                cmocka_unit_test(test_histograms_are_summed_and_cumulative),
                cmocka_unit_test(test_counters_are_read_while_they_move),
                cmocka_unit_test(test_equal_seeds_give_equal_numbers_in_range),
                cmocka_unit_test(test_kernel_bytes_differ),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
