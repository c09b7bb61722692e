# What the parts of a form are (multipart/form-data, RFC 7578), such as one of transcriptions or of edits of pictures.

from libc.stdint cimport int64_t

cdef struct FormParts:
    int64_t pictures         # parts whose type is a picture's
    int64_t files            # other parts with a name of a file
    int64_t choices          # the largest value of a part with the name `n`; 0: there is none

cdef int scan_form(const char* p, Py_ssize_t n, FormParts* found) noexcept nogil
