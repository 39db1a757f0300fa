#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <openssl/evp.h>

#include "gateway/page.h"

static char page[GW_PAGE_MAX_BYTES + 1];

static const char *render(const struct gw_page_facts *f) {
        size_t n = gw_page_render(f, page, GW_PAGE_MAX_BYTES);
        assert_true(n > 0);
        page[n] = '\0';
        return page;
}

static void assert_hash_in_policy(const char *open, const char *close) {
        const char *from = strstr(page, open);
        assert_non_null(from);
        from += strlen(open);
        const char *to = strstr(from, close);
        assert_non_null(to);
        unsigned char digest[32], text[64];
        assert_true(EVP_Digest(from, (size_t)(to - from), digest, NULL, EVP_sha256(), NULL));
        EVP_EncodeBlock(text, digest, sizeof digest);
        char want[96];
        snprintf(want, sizeof want, "'sha256-%s'", (const char *)text);
        char policy[512];
        struct span csp = gw_page_csp();
        assert_true(csp.len < sizeof policy);
        memcpy(policy, csp.p, csp.len);
        policy[csp.len] = '\0';
        if (!strstr(policy, want))
                fail_msg("the policy lacks %s for %s", want, open);
}

static void test_policy_names_style_and_script_by_their_hashes(void **state) {
        (void)state;
        render(&(struct gw_page_facts){
                .face = GW_PAGE_WAITING, .sale = SPAN("s"), .poll_after_ms = 5000});
        assert_hash_in_policy("<style>", "</style>");
        assert_hash_in_policy("<script>", "</script>");
}

static void test_waiting_page_tells_place_and_comes_back(void **state) {
        (void)state;
        const char *p = render(&(struct gw_page_facts){.face = GW_PAGE_WAITING,
                                                       .sale = SPAN("grinder"),
                                                       .position = 42,
                                                       .ahead = 41,
                                                       .eta_low_s = 30,
                                                       .eta_high_s = 120,
                                                       .likely = 0,
                                                       .poll_after_ms = 2600});
        assert_non_null(strstr(p, "<b id=\"n\">42</b>"));
        assert_non_null(strstr(p, "41 people are ahead of you."));
        assert_non_null(strstr(p, "About 30 seconds to 2 minutes."));
        assert_non_null(strstr(p, "unlikely to reach you"));
        assert_non_null(strstr(p, "http-equiv=\"refresh\" content=\"3\""));
        assert_non_null(strstr(p, "aria-live=\"polite\""));
}

static void test_unknown_numbers_are_not_made_up(void **state) {
        (void)state;
        const char *p = render(&(struct gw_page_facts){.face = GW_PAGE_PREQUEUE,
                                                       .sale = SPAN("s"),
                                                       .position = -1,
                                                       .ahead = -1,
                                                       .eta_low_s = -1,
                                                       .eta_high_s = -1,
                                                       .likely = -1,
                                                       .opens_at_ms = 1000,
                                                       .poll_after_ms = 1000});
        assert_non_null(
                strstr(p, "<b id=\"n\"></b><span id=\"ahead\"></span> <span id=\"eta\"></span>"));
        assert_non_null(strstr(p, "1970-01-01T00:00:01Z"));
}

static void test_public_pages_name_nobody_and_do_not_return(void **state) {
        (void)state;
        enum gw_page_face faces[] = {GW_PAGE_SOLD_OUT, GW_PAGE_CLOSED};
        for (size_t i = 0; i < NET_COUNT_OF(faces); i++) {
                const char *p = render(&(struct gw_page_facts){
                        .face = faces[i], .sale = SPAN("s"), .position = 7, .ahead = 6});
                assert_null(strstr(p, "id=\"n\""));
                assert_null(strstr(p, "refresh"));
        }
}

static void test_every_face_fits_and_is_whole(void **state) {
        (void)state;
        char sale[64], url[513];
        memset(sale, 'x', 63);
        memset(url, '&', 512);
        for (int face = 0; face < GW_PAGE_FACES; face++) {
                const char *p = render(&(struct gw_page_facts){.face = (enum gw_page_face)face,
                                                               .reason = GW_PAGE_TURN_MISSED,
                                                               .sale = {sale, 63},
                                                               .login_url = {url, 512},
                                                               .position = INT64_MAX,
                                                               .ahead = INT64_MAX,
                                                               .eta_low_s = INT64_MAX / 2,
                                                               .eta_high_s = INT64_MAX / 2,
                                                               .poll_after_ms = 120000,
                                                               .opens_at_ms = 1});
                assert_non_null(strstr(p, "</html>\n"));
        }
}

static void test_foreign_text_is_escaped(void **state) {
        (void)state;
        const char *p = render(&(struct gw_page_facts){.face = GW_PAGE_SIGN_IN,
                                                       .sale = SPAN("<b>&'\""),
                                                       .login_url = SPAN("/in?a=1&b=\"><script>")});
        assert_null(strstr(p, "<b>&'"));
        assert_non_null(strstr(p, "&lt;b&gt;&amp;&#39;&quot;"));
        assert_non_null(strstr(p, "href=\"/in?a=1&amp;b=&quot;&gt;&lt;script&gt;\""));
}

static void test_small_buffer_is_said_not_overrun(void **state) {
        (void)state;
        char small[100];
        assert_int_equal(
                gw_page_render(&(struct gw_page_facts){.face = GW_PAGE_CLOSED, .sale = SPAN("s")},
                               small, sizeof small),
                0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_policy_names_style_and_script_by_their_hashes),
                cmocka_unit_test(test_waiting_page_tells_place_and_comes_back),
                cmocka_unit_test(test_unknown_numbers_are_not_made_up),
                cmocka_unit_test(test_public_pages_name_nobody_and_do_not_return),
                cmocka_unit_test(test_every_face_fits_and_is_whole),
                cmocka_unit_test(test_foreign_text_is_escaped),
                cmocka_unit_test(test_small_buffer_is_said_not_overrun),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
