#include "admission/map.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "admission/sound.h"

#define MAGIC UINT64_C(0x736c7569636d6170) /* "sluicmap" */

/* Raised when the layout of anything in the map changes. */
#define FORMAT 3

#define PAGE 4096u
#define CHUNK_BYTES (256u * 1024u)

/* Generations count half minutes since 2026-01-01: later maps have higher
 * ones even when nothing of the earlier map is left. */
#define GENERATION_EPOCH_S 1767225600
#define GENERATION_STEP_S 30
#define GENERATION_DAY (86400 / GENERATION_STEP_S)

/* Where the arrays of a sale lie, from the sale's begin. */
struct layout {
        uint32_t capacity;
        uint32_t accounts;
        uint32_t cells;
        uint64_t marks;
        uint64_t live;
        uint64_t before;
        uint64_t recs;
        uint64_t table;
        uint64_t turns;
        uint64_t due;
        uint64_t who;
        uint64_t end;
};

static uint64_t pages(uint64_t bytes) {
        return (bytes + PAGE - 1) / PAGE * PAGE;
}

static struct layout layout_of(uint32_t capacity, uint32_t accounts) {
        struct layout y = {.capacity = capacity, .accounts = accounts, .cells = 1024};
        uint64_t blocks = 2 * (uint64_t)capacity / ADM_LINE_BLOCK;
        while (y.cells / 2 < accounts)
                y.cells *= 2;
        y.marks = pages(sizeof(struct adm_map_sale));
        y.live = y.marks + pages(2 * (uint64_t)capacity * sizeof(uint16_t));
        y.before = y.live + pages(blocks * sizeof(uint32_t));
        y.table = y.before + pages(blocks * sizeof(uint32_t));
        y.recs = y.table + pages((uint64_t)y.cells * sizeof(uint32_t));
        y.turns = y.recs + pages((uint64_t)accounts * sizeof(struct adm_rec));
        y.due = y.turns + pages((uint64_t)capacity * sizeof(struct adm_turn));
        y.who = y.due + pages((uint64_t)capacity * sizeof(int64_t));
        y.end = y.who + pages((uint64_t)capacity * sizeof(uint32_t));
        return y;
}

static uint32_t capacity_of(const struct adm_store_conf *c) {
        return (c->max_numbers + ADM_LINE_BLOCK - 1) / ADM_LINE_BLOCK * ADM_LINE_BLOCK;
}

static uint64_t sale_at(const struct adm_map_header *h, uint32_t slot) {
        return PAGE + h->sale_bytes * slot;
}

struct adm_map_sale *adm_map_sale_of(const struct adm_map *m, uint32_t slot) {
        return (struct adm_map_sale *)(void *)((char *)m->h + sale_at(m->h, slot));
}

static int lock_make(pthread_mutex_t *lock) {
        pthread_mutexattr_t a;
        int rc = pthread_mutexattr_init(&a);
        if (rc == 0)
                rc = pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
        if (rc == 0)
                rc = pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
        if (rc == 0)
                rc = pthread_mutex_init(lock, &a);
        (void)pthread_mutexattr_destroy(&a);
        return -rc;
}

bool adm_map_lock(pthread_mutex_t *lock) {
        int rc = pthread_mutex_lock(lock);
        assert(rc == 0 || rc == EOWNERDEAD);
        if (rc == EOWNERDEAD)
                (void)pthread_mutex_consistent(lock);
        return rc == EOWNERDEAD;
}

void adm_map_unlock(pthread_mutex_t *lock) {
        int rc = pthread_mutex_unlock(lock);
        assert(rc == 0);
}

/* Some file systems cannot promise disk; there a hole stays a hole. */
static int back(int fd, uint64_t at, uint64_t bytes) {
        if (fallocate(fd, 0, (off_t)at, (off_t)bytes) == 0 || errno == EOPNOTSUPP ||
            errno == ENOSYS)
                return 0;
        return -errno;
}

