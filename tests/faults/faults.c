/* Lets the n-th call of the C library that concerns a folder fail, or kills the process there.

   Loaded by LD_PRELOAD. Only calls about files below the folder count, whichever thread makes
   them, and only after this process, or the one that it was forked from, has called
   `faults_arm`. What was done is told in memory that a parent shares with its children. */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define MOST_TOLD (1 << 16)

typedef struct {
    long calls;           /* calls of the chosen name so far */
    int hit;              /* whether the chosen call was made */
    char what[PATH_MAX];  /* the chosen call: its name, a space, its path */
    int told_size;
    char told[MOST_TOLD]; /* the names of all calls, each behind a space */
} Report;

static Report *report;
static int armed, fault_error, must_kill, is_short;
static long chosen;
static char folder[PATH_MAX], only[64];
static size_t folder_size;

__attribute__((constructor)) static void share_report(void) {
    report = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (report == MAP_FAILED) abort();
}

/* Begins to count. The `call`-th call named `name`, from 1, fails with `error`, or the process is
   killed at it; without a name none does. Threads change the order of calls between names, but
   hardly that within a name. `halves` lets reads and writes do half of what they are asked for. */
void faults_arm(const char *below, const char *name, long call, int error, int kill_there,
                int halves) {
    folder_size = strlen(below);
    if (folder_size >= sizeof folder || strlen(name) >= sizeof only) abort();
    strcpy(only, name);
    memcpy(folder, below, folder_size + 1);
    chosen = call, fault_error = error, must_kill = kill_there;
    is_short = halves;
    armed = 1;
}

void faults_reset(void) { memset(report, 0, sizeof *report); }
const char *faults_hit(void) { return report->hit ? report->what : ""; }
const char *faults_told(void) { return report->told; }

static void tell(const char *name) {
    int size = (int)strlen(name) + 1;
    int at = __atomic_fetch_add(&report->told_size, size, __ATOMIC_RELAXED);
    if (at + size >= MOST_TOLD) return;
    report->told[at] = ' ';
    memcpy(report->told + at + 1, name, size - 1);
}

static int is_below(const char *path) {
    return strncmp(path, folder, folder_size) == 0 && path[folder_size] == '/';
}

/* Whether this is the call to fail. */
static int is_chosen(const char *name, const char *path) {
    if (!is_below(path)) return 0;
    tell(name);
    if (strcmp(name, only) != 0) return 0;
    if (__atomic_add_fetch(&report->calls, 1, __ATOMIC_RELAXED) != chosen) return 0;
    snprintf(report->what, sizeof report->what, "%s %s", name, path);
    report->hit = 1;
    if (must_kill) kill(getpid(), SIGKILL);
    errno = fault_error;
    return 1;
}

static void path_of(int descriptor, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t size = readlink(link, path, PATH_MAX - 1);
    path[size < 0 ? 0 : size] = 0;
}

/* The absolute path that a call means, symbolic links being left as they are. */
static void absolute(int at, const char *name, char *path) {
    int saved = errno, descriptor;
    path[0] = 0;
    if (sscanf(name, "/proc/self/fd/%d", &descriptor) == 1) {
        path_of(descriptor, path);
    } else if (name[0] == '/') {
        snprintf(path, PATH_MAX, "%s", name);
    } else {
        char base[PATH_MAX] = "";
        if (at == AT_FDCWD) {
            if (!getcwd(base, sizeof base)) base[0] = 0;
        } else {
            path_of(at, base);
        }
        if (strlen(base) + strlen(name) + 2 <= PATH_MAX) {
            strcpy(path, base);
            strcat(path, "/");
            strcat(path, name);
        }
    }
    errno = saved;
}

static int chosen_by_name(const char *call, int at, const char *name) {
    if (!armed) return 0;
    char path[PATH_MAX];
    absolute(at, name, path);
    return is_chosen(call, path);
}

static int chosen_by_descriptor(const char *call, int descriptor) {
    if (!armed) return 0;
    char path[PATH_MAX];
    int saved = errno;
    path_of(descriptor, path);
    errno = saved;
    return is_chosen(call, path);
}

static size_t part(int descriptor, size_t size) {
    if (!armed || !is_short || size < 2) return size;
    char path[PATH_MAX];
    int saved = errno;
    path_of(descriptor, path);
    errno = saved;
    return is_below(path) ? size / 2 : size;
}

#define REAL(name) \
    static __typeof__(name) *real; \
    if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

#define BY_DESCRIPTOR(type, name, call, parameters, arguments, failed) \
    type name parameters { \
        REAL(name); \
        if (chosen_by_descriptor(call, descriptor)) return failed; \
        return real arguments; \
    }

#define TRANSFER(name, call, parameters, arguments) \
    ssize_t name parameters { \
        REAL(name); \
        if (chosen_by_descriptor(call, descriptor)) return -1; \
        size = part(descriptor, size); \
        return real arguments; \
    }

