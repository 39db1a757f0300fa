#include "admission/gate.h"

int64_t adm_gate_room_units(const struct adm_gate_in *in) {
        const struct adm_sale_facts *f = in->facts;
        if (!f->has_item)
                return ADM_GATE_UNLIMITED;
        int64_t available = f->stock.available > 0 ? f->stock.available : 0;
        available += in->ahead;
        if (available > ADM_GATE_UNLIMITED / 2)
                available = ADM_GATE_UNLIMITED / 2;
        return available * f->overbook_milli / 1000 - in->outstanding;
}

static int64_t smaller(int64_t a, int64_t b) {
        return a < b ? a : b;
}

int64_t adm_gate_room_keys(const struct adm_gate_in *in) {
        const struct adm_sale_facts *f = in->facts;
        int64_t units = adm_gate_room_units(in);
        if (in->shut || units <= 0)
                return 0;
        int64_t weight = f->per_account ? f->per_account : 1;
        int64_t keys = f->has_item ? (units + weight - 1) / weight : ADM_GATE_UNLIMITED;
        if (f->max_active > 0)
                keys = smaller(keys, (int64_t)f->max_active - in->active);
        if (f->rate_per_minute > 0)
                keys = smaller(keys, in->allowance_keys);
        return keys > 0 ? keys : 0;
}
