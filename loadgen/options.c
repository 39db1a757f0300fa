#include "loadgen/options.h"

#include <errno.h>
#include <stdlib.h>

enum kind { COUNT, SHARE, RANGE, CHOICE, TEXT, FLAG };

struct option {
        const char *name;
        enum kind kind;
        size_t offset;     /* of the field in struct lg_options */
        int64_t low, high; /* COUNT and RANGE */
        const char *argument;
        const char *sentence;
};

#define AT(field) offsetof(struct lg_options, field)

static const struct option options[] = {
        {"buyers", COUNT, AT(buyers), 1, 1000000, "N",
         "shoppers, each an account of its own (10000)"},
        {"units", COUNT, AT(units), 1, 100000000, "N",
         "stock of the sale that the race makes (100)"},
        {"unpaid", SHARE, AT(unpaid), 0, 0, "SHARE", "of the buyers hold and never pay (0)"},
        {"leavers", SHARE, AT(leavers), 0, 0, "SHARE", "leave the line after a few answers (0)"},
        {"sleepers", SHARE, AT(sleepers), 0, 0, "SHARE",
         "fall silent; every second one returns (0)"},
        {"cheats", SHARE, AT(cheats), 0, 0, "SHARE", "forge, steal and claim twice (0)"},
        {"tabs", COUNT, AT(tabs), 1, 20, "N", "tabs of each buyer, all in the line (1)"},
        {"qty", RANGE, AT(qty_low), 1, 100, "A..B", "units a buyer wants (1)"},
        {"arrival", CHOICE, AT(arrival), 0, 0, "herd|ramp|poisson|prequeue",
         "how they come (herd)"},
        {"spread", COUNT, AT(spread_s), 1, 3600, "SECONDS",
         "length of an arrival that is no herd (10)"},
        {"hold-seconds", COUNT, AT(hold_seconds), 1, 1800, "N",
         "life of a hold (600; 5 with --unpaid)"},
        {"connections", COUNT, AT(connections), 1, 60000, "N",
         "TLS connections (the buyers, at most 2000)"},
        {"seed", COUNT, AT(seed), 0, INT64_C(999999999999), "N",
         "who does what, and the names (at random)"},
        {"deadline", COUNT, AT(deadline_s), 1, 86400, "SECONDS",
         "give up so long after the opening"},
        {"plot", TEXT, AT(plot), 0, 0, "DIR", "write race.csv and race.svg there"},
        {"addresses", TEXT, AT(addresses), 0, 0, "FILE",
         "what runs where (build/run/addresses.json)"},
        {"sale", TEXT, AT(sale), 0, 0, "S", "race on this sale as it is; without it one is made"},
        {"json", FLAG, AT(json), 0, 0, NULL, "the report as one JSON object"},
        {"help", FLAG, AT(help), 0, 0, NULL, "this text"},
};

static const char *const arrivals[] = {"herd", "ramp", "poisson", "prequeue"};

static int read_count(const char *text, char end, int64_t *out, const char **rest) {
        char *stop;
        errno = 0;
        long long value = strtoll(text, &stop, 10);
        bool digits = text[0] >= '0' && text[0] <= '9';
        if (!digits || errno != 0 || (*stop != '\0' && *stop != end))
                return 1;
        *out = value;
        *rest = stop;
        return 0;
}

static int read_in_range(const struct option *option, const char *text, int64_t *out) {
        const char *rest;
        if (read_count(text, '\0', out, &rest) != 0)
                return 1;
        return *out < option->low || *out > option->high;
}

static int read_share(const char *text, double *out) {
        char *stop;
        errno = 0;
        double value = strtod(text, &stop);
        bool digit = (text[0] >= '0' && text[0] <= '9') || text[0] == '.';
        if (!digit || errno != 0 || stop == text)
                return 1;
        if (*stop == '%') {
                value /= 100;
                stop++;
        }
        if (*stop != '\0' || !(value >= 0 && value <= 1))
                return 1;
        *out = value;
        return 0;
}

/* "A..B" or "A" into two neighbouring fields. */
static int read_pair(const struct option *option, const char *text, int64_t *pair) {
        int64_t low, high;
        const char *rest;
        if (read_count(text, '.', &low, &rest) != 0)
                return 1;
        high = low;
        if (*rest == '.') {
                if (rest[1] != '.' || read_count(rest + 2, '\0', &high, &rest) != 0)
                        return 1;
        }
        if (low < option->low || high < low || high > option->high)
                return 1;
        pair[0] = low;
        pair[1] = high;
        return 0;
}

static int read_value(struct lg_options *o, const struct option *option, const char *text) {
        char *field = (char *)o + option->offset;
        switch (option->kind) {
        case COUNT:
                return read_in_range(option, text, (int64_t *)(void *)field);
        case SHARE:
                return read_share(text, (double *)(void *)field);
        case RANGE:
                return read_pair(option, text, (int64_t *)(void *)field);
        case CHOICE:
                for (size_t i = 0; i < NET_COUNT_OF(arrivals); i++) {
                        if (strcmp(text, arrivals[i]) == 0) {
                                o->arrival = (enum lg_arrival)i;
                                return 0;
                        }
                }
                return 1;
        case TEXT:
                *(const char **)(void *)field = text;
                return text[0] == '\0';
        case FLAG:
                return 1;
        }
        return 1;
}

