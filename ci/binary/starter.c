/* The head of the one-file program: unpacks the image behind it once, and runs the interpreter in it.

   The image is a tar archive in zstd, at the end of this file before the trailer (ci/binary/build.py writes both). It is
   unpacked into a folder of the user's in a place that can be written to and executed from, and kept there for later
   starts. What is executed in it names its dynamic linker by an absolute path, so the path of the folder is written
   into it here. The program is linked statically: it needs nothing of the system but the kernel. */

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

#define MAGIC "HDGTIMG1"
#define KEY_LENGTH 16
/* The place for the path of the dynamic linker in programs of the image, and how it begins. */
#define LINKER_ROOM 240
#define LINKER_MARK "/@linker-of-headgate@/"
#define LINKER_PATH "/lib/ld-linux-x86-64.so.2"
/* Descriptors below stay free: sockets of a service manager begin at 3. */
#define FIRST_DESCRIPTOR 10
#define BLOCK 512
/* The user that the kernel shows for those that a user namespace does not have (/proc/sys/kernel/overflowuid). */
#define UNMAPPED 65534

struct trailer {
    char magic[8];
    uint64_t offset;          /* of the image in this file */
    uint64_t packed;          /* its length */
    uint64_t unpacked;        /* bytes that its files take */
    uint64_t entries;         /* its files and folders */
    char key[KEY_LENGTH];     /* hexadecimal digits of its hash */
};

struct tar_header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100], magic[6], version[2],
        user[32], group[32], major[8], minor[8], prefix[155], rest[12];
};

struct image {
    const char *bytes;
    struct trailer trailer;
    char name[64];            /* of its folder: image-KEY-BOOT */
};

static char why_not[4096];

__attribute__((format(printf, 1, 2))) static void refused(const char *format, ...)
{
    size_t used = strlen(why_not);
    va_list words;
    va_start(words, format);
    used += snprintf(why_not + used, sizeof why_not - used, "\n  ");
    if (used < sizeof why_not)
        vsnprintf(why_not + used, sizeof why_not - used, format, words);
    va_end(words);
}

__attribute__((format(printf, 1, 2))) static void fail(const char *format, ...)
{
    va_list words;
    va_start(words, format);
    fputs("headgate: ", stderr);
    vfprintf(stderr, format, words);
    fputs("\n", stderr);
    va_end(words);
    exit(1);
}

/* Join words to a path in `into` (PATH_MAX). Returns false if it is too long. */
__attribute__((format(printf, 2, 3))) static int path_of(char *into, const char *format, ...)
{
    va_list words;
    va_start(words, format);
    int length = vsnprintf(into, PATH_MAX, format, words);
    va_end(words);
    return length > 0 && length < PATH_MAX;
}

/* ---- the image ---- */

static void open_image(const char *program, struct image *image)
{
    int fd = open(program, O_RDONLY | O_CLOEXEC);
    struct stat found;
    if (fd < 0 || fstat(fd, &found) < 0)
        fail("cannot read its own file %s: %s", program, strerror(errno));
    if (found.st_size < (off_t)sizeof image->trailer
        || pread(fd, &image->trailer, sizeof image->trailer, found.st_size - sizeof image->trailer)
            != (ssize_t)sizeof image->trailer
        || memcmp(image->trailer.magic, MAGIC, sizeof image->trailer.magic)
        || image->trailer.offset + image->trailer.packed + sizeof image->trailer != (uint64_t)found.st_size)
        fail("%s is not complete", program);
    image->bytes = mmap(NULL, found.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (image->bytes == MAP_FAILED)
        fail("cannot read its own file %s: %s", program, strerror(errno));
    close(fd);
    /* Files that were written before a power cut may be empty, so that a boot begins anew. */
    char boot[9] = "unknown";
    fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        if (read(fd, boot, 8) != 8)
            strcpy(boot, "unknown");
        close(fd);
    }
    snprintf(image->name, sizeof image->name, "image-%.*s-%s", KEY_LENGTH, image->trailer.key, boot);
}

struct stream {
    ZSTD_DStream *zstd;
    ZSTD_inBuffer in;
    ZSTD_outBuffer out;
    size_t taken;             /* of what is in `out` */
};

