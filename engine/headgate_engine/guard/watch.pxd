# Follows users' patterns through a text that grows, byte by byte: where no match is under way, and where one may have ended.

from libc.stdint cimport uint8_t, uint64_t

from headgate_engine.guard.numbers cimport Clean

cdef enum:
    MOST_WORDS = 8             # of 64 positions each
    # States that are kept. What would be a further one counts as the state with all positions that fit the last byte.
    MOST_STATES = 512

cdef class PatternWatch:
    # A deterministic automaton whose states are made when a text comes to them. A state is the set of positions of matches
    # that are under way; 0 is the empty one. It belongs to the thread that has the GIL.
    cdef readonly int state_count
    cdef int room              # states that the tables have memory for
    cdef int words, class_count
    cdef uint8_t class_of[256]  # byte -> class of bytes that all positions treat alike
    cdef uint64_t* fits        # class x words: the positions that a byte of the class fits
    cdef uint64_t* follow      # position x words: the positions that may come next
    cdef uint64_t first[MOST_WORDS]      # positions that a match begins with
    cdef uint64_t last[MOST_WORDS]       # positions that a match ends with
    cdef uint64_t* sets        # state x words
    cdef short* next           # state x classes -> state, -1: not made yet
    cdef bint* ends            # state -> a match may have ended with the last byte
    cdef dict numbers          # bytes of a set -> state
    # Moves `clean` on to the last place in a text of `n` bytes on both sides of which no match has a byte, however the text
    # goes on. `numbers`: none of the built-in patterns either. Each byte is looked at once.
    cdef int walk(self, const uint8_t* p, Py_ssize_t n, Clean* clean, bint numbers) except -1
    cdef int _step(self, int state, int kind) except -1
    cdef int _grow(self) except -1
    cdef int _made(self, const uint64_t* those, int kind) except -1
