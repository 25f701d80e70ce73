/* A file in memory for fuzz targets of what opens files by their paths; the same one, written anew, for every input. */
#ifndef TESTS_FUZZ_MEMORY_FILE_H
#define TESTS_FUZZ_MEMORY_FILE_H

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"

#define MEMORY_FILE_ROOM 40

static inline void memory_file(const void *bytes, size_t n, char path[MEMORY_FILE_ROOM])
{
    static int fd = -1;

    if (fd < 0)
        fd = memfd_create("fuzz", MFD_CLOEXEC);
    RBT_ASSERT(fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, bytes, n, 0) == (ssize_t)n);
    (void)snprintf(path, MEMORY_FILE_ROOM, "/proc/self/fd/%d", fd);
}

#endif
