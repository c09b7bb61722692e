# Telephone numbers, by the rules of libphonenumber compiled into tables (ci/phone_rules.py writes them).

from libc.stdint cimport uint8_t

# Whether bytes of digits, separators, `+` and brackets are a valid number: with its country code behind a `+`, or of one of
# the regions that ci/phone_rules.py names, as it is written there.
cdef bint is_phone(const uint8_t* p, Py_ssize_t n) noexcept nogil
