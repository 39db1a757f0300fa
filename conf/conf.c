#include "conf/conf.h"

bool conf_networks_hold(const struct conf_networks *networks, const uint8_t address[16]) {
        for (size_t i = 0; i < networks->count; i++) {
                const struct conf_network *n = &networks->at[i];
                size_t whole = n->bits / 8;
                uint8_t rest = (uint8_t)(0xFF00 >> (n->bits % 8));

                if (memcmp(n->address, address, whole) != 0)
                        continue;
                if (n->bits % 8 == 0 || ((n->address[whole] ^ address[whole]) & rest) == 0)
                        return true;
        }
        return false;
}
