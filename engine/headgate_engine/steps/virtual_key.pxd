# Virtual keys: who may use what, with limits of requests, tokens and money that hold before the call.

from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.limit.account cimport Breach, LeaseState, SpendCell, UsageLimits
from headgate_engine.shared.segment cimport Segment
from headgate_engine.steps.identity cimport ApiKeyStep

from libc.stdint cimport int64_t

cdef enum:
    # Models of a key on one day that the ledger tells apart; those beyond are `other`.
    MAX_MODELS = 256
    # How often one request asks for a lease that others spend before it does.
    ROUNDS = 16

cdef class VirtualKey:
    cdef readonly str name, team
    cdef dict metadata               # what expressions see as `apiKey`
    cdef tuple models                # patterns; None: all
    cdef frozenset routes            # (namespace, name); None: all
    cdef int64_t expires_s           # Unix seconds, 0: never
    cdef bint revoked
    cdef tuple limits                # UsageLimits of the key itself and of its team
    cdef bint tokens, money          # one of them limits these
    cdef Segment segment
    cdef int64_t day                 # that `cells` are of, in days since 1970
    cdef dict cells                  # SpendCell by model
    cdef SpendCell cell(self, str model, int64_t now_s)

cdef class KeyTable:
    cdef dict keys                   # SHA-256 digest -> VirtualKey
    cdef readonly int64_t assumed    # tokens of an answer whose length the request does not bound
    cdef int64_t per_picture, per_named      # tokens of a picture, and of what a request names and does not carry
    cdef object converse             # converse(tunnel, ctx, inspector) of turn()
    cdef readonly bint stops         # streams that limits have no more for
    cdef LeaseState state
    cdef object desk                 # asks for leases (headgate.policy.leases); None: no store is shared

cdef class KeyUse:
    # What a request with a virtual key has taken.
    cdef readonly VirtualKey key
    cdef int64_t tokens, picos       # reserved
    cdef int64_t generated           # tokens of the answer that the client has, about; of a stream
    cdef int64_t bound               # tokens of the answer that are reserved
    cdef int64_t output_rate         # picodollars of a token of the answer
    cdef bint stops                  # a stream ends where no more can be reserved
    cdef object desk                 # that of the table
    cdef object asking               # a future: a lease is asked for that a stream needs
    cdef object converse             # that of the table
    # Of a realtime conversation: answers that were settled, and what they used; what the one under way has used, about.
    cdef int64_t parts, parts_in, parts_out, parts_picos
    cdef int64_t open_in, open_out, open_picos
    cdef int rounds                  # how often that was, without a lease that could be used
    cdef bint covers(self) except -1
    cdef bint asks(self, int64_t picos) except -1
    cdef int64_t prompt, prompt_picos      # what is charged of an answer whose provider does not count
    cdef Reply elsewhere             # the reply to a key that is not for the route; None: its route was known before
    cdef bytes body                  # that `measured` is of, None: it was not read
    cdef readonly tuple measured     # llm.bounds.worst_case
    cdef int64_t sound               # of `prompt`, tokens of sound and film
    cdef bint spoken                 # answers may be sound
    cdef int free(self) except -1
    cdef SpendCell cell(self, RequestContext ctx, int64_t now_s)

cdef class VirtualKeyStep(ApiKeyStep):
    cdef KeyTable table
    cdef Reply expired, withdrawn, elsewhere, storeless
    cdef int admit(self, RequestContext ctx, VirtualKey key, bytes credential, bint last) except -1

# The verdict on a request that has no room: a lease may be had, the store is away, or the limit is reached.
cdef int without(KeyTable table, RequestContext ctx, UsageLimits limits, Breach* breach, int64_t wanted, Reply storeless) except -1


cdef inline int64_t product(int64_t tokens, int64_t rate) noexcept nogil:
    """What tokens cost at a rate, at most MOST."""
    cdef int64_t most = <int64_t>1 << 58
    if tokens <= 0 or rate <= 0:
        return 0
    return tokens * rate if tokens <= most // rate else most
