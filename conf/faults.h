/* conf/faults.h - how the loader collects faults; readers use conf/conf.h. */
#ifndef CONF_FAULTS_H
#define CONF_FAULTS_H

#include "conf/conf.h"

void conf_faults_init(struct conf_faults *faults, const char *file);
/* `line` 0: the file as a whole. Without a line end. */
NET_PRINTF(3, 4)
void conf_fault_add(struct conf_faults *faults, unsigned line, const char *format, ...);
/* By line. */
void conf_faults_sort(struct conf_faults *faults);

#endif
