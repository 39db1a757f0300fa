/* conf/manual.h - docs/configuration.md, grown from the option tables. */
#ifndef CONF_MANUAL_H
#define CONF_MANUAL_H

#include <stdio.h>

/* The whole page, Markdown. */
void conf_manual_page(FILE *to);

#endif
