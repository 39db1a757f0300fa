/* origin/fault.h - what an SQLSTATE means for us, one table.
 *
 * The first row that fits decides; a row fits when the state begins with its
 * letters. The last row is for all others. docs/origin.md shows the table, and
 * a test holds the two together.
 *
 * What became of a query is told by one of these and by nothing else: an answer
 * of the server about the query (kept sessions), or the end of the session,
 * which is no answer. After that whether it wrote is not known: the session may
 * have ended behind the commit.
 */
#ifndef ORIGIN_FAULT_H
#define ORIGIN_FAULT_H

#include "origin/db.h"

enum org_session {
        ORG_SESSION_KEPT,
        ORG_SESSION_DROPPED, /* this connection is of no more use */
        ORG_SESSION_LEFT,    /* nor is any other to this server */
};

/* state, outcome, session, tries, may_divide */
#define ORG_FAULT_TABLE(X)                                                                         \
        X("SL001", REFUSED, KEPT, 0, false) /* our own no, raised late */                          \
        X("SL002", BUSY, KEPT, 10, false)   /* our own: let go of all locks */                     \
        X("23514", VIOLATED, KEPT, 0, false)                                                       \
        X("25006", AWAY, LEFT, 0, false)       /* read only: not the primary any more */           \
        X("26000", AWAY, DROPPED, 0, false)    /* lost our prepared statements */                  \
        X("40001", BUSY, KEPT, 2, true)        /* serialization */                                 \
        X("40003", UNKNOWN, DROPPED, 0, false) /* "completion unknown" */                          \
        X("40P01", BUSY, KEPT, 2, true)        /* deadlock */                                      \
        X("40", BUSY, KEPT, 0, true)                                                               \
        X("53", BUSY, KEPT, 0, true)         /* memory, locks, disk */                             \
        X("55P03", BUSY, KEPT, 0, false)     /* lock timeout */                                    \
        X("57014", BUSY, KEPT, 0, false)     /* statement timeout, cancelled */                    \
        X("57P", UNKNOWN, DROPPED, 0, false) /* shut down, crashed, starting */                    \
        X("08", UNKNOWN, DROPPED, 0, false)  /* connection; all that PgBouncer says itself */      \
        X("XX000", FAILED, KEPT, 2, false)   /* also: a function was replaced meanwhile */         \
        X("", FAILED, KEPT, 0, false)

struct org_fault {
        const char *state;
        enum org_db_outcome outcome;
        enum org_session session;
        unsigned tries; /* more times that it is worth another */
        bool may_divide;
};

extern const struct org_fault org_faults[];
extern const size_t org_fault_count;

/* `state` NULL: libpq made the error itself, so the session is gone. `ends`: the
 * server called it FATAL or PANIC, which ends the session whatever the reason. */
struct org_fault org_fault_of(const char *state, bool ends);

#endif
