#include "net/clock.h"

#include <stdio.h>
#include <time.h>

#define MS_PER_DAY 86400000LL
#define FIRST_MS (-62167219200000LL) /* 0000-01-01T00:00:00Z */
#define LAST_MS 253402300799999LL    /* 9999-12-31T23:59:59.999Z */

/* Days from 1970-01-01 to a day of the proleptic Gregorian calendar. Years
 * begin in March, so that the leap day is the last of its year. */
static int64_t days_of(int64_t year, int64_t month, int64_t day) {
        int64_t y = month <= 2 ? year - 1 : year;
        int64_t era = (y >= 0 ? y : y - 399) / 400;
        int64_t of_era = y - era * 400;
        int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

        return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static int64_t days_in(int64_t year, int64_t month) {
        static const int8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
        bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

        return month == 2 && leap ? 29 : days[month - 1];
}

/* Takes `count` digits off the front; -1 if they are not there. */
static int64_t take_digits(struct span *s, size_t count) {
        int64_t value = 0;

        if (s->len < count)
                return -1;
        for (size_t i = 0; i < count; i++) {
                if (s->p[i] < '0' || s->p[i] > '9')
                        return -1;
                value = value * 10 + (s->p[i] - '0');
        }
        s->p += count;
        s->len -= count;
        return value;
}

static bool take_char(struct span *s, char a, char b) {
        if (s->len == 0 || (s->p[0] != a && s->p[0] != b))
                return false;
        s->p++;
        s->len--;
        return true;
}

/* `.` and at least one digit; what is finer than a millisecond is cut. */
static bool take_fraction(struct span *s, int64_t *ms) {
        int64_t scale = 100;
        size_t digits = 0;

        *ms = 0;
        if (!take_char(s, '.', '.'))
                return true;
        for (; s->len > 0 && s->p[0] >= '0' && s->p[0] <= '9'; digits++) {
                *ms += (s->p[0] - '0') * scale;
                scale /= 10;
                s->p++;
                s->len--;
        }
        return digits > 0;
}

static int take_offset(struct span *s, int64_t *minutes) {
        int64_t sign, hour, minute;

        *minutes = 0;
        if (s->len == 0)
                return CLOCK_NO_OFFSET;
        if (take_char(s, 'Z', 'z'))
                return s->len == 0 ? 0 : CLOCK_MALFORMED;
        sign = s->p[0] == '-' ? -1 : 1;
        if (!take_char(s, '+', '-'))
                return CLOCK_MALFORMED;
        hour = take_digits(s, 2);
        if (hour < 0 || !take_char(s, ':', ':'))
                return CLOCK_MALFORMED;
        minute = take_digits(s, 2);
        if (minute < 0 || s->len != 0)
                return CLOCK_MALFORMED;
        if (hour > 23 || minute > 59)
                return CLOCK_RANGE;
        *minutes = sign * (hour * 60 + minute);
        return 0;
}

struct parts {
        int64_t year, month, day, hour, minute, second;
};

static bool take_parts(struct span *s, struct parts *p) {
        p->year = take_digits(s, 4);
        if (p->year < 0 || !take_char(s, '-', '-'))
                return false;
        p->month = take_digits(s, 2);
        if (p->month < 0 || !take_char(s, '-', '-'))
                return false;
        p->day = take_digits(s, 2);
        if (p->day < 0 || !take_char(s, 'T', 't'))
                return false;
        p->hour = take_digits(s, 2);
        if (p->hour < 0 || !take_char(s, ':', ':'))
                return false;
        p->minute = take_digits(s, 2);
        if (p->minute < 0 || !take_char(s, ':', ':'))
                return false;
        p->second = take_digits(s, 2);
        return p->second >= 0;
}

static bool parts_exist(const struct parts *p) {
        return p->year >= 1970 && p->month >= 1 && p->month <= 12 && p->day >= 1 &&
               p->day <= days_in(p->year, p->month) && p->hour <= 23 && p->minute <= 59 &&
               p->second <= 60;
}

int clock_parse_rfc3339(struct span text, int64_t *at_ms) {
        struct span s = text;
        struct parts p;
        int64_t ms, minutes, seconds;
        int r;

        if (!take_parts(&s, &p) || !take_fraction(&s, &ms))
                return CLOCK_MALFORMED;
        r = take_offset(&s, &minutes);
        if (r == CLOCK_MALFORMED)
                return r;
        if (!parts_exist(&p))
                return CLOCK_RANGE;
        if (r != 0)
                return r;
        seconds = days_of(p.year, p.month, p.day) * 86400 + p.hour * 3600 +
                  (p.minute - minutes) * 60 + p.second;
        if (p.second == 60)
                ms = 0; /* a leap second: the first instant after it */
        *at_ms = seconds * 1000 + ms;
        return 0;
}

const char *clock_outcome_text(int outcome) {
        switch (outcome) {
        case 0:
                return "a good time";
        case CLOCK_NO_OFFSET:
                return "expected a time with an offset, as 2026-11-29T09:00:00Z or "
                       "2026-11-29T09:00:00+01:00";
        case CLOCK_RANGE:
                return "expected a time that exists, from year 1970 to 9999";
        default:
                return "expected a time of RFC 3339, as 2026-11-29T09:00:00Z";
        }
}

static int64_t split(int64_t at_ms, struct tm *tm) {
        int64_t clamped = at_ms < FIRST_MS ? FIRST_MS : at_ms > LAST_MS ? LAST_MS : at_ms;
        int64_t ms = ((clamped % 1000) + 1000) % 1000;
        time_t seconds = (time_t)((clamped - ms) / 1000);

        *tm = (struct tm){0};
        (void)gmtime_r(&seconds, tm);
        return ms;
}

size_t clock_format_rfc3339(char out[CLOCK_TEXT_MAX], int64_t at_ms) {
        struct tm tm;
        int64_t ms = split(at_ms, &tm);
        size_t n = strftime(out, CLOCK_TEXT_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
        int more;

        if (tm.tm_year + 1900 < 1000) { /* strftime does not pad years */
                char tail[CLOCK_TEXT_MAX];
                size_t t = strftime(tail, sizeof(tail), "-%m-%dT%H:%M:%S", &tm);
                int head = snprintf(out, CLOCK_TEXT_MAX, "%04d", tm.tm_year + 1900);

                assert(head == 4 && t + 4 < CLOCK_TEXT_MAX);
                memcpy(out + 4, tail, t + 1);
                n = t + 4;
        }
        if (ms == 0)
                more = snprintf(out + n, CLOCK_TEXT_MAX - n, "Z");
        else
                more = snprintf(out + n, CLOCK_TEXT_MAX - n, ".%03dZ", (int)ms);
        assert(more > 0 && n + (size_t)more < CLOCK_TEXT_MAX);
        return n + (size_t)more;
}

size_t clock_format_http(char out[CLOCK_TEXT_MAX], int64_t at_ms) {
        static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
        static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                             "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
        struct tm tm;
        int n;

        (void)split(at_ms, &tm);
        n = snprintf(out, CLOCK_TEXT_MAX, "%s, %02d %s %04d %02d:%02d:%02d GMT", days[tm.tm_wday],
                     tm.tm_mday, months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min,
                     tm.tm_sec);
        assert(n > 0 && n < CLOCK_TEXT_MAX);
        return (size_t)n;
}

int64_t clock_wall_ms(void) {
        struct timespec ts;
        int r = clock_gettime(CLOCK_REALTIME, &ts);

        assert(r == 0);
        return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}
