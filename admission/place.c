#include "admission/place.h"

#include <stddef.h>

const char *adm_place_state_name(enum adm_place_state s) {
        switch (s) {
        case ADM_NOT_OPEN:
                return "not_open";
        case ADM_WAITING:
                return "waiting";
        case ADM_READY:
                return "ready";
        case ADM_ADMITTED:
                return "admitted";
        case ADM_ALL_HELD:
                return "all_held";
        case ADM_PAUSED:
                return "paused";
        case ADM_SOLD_OUT:
                return "sold_out";
        case ADM_CLOSED:
                return "closed";
        case ADM_LINE_FULL:
                return "line_full";
        }
        return "unknown";
}

const char *adm_reason_name(enum adm_reason r) {
        switch (r) {
        case ADM_REASON_NONE:
                return NULL;
        case ADM_FORGOTTEN:
                return "forgotten";
        case ADM_TURN_MISSED:
                return "turn_missed";
        case ADM_TICKET_INVALID:
                return "ticket_invalid";
        case ADM_OTHER_ACCOUNT:
                return "other_account";
        case ADM_ROUND_OVER:
                return "round_over";
        }
        return NULL;
}
