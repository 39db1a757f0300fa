/* origin/look.h - looks at the invariant from time to time, and at what is paused.
 *
 * Of several origins one looks each time; what it found is kept in the
 * database, and every origin exports it. A look reads all holds and all of the
 * journal, so the next one comes after `invariant.interval`, and after twenty
 * times as long as it took.
 *
 * A violated CHECK pauses its item here, too: it sells nothing more until an
 * operator resumes a sale of it.
 *
 * Context    the loop's thread.
 */
#ifndef ORIGIN_LOOK_H
#define ORIGIN_LOOK_H

#include "origin/service.h"

struct org_look;

struct org_look_counters {
        struct metrics_counter wrong; /* broken rules at the last look, and CHECKs violated since */
        struct metrics_counter age_ms;   /* of the last look, when `seen` was read */
        struct metrics_counter took_ms;  /* the last look */
        struct metrics_counter looks;    /* from here */
        struct metrics_counter failures; /* looks from here that were not answered */
        struct metrics_counter paused;   /* items */
        struct metrics_counter unprotected;
};

NET_MUST int org_look_new(struct org_service *s, struct org_look **out);
/* After the database has answered all. */
void org_look_free(struct org_look **look);
const struct org_look_counters *org_look_counters(const struct org_look *look);

/* Takes note of an invariant's JSON. The number of violations, or -1 when it
 * is none. */
int64_t org_look_note(struct org_look *look, struct span text);

/* What to pause when the database does not name the row: an item, or the item of
 * a hold; NULL or "": not known. */
struct org_suspect {
        const char *tenant, *item, *hold;
};

/* Of a reply that is VIOLATED: pauses the item whose row was refused. */
void org_look_violated(struct org_look *look, const struct org_reply *r,
                       const struct org_suspect *suspect);

#endif
