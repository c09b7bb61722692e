# cython: boundscheck=False
"""The Huffman code of HPACK (RFC 7541 appendix B), read four bits at a time.

boundscheck is off: tables are C arrays, indexed by bytes and by states that the tables themselves hold.

The code is canonical: codes of one length ascend with their symbols, and a longer code begins behind the shorter ones. So the
lengths alone are the table, and codes and machine are made of them. The shortest code has five bits: four bits end one symbol
at most.
"""

from libc.stdint cimport int16_t, uint8_t, uint32_t, uint64_t

# Bits of each symbol; the last one is the end mark, which no text contains.
LENGTHS = (
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28,
    28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15,
    6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22,
    20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23,
    23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22,
    22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26,
    27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27,
    26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
)

cdef enum:
    SYMBOLS = 257
    END_MARK = 256
    STATES = 256          # inner nodes of the tree
    # What four bits do.
    MOVE_SYMBOL = 1       # a symbol ends
    MOVE_FINAL = 2        # the text may end here: less than eight bits are left, all of them ones
    MOVE_FAIL = 4

cdef struct Move:
    uint8_t state, act, symbol

cdef struct Code:
    uint32_t bits
    uint32_t length

cdef Code[SYMBOLS] CODES
cdef Move[STATES][16] MOVES


cdef int _assign() except -1:
    """Give each symbol its code."""
    cdef uint32_t code = 0
    cdef uint32_t length
    before = None
    for length, symbol in sorted((length, symbol) for symbol, length in enumerate(LENGTHS)):
        if before is not None:
            code = (code + 1) << (length - <uint32_t>before)
        before = length
        CODES[<int>symbol].bits = code
        CODES[<int>symbol].length = length
    return 0


cdef int _tree(int16_t[STATES][2] nodes, uint8_t* final) except -1:
    """Make the tree: children are nodes, or -1 - symbol. `final` gets MOVE_FINAL for paths of less than eight ones."""
    cdef int count = 1
    cdef int symbol, node, bit, at
    final[0] = MOVE_FINAL
    for symbol in range(SYMBOLS):
        node = 0
        for at in range(<int>CODES[symbol].length - 1, -1, -1):
            bit = (CODES[symbol].bits >> at) & 1
            if at == 0:
                nodes[node][bit] = <int16_t>(-1 - symbol)
            else:
                if nodes[node][bit] == 0:
                    nodes[node][bit] = <int16_t>count
                    final[count] = MOVE_FINAL if bit and final[node] and CODES[symbol].length - at < 8 else 0
                    count += 1
                node = nodes[node][bit]
    return 0


cdef int _fill() except -1:
    cdef int16_t[STATES][2] nodes
    cdef uint8_t[STATES] final
    cdef int state, nibble, at, node
    cdef Move* move
    for state in range(STATES):
        nodes[state][0] = nodes[state][1] = 0
        final[state] = 0
    _assign()
    _tree(nodes, final)
    for state in range(STATES):
        for nibble in range(16):
            move = &MOVES[state][nibble]
            move.act = move.symbol = 0
            node = state
            for at in range(3, -1, -1):
                node = nodes[node][(nibble >> at) & 1]
                if node == -1 - END_MARK:
                    move.act = MOVE_FAIL
                    node = 0
                    break
                if node < 0:
                    move.symbol = <uint8_t>(-1 - node)
                    move.act = MOVE_SYMBOL
                    node = 0
            move.state = <uint8_t>node
            move.act |= final[node] if move.act != MOVE_FAIL else 0
    return 0


_fill()


cdef Py_ssize_t huffman_size(const char* p, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t bits = 7
    cdef Py_ssize_t i
    for i in range(n):
        bits += CODES[<uint8_t>p[i]].length
    return bits >> 3


cdef char* huffman_put(char* to, const char* p, Py_ssize_t n) noexcept nogil:
    cdef uint64_t held = 0      # `filled` bits that are not written yet, at the low end
    cdef uint32_t filled = 0
    cdef Py_ssize_t i
    cdef const Code* code
    for i in range(n):
        code = &CODES[<uint8_t>p[i]]
        held = (held << code.length) | code.bits
        filled += code.length
        while filled >= 8:
            filled -= 8
            to[0] = <char>(held >> filled)
            to += 1
    if filled:
        to[0] = <char>((held << (8 - filled)) | (0xFF >> filled))
        to += 1
    return to


cdef Py_ssize_t huffman_read(char* to, const char* p, Py_ssize_t n) noexcept nogil:
    cdef char* start = to
    cdef Py_ssize_t i
    cdef uint8_t state = 0
    cdef uint8_t act = MOVE_FINAL
    cdef const Move* move
    for i in range(n):
        move = &MOVES[state][<uint8_t>p[i] >> 4]
        act = move.act
        if act & MOVE_FAIL:
            return -1
        if act & MOVE_SYMBOL:
            to[0] = <char>move.symbol
            to += 1
        move = &MOVES[move.state][<uint8_t>p[i] & 15]
        act = move.act
        if act & MOVE_FAIL:
            return -1
        if act & MOVE_SYMBOL:
            to[0] = <char>move.symbol
            to += 1
        state = move.state
    return to - start if act & MOVE_FINAL else -1


def encode(bytes text not None):
    """Return the text in the code, padded with ones."""
    cdef bytearray found = bytearray(huffman_size(text, len(text)))
    if found:
        huffman_put(found, text, len(text))
    return bytes(found)


def decode(bytes code not None):
    """Return the text of a code; ValueError for wrong padding and for the end mark."""
    cdef bytearray found = bytearray(2 * len(code) + 1)
    cdef Py_ssize_t n = huffman_read(found, code, len(code))
    if n < 0:
        raise ValueError("this is not a Huffman code")
    return bytes(found[:n])