static void hall_view(struct adm_map *m, uint32_t slot, const struct adm_store_conf *c) {
        struct adm_map_sale *s = adm_map_sale_of(m, slot);
        struct layout y = layout_of(m->h->capacity, m->h->accounts);
        char *base = (char *)s;
        struct adm_hall_head *h = &s->head;
        m->halls[slot] = (struct adm_hall){
                .h = h,
                .line = {.h = &h->line,
                         .marks = (_Atomic uint16_t *)(void *)(base + y.marks),
                         .live = (uint32_t *)(void *)(base + y.live),
                         .capacity = y.capacity},
                .book = {.h = &h->book,
                         .recs = (struct adm_rec *)(void *)(base + y.recs),
                         .table = (uint32_t *)(void *)(base + y.table),
                         .capacity = y.accounts,
                         .mask = y.cells - 1},
                .turns = {.h = &h->turns,
                          .all = (struct adm_turn *)(void *)(base + y.turns),
                          .due = (int64_t *)(void *)(base + y.due),
                          .who = (uint32_t *)(void *)(base + y.who),
                          .capacity = y.capacity,
                          .salt = m->h->salt},
                .before = (_Atomic uint32_t *)(void *)(base + y.before),
                .alive_ms = &m->h->alive_ms,
                .born_ms = &m->h->born_ms,
                .tail_ms = (int64_t)c->skew_ms + c->forward_timeout_ms,
                .polls_per_s = c->polls_per_s ? c->polls_per_s : 30000,
        };
}

int adm_map_sale_make(struct adm_map *m, uint32_t slot) {
        struct adm_map_sale *s = adm_map_sale_of(m, slot);
        struct layout y = layout_of(m->h->capacity, m->h->accounts);
        uint64_t at = sale_at(m->h, slot);
        uint64_t half = y.marks + (uint64_t)y.capacity * sizeof(uint16_t);
        int rc = back(m->fd, at, y.marks);
        if (rc == 0)
                rc = back(m->fd, at + half, y.recs - half);
        if (rc == 0 && !s->lock_made)
                rc = lock_make(&s->lock);
        if (rc != 0)
                return rc;
        s->lock_made = 1;
        s->recs_backed = 0;
        s->turns_backed = 0;
        return 0;
}

/* One chunk more of an array of `size`-byte things. */
static int grow(struct adm_map *m, uint64_t at, size_t size, uint32_t *backed) {
        uint32_t more = (uint32_t)(CHUNK_BYTES / size);
        int rc = back(m->fd, at + (uint64_t)*backed * size, (uint64_t)more * size);
        if (rc == 0)
                *backed += more;
        return rc;
}

bool adm_map_backed_is_good(const struct adm_map *m, const struct adm_map_sale *s) {
        uint32_t recs = CHUNK_BYTES / (uint32_t)sizeof(struct adm_rec);
        uint32_t turns = CHUNK_BYTES / (uint32_t)sizeof(struct adm_turn);
        return s->recs_backed % recs == 0 && s->recs_backed < m->h->accounts + recs &&
               s->turns_backed % turns == 0 && s->turns_backed < m->h->capacity + turns;
}

int adm_map_reserve(struct adm_map *m, uint32_t slot) {
        struct adm_map_sale *s = adm_map_sale_of(m, slot);
        struct layout y = layout_of(m->h->capacity, m->h->accounts);
        uint64_t at = sale_at(m->h, slot);
        int rc = 0;
        if (s->head.book.count + 2 > s->recs_backed && s->recs_backed < y.accounts)
                rc = grow(m, at + y.recs, sizeof(struct adm_rec), &s->recs_backed);
        if (rc != 0 || s->head.turns.high + 2 <= s->turns_backed || s->turns_backed >= y.capacity)
                return rc;
        /* The dense arrays first: they are bounded by the same number. */
        uint32_t due = s->turns_backed, who = s->turns_backed;
        uint32_t more = CHUNK_BYTES / (uint32_t)sizeof(struct adm_turn);
        rc = back(m->fd, at + y.due + (uint64_t)due * sizeof(int64_t), more * sizeof(int64_t));
        if (rc == 0)
                rc = back(m->fd, at + y.who + (uint64_t)who * sizeof(uint32_t),
                          more * sizeof(uint32_t));
        return rc != 0 ? rc : grow(m, at + y.turns, sizeof(struct adm_turn), &s->turns_backed);
}