static void tell_expected(FILE *faults, const struct option *option, const char *value) {
        fprintf(faults, "sluice-load: --%s %s: expected ", option->name, value);
        switch (option->kind) {
        case COUNT:
                fprintf(faults, "a whole number %lld..%lld\n", (long long)option->low,
                        (long long)option->high);
                break;
        case SHARE:
                fprintf(faults, "a share 0..1, or 0%%..100%%\n");
                break;
        case RANGE:
                fprintf(faults, "A..B or A, whole numbers %lld..%lld, A not above B\n",
                        (long long)option->low, (long long)option->high);
                break;
        case CHOICE:
                fprintf(faults, "one of %s\n", option->argument);
                break;
        case TEXT:
                fprintf(faults, "%s, not empty\n", option->argument);
                break;
        case FLAG:
                fprintf(faults, "no value\n");
                break;
        }
}

static const struct option *find_option(const char *name, size_t len) {
        for (size_t i = 0; i < NET_COUNT_OF(options); i++) {
                if (strlen(options[i].name) == len && memcmp(options[i].name, name, len) == 0)
                        return &options[i];
        }
        return NULL;
}

/* Reads the argument at *at and moves *at behind it and its value. */
static int read_argument(struct lg_options *o, int argc, char *const argv[], int *at,
                         FILE *faults) {
        const char *word = argv[(*at)++];
        if (strncmp(word, "--", 2) != 0) {
                fprintf(faults, "sluice-load: %s: options begin with --\n", word);
                return 1;
        }
        const char *value = strchr(word, '=');
        size_t len = value ? (size_t)(value - word) - 2 : strlen(word) - 2;
        const struct option *option = find_option(word + 2, len);
        if (!option) {
                fprintf(faults, "sluice-load: %s: no such option\n", word);
                return 1;
        }
        if (option->kind == FLAG && !value) {
                *(bool *)((char *)o + option->offset) = true;
                return 0;
        }
        if (value) {
                value++;
        } else if (*at < argc) {
                value = argv[(*at)++];
        } else {
                fprintf(faults, "sluice-load: %s: needs a value, %s\n", word, option->argument);
                return 1;
        }
        if (read_value(o, option, value) == 0)
                return 0;
        tell_expected(faults, option, value);
        return 1;
}

static bool is_sale_id(const char *s) {
        size_t len = strlen(s);
        if (len == 0 || len > 63 || s[0] == '-')
                return false;
        return strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

/* What no single option can see. */
static int check_together(const struct lg_options *o, FILE *faults) {
        int faulty = 0;
        if (o->unpaid + o->leavers + o->sleepers + o->cheats > 1.0000001) {
                fprintf(faults, "sluice-load: --unpaid, --leavers, --sleepers, --cheats: "
                                "together more than everyone\n");
                faulty = 1;
        }
        if (o->sale && !is_sale_id(o->sale)) {
                fprintf(faults, "sluice-load: --sale %s: expected [a-z0-9][a-z0-9-]{0,62}\n",
                        o->sale);
                faulty = 1;
        }
        if (o->sale && o->hold_seconds != 0) {
                fprintf(faults, "sluice-load: --hold-seconds: the sale of --sale has its own\n");
                faulty = 1;
        }
        if (o->sale && o->arrival == LG_ARRIVAL_PREQUEUE) {
                fprintf(faults, "sluice-load: --arrival prequeue: needs a sale of its own, "
                                "not --sale\n");
                faulty = 1;
        }
        if (o->connections > o->buyers * o->tabs) {
                fprintf(faults, "sluice-load: --connections: more than buyers and their tabs\n");
                faulty = 1;
        }
        return faulty;
}

int lg_options_parse(struct lg_options *o, int argc, char *const argv[], FILE *faults) {
        *o = (struct lg_options){
                .buyers = 10000,
                .units = 100,
                .tabs = 1,
                .qty_low = 1,
                .qty_high = 1,
                .spread_s = 10,
                .seed = -1,
                .addresses = "build/run/addresses.json",
        };
        int faulty = 0;
        for (int at = 0; at < argc;)
                faulty |= read_argument(o, argc, argv, &at, faults);
        if (faulty == 0 && !o->help)
                faulty = check_together(o, faults);
        return faulty;
}

void lg_options_help(FILE *out) {
        fprintf(out,
                "usage: sluice-load race [OPTION ...]\n\n"
                "Sends buyers over TLS and HTTP/2 at a sale, pays for them at the origin, and\n"
                "judges from outside what happened. Exit: 0 the sale held, 1 it did not or\n"
                "could not be held, 2 usage.\n\n");
        for (size_t i = 0; i < NET_COUNT_OF(options); i++) {
                char left[64];
                snprintf(left, sizeof(left), "--%s %s", options[i].name,
                         options[i].argument ? options[i].argument : "");
                fprintf(out, "  %-38s %s\n", left, options[i].sentence);
        }
        fprintf(out, "\nWith --sale the stock of that sale counts, not --units.\n");
}

int64_t lg_options_connections(const struct lg_options *o) {
        if (o->connections > 0)
                return o->connections;
        return o->buyers < 2000 ? o->buyers : 2000;
}

int64_t lg_options_hold_seconds(const struct lg_options *o) {
        if (o->hold_seconds > 0)
                return o->hold_seconds;
        return o->unpaid > 0 ? 5 : 600;
}

int64_t lg_options_deadline_s(const struct lg_options *o) {
        if (o->deadline_s > 0)
                return o->deadline_s;
        /* Units that come back do so in generations: each waits for a hold to
         * end or for a pass to lapse. */
        bool returns = o->unpaid + o->leavers + o->sleepers > 0;
        int64_t s = 240 + o->buyers / 100 + o->spread_s;
        if (returns)
                s += 20 * (lg_options_hold_seconds(o) + 30);
        return s < 7200 ? s : 7200;
}
