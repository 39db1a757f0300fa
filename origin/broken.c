#include "origin/broken.h"

#define NAME_MAX_BYTES 63

static bool is_name(struct span s) {
        for (size_t i = 0; i < s.len; i++) {
                char c = s.p[i];

                if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '.' || c == '_' || c == '-'))
                        return false;
        }
        return s.len > 0 && s.len <= NAME_MAX_BYTES;
}

/* The n-th value behind the bracket, from 0. */
static struct span value(struct span row, size_t n) {
        for (;;) {
                const char *end = memchr(row.p, ',', row.len);
                size_t len = end ? (size_t)(end - row.p) : row.len;

                if (n-- == 0)
                        return (struct span){row.p, len};
                if (!end || len + 2 > row.len)
                        return (struct span){NULL, 0};
                row.p += len + 2;
                row.len -= len + 2;
        }
}

bool org_broken_row(struct span table, struct span detail, struct span *tenant, struct span *item) {
        const char *start = detail.p ? memchr(detail.p, '(', detail.len) : NULL;
        size_t item_column = span_eq(table, SPAN("hold")) ? 2 : 1; /* behind tenant and id */
        struct span row;

        if (!start || (item_column == 1 && !span_eq(table, SPAN("item"))))
                return false;
        row = (struct span){start + 1, detail.len - (size_t)(start + 1 - detail.p)};
        *tenant = value(row, 0);
        *item = value(row, item_column);
        return is_name(*tenant) && is_name(*item);
}
