#include "gateway/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "gateway/publish.h"
#include "gateway/sale_clock.h"
#include "gateway/slots.h"
#include "net/clock.h"
#include "net/json.h"
#include "net/log.h"

#define PATH_MAX_BYTES 4096
#define FORMAT 1

static json_t *flag_row(const struct gw_slot *s) {
        return json_pack("{s:s, s:i, s:I, s:I, s:I, s:I, s:I}", "sale", s->id, "state",
                         (int)s->flag.state, "left", (json_int_t)s->flag.left, "opens_at_ms",
                         (json_int_t)s->flag.opens_at_ms, "closes_at_ms",
                         (json_int_t)s->flag.closes_at_ms, "version", (json_int_t)s->flag_version,
                         "as_of_ms", (json_int_t)s->flag_as_of_ms);
}

static json_t *flags_of(const struct gw_slots *slots) {
        json_t *rows = json_array();
        for (size_t i = 1; rows && i < slots->count; i++)
                if (slots->at[i].has_flag)
                        (void)json_array_append_new(rows, flag_row(&slots->at[i]));
        return rows;
}

/* ---- the writer ---- */

struct gw_disk {
        pthread_t thread;
        pthread_mutex_t lock;
        pthread_cond_t has_news;
        char *text; /* the newest not yet taken, or NULL; malloc'ed by jansson */
        bool is_ending;
        char path[PATH_MAX_BYTES], beside[PATH_MAX_BYTES], folder[PATH_MAX_BYTES];
};

static int write_all(int fd, const char *text, size_t len) {
        while (len > 0) {
                ssize_t n = write(fd, text, len);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                text += n;
                len -= (size_t)n;
        }
        return 0;
}

static int write_synced(const char *path, const char *text) {
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        int r = write_all(fd, text, strlen(text));
        if (r == 0 && fsync(fd) < 0)
                r = -errno;
        if (close(fd) < 0 && r == 0)
                r = -errno;
        return r;
}

static int sync_folder(const char *path) {
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        int r = fsync(fd) < 0 ? -errno : 0;
        (void)close(fd);
        return r;
}

static void replace_file(const struct gw_disk *d, const char *text) {
        int r = write_synced(d->beside, text);
        if (r == 0 && rename(d->beside, d->path) < 0)
                r = -errno;
        if (r == 0)
                r = sync_folder(d->folder);
        if (r < 0)
                log_event_limited(1, LOG_WARN, "snapshot", "cannot be saved", LOG_E("error", r));
}

static void *write_on(void *arg) {
        struct gw_disk *d = arg;
        bool is_ending = false;
        while (!is_ending) {
                (void)pthread_mutex_lock(&d->lock);
                while (!d->text && !d->is_ending)
                        (void)pthread_cond_wait(&d->has_news, &d->lock);
                char *text = d->text;
                d->text = NULL;
                is_ending = d->is_ending;
                (void)pthread_mutex_unlock(&d->lock);
                if (text)
                        replace_file(d, text);
                free(text);
        }
        return NULL;
}

