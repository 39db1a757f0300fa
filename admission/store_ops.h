/* admission/store_ops.h - what an implementation of store.h fills in.
 *
 * Units, ownership, context and results are those of the calls in store.h.
 */
#ifndef ADMISSION_STORE_OPS_H
#define ADMISSION_STORE_OPS_H

#include "admission/store.h"

struct adm_store_ops {
        int (*sale)(struct adm_store *, const struct adm_sale_update *, int64_t, uint32_t *);
        int (*find)(struct adm_store *, const char *, uint32_t *);
        void (*forget_sale)(struct adm_store *, uint32_t);
        void (*alive)(struct adm_store *, int64_t);
        void (*tick)(struct adm_store *, int64_t);
        int (*join)(struct adm_store *, uint32_t, const struct adm_join *, int64_t,
                    struct adm_place *);
        int (*poll)(struct adm_store *, uint32_t, const struct adm_ticket *, uint32_t, int64_t,
                    struct adm_place *);
        int (*look)(struct adm_store *, uint32_t, uint32_t, int64_t, struct adm_place *);
        void (*leave)(struct adm_store *, uint32_t, const struct adm_tag *, int64_t);
        int (*pass_show)(struct adm_store *, uint32_t, const struct adm_shown *, bool, int64_t,
                         struct adm_pass *);
        int (*hold_begin)(struct adm_store *, uint32_t, const struct adm_shown *, uint32_t,
                          int64_t);
        int (*hold_end)(struct adm_store *, uint32_t, const struct adm_shown *,
                        const struct adm_hold_end *, int64_t, struct adm_pass *);
        int (*hold_extended)(struct adm_store *, uint32_t, const struct adm_shown *, int64_t,
                             int64_t, struct adm_pass *);
        void (*pass_done)(struct adm_store *, uint32_t, const struct adm_shown *, int64_t);
        void (*revoke)(struct adm_store *, uint32_t, const struct adm_revoked *, int64_t);
        void (*stock)(struct adm_store *, uint32_t, const struct adm_stock *, int64_t);
        int (*view)(struct adm_store *, uint32_t, int64_t, struct adm_view *);
        void (*tell)(struct adm_store *, uint32_t, const struct adm_told *);
        size_t (*all)(struct adm_store *, uint32_t *, size_t);
        void (*close)(struct adm_store *);
};

/* The head of every implementation's own struct. */
struct adm_store {
        const struct adm_store_ops *ops;
};

#endif
