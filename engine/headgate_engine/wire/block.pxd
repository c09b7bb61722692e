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

    /* The answers of a comparison, a bit for each byte. */
    #ifdef __SSE2__
    #include <emmintrin.h>
    static inline unsigned hg_mask(hg_block found) {
        return (unsigned)_mm_movemask_epi8((__m128i)found);
    }
    #else
    static inline unsigned hg_mask(hg_block found) {
        unsigned mask = 0;
        int i;
        for (i = 0; i < 16; i++) mask |= (unsigned)(found[i] >> 7) << i;
        return mask;
    }
    #endif

    static inline int hg_some(hg_block found) {
        #ifdef __SSE2__
        return hg_mask(found) != 0;
        #else
        uint64_t words[2];
        memcpy(words, &found, 16);
        return (words[0] | words[1]) != 0;
        #endif
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
        hg_block feeds = (hg_block)(hg_block_at(p) == 10);
        if (!hg_some(feeds)) return 0;
        return hg_some((hg_block)(feeds & ((hg_block_at(p - 1) != 13) | (hg_block_at(p - 2) == 10))));
    }

    /* The place of the first byte that is no part of a field value, and that of the first colon: n or more where there is
       none. Up to 15 bytes behind the n are read. */
    static inline size_t hg_line(const char* p, size_t n, size_t* colon) {
        size_t at;
        unsigned bad, colons;
        *colon = n;
        for (at = 0; at < n; at += 16) {
            hg_block block = hg_block_at(p + at);
            bad = hg_mask((hg_block)((block < 32) | (block == 127)));
            colons = hg_mask((hg_block)(block == 58));
            if (colons && *colon == n) *colon = at + (size_t)__builtin_ctz(colons);
            if (bad) bad &= ~hg_mask((hg_block)(block == 9));
            if (bad) return at + (size_t)__builtin_ctz(bad);
        }
        return n;
    }

    /* The numbers from 00 to 99. */
    static const char hg_pairs[] =
        "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849"
        "5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";

    /* memcpy(3) without a call for what is short. */
    static inline void hg_copy(char* to, const char* p, size_t n) {
        if (n > 32) {
            memcpy(to, p, n);
        } else if (n >= 16) {
            hg_block first = hg_block_at(p), last = hg_block_at(p + n - 16);
            memcpy(to, &first, 16);
            memcpy(to + n - 16, &last, 16);
        } else if (n >= 8) {
            uint64_t words[2];
            memcpy(&words[0], p, 8);
            memcpy(&words[1], p + n - 8, 8);
            memcpy(to, &words[0], 8);
            memcpy(to + n - 8, &words[1], 8);
        } else if (n >= 4) {
            uint32_t halves[2];
            memcpy(&halves[0], p, 4);
            memcpy(&halves[1], p + n - 4, 4);
            memcpy(to, &halves[0], 4);
            memcpy(to + n - 4, &halves[1], 4);
        } else if (n) {
            to[0] = p[0];
            to[n >> 1] = p[n >> 1];
            to[n - 1] = p[n - 1];
        }
    }
    """
    # Whether all bytes may be in a field value (IS_VALUE).
    bint is_value "hg_is_value"(const char* p, size_t n) noexcept nogil
    # Whether all bytes are visible ASCII, without quotes and backslashes.
    bint is_bare "hg_is_bare"(const char* p, size_t n) noexcept nogil
    bint ends_lines "hg_ends_lines"(const char* p) noexcept nogil
    # The length of a line without control characters, and of the name in front of its colon; n or more: there is no end, or no
    # colon. Up to 15 bytes behind the n are read.
    size_t line_of "hg_line"(const char* p, size_t n, size_t* colon) noexcept nogil
    # The numbers from 00 to 99.
    const char* PAIRS "hg_pairs"
    # memcpy(3) without a call for what is short.
    void copy_short "hg_copy"(char* to, const char* p, size_t n) noexcept nogil


cdef inline Py_ssize_t whole_lines(const char* p, Py_ssize_t at, Py_ssize_t n) noexcept nogil:
    """Return a place from `at` to n; each LF between them ends a line that is not empty and has a CR."""
    if at < 2:
        if n < 2 or p[0] == 10 or p[1] == 10:
            return at
        at = 2
    while at + 16 <= n and not ends_lines(p + at):
        at += 16
    return at
