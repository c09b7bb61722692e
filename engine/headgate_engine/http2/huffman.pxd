# The Huffman code of HPACK (RFC 7541 section 5.2 and appendix B).

# Returns how many bytes the text has in the code.
cdef Py_ssize_t huffman_size(const char* p, Py_ssize_t n) noexcept nogil
# Writes the text in the code, huffman_size() bytes; returns the place behind them.
cdef char* huffman_put(char* to, const char* p, Py_ssize_t n) noexcept nogil
# Reads n bytes of code into `to`, which has room for 2 * n. Returns the length of the text; -1: bad padding, or the end mark.
cdef Py_ssize_t huffman_read(char* to, const char* p, Py_ssize_t n) noexcept nogil