/* Return how many bytes of the archive lie at `*bytes`, at most `most`; 0 at a fault. */
static size_t pull(struct stream *stream, const char **bytes, size_t most)
{
    while (stream->taken == stream->out.pos) {
        stream->out.pos = stream->taken = 0;
        size_t before = stream->in.pos;
        size_t done = ZSTD_decompressStream(stream->zstd, &stream->out, &stream->in);
        if (ZSTD_isError(done) || (stream->out.pos == 0 && stream->in.pos == before)) {
            errno = EBADMSG;
            return 0;
        }
    }
    size_t there = stream->out.pos - stream->taken;
    *bytes = (const char *)stream->out.dst + stream->taken;
    if (there > most)
        there = most;
    stream->taken += there;
    return there;
}

static int pull_block(struct stream *stream, void *block)
{
    const char *bytes;
    for (size_t had = 0, more; had < BLOCK; had += more) {
        if (!(more = pull(stream, &bytes, BLOCK - had)))
            return 0;
        memcpy((char *)block + had, bytes, more);
    }
    return 1;
}

/* Write the content of a file, and skip what fills its last block. `fd` -1: skip all. */
static int write_content(struct stream *stream, int fd, uint64_t size)
{
    const char *bytes;
    uint64_t padded = (size + BLOCK - 1) / BLOCK * BLOCK;
    for (uint64_t had = 0; had < padded;) {
        size_t there = pull(stream, &bytes, had < size ? size - had : padded - had);
        if (!there)
            return 0;
        if (had < size)
            for (size_t sent = 0; sent < there;) {
                ssize_t now = write(fd, bytes + sent, there - sent);
                if (now < 0 && errno != EINTR)
                    return 0;
                sent += now > 0 ? now : 0;
            }
        had += there;
    }
    return 1;
}

/* Write the path of the dynamic linker into a program of the image. */
static int set_linker(int fd, uint64_t size, const char *folder)
{
    char *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED)
        return 0;
    char *place = memmem(bytes, size, LINKER_MARK, strlen(LINKER_MARK));
    if (place != NULL) {
        memset(place, 0, LINKER_ROOM);
        /* make_image() has looked at the length. */
        strcat(strcat(place, folder), LINKER_PATH);
    }
    munmap(bytes, size);
    return 1;
}

/* Make one entry of the archive below `part`. `folder` is where it will lie in the end. */
static int make_entry(struct stream *stream, const struct tar_header *header, int part, const char *folder)
{
    char name[sizeof header->prefix + sizeof header->name + 2], digits[13] = "";
    snprintf(name, sizeof name, "%.*s%s%.*s", (int)sizeof header->prefix, header->prefix, header->prefix[0] ? "/" : "",
             (int)sizeof header->name, header->name);
    memcpy(digits, header->size, sizeof header->size);
    uint64_t size = strtoull(digits, NULL, 8);
    unsigned mode = strtoul(header->mode, NULL, 8);
    if (header->type == '5')
        return mkdirat(part, name, 0700) == 0 || errno == EEXIST;
    if (header->type != '0') {
        errno = EBADMSG;
        return 0;
    }
    int fd = openat(part, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode & 0111 ? 0700 : 0600);
    if (fd < 0)
        return 0;
    int done = write_content(stream, fd, size);
    if (done && (mode & 0111) && size)
        done = set_linker(fd, size, folder);
    close(fd);
    return done;
}

static int unpack_into(const struct image *image, int part, const char *folder)
{
    struct stream stream = {.zstd = ZSTD_createDStream()};
    size_t room = 4 << 20;
    stream.in = (ZSTD_inBuffer){image->bytes + image->trailer.offset, image->trailer.packed, 0};
    stream.out = (ZSTD_outBuffer){malloc(room), room, 0};
    int done = 0;
    struct tar_header header;
    if (stream.zstd != NULL && stream.out.dst != NULL) {
        ZSTD_DCtx_setParameter(stream.zstd, ZSTD_d_windowLogMax, 27);
        while (pull_block(&stream, &header)) {
            if (!header.name[0]) {        /* the end of the archive */
                done = 1;
                break;
            }
            if (!make_entry(&stream, &header, part, folder))
                break;
        }
    }
    int error = errno;
    ZSTD_freeDStream(stream.zstd);
    free(stream.out.dst);
    errno = error;
    return done;
}

