#include "loadgen/plot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define STEPS 200
#define WIDTH 900.0
#define HEIGHT 420.0
#define MARGIN 60.0

enum line { JOINED, ADMITTED, SOLD, REFUSED, LEFT, LINES };

static const char *const names[LINES] = {"joined", "admitted", "sold", "refused", "left"};
static const char *const colours[LINES] = {"#888888", "#1f77b4", "#2ca02c", "#d62728", "#9467bd"};

struct curves {
        double step_s;
        int64_t most;
        int64_t at[LINES][STEPS + 1]; /* buyers up to then */
};

static void count(struct curves *k, enum line line, int64_t at_us, int64_t started_us) {
        if (at_us == LG_NEVER)
                return;
        double step = (double)(at_us - started_us) / 1e6 / k->step_s;
        size_t slot = step <= 0 ? 0 : step >= STEPS ? STEPS : (size_t)step + 1;
        if (slot > STEPS)
                slot = STEPS;
        k->at[line][slot]++;
}

static void count_buyer(struct curves *k, const struct lg_buyer *b, int64_t started_us) {
        count(k, JOINED, b->trace.joined_us, started_us);
        count(k, ADMITTED, b->trace.admitted_us, started_us);
        switch (b->end) {
        case LG_END_SOLD:
                count(k, SOLD, b->ended_us, started_us);
                break;
        case LG_END_REFUSED:
                count(k, REFUSED, b->ended_us, started_us);
                break;
        case LG_END_LEFT:
        case LG_END_BROKEN:
                count(k, LEFT, b->ended_us, started_us);
                break;
        case LG_END_NONE:
        case LG_END_COUNT:
                break;
        }
}

static void draw(struct curves *k, const struct lg_crowd *c, int64_t started_us) {
        double length_s = (double)(c->last_end_us - started_us) / 1e6;
        k->step_s = length_s > 0.001 ? length_s / STEPS : 0.001;
        for (int64_t i = 0; i < c->options->buyers; i++)
                count_buyer(k, &c->buyers[i], started_us);
        for (size_t line = 0; line < LINES; line++) {
                for (size_t i = 1; i <= STEPS; i++)
                        k->at[line][i] += k->at[line][i - 1];
                if (k->at[line][STEPS] > k->most)
                        k->most = k->at[line][STEPS];
        }
        if (k->most == 0)
                k->most = 1;
}

static void write_csv(const struct curves *k, FILE *out) {
        fprintf(out, "seconds");
        for (size_t line = 0; line < LINES; line++)
                fprintf(out, ",%s", names[line]);
        fprintf(out, "\n");
        for (size_t i = 0; i <= STEPS; i++) {
                fprintf(out, "%.3f", (double)i * k->step_s);
                for (size_t line = 0; line < LINES; line++)
                        fprintf(out, ",%lld", (long long)k->at[line][i]);
                fprintf(out, "\n");
        }
}

static void write_svg(const struct curves *k, FILE *out) {
        double wide = WIDTH - 2 * MARGIN, high = HEIGHT - 2 * MARGIN;
        fprintf(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
                "font-family=\"sans-serif\" font-size=\"13\">\n"
                "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
                "<rect x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%.0f\" fill=\"none\" "
                "stroke=\"#cccccc\"/>\n",
                WIDTH, HEIGHT, MARGIN, MARGIN, wide, high);
        for (size_t line = 0; line < LINES; line++) {
                fprintf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"",
                        colours[line]);
                for (size_t i = 0; i <= STEPS; i++) {
                        double x = MARGIN + wide * (double)i / STEPS;
                        double share = (double)k->at[line][i] / (double)k->most;
                        fprintf(out, "%.1f,%.1f ", x, MARGIN + high * (1 - share));
                }
                fprintf(out, "\"/>\n<text x=\"%.0f\" y=\"%.0f\" fill=\"%s\">%s %lld</text>\n",
                        MARGIN + wide * (double)line / LINES, MARGIN - 14, colours[line],
                        names[line], (long long)k->at[line][STEPS]);
        }
        fprintf(out,
                "<text x=\"%.0f\" y=\"%.0f\">0</text>\n"
                "<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"end\">%.1f s</text>\n</svg>\n",
                MARGIN, HEIGHT - MARGIN + 20, WIDTH - MARGIN, HEIGHT - MARGIN + 20,
                k->step_s * STEPS);
}

static int write_file(const char *folder, const char *name, const struct curves *k,
                      void (*writer)(const struct curves *, FILE *)) {
        char path[1024];
        if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
                return -ENAMETOOLONG;
        FILE *out = fopen(path, "we");
        if (!out)
                return -errno;
        writer(k, out);
        bool failed = ferror(out) != 0;
        return fclose(out) != 0 || failed ? -EIO : 0;
}

int lg_plot_write(const char *folder, const struct lg_crowd *c, int64_t started_us) {
        if (mkdir(folder, 0755) != 0 && errno != EEXIST)
                return -errno;
        struct curves *k = calloc(1, sizeof(*k));
        if (!k)
                return -ENOMEM;
        draw(k, c, started_us);
        int r = write_file(folder, "race.csv", k, write_csv);
        if (r == 0)
                r = write_file(folder, "race.svg", k, write_svg);
        free(k);
        return r;
}
