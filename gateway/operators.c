#include "gateway/operators.h"

#include <stdio.h>
#include <string.h>

static bool is_visible(struct span s) {
        for (size_t i = 0; i < s.len; i++)
                if (s.p[i] < 0x21 || s.p[i] > 0x7e)
                        return false;
        return s.len > 0;
}

/* As the origin takes names: what an account may be called. */
static bool name_is_good(struct span s) {
        for (size_t i = 0; i < s.len; i++)
                if (strchr(",\"\\", s.p[i]))
                        return false;
        return is_visible(s) && s.len <= GW_OPERATOR_NAME_MAX;
}

static bool read_line(struct gw_operators *o, struct span line) {
        const char *blank = memchr(line.p, ' ', line.len);
        struct gw_operator one = {.name = SPAN("operator"), .token = line};
        if (blank) {
                size_t n = (size_t)(blank - line.p);
                one.name = (struct span){line.p, n};
                one.token = (struct span){blank + 1, line.len - n - 1};
        }
        if (o->count == GW_OPERATORS_MAX || !name_is_good(one.name) || !is_visible(one.token))
                return false;
        o->at[o->count++] = one;
        return true;
}

int gw_operators_read(struct gw_operators *o, const char *file, char *why, size_t why_cap) {
        size_t len = 0;
        unsigned number = 0;
        int r = conf_secret_read(file, o->text, sizeof o->text, &len);
        o->count = 0;
        if (r < 0) {
                (void)snprintf(why, why_cap, "admin.token_file %s: %s", file, strerror(-r));
                return 1;
        }
        for (const char *at = o->text, *end = o->text + len; at < end;) {
                const char *eol = memchr(at, '\n', (size_t)(end - at));
                struct span line = {at, (size_t)((eol ? eol : end) - at)};
                at = eol ? eol + 1 : end;
                number++;
                if (line.len > 0 && line.p[line.len - 1] == '\r')
                        line.len--;
                if (line.len == 0 || read_line(o, line))
                        continue;
                gw_operators_fini(o);
                (void)snprintf(why, why_cap,
                               "admin.token_file %s:%u: expected a token, or a name, a blank and "
                               "a token; at most %d lines",
                               file, number, GW_OPERATORS_MAX);
                return 1;
        }
        if (o->count > 0)
                return 0;
        (void)snprintf(why, why_cap, "admin.token_file %s: expected a token", file);
        return 1;
}

const struct gw_operator *gw_operators_find(const struct gw_operators *o, struct span token) {
        const struct gw_operator *found = NULL;
        for (size_t i = 0; i < o->count; i++)
                if (span_eq_secret(token, o->at[i].token) && !found)
                        found = &o->at[i];
        return found;
}

void gw_operators_take(struct gw_operators *to, struct gw_operators *from) {
        *to = *from;
        for (size_t i = 0; i < to->count; i++) {
                struct gw_operator *one = &to->at[i];
                if (from->text <= one->name.p && one->name.p < from->text + sizeof from->text)
                        one->name.p = to->text + (one->name.p - from->text);
                one->token.p = to->text + (one->token.p - from->text);
        }
        gw_operators_fini(from);
}

void gw_operators_fini(struct gw_operators *o) {
        explicit_bzero(o, sizeof *o);
}