void adm_map_sale_drop(struct adm_map *m, uint32_t slot) {
        struct adm_map_sale *s = adm_map_sale_of(m, slot);
        char *arrays = (char *)s + layout_of(m->h->capacity, m->h->accounts).marks;
        size_t bytes = (size_t)(m->h->sale_bytes) - (size_t)(arrays - (char *)s);
        if (madvise(arrays, bytes, MADV_REMOVE) != 0)
                memset(arrays, 0, bytes);
        s->recs_backed = 0;
        s->turns_backed = 0;
}

/* ---- opening ---- */

static uint32_t generation_at(int64_t now_ms) {
        int64_t g = (now_ms / 1000 - GENERATION_EPOCH_S) / GENERATION_STEP_S;
        if (g < 1)
                return 1;
        return g > ADM_MAP_GENERATION_MAX ? ADM_MAP_GENERATION_MAX : (uint32_t)g;
}

/* What a file is to us. */
enum file_kind { FILE_EMPTY, FILE_OURS, FILE_OTHER_SHAPE, FILE_FOREIGN };

static enum file_kind look(int fd, const struct adm_map_header *want, struct adm_map_header *got) {
        struct stat st;
        memset(got, 0, sizeof(*got));
        if (fstat(fd, &st) != 0 || st.st_size == 0)
                return FILE_EMPTY;
        ssize_t n = pread(fd, got, sizeof(*got), 0);
        /* Grown, but killed or out of disk before the header was written. */
        if (n >= 12 && got->magic == 0 && got->format == 0)
                return FILE_OTHER_SHAPE;
        if (n >= 12 && (got->magic != MAGIC || got->format != FORMAT))
                return FILE_FOREIGN;
        if (n != (ssize_t)sizeof(*got)) {
                memset(got, 0, sizeof(*got));
                return FILE_OTHER_SHAPE;
        }
        bool same = got->max_sales == want->max_sales && got->capacity == want->capacity &&
                    got->accounts == want->accounts && got->sale_bytes == want->sale_bytes &&
                    got->file_bytes == want->file_bytes && st.st_size == (off_t)want->file_bytes;
        return same ? FILE_OURS : FILE_OTHER_SHAPE;
}

/* What is known of the map before. */
struct past {
        bool was;
        uint32_t generation; /* 0: not known; the first of its tickets will tell */
        uint32_t epoch;
};

static struct past past_of(const struct adm_map_header *h, int64_t now_ms) {
        bool believed = h->generation <= generation_at(now_ms) + GENERATION_DAY;
        return (struct past){
                .was = true, .generation = believed ? h->generation : 0, .epoch = h->epoch};
}

/* The map that follows another has a higher generation and the next epoch. */
static void succeed(struct adm_map_header *h, struct past old, int64_t now_ms) {
        h->generation = generation_at(now_ms);
        if (old.was && old.generation == 0)
                h->generation++; /* it may have been begun just now */
        if (old.generation >= h->generation)
                h->generation = old.generation + 1;
        if (h->generation > ADM_MAP_GENERATION_MAX)
                h->generation = ADM_MAP_GENERATION_MAX;
        h->old_generation = old.generation;
        h->epoch = old.epoch < UINT32_MAX ? old.epoch + 1 : 1;
}

