#include "origin/ask.h"

#include <stdio.h>

#include "net/random.h"
#include "origin/pass.h"

#define KEY_MAX 128
#define ID_HEX (ORG_UUID_HEX - 1)

/* ---- ids ---- */

void org_new_id(char out[ORG_UUID_HEX]) {
        unsigned char b[ID_HEX / 2];

        random_bytes(b, sizeof(b));
        for (size_t i = 0; i < sizeof(b); i++)
                (void)snprintf(out + 2 * i, 3, "%02x", b[i]);
}

bool org_id_of(const struct org_call *c, struct span hold, char out[ORG_UUID_HEX]) {
        struct span prefix = span_of(c->s->conf->group_prefix);

        if (hold.len != prefix.len + ID_HEX || !span_starts(hold, prefix))
                return false;
        memcpy(out, hold.p + prefix.len, ID_HEX);
        out[ID_HEX] = '\0';
        return strspn(out, "0123456789abcdef") == ID_HEX;
}

/* ---- the body ---- */

static void read_line(struct json_body *b, struct org_ask *a, const json_t *tree, size_t i) {
        struct org_ask_line *line = &a->lines[i];
        struct json_body one;
        char path[32];

        (void)snprintf(path, sizeof(path), "lines[%zu].", i);
        json_body_borrow(&one, tree, path);
        (void)json_read_str(&one, "item", JSON_REQUIRED, 1, 63, &line->item);
        (void)json_read_int(&one, "qty", JSON_REQUIRED, 1, ORG_QTY_MAX, &line->qty);
        if (line->item.p && !org_stock_name_is_good(line->item))
                json_body_fault(&one, "item", ORG_STOCK_NAME_EXPECTED);
        if (json_body_finish(&one) != 0 && !b->error[0])
                memcpy(b->error, one.error, sizeof(b->error));
        json_body_close(&one);
}

static void read_lines(struct json_body *b, struct org_ask *a) {
        const json_t *rows = NULL;

        if (!json_read_array(b, "lines", JSON_REQUIRED, ORG_LINES_MAX, &rows))
                return;
        a->n_lines = json_array_size(rows);
        if (a->n_lines == 0)
                json_body_fault(b, "lines", "expected at least one line");
        for (size_t i = 0; i < a->n_lines; i++)
                read_line(b, a, json_array_get(rows, i), i);
}

static bool read_body(struct org_call *c, struct org_ask *a, struct json_body *b,
                      struct span item) {
        (void)json_read_str(b, "buyer", JSON_REQUIRED, 1, JWT_SUB_MAX, &a->buyer);
        if (item.p) {
                a->n_lines = 1;
                a->lines[0].item = item;
                (void)json_read_int(b, "qty", JSON_REQUIRED, 1, ORG_QTY_MAX, &a->lines[0].qty);
        } else {
                read_lines(b, a);
        }
        (void)json_read_str(b, "sale", JSON_NULLABLE, 1, 63, &a->sale);
        (void)json_read_str(b, "channel", JSON_NULLABLE, 1, 64, &a->channel);
        (void)json_read_str(b, "order_ref", JSON_NULLABLE, 1, 128, &a->order_ref);
        (void)json_read_str(b, "pass_jti", JSON_NULLABLE, 1, JWT_JTI_MAX, &a->pass_jti);
        if (a->buyer.p && !jwt_sub_is_good(a->buyer))
                json_body_fault(b, "buyer", "expected 1..128 of 0x21-0x7E but , \" and \\");
        if (a->sale.p && !org_sale_name_is_good(a->sale))
                json_body_fault(b, "sale", ORG_SALE_NAME_EXPECTED);
        if (json_body_finish(b) == 0)
                return true;
        org_call_bad_body(c, b);
        return false;
}

struct span org_ask_text(const struct org_ask *a, char *out, size_t cap) {
        struct json_out o;

        json_out_init(&o, out, cap);
        json_out_object(&o, NULL);
        json_out_array(&o, "lines");
        for (size_t i = 0; i < a->n_lines; i++) {
                json_out_str(&o, NULL, a->lines[i].item);
                json_out_int(&o, NULL, a->lines[i].qty);
        }
        json_out_array_end(&o);
        json_out_str(&o, "sale", a->sale);
        json_out_str(&o, "channel", a->channel);
        json_out_str(&o, "order_ref", a->order_ref);
        json_out_object_end(&o);
        return json_out_done(&o);
}

/* ---- the key ---- */

static bool key_is_good(struct span key) {
        if (key.len < 1 || key.len > KEY_MAX)
                return false;
        for (size_t i = 0; i < key.len; i++)
                if (key.p[i] < 0x20 || key.p[i] > 0x7e)
                        return false;
        return true;
}

static bool find_key(struct org_call *c, struct org_ask *a) {
        a->key = http_request_field(&c->x->request, HTTP_FIELD_IDEMPOTENCY_KEY);
        if (!a->key.p) {
                org_call_problem(c, PROBLEM_IDEMPOTENCY_KEY_REQUIRED, NULL, NULL, NULL);
                return false;
        }
        if (http_request_has_two(&c->x->request, HTTP_FIELD_IDEMPOTENCY_KEY)) {
                org_call_bad_field(c, "Idempotency-Key", "expected one");
                return false;
        }
        if (!key_is_good(a->key)) {
                org_call_bad_field(c, "Idempotency-Key", "expected 1..128 printable ASCII");
                return false;
        }
        return true;
}

/* ---- the pass ---- */

/* Which sale the pass is for decides; without keys or pass there is nothing to
 * look at: who calls with the service token may sell without one. */
static bool check_pass(struct org_call *c, struct org_ask *a) {
        struct span pass = http_request_field(&c->x->request, HTTP_FIELD_SLUICE_PASS);
        char sale[64];
        struct org_pass_ask ask = {sale, a->buyer, a->is_replay};
        enum problem_code code;

        if (!c->s->pass_keys || !pass.p)
                return true;
        (void)snprintf(sale, sizeof(sale), "%.*s", (int)a->sale.len, a->sale.p ? a->sale.p : "");
        code = org_pass_check(c->s->pass_keys, pass, &ask, org_service_now_ms(c->s), &a->claims);
        if (code == PROBLEM_CODE_COUNT && a->pass_jti.p &&
            !span_eq(a->pass_jti, span_of(a->claims.jti)))
                code = PROBLEM_PASS_REQUIRED;
        if (code != PROBLEM_CODE_COUNT) {
                metrics_add(&c->s->metrics.holds[ORG_OUTCOME_PASS], 1);
                org_call_problem(c, code, NULL, NULL, NULL);
                return false;
        }
        a->round = a->claims.rnd;
        if (!a->pass_jti.p)
                a->pass_jti = span_of(a->claims.jti);
        return true;
}

bool org_ask_read(struct org_call *c, struct org_ask *a, struct json_body *b, struct span item) {
        struct span only = http_request_field(&c->x->request, HTTP_FIELD_SLUICE_REPLAY_ONLY);

        *a = (struct org_ask){.round = -1, .is_replay = only.p && span_eq(only, SPAN("1"))};
        if (json_body_open(b, c->x->body) != 0) {
                org_call_bad_body(c, b);
                return false;
        }
        return find_key(c, a) && read_body(c, a, b, item) && check_pass(c, a);
}
