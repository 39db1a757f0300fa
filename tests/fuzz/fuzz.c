#include "tests/fuzz/fuzz.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void fuzz_fail(const char *format, ...) {
        va_list args;
        va_start(args, format);
        (void)vfprintf(stderr, format, args);
        va_end(args);
        (void)fputc('\n', stderr);
        abort();
}

struct span fuzz_copy(const uint8_t *data, size_t size) {
        char *copy = malloc(size ? size : 1);
        FUZZ_CHECK(copy);
        if (size > 0)
                memcpy(copy, data, size);
        return (struct span){copy, size};
}