static int create(int fd, struct adm_map_header *h, struct past old, int64_t now_ms) {
        succeed(h, old, now_ms);
        if (getrandom(&h->salt, sizeof(h->salt), 0) != (ssize_t)sizeof(h->salt))
                return -errno;
        if (ftruncate(fd, (off_t)h->file_bytes) != 0)
                return -errno;
        int rc = back(fd, 0, PAGE);
        if (rc != 0)
                return rc;
        return pwrite(fd, h, sizeof(*h), 0) == (ssize_t)sizeof(*h) ? 0 : -EIO;
}

/* Locks the file that the path names now. 0, or -errno; *alone tells that
 * nobody else has it. */
static int open_locked(const char *path, int *out, bool *alone) {
        for (;;) {
                struct stat ours, there;
                int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
                if (fd < 0)
                        return -errno;
                *alone = flock(fd, LOCK_EX | LOCK_NB) == 0;
                while (!*alone && flock(fd, LOCK_SH) != 0) {
                        if (errno != EINTR) {
                                int rc = -errno;
                                (void)close(fd);
                                return rc;
                        }
                }
                if (fstat(fd, &ours) == 0 && stat(path, &there) == 0 &&
                    ours.st_ino == there.st_ino && ours.st_dev == there.st_dev) {
                        *out = fd;
                        return 0;
                }
                (void)close(fd); /* it was put aside meanwhile */
        }
}

/* What opening goes by. */
struct opening {
        char path[4096];
        const struct adm_store_conf *conf;
        int64_t now_ms;
        struct adm_map_header want;
        struct past old;
        bool alone;
};

static int put_aside(const struct opening *o, const char *as) {
        char aside[sizeof(o->path) + 16];
        (void)snprintf(aside, sizeof(aside), "%s.%s", o->path, as);
        return rename(o->path, aside) == 0 ? 0 : -errno;
}

/* A file we can use behind `m->fd`, made anew where that is right. */
static int take_file(struct adm_map *m, struct opening *o) {
        struct adm_map_header got;
        int rc = open_locked(o->path, &m->fd, &o->alone);
        if (rc != 0)
                return rc;
        enum file_kind kind = look(m->fd, &o->want, &got);
        if (kind == FILE_FOREIGN || (kind == FILE_OTHER_SHAPE && !o->alone))
                return kind == FILE_FOREIGN ? ADM_MAP_FOREIGN : ADM_MAP_SHAPE;
        if (kind == FILE_OTHER_SHAPE) {
                o->old = past_of(&got, o->now_ms);
                m->found = ADM_FOUND_RESHAPED;
                rc = put_aside(o, "old");
                (void)close(m->fd);
                m->fd = -1;
                if (rc == 0)
                        rc = open_locked(o->path, &m->fd, &o->alone);
                kind = FILE_EMPTY;
        } else if (kind == FILE_EMPTY && m->found == ADM_FOUND_MAP) {
                m->found = ADM_FOUND_NONE;
        }
        if (rc == 0 && kind == FILE_EMPTY)
                rc = o->alone ? create(m->fd, &o->want, o->old, o->now_ms) : ADM_MAP_SHAPE;
        return rc;
}

/* One sale of a map that we are alone in. */
static int sale_start_over(struct adm_map *m, uint32_t slot, int64_t now_ms) {
        struct adm_map_sale *s = adm_map_sale_of(m, slot);
        /* Killed while it was being forgotten: only this was left to do. */
        if (s->head.in_use == 1 && !adm_map_is_used(s->head.handle))
                s->head.in_use = 0;
        m->fault = adm_sound_sale(m, slot, now_ms);
        if (m->fault || (!s->lock_made && !s->head.in_use))
                return 0;
        int rc = lock_make(&s->lock);
        if (rc != 0)
                return rc;
        s->lock_made = 1;
        if (s->head.in_use)
                m->fault = adm_hall_rebuild(&m->halls[slot]) ? adm_sound_links(&m->halls[slot])
                                                             : "accounts that no table holds";
        return 0;
}

/* Alone: whoever held a lock is gone, and what is there is not to be believed
 * unseen. 0 with `m->fault` when it is broken. */
