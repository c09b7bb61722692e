# What tokens cost. Amounts are picodollars (1e-12 USD): a rate of a catalog, which is dollars per million tokens with up
# to six decimals, is a whole number of them per token, so that nothing is ever rounded.

from headgate_engine.context.request cimport TokenUsage
from headgate_engine.shared.counters cimport Counter

from libc.stdint cimport int64_t

# Parts: what is charged apart, in the order of PARTS.
cdef enum:
    P_INPUT = 0            # behind what caches and audio are
    P_OUTPUT = 1           # behind reasoning and audio
    P_CACHE_READ = 2
    P_CACHE_WRITE = 3
    P_REASONING = 4
    P_INPUT_AUDIO = 5
    P_OUTPUT_AUDIO = 6
    P_COUNT = 7

cdef class Rates:
    cdef int64_t rate[7]               # picodollars per token, by Part; -1: not told
    cdef int64_t rate_of(self, int part) noexcept nogil      # its own, or the one that it falls back to

cdef class PricedModel:
    cdef Rates base
    cdef tuple tiers                   # (context tokens, Rates with the base below them), rising
    cdef Rates effective(self, int64_t context)

cdef class Cost:
    # What one attempt, or all of a request, cost.
    cdef int64_t parts[7]              # picodollars by Part
    cdef readonly int64_t total
    cdef readonly Rates rates          # those that were used; of several attempts the last one's
    cdef int add(self, Cost other) except -1

cdef class PriceList:
    cdef dict providers                # name (bytes) -> model (bytes) -> PricedModel; None: no catalog could be read
    cdef readonly str version
    cdef Counter exact, unpriced, missing, absent     # gw_cost_catalog_lookups_total; None: nothing is counted
    # The cost by the answering model, else by the one asked for; None without a price. `counted`: bump the counters.
    cdef Cost price(self, bytes provider, bytes answered, bytes asked, TokenUsage usage, bint counted)