int gw_disk_new(const char *folder, struct gw_disk **out) {
        sigset_t all, before;
        struct gw_disk *d = calloc(1, sizeof *d);
        *out = NULL;
        if (!d)
                return -ENOMEM;
        (void)snprintf(d->folder, sizeof d->folder, "%s", folder);
        int a = snprintf(d->path, sizeof d->path, "%s/snapshot.json", folder);
        int b = snprintf(d->beside, sizeof d->beside, "%s/snapshot.json.new", folder);
        int r = a < 0 || b < 0 || (size_t)b >= sizeof d->beside ? ENAMETOOLONG : 0;
        if (r == 0)
                r = pthread_mutex_init(&d->lock, NULL);
        if (r == 0)
                r = pthread_cond_init(&d->has_news, NULL);
        (void)sigfillset(&all);
        (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the control's */
        if (r == 0)
                r = pthread_create(&d->thread, NULL, write_on, d);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (r == 0)
                *out = d;
        else
                free(d);
        return -r;
}

static void hand_over(struct gw_disk *d, char *text, bool is_ending) {
        (void)pthread_mutex_lock(&d->lock);
        if (text) {
                free(d->text);
                d->text = text;
        }
        d->is_ending = is_ending;
        (void)pthread_cond_signal(&d->has_news);
        (void)pthread_mutex_unlock(&d->lock);
}

void gw_disk_free(struct gw_disk **dp) {
        struct gw_disk *d = *dp;
        *dp = NULL;
        if (!d)
                return;
        hand_over(d, NULL, true);
        (void)pthread_join(d->thread, NULL);
        pthread_cond_destroy(&d->has_news);
        pthread_mutex_destroy(&d->lock);
        free(d);
}

/* ---- what is kept ---- */

int gw_disk_save(struct gw_control *c) {
        int64_t mono_ms = loop_clock_ms();
        json_t *root = json_pack("{s:i, s:I, s:I, s:O, s:o}", "format", FORMAT, "wall_ms",
                                 (json_int_t)clock_wall_ms(), "sale_ms",
                                 (json_int_t)gw_sale_time_ms(&c->shared, mono_ms), "document",
                                 c->document, "flags", flags_of(c->slots));
        char *text = json_dumps(root, JSON_COMPACT);
        json_decref(root);
        if (!text)
                return -ENOMEM;
        hand_over(c->disk, text, false);
        return 0;
}

static void read_flags(struct gw_control *c, const json_t *rows) {
        size_t i;
        const json_t *row;
        json_array_foreach(rows, i, row) {
                const char *id = json_string_value(json_object_get(row, "sale"));
                int64_t state = json_get_int(row, "state", -1);
                uint32_t at = id && strlen(id) < ADM_ID_LEN ? gw_slots_of(c->slots, id) : 0;
                if (at == 0 || state < ADM_SALE_SCHEDULED || state > ADM_SALE_CLOSED)
                        continue;
                struct gw_slot *s = &c->slots->at[at];
                s->has_flag = true;
                s->flag = (struct gw_flag){
                        .state = (enum adm_sale_state)state,
                        .left = json_get_int(row, "left", -1),
                        .opens_at_ms = json_get_int(row, "opens_at_ms", 0),
                        .closes_at_ms = json_get_int(row, "closes_at_ms", 0),
                };
                s->flag_version = (uint64_t)json_get_int(row, "version", 0);
                s->flag_as_of_ms = json_get_int(row, "as_of_ms", 0);
        }
}

/* The origin's clock has gone on while nobody listened, as far as our own wall
 * clock can tell. */
static void guess_time(struct gw_control *c, const json_t *root) {
        int64_t wall_ms = clock_wall_ms(), saved_ms = json_get_int(root, "wall_ms", 0);
        int64_t gone_ms = wall_ms > saved_ms ? wall_ms - saved_ms : 0;
        int64_t sale_ms = json_get_int(root, "sale_ms", 0) + gone_ms;
        if (saved_ms > 0)
                gw_sale_clock_init(&c->shared, sale_ms, loop_clock_ms());
}

int gw_disk_load(struct gw_control *c) {
        char path[PATH_MAX_BYTES];
        json_error_t why;
        (void)snprintf(path, sizeof path, "%s/snapshot.json", c->settings->conf->state_directory);
        json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
        if (!root || json_get_int(root, "format", 0) != FORMAT) {
                if (access(path, F_OK) == 0)
                        log_event(LOG_WARN, "snapshot", "the saved one is unusable",
                                  LOG_S("file", path));
                json_decref(root);
                return 1;
        }
        guess_time(c, root);
        read_flags(c, json_object_get(root, "flags"));
        int r = gw_publish_document(c, json_object_get(root, "document"), false);
        json_decref(root);
        return r == 0 ? 0 : 1;
}
