"""Prices of tokens; see prices.pxd."""

from libc.stdint cimport int64_t

from headgate_engine.context.request cimport TokenUsage
from headgate_engine.shared.counters cimport Counter

# Parts by their names in catalogs and expressions.
PARTS = ("input", "output", "cacheRead", "cacheWrite", "reasoning", "inputAudio", "outputAudio")
PICOS_PER_DOLLAR = 1_000_000_000_000
# Highest rate: a million dollars per million tokens.
MAX_RATE = 1_000_000 * 1_000_000
# More than anything costs; seven of them do not overflow.
cdef int64_t MOST = <int64_t>1 << 60

STATUSES = ("Exact", "Unpriced", "Missing", "NoCatalog")


cdef inline int64_t known(int64_t value) noexcept nogil:
    return value if value > 0 else 0


cdef inline int64_t at_most(int64_t value, int64_t most) noexcept nogil:
    """A count that is a part of another one, whatever a provider says."""
    value = known(value)
    return value if value < most else most


cdef inline int64_t times(int64_t tokens, int64_t rate) noexcept nogil:
    if rate <= 0 or tokens <= 0:
        return 0
    return tokens * rate if tokens <= MOST // rate else MOST


cdef class Rates:
    """rates: picodollars per token by the names of PARTS. under: rates that show where these say nothing."""

    def __init__(self, rates, Rates under=None):
        cdef int i
        for i in range(P_COUNT):
            self.rate[i] = -1 if under is None else under.rate[i]
        for name, value in rates.items():
            if not 0 <= value <= MAX_RATE:
                raise ValueError("a rate lies between 0 and a million dollars per million tokens")
            self.rate[<int>PARTS.index(name)] = value

    cdef int64_t rate_of(self, int part) noexcept nogil:
        if self.rate[part] >= 0:
            return self.rate[part]
        if part == P_REASONING or part == P_OUTPUT_AUDIO:
            return self.rate[P_OUTPUT]
        if part == P_OUTPUT or part == P_INPUT:
            return -1
        return self.rate[P_INPUT]

    def per_million(self):
        """The rates that are known, in dollars per million tokens."""
        cdef int i
        found = {}
        for i in range(P_COUNT):
            found[PARTS[i]] = None if self.rate[i] < 0 else self.rate[i] / 1e6
        return found


cdef class PricedModel:
    """tiers: (context tokens above which it counts, Rates), rising."""

    def __init__(self, Rates base not None, tiers=()):
        self.base = base
        self.tiers = tuple(tiers)

    cdef Rates effective(self, int64_t context):
        cdef Rates found = self.base
        for over, rates in self.tiers:
            if context <= <int64_t>over:
                break
            found = <Rates>rates
        return found


cdef class Cost:
    cdef int add(self, Cost other) except -1:
        cdef int i
        for i in range(P_COUNT):
            self.parts[i] = min(self.parts[i] + other.parts[i], MOST)
        self.total = min(self.total + other.total, MOST)
        self.rates = other.rates
        return 0

    def picos(self):
        """Picodollars by part, the total among them."""
        cdef int i
        found = {"total": self.total}
        for i in range(P_COUNT):
            found[PARTS[i]] = self.parts[i]
        return found

    def dollars(self):
        """US dollars by part, the total among them, as the nearest floats."""
        return {name: value / PICOS_PER_DOLLAR for name, value in self.picos().items()}


cdef Cost cost_of(Rates rates, TokenUsage usage):
    """What these tokens cost; None where a price is missing. No token is counted in two parts."""
    cdef Cost cost
    cdef int64_t tokens[7]
    cdef int64_t left = known(usage.input_tokens)
    cdef int i
    tokens[P_CACHE_READ] = at_most(usage.cached_tokens, left)
    left -= tokens[P_CACHE_READ]
    tokens[P_CACHE_WRITE] = at_most(usage.cache_write_tokens, left)
    left -= tokens[P_CACHE_WRITE]
    tokens[P_INPUT_AUDIO] = at_most(usage.input_audio_tokens, left)
    tokens[P_INPUT] = left - tokens[P_INPUT_AUDIO]
    left = known(usage.output_tokens)
    tokens[P_REASONING] = at_most(usage.reasoning_tokens, left)
    left -= tokens[P_REASONING]
    tokens[P_OUTPUT_AUDIO] = at_most(usage.output_audio_tokens, left)
    tokens[P_OUTPUT] = left - tokens[P_OUTPUT_AUDIO]
    for i in range(P_CACHE_READ, P_CACHE_WRITE + 1):
        if rates.rate[i] < 0:
            tokens[P_INPUT] += tokens[i]            # billed as input
            tokens[i] = 0
    cost = Cost.__new__(Cost)
    cost.rates = rates
    for i in range(P_COUNT):
        if tokens[i] and rates.rate_of(i) < 0:
            return None                             # unpriced is not free
        cost.parts[i] = times(tokens[i], rates.rate_of(i))
        cost.total = min(cost.total + cost.parts[i], MOST)
    return cost


cdef inline int note(Counter counter) except -1:
    if counter is not None:
        counter.bump(1)
    return 0


cdef class PriceList:
    """providers: name -> model -> PricedModel, or None when no catalog could be read. counters: by STATUSES."""

    def __init__(self, providers, str version="", counters=None):
        counters = {} if counters is None else counters
        self.version = version
        self.exact, self.unpriced, self.missing, self.absent = [counters.get(status) for status in STATUSES]
        self.providers = None if providers is None else {
            name.encode(): {model.encode(): priced for model, priced in models.items()}
            for name, models in providers.items()}

    cdef Cost price(self, bytes provider, bytes answered, bytes asked, TokenUsage usage, bint counted):
        cdef Cost cost
        cdef dict models
        cdef PricedModel model = None
        if self.providers is None:
            if counted:
                note(self.absent)
            return None
        models = self.providers.get(provider)
        if models is not None:
            if answered is not None:
                model = models.get(answered)
            if model is None and asked is not None:
                model = models.get(asked)
        if model is None:
            if counted:
                note(self.missing)
            return None
        cost = cost_of(model.effective(known(usage.input_tokens)), usage)
        if counted:
            note(self.unpriced if cost is None else self.exact)
        return cost
