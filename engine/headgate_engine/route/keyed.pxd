# SipHash-1-3 (https://github.com/veorq/SipHash) with a random key. Resumable: the hashes of all prefixes of a text cost
# one pass over it. Keyed, so that authors of routes and clients cannot choose names that collide.

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy


cdef struct Sip:
    uint64_t v0, v1, v2, v3


cdef inline uint64_t _rotated(uint64_t x, int bits) noexcept nogil:
    return x << bits | x >> (64 - bits)


cdef inline void _round(Sip* s) noexcept nogil:
    s.v0 += s.v1
    s.v1 = _rotated(s.v1, 13) ^ s.v0
    s.v0 = _rotated(s.v0, 32)
    s.v2 += s.v3
    s.v3 = _rotated(s.v3, 16) ^ s.v2
    s.v0 += s.v3
    s.v3 = _rotated(s.v3, 21) ^ s.v0
    s.v2 += s.v1
    s.v1 = _rotated(s.v1, 17) ^ s.v2
    s.v2 = _rotated(s.v2, 32)


cdef inline void sip_word(Sip* s, uint64_t word) noexcept nogil:
    s.v3 ^= word
    _round(s)
    s.v0 ^= word


# Begins a hash in a key space. Equal texts in two spaces have unrelated hashes.
cdef inline void sip_start(Sip* s, uint64_t key0, uint64_t key1, uint64_t space) noexcept nogil:
    s.v0 = key0 ^ <uint64_t>0x736F6D6570736575
    s.v1 = key1 ^ <uint64_t>0x646F72616E646F6D
    s.v2 = key0 ^ <uint64_t>0x6C7967656E657261
    s.v3 = key1 ^ <uint64_t>0x7465646279746573
    sip_word(s, space)


# Absorbs the whole words of p[done:n]; `done` and the result are multiples of 8.
cdef inline Py_ssize_t sip_words(Sip* s, const char* p, Py_ssize_t done, Py_ssize_t n) noexcept nogil:
    cdef uint64_t word
    while done + 8 <= n:
        memcpy(&word, p + done, 8)
        sip_word(s, word)
        done += 8
    return done


# Returns the hash of p[:n], of which `done` bytes are absorbed. The state is a copy, so the caller's can continue.
cdef inline uint64_t sip_end(Sip s, const char* p, Py_ssize_t done, Py_ssize_t n) noexcept nogil:
    cdef uint64_t last = <uint64_t>n << 56
    cdef int shift = 0
    while done < n:
        last |= <uint64_t><uint8_t>p[done] << shift
        shift += 8
        done += 1
    sip_word(&s, last)
    s.v2 ^= 255
    _round(&s)
    _round(&s)
    _round(&s)
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3
