/* Faults below the service: a clock that is set, and I/O errors on the files of its data directory.
 *
 * The library is preloaded (ld.so(8), LD_PRELOAD). A process whose environment has SOAK_FAULTS, the path of a file of
 * `struct faults`, maps that file; any other process behaves as without the library. The campaign changes the file while
 * the process runs, so that a fault begins and ends at once. For SOAK_FAULTS=/x/data.faults, files below /x/data/ fail.
 *
 * cc -std=c11 -O2 -Wall -Wextra -shared -fPIC -o shim.so shim.c -ldl
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { WRITES = 1, SYNCS = 2, READS = 4 };

struct faults { /* as tests/soak/programs.py packs it */
    _Atomic int64_t clock_offset_ns; /* added to CLOCK_REALTIME */
    _Atomic uint32_t calls;          /* which calls fail: a sum of WRITES, SYNCS, READS; 0: none */
    _Atomic uint32_t error;          /* the errno that they set */
    _Atomic uint32_t every;          /* one of so many calls fails */
    _Atomic uint32_t counted;        /* calls while they may fail */
    _Atomic uint32_t failed;
    _Atomic uint32_t stepped;        /* times that were read while the clock was wrong */
};

static struct faults none, *_Atomic mapped;
static char prefix[4096];

/* Returns the faults of this process. A process that is forked gets its environment later, so that it looks again. */
static struct faults *faults(void) {
    struct faults *known = mapped;
    if (known != NULL) return known;
    const char *path = getenv("SOAK_FAULTS");
    if (path == NULL) return &none;
    size_t length = strlen(path);
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0 || length < 8 || length >= sizeof prefix) return &none;
    void *memory = mmap(NULL, sizeof *known, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED) return &none;
    memcpy(prefix, path, length - 7); /* without ".faults" */
    prefix[length - 7] = '/';
    mapped = memory;
    return memory;
}

static int is_of_the_service(int file) {
    char link[32], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return strncmp(path, prefix, strlen(prefix)) == 0;
}

/* Returns whether this call fails; errno is set then. */
static int fails(uint32_t call, int file) {
    struct faults *now = faults();
    if ((now->calls & call) == 0 || !is_of_the_service(file)) return 0;
    if (now->every > 1 && ++now->counted % now->every != 0) return 0;
    now->failed++;
    errno = (int)now->error;
    return 1;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    static int (*real)(clockid_t, struct timespec *);
    if (real == NULL) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, time);
    if (result != 0 || clock != CLOCK_REALTIME) return result;
    struct faults *now = faults();
    if (now->clock_offset_ns != 0) now->stepped++;
    int64_t nanoseconds = time->tv_nsec + now->clock_offset_ns;
    int64_t seconds = nanoseconds / 1000000000;
    if (nanoseconds % 1000000000 < 0) seconds--;
    time->tv_sec += seconds;
    time->tv_nsec = nanoseconds - seconds * 1000000000;
    return 0;
}

ssize_t write(int file, const void *octets, size_t size) {
    return fails(WRITES, file) ? -1 : syscall(SYS_write, file, octets, size);
}

ssize_t pwrite64(int file, const void *octets, size_t size, off64_t at) {
    return fails(WRITES, file) ? -1 : syscall(SYS_pwrite64, file, octets, size, at);
}

ssize_t pwrite(int file, const void *octets, size_t size, off_t at) {
    return pwrite64(file, octets, size, at);
}

ssize_t pread64(int file, void *octets, size_t size, off64_t at) {
    return fails(READS, file) ? -1 : syscall(SYS_pread64, file, octets, size, at);
}

ssize_t pread(int file, void *octets, size_t size, off_t at) {
    return pread64(file, octets, size, at);
}

int fdatasync(int file) {
    return fails(SYNCS, file) ? -1 : (int)syscall(SYS_fdatasync, file);
}

int fsync(int file) {
    return fails(SYNCS, file) ? -1 : (int)syscall(SYS_fsync, file);
}
