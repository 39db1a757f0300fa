/* Prints docs/configuration.md. */
#include "conf/manual.h"

int main(void) {
        conf_manual_page(stdout);
        return fflush(stdout) != 0 ? 1 : 0;
}
