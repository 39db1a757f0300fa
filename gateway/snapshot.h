/* gateway/snapshot.h - what the gateway knows of all sales at one moment,
 * with the answers that need nothing else, rendered.
 *
 * The control thread builds a snapshot from the origin's, adds the state by
 * time, and publishes it; workers only read. Pages are carried over from the
 * snapshot before when what they say has not changed.
 *
 * Units      milliseconds; instants are sale time (the origin's clock).
 * Ownership  reference counted, immutable once published.
 * Context    building: the control thread. Reading: any thread that holds a
 *            reference.
 */
#ifndef GATEWAY_SNAPSHOT_H
#define GATEWAY_SNAPSHOT_H

#include <stdatomic.h>

#include "admission/sale.h"
#include "gateway/settings.h"
#include "net/http_page.h"

#define GW_HOST_MAX 128
#define GW_PATH_MAX 512
#define GW_LOGIN_URL_MAX 512
#define GW_ETAG_LEN 24

enum gw_form { GW_FORM_JSON, GW_FORM_HTML };

/* Whose numbers the flag tells. */
enum gw_left { GW_LEFT_HIDDEN, GW_LEFT_EXACT, GW_LEFT_FEW };

/* A row of a sale's `match` or `bypass`. */
struct gw_rule {
        struct span host; /* lower case; p NULL: every host served */
        struct span path;
        bool prefix; /* ends at a segment border */
};

struct gw_rules {
        struct gw_rule *at; /* one allocation, the rows' texts behind the rows */
        size_t count;
};

/* Answers that are the same for everybody. */
struct gw_pages {
        struct http_page *flag; /* 200 */
        struct http_page *flag_304;
        char etag[GW_ETAG_LEN]; /* with quotes */
        /* Sold out or closed (else NULL): 410 on the line, 410 in place of a gated
         * path, each as JSON and as a page; and what a hold attempt is told. */
        struct http_page *end_line[2]; /* by enum gw_form */
        struct http_page *end_gated[2];
        struct http_page *end_hold;
};

struct gw_sale {
        struct adm_sale_facts facts;
        enum adm_sale_state state; /* as shown */
        uint32_t slot;             /* of its counters, >= 1; 0 when they ran out */
        uint32_t handle;           /* the store's */
        bool is_stored;            /* false: the store would not take it */
        enum gw_left left;
        char upstream[ADM_ID_LEN];            /* "": none */
        char login_url[GW_LOGIN_URL_MAX + 1]; /* "": none */
        struct gw_rules match;
        struct gw_rules bypass;
        uint64_t flag_version;
        int64_t flag_as_of_ms;
        struct gw_pages pages;
};

/* A `match` row of some sale, in the order in which they are tried. */
struct gw_ranked_rule {
        const struct gw_rule *rule;
        uint32_t sale; /* index into sales */
        bool is_bypass;
};

struct gw_snapshot {
        atomic_uint refs;
        struct gw_settings *settings; /* own reference */
        bool known;                   /* false: there never was a snapshot */
        int64_t now_ms;               /* the origin's clock when it was made */
        char digest[96];              /* for the next long poll; "" none */
        struct gw_sale *sales;        /* by id */
        size_t n_sales;
        uint32_t *index; /* hash table of sales: 1 + place, 0 free */
        size_t index_mask;
        struct gw_ranked_rule *ranked; /* the longest first */
        size_t n_ranked;
        struct http_page *list; /* GET /sales */
        struct http_page *list_304;
        char list_etag[GW_ETAG_LEN];
};

/* An empty one of unknown sales. NULL when out of memory. */
struct gw_snapshot *gw_snapshot_new(struct gw_settings *settings, size_t sales);
/* Fills the hash table once all ids stand. 0 or -ENOMEM. */
NET_MUST int gw_snapshot_index(struct gw_snapshot *s);

void gw_snapshot_take(struct gw_snapshot *s);
void gw_snapshot_free(struct gw_snapshot **s);

/* NULL when there is no such sale. */
const struct gw_sale *gw_snapshot_sale(const struct gw_snapshot *s, struct span id);

#endif
