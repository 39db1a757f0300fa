#include "gateway/disk.h"

#include <errno.h>
#include <fcntl.h>
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

static int write_synced(const char *path, const json_t *root) {
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        int r = json_dumpfd(root, fd, JSON_COMPACT) == 0 ? 0 : -EIO;
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

int gw_disk_save(struct gw_control *c) {
        const char *folder = c->settings->conf->state_directory;
        char path[PATH_MAX_BYTES], beside[PATH_MAX_BYTES];
        int64_t mono_ms = loop_clock_ms();
        json_t *root = json_pack("{s:i, s:I, s:I, s:O, s:o}", "format", FORMAT, "wall_ms",
                                 (json_int_t)clock_wall_ms(), "sale_ms",
                                 (json_int_t)gw_sale_time_ms(&c->shared, mono_ms), "document",
                                 (json_t *)c->snapshot->document, "flags", flags_of(c->slots));
        if (!root)
                return -ENOMEM;
        (void)snprintf(path, sizeof path, "%s/snapshot.json", folder);
        (void)snprintf(beside, sizeof beside, "%s/snapshot.json.new", folder);
        int r = write_synced(beside, root);
        json_decref(root);
        if (r == 0 && rename(beside, path) < 0)
                r = -errno;
        return r == 0 ? sync_folder(folder) : r;
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
