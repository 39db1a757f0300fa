#include "origin/fault.h"

#include <string.h>

const struct org_fault org_faults[] = {
#define X(state, outcome, session, tries, divide)                                                  \
        {state, ORG_DB_##outcome, ORG_SESSION_##session, tries, divide},
        ORG_FAULT_TABLE(X)
#undef X
};
const size_t org_fault_count = NET_COUNT_OF(org_faults);

struct org_fault org_fault_of(const char *state, bool ends) {
        const struct org_fault *f = org_faults;

        if (!state)
                return (struct org_fault){NULL, ORG_DB_UNKNOWN, ORG_SESSION_DROPPED, 0, false};
        while (strncmp(state, f->state, strlen(f->state)) != 0)
                f++; /* the last row fits everything */
        if (ends && f->session == ORG_SESSION_KEPT)
                return (struct org_fault){f->state, ORG_DB_UNKNOWN, ORG_SESSION_DROPPED, 0, false};
        return *f;
}
