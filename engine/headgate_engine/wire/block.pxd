# Searches of sixteen bytes at a time, in the vectors of GCC and Clang (SSE2 on x86-64, NEON on ARM). wire/scan.pxd does the
# same with words of eight.

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    typedef unsigned char hg_block __attribute__((vector_size(16)));

    static inline hg_block hg_block_at(const char* p) {
        hg_block block;
        memcpy(&block, p, 16);
        return block;
    }

    /* 4 to 15 bytes, some of them more than once. */
    static inline hg_block hg_few_bytes(const char* p, size_t n) {
        uint64_t words[2];
        uint32_t halves[4];
        hg_block block;
        if (n >= 8) {
            memcpy(&words[0], p, 8);
            memcpy(&words[1], p + n - 8, 8);
            memcpy(&block, words, 16);
        } else {
            memcpy(&halves[0], p, 4);
            memcpy(&halves[1], p + n - 4, 4);
            halves[2] = halves[3] = halves[0];
            memcpy(&block, halves, 16);
        }
        return block;
    }

    static inline int hg_some(hg_block found) {
        uint64_t words[2];
        memcpy(words, &found, 16);
        return (words[0] | words[1]) != 0;
    }

    /* Bytes that are no part of a field value: all control characters but the tab (RFC 9110 section 5.5). */
    static inline hg_block hg_bad_values(hg_block block) {
        return (hg_block)(((block < 32) & (block != 9)) | (block == 127));
    }

    /* Bytes that are not visible ASCII, quotes and backslashes. */
    static inline hg_block hg_not_bare(hg_block block) {
        return (hg_block)(((hg_block)(block - 33) > 93) | (block == 34) | (block == 92));
    }

    #define HG_BLOCKS(NAME, BAD)                                                            \\
        static inline int NAME(const char* p, size_t n) {                                   \\
            unsigned char bytes[16];                                                        \\
            size_t at = 0, i;                                                               \\
            hg_block found = {0};                                                           \\
            if (n >= 16) {                                                                  \\
                for (; at + 16 < n; at += 16) found |= BAD(hg_block_at(p + at));            \\
                return !hg_some(found | BAD(hg_block_at(p + n - 16)));                      \\
            }                                                                               \\
            if (n >= 4) return !hg_some(BAD(hg_few_bytes(p, n)));                           \\
            memset(bytes, 'A', 16);                                                         \\
            for (i = 0; i < n; i++) bytes[i] = (unsigned char)p[i];                         \\
            memcpy(&found, bytes, 16);                                                      \\
            return !hg_some(BAD(found));                                                    \\
        }

    HG_BLOCKS(hg_is_value, hg_bad_values)
    HG_BLOCKS(hg_is_bare, hg_not_bare)

    /* Whether one of sixteen bytes is an LF that is not behind a CR, or ends an empty line. Reads two bytes before them. */
    static inline int hg_ends_lines(const char* p) {
        hg_block before = hg_block_at(p - 1), two_before = hg_block_at(p - 2);
        return hg_some((hg_block)((hg_block_at(p) == 10) & ((before != 13) | (two_before == 10))));
    }
    """
    # Whether all bytes may be in a field value (IS_VALUE).
    bint is_value "hg_is_value"(const char* p, size_t n) noexcept nogil
    # Whether all bytes are visible ASCII, without quotes and backslashes.
    bint is_bare "hg_is_bare"(const char* p, size_t n) noexcept nogil
    bint ends_lines "hg_ends_lines"(const char* p) noexcept nogil


cdef inline Py_ssize_t whole_lines(const char* p, Py_ssize_t at, Py_ssize_t n) noexcept nogil:
    """Return a place from `at` to n; each LF between them ends a line that is not empty and has a CR."""
    if at < 2:
        if n < 2 or p[0] == 10 or p[1] == 10:
            return at
        at = 2
    while at + 16 <= n and not ends_lines(p + at):
        at += 16
    return at
