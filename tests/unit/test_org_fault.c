/* What an SQLSTATE means: above all, which are answers and which are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "origin/fault.h"

static void test_states_mean_what_the_table_says(void **state) {
        static const struct {
                const char *state;
                bool ends;
                enum org_db_outcome outcome;
                enum org_session session;
                unsigned tries;
                const char *why;
        } rows[] = {
                {"SL001", false, ORG_DB_REFUSED, ORG_SESSION_KEPT, 0, "our own no"},
                {"SL002", false, ORG_DB_BUSY, ORG_SESSION_KEPT, 10, "our own let go"},
                {"23514", false, ORG_DB_VIOLATED, ORG_SESSION_KEPT, 0, "a CHECK"},
                {"23505", false, ORG_DB_FAILED, ORG_SESSION_KEPT, 0, "another constraint"},
                {"25006", false, ORG_DB_AWAY, ORG_SESSION_LEFT, 0, "read only: it did not run"},
                {"25006", true, ORG_DB_AWAY, ORG_SESSION_LEFT, 0, "also when fatal"},
                {"25001", false, ORG_DB_FAILED, ORG_SESSION_KEPT, 0, "another of class 25"},
                {"40001", false, ORG_DB_BUSY, ORG_SESSION_KEPT, 2, "serialization"},
                {"40P01", false, ORG_DB_BUSY, ORG_SESSION_KEPT, 2, "deadlock"},
                {"40003", false, ORG_DB_UNKNOWN, ORG_SESSION_DROPPED, 0, "may have committed"},
                {"40002", false, ORG_DB_BUSY, ORG_SESSION_KEPT, 0, "the rest of class 40"},
                {"53200", false, ORG_DB_BUSY, ORG_SESSION_KEPT, 0, "out of memory"},
                {"53100", false, ORG_DB_BUSY, ORG_SESSION_KEPT, 0, "out of disk"},
                {"55P03", false, ORG_DB_BUSY, ORG_SESSION_KEPT, 0, "lock timeout: never repeated"},
                {"57014", false, ORG_DB_BUSY, ORG_SESSION_KEPT, 0, "statement timeout"},
                {"57P01", true, ORG_DB_UNKNOWN, ORG_SESSION_DROPPED, 0, "shut down"},
                {"57P02", true, ORG_DB_UNKNOWN, ORG_SESSION_DROPPED, 0, "another backend crashed"},
                {"57P03", true, ORG_DB_UNKNOWN, ORG_SESSION_DROPPED, 0, "starting up"},
                {"57P01", false, ORG_DB_UNKNOWN, ORG_SESSION_DROPPED, 0, "whatever its severity"},
                {"08006", false, ORG_DB_UNKNOWN, ORG_SESSION_DROPPED, 0, "connection failure"},
                {"08P01", true, ORG_DB_UNKNOWN, ORG_SESSION_DROPPED, 0,
                 "PgBouncer lost its server"},
                {"XX000", false, ORG_DB_FAILED, ORG_SESSION_KEPT, 2, "a function was replaced"},
                {"XX000", true, ORG_DB_UNKNOWN, ORG_SESSION_DROPPED, 0, "a panic, maybe at commit"},
                {"53200", true, ORG_DB_UNKNOWN, ORG_SESSION_DROPPED, 0, "fatal ends the session"},
                {"42703", false, ORG_DB_FAILED, ORG_SESSION_KEPT, 0, "our own fault"},
                {NULL, false, ORG_DB_UNKNOWN, ORG_SESSION_DROPPED, 0, "no word of a server"},
        };

        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                struct org_fault f = org_fault_of(rows[i].state, rows[i].ends);

                if (f.outcome != rows[i].outcome || f.session != rows[i].session ||
                    f.tries != rows[i].tries)
                        fail_msg("%s (%s): outcome %d, session %d, tries %u",
                                 rows[i].state ? rows[i].state : "none", rows[i].why,
                                 (int)f.outcome, (int)f.session, f.tries);
        }
}

/* An earlier row that begins a later one's state would hide it. */
static void test_every_row_can_be_reached(void **state) {
        (void)state;
        for (size_t i = 0; i < org_fault_count; i++) {
                char whole[8] = "zzzzz";

                memcpy(whole, org_faults[i].state, strlen(org_faults[i].state));
                assert_string_equal(org_fault_of(whole, false).state, org_faults[i].state);
        }
}

/* What ends a session is never told as a failure, and never tried again here. */
static void test_what_ends_a_session_is_no_answer(void **state) {
        (void)state;
        for (size_t i = 0; i < org_fault_count; i++) {
                const struct org_fault *f = &org_faults[i];

                if (f->session == ORG_SESSION_KEPT)
                        continue;
                assert_true(f->outcome == ORG_DB_UNKNOWN || f->outcome == ORG_DB_AWAY);
                assert_int_equal(f->tries, 0);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_states_mean_what_the_table_says),
                cmocka_unit_test(test_every_row_can_be_reached),
                cmocka_unit_test(test_what_ends_a_session_is_no_answer),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
