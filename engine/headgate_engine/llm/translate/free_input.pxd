# The input of a custom tool, which is free text, out of the arguments of the function that stands for the tool at
# vendors that have functions alone: {"input": "..."}. The text is told as it comes.

cdef class FreeInput:
    cdef list pieces                     # arguments that do not begin as wanted, or have not yet
    cdef str rest                        # that wait: in the middle of an escape, or too few to tell how they begin
    cdef int state
    # The next piece of the arguments; returns what is new of the input.
    cdef str feed(self, str delta)
    # Whether the input has ended.
    cdef bint is_whole(self) noexcept
    # What is left of the input at the end of the arguments.
    cdef str end(self)
