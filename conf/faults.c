#include "conf/faults.h"

#include <stdarg.h>
#include <stdlib.h>

void conf_faults_init(struct conf_faults *faults, const char *file) {
        *faults = (struct conf_faults){.file = strdup(file)};
        assert(faults->file);
}

void conf_fault_add(struct conf_faults *faults, unsigned line, const char *format, ...) {
        va_list args;
        char *text = NULL;
        int n;

        if (faults->count++ >= CONF_FAULTS_MAX)
                return;
        va_start(args, format);
        n = vasprintf(&text, format, args);
        va_end(args);
        assert(n >= 0);
        faults->at[faults->count - 1] = (struct conf_fault){.line = line, .text = text};
}

/* By line, as a reader goes through the file; faults of one line as found. */
static void sort(struct conf_faults *faults, size_t kept) {
        for (size_t i = 1; i < kept; i++) {
                struct conf_fault f = faults->at[i];
                size_t k = i;

                for (; k > 0 && faults->at[k - 1].line > f.line; k--)
                        faults->at[k] = faults->at[k - 1];
                faults->at[k] = f;
        }
}

static size_t kept_of(const struct conf_faults *faults) {
        return faults->count < CONF_FAULTS_MAX ? faults->count : CONF_FAULTS_MAX;
}

void conf_faults_sort(struct conf_faults *faults) {
        sort(faults, kept_of(faults));
}

void conf_faults_print(const struct conf_faults *faults, FILE *to) {
        size_t kept = kept_of(faults);

        for (size_t i = 0; i < kept; i++) {
                if (faults->at[i].line > 0)
                        (void)fprintf(to, "%s:%u: %s\n", faults->file, faults->at[i].line,
                                      faults->at[i].text);
                else
                        (void)fprintf(to, "%s: %s\n", faults->file, faults->at[i].text);
        }
        if (faults->count > kept)
                (void)fprintf(to, "%s: and %zu faults more\n", faults->file, faults->count - kept);
}

void conf_faults_fini(struct conf_faults *faults) {
        for (size_t i = 0; i < kept_of(faults); i++)
                free(faults->at[i].text);
        free(faults->file);
        *faults = (struct conf_faults){0};
}
