/* Runs a fuzz target on files, or on all files of folders: its corpus as a test. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"

#define INPUT_MAX ((size_t)1 << 20)

static unsigned n_run;

static bool file_run(const char *path) {
        static uint8_t data[INPUT_MAX];
        FILE *f = fopen(path, "rb");
        if (!f) {
                perror(path);
                return false;
        }
        size_t n = fread(data, 1, sizeof data, f);
        (void)fclose(f);
        /* Said first: a crash leaves the name behind. */
        (void)fprintf(stderr, "%s\n", path);
        (void)LLVMFuzzerTestOneInput(data, n);
        n_run++;
        return true;
}

static bool folder_run(const char *path) {
        struct dirent **names;
        int n = scandir(path, &names, NULL, alphasort);
        bool is_good = n >= 0;
        for (int i = 0; i < n; i++) {
                char whole[4096];
                int len = snprintf(whole, sizeof whole, "%s/%s", path, names[i]->d_name);
                if (names[i]->d_name[0] != '.')
                        is_good &= (size_t)len < sizeof whole && file_run(whole);
                free(names[i]);
        }
        if (n >= 0)
                free(names);
        return is_good;
}

static bool is_folder(const char *path) {
        DIR *d = opendir(path);
        if (d)
                (void)closedir(d);
        return d != NULL;
}

int main(int argc, char **argv) {
        bool is_good = true;
        for (int i = 1; i < argc; i++)
                is_good &= is_folder(argv[i]) ? folder_run(argv[i]) : file_run(argv[i]);
        (void)printf("%u inputs\n", n_run);
        return is_good && n_run > 0 ? 0 : 1;
}
