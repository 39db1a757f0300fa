#include "loadgen/scrape.h"

#include <stdlib.h>

/* The value of a label inside {…}; p is NULL when it has none. Values with
 * escapes never equal one we ask for, so they are not unescaped. */
static struct span label_of(struct span labels, struct span name) {
        for (size_t at = 0; at + name.len + 2 <= labels.len; at++) {
                struct span rest = {labels.p + at, labels.len - at};
                bool begins = at == 0 || labels.p[at - 1] == ',' || labels.p[at - 1] == ' ';
                if (!begins || !span_starts(rest, name) || rest.p[name.len] != '=' ||
                    rest.p[name.len + 1] != '"')
                        continue;
                const char *value = rest.p + name.len + 2;
                const char *end = memchr(value, '"', rest.len - name.len - 2);
                return end ? (struct span){value, (size_t)(end - value)} : (struct span){NULL, 0};
        }
        return (struct span){NULL, 0};
}

static enum lg_counter kind_of(struct span kind) {
        static const struct {
                struct span name;
                enum lg_counter counter;
        } kinds[] = {
                {{"snapshot", 8}, LG_COUNTER_ASKED_SNAPSHOT},
                {{"health", 6}, LG_COUNTER_ASKED_HEALTH},
                {{"hold", 4}, LG_COUNTER_ASKED_HOLD},
                {{"hold_read", 9}, LG_COUNTER_ASKED_HOLD_READ},
                {{"forward", 7}, LG_COUNTER_ASKED_FORWARD},
        };
        for (size_t i = 0; i < NET_COUNT_OF(kinds); i++) {
                if (span_eq(kind, kinds[i].name))
                        return kinds[i].counter;
        }
        return LG_COUNTER_ASKED_OTHER;
}

/* LG_COUNTER_COUNT for a series that is none of ours. */
static enum lg_counter counter_of(struct span name, struct span labels, struct span sale) {
        if (span_eq(name, SPAN("sluice_origin_requests_total")))
                return kind_of(label_of(labels, SPAN("kind")));
        if (span_eq(name, SPAN("sluice_store_calls_total")))
                return LG_COUNTER_STORE_CALLS;
        if (span_eq(name, SPAN("sluice_passes_issued_total")) &&
            span_eq(label_of(labels, SPAN("sale")), sale))
                return LG_COUNTER_PASSES_ISSUED;
        return LG_COUNTER_COUNT;
}

static void read_line(struct span line, struct span sale, uint64_t now[LG_COUNTER_COUNT]) {
        if (!span_starts(line, SPAN("sluice_")))
                return;
        size_t name = 0;
        while (name < line.len && line.p[name] != '{' && line.p[name] != ' ')
                name++;
        struct span labels = {line.p, 0};
        size_t value = name;
        if (name < line.len && line.p[name] == '{') {
                const char *end = memrchr(line.p, '}', line.len);
                if (!end || end < line.p + name)
                        return;
                labels = (struct span){line.p + name + 1, (size_t)(end - line.p) - name - 1};
                value = (size_t)(end - line.p) + 1;
        }
        enum lg_counter counter = counter_of((struct span){line.p, name}, labels, sale);
        if (counter == LG_COUNTER_COUNT)
                return;
        char number[32];
        while (value < line.len && line.p[value] == ' ')
                value++;
        size_t len = line.len - value;
        if (len == 0 || len >= sizeof(number))
                return;
        memcpy(number, line.p + value, len);
        number[len] = '\0';
        double parsed = strtod(number, NULL);
        if (parsed > 0 && parsed < 0x1p63)
                now[counter] += (uint64_t)parsed;
}

void lg_scrape_read(struct span text, struct span sale, uint64_t now[LG_COUNTER_COUNT]) {
        memset(now, 0, LG_COUNTER_COUNT * sizeof(*now));
        while (text.len > 0) {
                const char *end = memchr(text.p, '\n', text.len);
                size_t len = end ? (size_t)(end - text.p) : text.len;
                read_line((struct span){text.p, len}, sale, now);
                size_t eaten = end ? len + 1 : len;
                text = (struct span){text.p + eaten, text.len - eaten};
        }
}

/* Each counter by itself: some live in the gateway's state directory and do
 * not fall with its process. */
void lg_scrape_add(struct lg_scrape *s, const uint64_t now[LG_COUNTER_COUNT]) {
        for (size_t i = 0; i < LG_COUNTER_COUNT; i++) {
                if (s->begun)
                        s->grown[i] += now[i] < s->last[i] ? now[i] : now[i] - s->last[i];
                s->last[i] = now[i];
        }
        s->begun = true;
}