TRANSFER(write, "write", (int descriptor, const void *from, size_t size), (descriptor, from, size))
TRANSFER(pwrite, "pwrite", (int descriptor, const void *from, size_t size, off_t at),
         (descriptor, from, size, at))
TRANSFER(pwrite64, "pwrite", (int descriptor, const void *from, size_t size, off64_t at),
         (descriptor, from, size, at))
TRANSFER(read, "read", (int descriptor, void *to, size_t size), (descriptor, to, size))
TRANSFER(pread, "pread", (int descriptor, void *to, size_t size, off_t at),
         (descriptor, to, size, at))
TRANSFER(pread64, "pread", (int descriptor, void *to, size_t size, off64_t at),
         (descriptor, to, size, at))
BY_DESCRIPTOR(ssize_t, writev, "writev", (int descriptor, const struct iovec *parts, int count),
              (descriptor, parts, count), -1)
BY_DESCRIPTOR(ssize_t, readv, "readv", (int descriptor, const struct iovec *parts, int count),
              (descriptor, parts, count), -1)
BY_DESCRIPTOR(int, fsync, "fsync", (int descriptor), (descriptor), -1)
BY_DESCRIPTOR(int, fdatasync, "fdatasync", (int descriptor), (descriptor), -1)
BY_DESCRIPTOR(int, ftruncate, "ftruncate", (int descriptor, off_t size), (descriptor, size), -1)
BY_DESCRIPTOR(int, ftruncate64, "ftruncate", (int descriptor, off64_t size), (descriptor, size), -1)
BY_DESCRIPTOR(int, fallocate, "fallocate", (int descriptor, int mode, off_t begin, off_t size),
              (descriptor, mode, begin, size), -1)
BY_DESCRIPTOR(int, fallocate64, "fallocate",
              (int descriptor, int mode, off64_t begin, off64_t size),
              (descriptor, mode, begin, size), -1)
BY_DESCRIPTOR(int, fchmod, "fchmod", (int descriptor, mode_t mode), (descriptor, mode), -1)

int close(int descriptor) {
    REAL(close);
    if (chosen_by_descriptor("close", descriptor)) {
        /* As Linux does: the number is free again, whatever is reported. */
        int error = errno;
        real(descriptor);
        errno = error;
        return -1;
    }
    return real(descriptor);
}

#define MAP(name, offset) \
    void *name(void *at, size_t size, int access, int flags, int descriptor, offset begin) { \
        REAL(name); \
        if (descriptor >= 0 && chosen_by_descriptor("mmap", descriptor)) return MAP_FAILED; \
        return real(at, size, access, flags, descriptor, begin); \
    }

MAP(mmap, off_t)
MAP(mmap64, off64_t)

static int open_is_refused(int at, const char *path, int flags) {
    if (!armed) return 0;
    int nameless = (flags & O_TMPFILE) == O_TMPFILE;
    const char *call = nameless ? "open_nameless"
                     : (flags & O_ACCMODE) == O_RDONLY ? "open_to_read" : "open";
    char full[PATH_MAX];
    absolute(at, path, full);
    if (nameless) strncat(full, "/", sizeof full - strlen(full) - 1);
    return is_chosen(call, full);
}

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        REAL(name); \
        va_list more; \
        va_start(more, flags); \
        mode_t mode = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(more, mode_t) : 0; \
        va_end(more); \
        if (open_is_refused(AT_FDCWD, path, flags)) return -1; \
        return real(path, flags, mode); \
    }

#define OPENAT(name) \
    int name(int at, const char *path, int flags, ...) { \
        REAL(name); \
        va_list more; \
        va_start(more, flags); \
        mode_t mode = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(more, mode_t) : 0; \
        va_end(more); \
        if (open_is_refused(at, path, flags)) return -1; \
        return real(at, path, flags, mode); \
    }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

int __open_2(const char *path, int flags) { return open(path, flags); }
int __open64_2(const char *path, int flags) { return open64(path, flags); }
int __openat_2(int at, const char *path, int flags) { return openat(at, path, flags); }
int __openat64_2(int at, const char *path, int flags) { return openat64(at, path, flags); }

#define BY_NAME(name, call, parameters, arguments, at, path) \
    int name parameters { \
        REAL(name); \
        if (chosen_by_name(call, at, path)) return -1; \
        return real arguments; \
    }

BY_NAME(rename, "rename", (const char *from, const char *to), (from, to), AT_FDCWD, to)
BY_NAME(renameat, "rename", (int at, const char *from, int to_at, const char *to),
        (at, from, to_at, to), to_at, to)
BY_NAME(link, "link", (const char *from, const char *to), (from, to), AT_FDCWD, to)
BY_NAME(linkat, "link", (int at, const char *from, int to_at, const char *to, int flags),
        (at, from, to_at, to, flags), to_at, to)
BY_NAME(mkdir, "mkdir", (const char *path, mode_t mode), (path, mode), AT_FDCWD, path)
BY_NAME(mkdirat, "mkdir", (int at, const char *path, mode_t mode), (at, path, mode), at, path)
