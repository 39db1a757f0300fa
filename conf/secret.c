#include "conf/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int conf_secret_read(const char *path, char *out, size_t cap, size_t *len) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        size_t n = 0;
        int r = 0;

        if (fd < 0)
                return -errno;
        while (r == 0 && n < cap) {
                ssize_t got = read(fd, out + n, cap - n);

                if (got < 0 && errno == EINTR)
                        continue;
                if (got <= 0) {
                        r = got < 0 ? -errno : 0;
                        break;
                }
                n += (size_t)got;
        }
        if (r == 0 && n == cap) {
                char more;

                if (read(fd, &more, 1) > 0)
                        r = -EFBIG;
        }
        (void)close(fd);
        if (r == 0 && n > 0 && out[n - 1] == '\n')
                n--;
        if (r == 0 && n > 0 && out[n - 1] == '\r')
                n--;
        if (r == 0 && n == 0)
                r = -ENODATA;
        if (r != 0)
                explicit_bzero(out, cap);
        else
                *len = n;
        return r;
}
