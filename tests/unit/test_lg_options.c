#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "loadgen/options.h"

#define WORDS_MAX 12

/* Parses words parted by spaces; *faults gets what was said, to be freed. */
static int parse(const char *line, struct lg_options *o, char **faults) {
        static char copy[512];
        char *words[WORDS_MAX], *rest = copy;
        int n = 0;
        size_t len = 0;
        snprintf(copy, sizeof(copy), "%s", line);
        for (char *word; (word = strsep(&rest, " ")) != NULL && n < WORDS_MAX;) {
                if (*word)
                        words[n++] = word;
        }
        FILE *out = open_memstream(faults, &len);
        int r = lg_options_parse(o, n, words, out);
        fclose(out);
        return r;
}

static void assert_parsed(const char *line, struct lg_options *o) {
        char *faults;
        if (parse(line, o, &faults) != 0)
                fail_msg("%s: %s", line, faults);
        assert_string_equal(faults, "");
        free(faults);
}

static void test_nothing_given_is_the_quickstart(void **state) {
        (void)state;
        struct lg_options o;
        assert_parsed("", &o);
        assert_int_equal(o.buyers, 10000);
        assert_int_equal(o.units, 100);
        assert_int_equal(o.tabs, 1);
        assert_int_equal(o.arrival, LG_ARRIVAL_HERD);
        assert_int_equal(lg_options_connections(&o), 2000);
        assert_int_equal(lg_options_hold_seconds(&o), 600);
        assert_string_equal(o.addresses, "build/run/addresses.json");
        assert_false(o.json);
}

static void test_every_option_is_taken(void **state) {
        (void)state;
        struct lg_options o;
        assert_parsed("--buyers 7 --units=3 --unpaid 0.25 --leavers 10% --qty 2..4 --json", &o);
        assert_int_equal(o.buyers, 7);
        assert_int_equal(o.units, 3);
        assert_true(o.unpaid > 0.2499 && o.unpaid < 0.2501);
        assert_true(o.leavers > 0.0999 && o.leavers < 0.1001);
        assert_int_equal(o.qty_low, 2);
        assert_int_equal(o.qty_high, 4);
        assert_true(o.json);
        assert_int_equal(lg_options_connections(&o), 7);
        assert_int_equal(lg_options_hold_seconds(&o), 5);

        assert_parsed("--qty 3 --arrival prequeue --spread 4 --hold-seconds 2 --unpaid 30%", &o);
        assert_int_equal(o.qty_low, 3);
        assert_int_equal(o.qty_high, 3);
        assert_int_equal(o.arrival, LG_ARRIVAL_PREQUEUE);
        assert_int_equal(o.spread_s, 4);
        assert_int_equal(lg_options_hold_seconds(&o), 2);

        assert_parsed("--sale demo --plot out --addresses a.json --tabs 3 --seed 5 --deadline 9",
                      &o);
        assert_string_equal(o.sale, "demo");
        assert_string_equal(o.plot, "out");
        assert_string_equal(o.addresses, "a.json");
        assert_int_equal(o.seed, 5);
        assert_int_equal(lg_options_deadline_s(&o), 9);

        assert_parsed("--cheats 0.5 --sleepers .5 --connections 3 --arrival poisson", &o);
        assert_int_equal(lg_options_connections(&o), 3);
}

static void test_each_fault_is_refused_and_named(void **state) {
        (void)state;
        static const struct {
                const char *line, *word, *why;
        } rows[] = {
                {"--buyers 0", "--buyers", "nobody"},
                {"--buyers -5", "--buyers", "a sign is no digit"},
                {"--buyers 12x", "--buyers", "letters behind"},
                {"--buyers 99999999999999999999", "--buyers", "too large for a number"},
                {"--buyers", "needs a value", "value missing"},
                {"--units", "needs a value", "value missing"},
                {"--unpaid 1.5", "--unpaid", "above everyone"},
                {"--unpaid 101%", "--unpaid", "above everyone"},
                {"--unpaid -0.1", "--unpaid", "negative"},
                {"--unpaid nan", "--unpaid", "no number"},
                {"--unpaid 0.6 --leavers 0.6", "together", "more than everyone"},
                {"--qty 3..2", "--qty", "upside down"},
                {"--qty 0..2", "--qty", "nothing wanted"},
                {"--qty 1.2", "--qty", "one dot"},
                {"--qty 1..", "--qty", "no end"},
                {"--arrival storm", "herd|ramp", "unknown arrival"},
                {"--hold-seconds 1801", "1..1800", "above the contract"},
                {"--sale UPPER", "--sale", "no sale id"},
                {"--sale demo --hold-seconds 3", "--hold-seconds", "has its own"},
                {"--sale demo --arrival prequeue", "prequeue", "has its own opening"},
                {"--buyers 5 --connections 6", "--connections", "more than tabs"},
                {"--plot=", "--plot", "empty"},
                {"--json=1", "--json", "a flag has no value"},
                {"--sorcery", "no such option", "unknown"},
                {"buyers", "begin with --", "no option"},
        };
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                struct lg_options o;
                char *faults;
                int r = parse(rows[i].line, &o, &faults);
                if (r != 1 || !strstr(faults, rows[i].word))
                        fail_msg("%s (%s): %d %s", rows[i].line, rows[i].why, r, faults);
                free(faults);
        }
}

static void test_all_faults_are_told_in_one_run(void **state) {
        (void)state;
        struct lg_options o;
        char *faults;
        assert_int_equal(parse("--buyers x --units y --qty z", &o, &faults), 1);
        assert_non_null(strstr(faults, "--buyers"));
        assert_non_null(strstr(faults, "--units"));
        assert_non_null(strstr(faults, "--qty"));
        free(faults);
}

static void test_units_that_come_back_get_more_time(void **state) {
        (void)state;
        struct lg_options plain, unpaid;
        assert_parsed("--buyers 100", &plain);
        assert_parsed("--buyers 100 --unpaid 0.3 --hold-seconds 2", &unpaid);
        assert_true(lg_options_deadline_s(&unpaid) > lg_options_deadline_s(&plain));
        assert_parsed("--unpaid 0.3 --hold-seconds 1800", &unpaid);
        assert_true(lg_options_deadline_s(&unpaid) <= 7200);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_nothing_given_is_the_quickstart),
                cmocka_unit_test(test_every_option_is_taken),
                cmocka_unit_test(test_each_fault_is_refused_and_named),
                cmocka_unit_test(test_all_faults_are_told_in_one_run),
                cmocka_unit_test(test_units_that_come_back_get_more_time),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
