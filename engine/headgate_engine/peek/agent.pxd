# What the gateway reads of A2A messages: agent cards, calls and their answers, of all published versions.

from headgate_engine.peek.json cimport ObjectPeek

# Watched members of an agent card.
cdef enum:
    A_URL = 1              # 0.2, 0.3
    A_ADDITIONAL           # additionalInterfaces (0.2, 0.3)
    A_SUPPORTED            # supportedInterfaces (1.0)
    A_SIGNATURES

# Watched members of an entry of both lists.
cdef enum:
    I_URL = 1

cdef class CardPeek(ObjectPeek):
    pass

cdef class InterfacePeek(ObjectPeek):
    pass

cdef class CallPeek(ObjectPeek):
    # Returns the method of a call, None without one. `cut`: the text is the beginning of a longer one.
    cdef str method_of(self, const char* p, Py_ssize_t n, bint cut)

cdef class OutcomePeek(ObjectPeek):
    # `bare`: the result is the whole text (HTTP+JSON), and not a member of it (JSON-RPC).
    cdef void look(self, bint bare) noexcept
    # Returns (key, value) of what the log says of an answer. `failed`: the status says that it is an error.
    cdef list fields_of(self, bint failed)
    cdef bint _there(self, int field) noexcept
    cdef str _told(self, int first, int last)
