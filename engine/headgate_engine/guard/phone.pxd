# Telephone numbers, by the rules of libphonenumber, which ci/phone_rules.py compiles into tables.

from libc.stdint cimport uint8_t

# Returns whether digits, separators, `+` and brackets are a valid number: with a country code after a `+`, or in the
# notation of one of the regions that ci/phone_rules.py names.
cdef bint is_phone(const uint8_t* p, Py_ssize_t n) noexcept nogil
