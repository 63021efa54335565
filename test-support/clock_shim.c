/*
 * The clock of a test's server. Preloaded into it (LD_PRELOAD), this answers the time of day moved by
 * an offset, or a time that stands still. What to answer stands in the file that CLOCK_SHIM_FILE
 * names: two 64-bit integers in the machine's order, the offset in us, and the time in us since 1970
 * at which the clock stands still (0: it runs). The file is mapped, so a change counts at once.
 * Clocks that only measure (CLOCK_MONOTONIC and the like) stay as they are.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *shim;

__attribute__((constructor)) static void map_file(void) {
    const char *path = getenv("CLOCK_SHIM_FILE");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *map = file < 0 ? MAP_FAILED : mmap(NULL, 2 * sizeof *shim, PROT_READ, MAP_SHARED, file, 0);
    if (map == MAP_FAILED) abort();
    close(file);
    shim = map;
}

static int64_t shown_us(const struct timespec *real) {
    if (!shim) return real->tv_sec * INT64_C(1000000) + real->tv_nsec / 1000;
    int64_t still = shim[1];
    return still ? still : real->tv_sec * INT64_C(1000000) + real->tv_nsec / 1000 + shim[0];
}

int clock_gettime(clockid_t id, struct timespec *out) {
    int failed = syscall(SYS_clock_gettime, id, out);
    if (failed || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE)) return failed;
    int64_t us = shown_us(out);
    out->tv_sec = us / 1000000;
    out->tv_nsec = us % 1000000 * 1000;
    return 0;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone) {
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
