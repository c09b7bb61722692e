"""Limits of realtime conversations; see realtime_use.pxd.

An answer may begin without being asked for, when the provider hears that a turn has ended. So one is always reserved for: what
the conversation has come to as its prompt, and the most tokens that an answer may have. An event of the client that asks for
another one, or for a longer one, reserves more before it goes on.
"""

from headgate_engine.clock cimport wall_ns
from headgate_engine.context.request cimport RequestContext, TokenUsage
from headgate_engine.limit.account cimport Breach, SpendCell, UsageLimits
from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.llm.prices cimport P_INPUT, Cost, PriceList
from headgate_engine.llm.realtime cimport usage_of
from headgate_engine.peek.json cimport USAGE_IN_RESPONSE, UsagePeek
from headgate_engine.steps.key_budget cimport worst_price
from headgate_engine.steps.virtual_key cimport ROUNDS, KeyUse, product

from libc.stdint cimport int64_t

from headgate_engine.peek.json import PeekError

# Tokens of a prompt or an answer, at most.
cdef int64_t LONGEST = 10 ** 12


cdef class RealtimeUse:
    def __init__(self, RequestContext ctx not None):
        self.ctx, self.call, self.use = ctx, <LlmCall?>ctx.llm, <KeyUse?>ctx.key_use
        self.peek = UsagePeek()
        self.bound = self.assumed = self.use.bound
        self.asked = []
        # Answers may be sound, which is dearer.
        self.use.spoken = True

    def bounded(self, int64_t most):
        self.bound = min(max(most, 1), LONGEST)
        return self.cover()

    def said(self, int64_t tokens):
        self.prompt = min(self.prompt + max(tokens, 0), LONGEST)
        return self.cover()

    def asks(self, int64_t most, str name=None):
        if len(self.asked) >= MOST_ASKED:
            self.over = True
            return False
        self.asked.append((min(most, LONGEST) if most > 0 else 0, name))
        return self.cover()

    def refused(self, str name):
        cdef Py_ssize_t at
        # Without a name the last one: answers that have begun were asked for before it.
        for at in range(len(self.asked) - 1, -1, -1):
            if name is None or (<tuple>self.asked[at])[1] == name:
                del self.asked[at]
                return

    def begun(self):
        self.under_way = True
        self.use.open_in = self.prompt
        self._charge()

    def heard(self, int64_t tokens):
        if self.under_way:
            self.use.open_out = min(self.use.open_out + tokens, LONGEST)
            self._charge()

    def _charge(self):
        """What the answer under way costs, if nobody comes to tell it: by the rates of sound."""
        cdef TokenUsage usage = TokenUsage(self.use.open_in, self.use.open_out)
        cdef Cost cost
        self.use.open_picos = 0
        if self.call.prices is not None:
            cost = (<PriceList>self.call.prices).price(self.ctx.provider, None, self.ctx.requested_model, usage, False)
            if cost is not None:
                self.use.open_picos = (product(self.use.open_in, cost.rates.rate_of(P_INPUT))
                                       + product(self.use.open_out, self.use.output_rate))

    def done(self, bytes event not None):
        cdef UsagePeek peek = self.peek
        cdef TokenUsage usage = None
        peek.look(USAGE_IN_RESPONSE)
        try:
            peek.scan(event, len(event))
            if peek.has_usage:
                usage = usage_of(peek)
        except PeekError:
            pass
        self.settle(usage)
        if self.asked:
            del self.asked[0]
        self.under_way = False
        return self.cover()

    cdef int settle(self, TokenUsage usage) except -1:
        cdef KeyUse use = self.use
        cdef UsageLimits one
        cdef Cost cost
        cdef SpendCell cell
        cdef int64_t picos = 0
        cdef int64_t taken_in = 0
        cdef int64_t taken_out = 0
        cdef int64_t now_s = wall_ns() // 1000000000
        if usage is None:
            # The provider does not say: what has come, by our estimates. A failed answer has nothing.
            if use.open_out:
                taken_in, taken_out, picos = use.open_in, use.open_out, use.open_picos
        else:
            taken_in, taken_out = max(usage.input_tokens, 0), max(usage.output_tokens, 0)
        if usage is not None and self.call.prices is not None:
            cost = (<PriceList>self.call.prices).price(
                self.ctx.provider, self.call.response_model, self.ctx.requested_model, usage, False)
            picos = 0 if cost is None else cost.total
            self.note(usage)
        for one in use.key.limits:
            one.settle(use.tokens, use.picos, taken_in + taken_out, picos, now_s)
        use.tokens = use.picos = 0
        use.parts += 1
        use.parts_in += taken_in
        use.parts_out += taken_out
        use.parts_picos += picos
        # What was said and answered is the prompt of the next answer.
        self.prompt = min(self.prompt + use.open_out, LONGEST) if usage is None else taken_in + taken_out
        use.open_in = use.open_out = use.open_picos = 0
        cell = use.cell(self.ctx, now_s)
        if cell is not None:
            cell.spend(taken_in, taken_out, picos)
        return 0

    def note(self, TokenUsage usage):
        """Have the whole conversation priced answer by answer, as it was settled."""
        if self.call.usage_parts is None:
            self.call.usage_parts = []
        if len(self.call.usage_parts) < MOST_PARTS:
            self.call.usage_parts.append(usage)
        else:
            (<TokenUsage>self.call.usage_parts[MOST_PARTS - 1]).add(usage)

    cdef bint cover(self) except -1:
        """Whether all answers that may come are reserved; what is missing is, if it fits."""
        cdef KeyUse use = self.use
        cdef int64_t output = 0
        cdef int64_t answers = max(len(self.asked), 1)
        cdef int64_t tokens
        cdef int64_t picos = 0
        if self.over:
            return False
        if not (use.key.tokens or use.key.money):
            return True
        for most, _ in self.asked:
            output += most or self.bound
        output = min(output or self.bound, LONGEST)
        tokens = min(answers * self.prompt, LONGEST) + output
        if self.call.prices is not None:
            use.sound = min(answers * self.prompt, LONGEST)        # sound is the dearest that a prompt can be
            picos = max(worst_price(self.ctx, self.call, use, 0, output), 0)
        if tokens <= use.tokens and picos <= use.picos:
            return True
        self.over = not self.take(max(tokens - use.tokens, 0), max(picos - use.picos, 0))
        return not self.over

    cdef bint take(self, int64_t tokens, int64_t picos) except -1:
        """Reserve for each account or for none. A stream that waits for a lease continues meanwhile."""
        cdef KeyUse use = self.use
        cdef UsageLimits one
        cdef Breach breach
        cdef int64_t now_s = wall_ns() // 1000000000
        cdef int taken = 0
        for one in use.key.limits:
            if not one.reserve(tokens, picos, now_s, &breach):
                for earlier in use.key.limits[:taken]:
                    (<UsageLimits>earlier).settle(tokens, picos, 0, 0, now_s)
                if not breach.lacks or one.state.down or use.desk is None:
                    return False
                if use.asking is None or use.asking.done():
                    use.rounds += 1
                    use.asking = use.desk.ahead(use.key.limits, (0, tokens, picos))
                return use.rounds <= ROUNDS
            taken += 1
        use.rounds = 0
        use.tokens += tokens
        use.picos += picos
        return True

    def close(self):
        self.ctx = None
