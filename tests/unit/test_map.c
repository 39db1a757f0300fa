/* The file of the map on disk: one whose making was cut short is replaced, and
 * a sale has its disk before anybody stands in its line. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "adm_world.h"

static void path_of(const struct world *w, char *out, size_t cap) {
        int n = snprintf(out, cap, "%s/admission.map", w->dir);
        assert_true(n > 0 && (size_t)n < cap);
}

static void test_file_without_its_header_is_made_anew(void **state) {
        (void)state;
        struct world w = {0};
        char path[128];
        struct stat st;
        world_open(&w, 1);
        path_of(&w, path, sizeof(path));
        adm_store_close(&w.store);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(truncate(path, 0), 0);
        assert_int_equal(truncate(path, st.st_size), 0);
        assert_int_equal(adm_store_open(&w.conf, w.now_ms, &w.store), 0);
        world_tell(&w);
        struct shopper s = world_shopper(1, false);
        w.now_ms += 5000; /* the passes of a lost map are waited for */
        world_tell(&w);
        assert_int_equal(world_join(&w, &s), 0);
        assert_int_equal(s.place.state, ADM_ADMITTED);
        world_close(&w);
}

static void test_a_sale_has_the_disk_for_its_line(void **state) {
        (void)state;
        const uint32_t numbers = 1u << 20;
        struct world w = {.conf = {.max_numbers = numbers}};
        char path[128];
        struct stat st;
        world_open(&w, 1);
        path_of(&w, path, sizeof(path));
        assert_int_equal(stat(path, &st), 0);
        assert_true((uint64_t)st.st_blocks * 512 >= numbers * sizeof(uint16_t));
        world_close(&w);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_file_without_its_header_is_made_anew),
                cmocka_unit_test(test_a_sale_has_the_disk_for_its_line),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
