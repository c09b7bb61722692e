# The most that a request for a model may come to, by what its body says: tokens of definitions, and of the answers.

from libc.stdint cimport int64_t

cdef struct AnswerBounds:
    int64_t most               # tokens of one answer, 0: nothing says it
    int64_t choices            # answers, 0: nothing says how many

# Reads what the members of a body say that bound an answer, wherever they stand.
cdef int scan_bounds(const char* p, Py_ssize_t n, AnswerBounds* found) noexcept nogil
# (tokens of the prompt, of definitions, of one answer where providers read that, the most that stands anywhere, answers,
# media) of a body; its document is None for no JSON. media: (pictures, tokens of sound, of files, what is named and not
# carried, whether answers may be sound).
cdef tuple worst_case(str format, bytes body, object told)