/* ---- folders ---- */

static void remove_below(int fd)
{
    DIR *entries = fdopendir(fd);
    if (entries == NULL) {
        close(fd);
        return;
    }
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        if (unlinkat(dirfd(entries), entry->d_name, 0) == 0)
            continue;
        int below = openat(dirfd(entries), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below >= 0)
            remove_below(below);
        unlinkat(dirfd(entries), entry->d_name, AT_REMOVEDIR);
    }
    closedir(entries);
}

static void remove_tree(int base, const char *name)
{
    int fd = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0)
        remove_below(fd);
    unlinkat(base, name, AT_REMOVEDIR);
}

/* Remove images of other versions and boots, and what was left half done, that no process has locked. */
static void remove_unused(int base, const char *kept)
{
    DIR *entries = fdopendir(dup(base));
    if (entries == NULL)
        return;
    rewinddir(entries);
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        if (!strcmp(entry->d_name, kept)
            || (strncmp(entry->d_name, "image-", 6) && strncmp(entry->d_name, "part-", 5)))
            continue;
        int fd = openat(base, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            continue;
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
            char gone[64];
            snprintf(gone, sizeof gone, "part-gone-%d", (int)getpid());
            if (renameat(base, entry->d_name, base, gone) == 0)
                remove_tree(base, gone);
        }
        close(fd);
    }
    closedir(entries);
}

/* Count files and folders below a folder. Closes `fd`. */
static uint64_t count_below(int fd)
{
    uint64_t count = 0;
    DIR *entries = fdopendir(fd);
    if (entries == NULL) {
        close(fd);
        return 0;
    }
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        count++;
        int below = entry->d_type == DT_REG ? -1
            : openat(dirfd(entries), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below >= 0)
            count += count_below(below);
    }
    closedir(entries);
    return count;
}

/* Tell whether the number of a user is that of nobody: in a user namespace, of all users that it does not have. */
static int is_unmapped(uid_t user)
{
    unsigned long inside, outside, length;
    FILE *map = user == UNMAPPED ? fopen("/proc/self/uid_map", "re") : NULL;
    if (map == NULL)
        return 0;
    int known = 0;
    while (fscanf(map, "%lu %lu %lu", &inside, &outside, &length) == 3)
        known |= user >= inside && user - inside < length;
    fclose(map);
    return !known;
}

static int others_may_rename(const char *path)
{
    struct stat found, above;
    char parent[PATH_MAX];
    if (stat(path, &found) < 0)
        return 1;
    if (found.st_uid != 0 && found.st_uid != geteuid() && !is_unmapped(found.st_uid))
        return 1;
    if (found.st_mode & S_ISVTX)
        return 0;
    if (!(found.st_mode & S_IWOTH) && (!(found.st_mode & S_IWGRP) || found.st_gid == 0 || found.st_gid == getegid()))
        return 0;
    /* Volumes of containers are open to all, and only their containers have them. */
    return !path_of(parent, "%s/..", path) || stat(parent, &above) < 0 || above.st_dev == found.st_dev;
}

/* Tell whether somebody else could put another folder in the place of one: what is above it decides, up to the root.
   `resolved` is a path without links. */
static int is_exposed(const char *resolved)
{
    char path[PATH_MAX];
    strcpy(path, resolved);
    for (;;) {
        char *last = strrchr(path, '/');
        if (others_may_rename(path))
            return 1;
        if (!path[1])
            return 0;
        last[last == path] = 0;
    }
}

/* Open the user's folder in a place, and make it if `make`. Nobody else may have put anything into it. */
static int open_base(const char *place, int make, char *base)
{
    struct stat found;
    struct statvfs space;
    char resolved[PATH_MAX];
    if (realpath(place, resolved) == NULL) {
        if (make)
            refused("%s: %s", place, strerror(errno));
        return -1;
    }
    if (!path_of(base, "%s/headgate-%u", resolved[1] ? resolved : "", (unsigned)geteuid())) {
        refused("%s: the path is too long", place);
        return -1;
    }
    if (is_exposed(resolved)) {
        if (make)
            refused("%s: somebody else could replace what is in it", place);
        return -1;
    }
    if (make && mkdir(base, 0700) < 0 && errno != EEXIST) {
        refused("%s: %s", place, strerror(errno));
        return -1;
    }
    int fd = open(base, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &found) < 0) {
        if (make)
            refused("%s: %s", base, strerror(errno));
    } else if (found.st_uid != geteuid() || (found.st_mode & 077)) {
        if (make)
            refused("%s: it belongs to somebody else, or others may write there", base);
    } else if (fstatvfs(fd, &space) == 0 && (space.f_flag & ST_NOEXEC)) {
        if (make)
            refused("%s: nothing can be executed there (noexec)", place);
    } else {
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Write a name that nobody else has: containers that share a folder have the same process ids. */
static void temporary(char *name, size_t size)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(name, size, "part-%d-%lx%08lx", (int)getpid(), (long)now.tv_sec, now.tv_nsec);
}