static int start_over(struct adm_map *m, int64_t now_ms) {
        m->fault = adm_sound_header(m->h, now_ms);
        if (m->fault)
                return 0;
        atomic_store(&m->h->alive_ms, 0); /* this life has heard nothing yet */
        int rc = lock_make(&m->h->lock);
        for (uint32_t slot = 0; slot < m->max_sales && rc == 0 && !m->fault; slot++)
                rc = sale_start_over(m, slot, now_ms);
        return rc;
}

static bool conf_is_good(const struct adm_store_conf *c) {
        return c->dir && strlen(c->dir) < 4000 && c->max_sales >= 1 && c->max_sales <= 1024 &&
               c->max_numbers >= 1 && c->max_numbers <= ADM_BOOK_MAX && c->max_accounts >= 1 &&
               c->max_accounts <= ADM_BOOK_MAX;
}

static int map_in(struct adm_map *m, const struct opening *o) {
        void *p = mmap(NULL, m->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
        if (p == MAP_FAILED)
                return -errno;
        m->h = p;
        m->halls = calloc(m->max_sales, sizeof(m->halls[0]));
        if (!m->halls)
                return -ENOMEM;
        for (uint32_t slot = 0; slot < m->max_sales; slot++)
                hall_view(m, slot, o->conf);
        int rc = o->alone ? start_over(m, o->now_ms) : 0;
        /* From here on others may come in beside us. */
        if (rc == 0 && !m->fault && flock(m->fd, LOCK_SH) != 0)
                rc = -errno;
        return rc;
}

static int open_once(struct adm_map *m, struct opening *o) {
        *m = (struct adm_map){.fd = -1,
                              .found = m->found,
                              .bytes = (size_t)o->want.file_bytes,
                              .max_sales = o->conf->max_sales};
        int rc = take_file(m, o);
        if (rc == 0)
                rc = map_in(m, o);
        if (rc != 0)
                adm_map_close(m);
        return rc;
}

/* Still alone in it: nobody else is misled by the name until it is gone. */
static int open_after_broken(struct adm_map *m, struct opening *o) {
        const char *fault = m->fault;
        o->old = past_of(m->h, o->now_ms);
        for (uint32_t slot = 0; slot < m->max_sales; slot++)
                if (m->halls[slot].h->in_use && m->halls[slot].h->generation != m->h->generation)
                        o->old.generation = 0; /* who is right cannot be told */
        int rc = put_aside(o, "broken");
        adm_map_close(m);
        if (rc != 0)
                return rc;
        m->found = ADM_FOUND_BROKEN;
        rc = open_once(m, o);
        if (rc == 0 && m->fault) {
                adm_map_close(m);
                return -EIO; /* the one that took its place is no better */
        }
        m->fault = fault;
        return rc;
}

int adm_map_open(const struct adm_store_conf *c, int64_t now_ms, struct adm_map *out) {
        if (!conf_is_good(c))
                return -EINVAL;
        uint32_t capacity = capacity_of(c);
        struct opening o = {
                .conf = c,
                .now_ms = now_ms,
                .want =
                        {
                                .magic = MAGIC,
                                .format = FORMAT,
                                .max_sales = c->max_sales,
                                .capacity = capacity,
                                .accounts = c->max_accounts,
                                .sale_bytes = layout_of(capacity, c->max_accounts).end,
                        },
        };
        o.want.file_bytes = PAGE + o.want.sale_bytes * c->max_sales;
        (void)snprintf(o.path, sizeof(o.path), "%s/admission.map", c->dir);
        *out = (struct adm_map){.fd = -1};
        int rc = open_once(out, &o);
        return rc == 0 && out->fault ? open_after_broken(out, &o) : rc;
}

void adm_map_close(struct adm_map *m) {
        free(m->halls);
        if (m->h)
                (void)munmap(m->h, m->bytes);
        if (m->fd >= 0)
                (void)close(m->fd);
        *m = (struct adm_map){.fd = -1};
}
