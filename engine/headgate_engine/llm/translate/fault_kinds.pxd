# What errors mean, whatever their vendor calls them.

# Kind of an error by the vendor's type, code (None: not told) and HTTP status (0: not known).
cpdef str kind_of(str type, str code, int status)
cpdef str kind_of_status(int status)
# HTTP status of an error that a stream tells.
cpdef int status_of(str type, str code)