/* Tell whether no file of an image is gone. Takes a descriptor of its folder, and leaves it open. */
static int is_whole(const struct image *image, int fd)
{
    int below = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return below < 0 || count_below(below) >= image->trailer.entries;
}

/* Lock the image at `folder` for as long as any process that has this descriptor lives. Returns -1 if it is not there, or if
   files of it are gone: what cleans folders of old files (systemd-tmpfiles) takes those that have not been read for long, and
   leaves folders that are locked. */
static int lock_image(const struct image *image, const char *folder)
{
    struct stat opened, named;
    int low = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (low < 0)
        return -1;
    int fd = fcntl(low, F_DUPFD, FIRST_DESCRIPTOR);
    close(low);
    if (fd < 0)
        return -1;
    if (flock(fd, LOCK_SH) < 0 || fstat(fd, &opened) < 0 || stat(folder, &named) < 0
        || opened.st_ino != named.st_ino || opened.st_dev != named.st_dev || !is_whole(image, fd)) {
        close(fd);        /* or it was removed in between */
        return -1;
    }
    return fd;
}

/* Put the folder `one` of `base` in the place of `other`, which gets another name: in one step where the file system can. */
static int exchange(int base, const char *one, const char *other)
{
    char aside[64];
    if (syscall(SYS_renameat2, base, one, base, other, RENAME_EXCHANGE) == 0)
        return 1;
    temporary(aside, sizeof aside);
    return renameat(base, other, base, aside) == 0 && renameat(base, one, base, other) == 0;
}

/* Give the folder `part` the name of the image. One that is there stays where it is whole: another process was quicker, and may
   run in it. Otherwise they change places, and `*torn` is set: remove_unused() looks whether others still have the old one. */
