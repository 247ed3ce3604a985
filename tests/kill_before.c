/* Kill the process before its N-th change of the disk, whoever makes it: Python, Rust, C or C++.

   cc -shared -fPIC -o kill_before.so kill_before.c     LD_PRELOAD=kill_before.so, see kill_points.py

   Changes are writes to regular files, fsync, rename, unlink, mkdir, rmdir, truncate, and files that are
   created or emptied by open. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static long left;

void kill_before(long number) { left = number; }

static void count(void) {
    if (left > 0 && __sync_sub_and_fetch(&left, 1) == 0) {
        kill(getpid(), SIGKILL);
        pause();
    }
}

static void count_file(int file) {
    struct stat status;
    if (left > 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode)) count();
}

#define REAL(result, name, ...)                                        \
    static result (*real)(__VA_ARGS__);                                \
    if (!real) real = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name);

#define ON_FILE(result, name, declared, passed, ...)                   \
    result name declared { REAL(result, name, __VA_ARGS__) count_file(file); return real passed; }

#define ON_PATH(name, declared, passed, ...)                           \
    int name declared { REAL(int, name, __VA_ARGS__) count(); return real passed; }

ON_FILE(ssize_t, write, (int file, const void *data, size_t size), (file, data, size), int, const void *, size_t)
ON_FILE(ssize_t, pwrite, (int file, const void *data, size_t size, off_t at), (file, data, size, at), int, const void *, size_t, off_t)
ON_FILE(ssize_t, pwrite64, (int file, const void *data, size_t size, off64_t at), (file, data, size, at), int, const void *, size_t, off64_t)
ON_FILE(ssize_t, writev, (int file, const struct iovec *parts, int size), (file, parts, size), int, const struct iovec *, int)
ON_FILE(int, fsync, (int file), (file), int)
ON_FILE(int, fdatasync, (int file), (file), int)
ON_FILE(int, ftruncate, (int file, off_t size), (file, size), int, off_t)
ON_FILE(int, ftruncate64, (int file, off64_t size), (file, size), int, off64_t)
ON_PATH(rename, (const char *from, const char *to), (from, to), const char *, const char *)
ON_PATH(renameat, (int a, const char *from, int b, const char *to), (a, from, b, to), int, const char *, int, const char *)
ON_PATH(renameat2, (int a, const char *from, int b, const char *to, unsigned flags), (a, from, b, to, flags), int, const char *, int, const char *, unsigned)
ON_PATH(unlink, (const char *path), (path), const char *)
ON_PATH(unlinkat, (int folder, const char *path, int flags), (folder, path, flags), int, const char *, int)
ON_PATH(mkdir, (const char *path, mode_t mode), (path, mode), const char *, mode_t)
ON_PATH(mkdirat, (int folder, const char *path, mode_t mode), (folder, path, mode), int, const char *, mode_t)
ON_PATH(rmdir, (const char *path), (path), const char *)

#define ON_OPEN(name, declared, passed, ...)                           \
    int name declared {                                                \
        REAL(int, name, __VA_ARGS__)                                   \
        mode_t mode = 0;                                               \
        if (flags & (O_CREAT | O_TMPFILE)) {                           \
            va_list rest;                                              \
            va_start(rest, flags);                                     \
            mode = va_arg(rest, mode_t);                               \
            va_end(rest);                                              \
        }                                                              \
        if (flags & (O_CREAT | O_TRUNC)) count();                      \
        return real passed;                                            \
    }

ON_OPEN(open, (const char *path, int flags, ...), (path, flags, mode), const char *, int, ...)
ON_OPEN(open64, (const char *path, int flags, ...), (path, flags, mode), const char *, int, ...)
ON_OPEN(openat, (int folder, const char *path, int flags, ...), (folder, path, flags, mode), int, const char *, int, ...)
ON_OPEN(openat64, (int folder, const char *path, int flags, ...), (folder, path, flags, mode), int, const char *, int, ...)
