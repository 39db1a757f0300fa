#include "conf/manual.h"

#include "conf/gateway.h"
#include "conf/origin.h"

void conf_manual_page(FILE *to) {
        (void)fputs(
                "# Configuration\n"
                "\n"
                "Both programs read one YAML file (`-c FILE`); `-t` checks it and exits. Every\n"
                "fault of a file is reported in one run, as `FILE:LINE: option: what was\n"
                "expected`, with exit status 2, and nothing is started.\n"
                "\n"
                "Durations and sizes need a unit: `250ms`, `10s`, `5m`, `1h`; `512B`, `64KiB`,\n"
                "`1MiB`. Names of files and folders are relative to the folder of the\n"
                "configuration file. A point in an option's name is a level of the file:\n"
                "`tls.key` is `key` below `tls`. A list of one may be written as a single value.\n"
                "\n"
                "This page is printed by `build/conf/conf-manual` from the option tables; do not\n"
                "edit it.\n"
                "\n"
                "## Gateway (`sluice`)\n"
                "\n",
                to);
        conf_manual_gateway(to);
        (void)fputs("\n## Origin (`sluice-origin`)\n\n", to);
        conf_manual_origin(to);
}
