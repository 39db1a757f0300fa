#include "origin/query.h"

const struct org_query_row org_queries[ORG_QUERY_COUNT] = {
#define X(id, tag, lane, n, text)                                                                  \
        [ORG_Q_##id] = {tag, ORG_LANE_##lane, n, "/* sluice " tag " */ " text},
        ORG_QUERY_TABLE(X)
#undef X
};
