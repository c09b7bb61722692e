# Why a reply ended, in every format's words.

cpdef str read_stop(str format, object word)
cpdef str write_stop(str format, str stop)