static int name_image(const struct image *image, int base, const char *part, int *torn)
{
    if (renameat(base, part, base, image->name) == 0)
        return 1;
    if (errno != EEXIST && errno != ENOTEMPTY)
        return 0;
    /* Of one process at a time: between the look and the change nobody else changes it. */
    if (flock(base, LOCK_EX) < 0)
        return 0;
    int there = openat(base, image->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int whole = there >= 0 && is_whole(image, there);
    *torn = !whole;
    int done = whole || exchange(base, part, image->name);
    int error = errno;
    if (there >= 0)
        close(there);
    flock(base, LOCK_UN);
    errno = error;
    return done;
}

/* Unpack into `base`, where nobody sees it before it is complete. */
static int make_image(const struct image *image, int base, const char *base_path, const char *folder)
{
    char part[64];
    struct statvfs space;
    if (fstatvfs(base, &space) == 0
        && (uint64_t)space.f_bavail * space.f_frsize < image->trailer.unpacked + image->trailer.unpacked / 16) {
        refused("%s: no room for %llu MB", base_path, (unsigned long long)(image->trailer.unpacked >> 20));
        return 0;
    }
    if (strlen(folder) + sizeof LINKER_PATH > LINKER_ROOM) {
        refused("%s: the path is too long", base_path);
        return 0;
    }
    temporary(part, sizeof part);
    int fd = -1;
    int done = mkdirat(base, part, 0700) == 0
        && (fd = openat(base, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) >= 0
        && flock(fd, LOCK_EX | LOCK_NB) == 0 && unpack_into(image, fd, folder);
    if (!done)
        refused("%s: %s", base_path, errno == EBADMSG ? "the file of the program is damaged" : strerror(errno));
    int torn = 0;
    if (done && !name_image(image, base, part, &torn)) {
        refused("%s: %s", base_path, strerror(errno));
        done = torn = 0;
    }
    if (!torn)
        remove_tree(base, part);        /* where it failed, or another process was quicker */
    if (fd >= 0)
        close(fd);
    return done;
}

/* ---- places ---- */

struct places {
    char paths[10][PATH_MAX];
    int count;
};

static void add_place(struct places *places, const char *format, const char *value)
{
    if (value != NULL && value[0] == '/' && places->count < 10)
        places->count += path_of(places->paths[places->count], format, value);
}

static void find_places(struct places *places)
{
    const char *told = getenv("HEADGATE_UNPACK_DIR");
    if (told != NULL && told[0]) {
        add_place(places, "%s", told);
        return;
    }
    const char *caches = getenv("CACHE_DIRECTORY");        /* CacheDirectory= of a unit of systemd */
    if (caches != NULL && strchr(caches, ':') == NULL)
        add_place(places, "%s", caches);
    add_place(places, "%s", getenv("XDG_CACHE_HOME"));
    const char *home = getenv("HOME");
    int before = places->count;
    add_place(places, "%s/.cache", home);
    /* Not in the home of somebody else, who could not write there any more. */
    char resolved[PATH_MAX];
    if (places->count > before && realpath(home, resolved) != NULL && !is_exposed(resolved) && access(home, W_OK) == 0)
        mkdir(places->paths[before], 0700);
    add_place(places, "%s", getenv("TMPDIR"));
    add_place(places, "%s", "/var/tmp");
    add_place(places, "%s", "/tmp");
    add_place(places, "%s", "/dev/shm");
    add_place(places, "%s", "/run");
}

/* Put the folder of the image into `folder`, which this process and its children have locked. */
static void find_image(const struct image *image, char *folder)
{
    static struct places places;
    char base[PATH_MAX];
    find_places(&places);
    for (int make = 0; make < 2; make++)
        for (int at = 0; at < places.count; at++) {
            int fd = open_base(places.paths[at], make, base);
            if (fd < 0)
                continue;
            int named = path_of(folder, "%s/%s", base, image->name);
            if (named && lock_image(image, folder) >= 0)
                return;
            if (named && make && make_image(image, fd, base, folder) && lock_image(image, folder) >= 0) {
                remove_unused(fd, image->name);
                return;
            }
            close(fd);
        }
    fail("needs a folder for %llu MB of files that can be written to and executed from; set HEADGATE_UNPACK_DIR, or "
         "mount a tmpfs at /tmp. It has tried:%s",
         (unsigned long long)(image->trailer.unpacked >> 20), why_not[0] ? why_not : " nothing");
}

static int is_gwctl(const char *word)
{
    const char *slash = strrchr(word, '/');
    return !strncmp(slash == NULL ? word : slash + 1, "gwctl", 5);
}

int main(int count, char **words)
{
    static char program[PATH_MAX], folder[PATH_MAX], interpreter[PATH_MAX], script[PATH_MAX];
    static struct image image;
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    /* Without /proc: the path that the kernel was given. The first word is only a name, which any folder may have. */
    const char *called = (const char *)getauxval(AT_EXECFN);
    if (length <= 0 && (called == NULL || realpath(called, program) == NULL))
        fail("cannot tell which file it is: mount /proc, or call it by its path");
    open_image(program, &image);
    find_image(&image, folder);
    int gwctl = count > 0 && is_gwctl(words[0]);
    int skipped = count > 0;
    if (!gwctl && count > 1 && !strcmp(words[1], "gwctl")) {
        gwctl = 1;
        skipped = 2;
    }
    char **call = calloc(count + 8, sizeof *call);
    if (call == NULL || !path_of(interpreter, "%s/bin/python3", folder)
        || !path_of(script, "%s/bin/%s", folder, gwctl ? "gwctl" : "headgate"))
        fail("the path %s is too long", folder);
    int at = 0;
    call[at++] = interpreter;
    call[at++] = "-I";        /* neither PYTHONPATH nor packages of the user */
    call[at++] = script;
    for (int word = skipped; word < count; word++)
        call[at++] = words[word];
    setenv("HEADGATE_PROGRAM", program, 1);
    execv(interpreter, call);
    fail("cannot run %s: %s", interpreter, strerror(errno));
}
