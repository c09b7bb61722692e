"""Virtual keys; see virtual_key.pxd.

A key is found by the SHA-256 digest of what the client presents. One round of a fast hash is right here: keys are 256
random bits, so there is nothing to guess that a slow hash would protect, and a look-up by digest reveals nothing by its
duration.
"""

from collections import deque
from hashlib import sha256
import json
import re
import time

import orjson

from headgate_engine.clock cimport wall_ns
from headgate_engine.context.request cimport Reply, RequestContext, TokenUsage
from headgate_engine.limit.account cimport U_PICOS, U_REQUESTS, U_TOKENS, Breach, SpendCell, UsageLimits
from headgate_engine.llm.attempt cimport LlmAttempt, LlmCall
from headgate_engine.llm.estimate cimport document_tokens
from headgate_engine.llm.prices cimport P_CACHE_WRITE, P_INPUT, P_OUTPUT, P_REASONING, Cost, PriceList, Rates
from headgate_engine.plan.plans cimport RoutePlan
from headgate_engine.plan.step cimport CONTINUE, RESPOND, Step
from headgate_engine.shared.segment cimport Segment
from headgate_engine.steps.identity cimport ApiKeyStep
from headgate_engine.steps.location cimport CredentialLocation

from libc.stdint cimport int64_t

from headgate_engine.limit.account import UNITS, WINDOWS
from headgate_engine.shared.segment import SegmentFull
from headgate_engine.steps.local_rate_limit import FREE

# Most that one request reserves of anything: sums of it do not overflow.
cdef int64_t MOST = <int64_t>1 << 58
# Tokens that are reserved for a prompt beside its estimate and a quarter of that.
cdef int64_t SPARE = 8
# The bound of an answer, and how many answers are wanted. A body that says it several times gets the largest: what is
# reserved too much is released. A quote within a text is escaped, so texts do not count.
BOUNDS = re.compile(
    rb'"(?:max_tokens|max_completion_tokens|max_output_tokens|maxOutputTokens|maxTokens)"\s*:\s*(\d{1,12})(?!\d)')
CHOICES = re.compile(rb'"(?:n|best_of|candidateCount)"\s*:\s*(\d{1,4})(?!\d)')
# The place where a provider reads them, by format: the objects that may hold them, and the names. What stands elsewhere
# bounds nothing.
GEMINI = (("generationConfig", "generation_config"), ("maxOutputTokens", "max_output_tokens"),
          ("candidateCount", "candidate_count"))
PLACES = {
    "completions": ((), ("max_tokens", "max_completion_tokens"), ("n",)),
    "text": ((), ("max_tokens",), ("n", "best_of")),
    "messages": ((), ("max_tokens",), ()),
    "responses": ((), ("max_output_tokens",), ()),
    "gemini": GEMINI,
    "converse": (("inferenceConfig",), ("maxTokens",), ()),
}
# Members that become tokens of the prompt beside its texts, and bytes of them that are reserved as one token.
DEFINITIONS = ("tools", "functions", "toolConfig", "response_format")
BYTES_PER_TOKEN = 3
# Formats whose answers have no tokens that are paid for.
ANSWERLESS = frozenset(("embeddings", "rerank"))
MAX_CHOICES = 128
# Cells that were made of late, with the Unix seconds until which they are kept.
cdef object fresh = deque()
cdef int64_t FRESH_SECONDS = 10
cdef Py_ssize_t MOST_FRESH = 4096
# Of tokens, as BOUNDS reads them.
cdef int64_t LONGEST = 10 ** 12


cdef class VirtualKey:
    """A key. names: its own and its team's; limits: UsageLimits of both; allowed: models and routes, None for all; ends:
    Unix seconds, 0 for never, and whether it was revoked.
    """

    def __init__(self, Segment segment not None, tuple names not None, dict metadata not None, limits, tuple allowed=(None, None),
                 tuple ends=(0, False)):
        cdef UsageLimits one
        self.segment, self.metadata = segment, metadata
        self.name, self.team = names
        models, routes = allowed
        self.limits = tuple(limits)
        self.models = None if models is None else tuple(models)
        self.routes = None if routes is None else frozenset(routes)
        self.expires_s, self.revoked = ends
        self.cells = {}
        for found in self.limits:
            one = <UsageLimits?>found
            self.tokens = self.tokens or one.tokens
            self.money = self.money or one.money

    cdef SpendCell cell(self, str model, int64_t now_s):
        cdef int64_t day = now_s // 86400
        cdef SpendCell found
        if day != self.day:
            self.cells, self.day = {}, day
        found = self.cells.get(model)
        if found is None and len(self.cells) >= MAX_MODELS:
            model = "other"
            found = self.cells.get(model)
        if found is None:
            shown = time.strftime("%Y-%m-%d", time.gmtime(day * 86400))
            try:
                found = SpendCell(self.segment, (self.name, self.team, model, shown))
            except SegmentFull:
                # The sum of another model of the key has it then, and limits know nothing of models.
                return next(iter(self.cells.values()), None)
            self.cells[model] = found
            hold(found, now_s)
        return found


cdef int hold(SpendCell cell, int64_t now_s) except -1:
    """Keep a new cell until the ledger, which looks once a second, has found it: its key may be replaced or removed while
    the request is under way that spends last.
    """
    while fresh and (fresh[0][0] <= now_s or len(fresh) >= MOST_FRESH):
        fresh.popleft()
    fresh.append((now_s + FRESH_SECONDS, cell))
    return 0


cdef class KeyTable:
    """The virtual keys of a worker. Steps hold the table, and a configuration that comes into force turns it."""

    def __init__(self):
        self.keys = {}

    def turn(self, dict keys not None, int64_t assumed):
        """Put other keys in force. assumed: tokens of an answer whose length the request does not bound."""
        for one in keys.values():
            if not isinstance(one, VirtualKey):
                raise TypeError("virtual keys are wanted")
        self.keys, self.assumed = keys, assumed

    def __len__(self):
        return len(self.keys)


cdef class KeyUse:
    def __init__(self, VirtualKey key not None):
        self.key = key

    cdef int free(self) except -1:
        """Take reservations back."""
        cdef UsageLimits one
        cdef int64_t now_s
        if self.tokens or self.picos:
            now_s = wall_ns() // 1000000000
            for one in self.key.limits:
                one.settle(self.tokens, self.picos, 0, 0, now_s)
            self.tokens = self.picos = 0
        return 0

    def settle(self, RequestContext ctx not None):
        """The request is over: what it used takes the place of what was reserved."""
        cdef LlmCall call = <LlmCall?>ctx.llm
        cdef UsageLimits one
        cdef int64_t taken_in = 0
        cdef int64_t taken_out = 0
        cdef int64_t picos = 0
        cdef int64_t now_s = wall_ns() // 1000000000
        cdef int64_t tokens = self.tokens
        cdef int64_t reserved = self.picos
        cdef SpendCell cell
        ctx.key_use = None
        self.tokens = self.picos = 0
        if call.total_usage is not None:
            taken_in, taken_out = max(call.total_usage.input_tokens, 0), max(call.total_usage.output_tokens, 0)
            picos = 0 if call.cost is None else call.cost.total
        elif call.charged and call.format not in FREE:
            taken_in, picos = self.prompt, self.prompt_picos      # the provider does not say: the prompt, by our estimate
        for one in self.key.limits:
            one.settle(tokens, reserved, taken_in + taken_out, picos, now_s)
        if was_sent(call) and call.format not in FREE:
            name = "" if ctx.requested_model is None else ctx.requested_model[:256].decode("utf-8", "replace")
            name = name.replace("\0", "\ufffd")         # PostgreSQL has no texts with it, and would refuse the batch
            cell = self.key.cell(name or "unnamed", now_s)
            if cell is not None:
                cell.spend(taken_in, taken_out, picos)

    def __del__(self):
        # Of a request that has ended in no other way.
        self.free()


cdef bint was_sent(LlmCall call) except -1:
    """Whether a provider was asked: a request that a step refuses has an attempt, too."""
    cdef LlmAttempt attempt
    for attempt in call.attempts or ():
        if attempt.started_ns:
            return True
    return False


cdef str amount(int unit, int64_t value):
    if unit != U_PICOS:
        return f"{value} {UNITS[unit]}"
    whole, rest = divmod(value, 10 ** 12)
    fraction = f"{rest:012d}".rstrip("0")
    return f"{whole}.{fraction.ljust(2, '0')} dollars"


cdef str moment(int64_t at_s):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at_s))


cdef Reply spent(UsageLimits limits, Breach* breach, int64_t wanted, int64_t now_s):
    """The answer to a request that a limit is in the way of; it says when the limit ends."""
    cdef str text = (f"the {limits.account.scope} {json.dumps(limits.account.name)} has a limit of "
                     f"{amount(breach.unit, breach.limit)} a {WINDOWS[breach.window]}, of which "
                     f"{amount(breach.unit, breach.left)} are left")
    if breach.unit != U_REQUESTS:
        text += f", and this request may take {amount(breach.unit, wanted)}"
    text += f"; the limit ends at {moment(breach.ends_s)}"
    return Reply(429, text.encode(), (
        (b"content-type", b"text/plain"), (b"retry-after", b"%d" % max(breach.ends_s - now_s, 1)),
        (b"x-ratelimit-resource", UNITS[breach.unit].encode())), "RateLimit")


cdef class VirtualKeyStep(ApiKeyStep):
    """apiKey with virtual keys: those of `table`, beside the policy's own `keys`.

    expired, withdrawn: the replies to a key that has run out, and to one that was revoked. elsewhere: that to a key which
    is not for the route.
    """

    def __init__(self, CredentialLocation location not None, str mode not None, dict keys not None, KeyTable table not None,
                 tuple replies not None):
        missing, invalid, self.expired, self.withdrawn, self.elsewhere = replies
        ApiKeyStep.__init__(self, "apiKey", location, mode, keys, missing, invalid)
        self.table = table

    cdef int run(self, RequestContext ctx) except -1:
        cdef bytes credential = self.location.find(ctx)
        cdef VirtualKey key
        cdef UsageLimits one
        cdef Breach breach
        cdef int64_t now_s
        cdef int taken = 0
        cdef SpendCell cell
        if credential is None:
            return ApiKeyStep.run(self, ctx)
        found = self.table.keys.get(sha256(credential).digest())
        if found is None:
            return ApiKeyStep.run(self, ctx)
        key = <VirtualKey>found
        now_s = wall_ns() // 1000000000
        if key.revoked:
            return self.refuse(ctx, self.withdrawn, False)
        if key.expires_s and now_s >= key.expires_s:
            return self.refuse(ctx, self.expired, False)
        if key.routes is not None and not is_for(key, ctx):
            ctx.reply = self.elsewhere
            return RESPOND
        for one in key.limits:
            if not one.take_request(now_s, &breach):
                for earlier in key.limits[:taken]:
                    (<UsageLimits>earlier).give_request()
                ctx.reply = spent(one, &breach, 1, now_s)
                return RESPOND
            taken += 1
        cell = key.cell("", now_s)
        if cell is not None:
            cell.count_request()
        for one in key.limits:
            if one.near(now_s, &breach):
                ctx.set_response_header(b"x-headgate-budget-warning", warning(one, &breach))
                break
        ctx.key_use = KeyUse(key)
        self.accept(ctx, credential, (key.metadata, key.models))
        return CONTINUE


cdef bytes warning(UsageLimits limits, Breach* breach):
    return (f"{limits.account.scope}; limit=\"{amount(breach.unit, breach.limit)}\"; window={WINDOWS[breach.window]}; "
            f"left=\"{amount(breach.unit, breach.left)}\"; ends={moment(breach.ends_s)}").encode()


cdef bint is_for(VirtualKey key, RequestContext ctx) except -1:
    cdef RoutePlan route
    if ctx.route is None:
        return False
    route = <RoutePlan>ctx.route
    return (route.namespace, route.name) in key.routes


cdef object decoded(bytes body):
    """Return a body as a document, None for what is no JSON."""
    try:
        return orjson.loads(body)
    except ValueError:
        return None


cdef int64_t count_of(object value) noexcept:
    """Return a number of tokens or answers as a provider may read it, at most LONGEST; 0 for what bounds nothing."""
    # Integers may be written as 1e5, and as texts in the JSON of protocol buffers. -1 means without a bound to some.
    if isinstance(value, str):
        if len(value) > 32:
            return 0
        try:
            value = float(value)
        except ValueError:
            return 0
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        return 0
    return LONGEST if value >= LONGEST else <int64_t>value


cdef int64_t most_of(list holders, tuple names) except -1:
    cdef int64_t most = 0
    for holder in holders:
        for name in names:
            most = max(most, count_of((<dict>holder).get(name)))
    return most


cdef int64_t longest_answer(str format, bytes body, object told, int64_t assumed) except -1:
    """Return the tokens that all answers to a request may have."""
    cdef int64_t most, choices
    outer, bounds, counts = PLACES.get(format, ((), (), ()))
    holders = []
    if isinstance(told, dict):
        holders = [told] if not outer else [told[name] for name in outer if isinstance(told.get(name), dict)]
    most = most_of(holders, bounds) or assumed
    choices = most_of(holders, counts)
    for one in BOUNDS.findall(body):
        most = max(most, <int64_t>int(one))
    for one in CHOICES.findall(body):
        choices = max(choices, <int64_t>int(one))
    return most * min(max(choices, 1), MAX_CHOICES)


cdef class KeyBudgetStep(Step):
    """Reserves what a request for a model may come to, before each attempt: of tokens and of money, or refuses it.

    unpriced: the reply where money is limited and the model has no price.
    """

    def __init__(self, KeyTable table not None, Reply unpriced not None):
        self.name = "apiKey"
        self.table, self.unpriced = table, unpriced

    cdef int64_t worst_tokens(self, RequestContext ctx, int64_t* output, int64_t* beside) except -1:
        """Return the tokens of the prompt's texts; `output`: at most those of the answer; `beside`: of definitions."""
        cdef LlmCall call = <LlmCall>ctx.llm
        cdef bytes body = b"" if ctx.body is None else ctx.body
        cdef int64_t prompt = call.estimated
        told = decoded(body)
        beside[0] = 0
        if prompt < 0:
            prompt = call.prompt_estimate if call.prompt_estimate >= 0 else document_tokens(call.format, told)
        if told is None and call.format in PLACES:
            beside[0] = len(body) // BYTES_PER_TOKEN       # a provider may read what we cannot
        elif isinstance(told, dict):
            for name in DEFINITIONS:
                if (<dict>told).get(name):
                    beside[0] += len(json.dumps(told[name], ensure_ascii=False)) // BYTES_PER_TOKEN
        output[0] = 0 if call.format in ANSWERLESS else longest_answer(call.format, body, told, self.table.assumed)
        return prompt

    cdef int run(self, RequestContext ctx) except -1:
        cdef KeyUse use
        cdef LlmCall call
        cdef UsageLimits one
        cdef Breach breach
        cdef Cost before
        cdef int64_t tokens, output, beside, prompt, now_s
        cdef int64_t picos = 0
        cdef int taken = 0
        if ctx.key_use is None or ctx.llm is None:
            return CONTINUE
        use, call = <KeyUse>ctx.key_use, <LlmCall>ctx.llm
        if call.format in FREE:
            return CONTINUE
        output = beside = 0
        prompt = self.worst_tokens(ctx, &output, &beside)
        use.prompt, use.prompt_picos = prompt, 0
        if call.prices is not None:
            worst_price(ctx, call, prompt, 0, &use.prompt_picos)
        # The estimate is a mean: some prompts have more.
        prompt += prompt // 4 + SPARE + beside
        tokens = min(prompt + output, MOST)
        if call.prices is not None:
            picos = worst_price(ctx, call, prompt, output, NULL)
        elif use.key.money:
            picos = -1
        if picos < 0:
            if use.key.money:
                ctx.reply = self.unpriced
                return RESPOND
            picos = 0
        if not (use.key.tokens or use.key.money):
            return CONTINUE
        # Attempts that have ended may have cost something; what they had reserved is replaced.
        if call.total_usage is not None:
            tokens += max(call.total_usage.input_tokens, 0) + max(call.total_usage.output_tokens, 0)
        before = call.cost
        if before is not None:
            picos = min(picos + before.total, MOST)
        use.free()
        now_s = wall_ns() // 1000000000
        for one in use.key.limits:
            if not one.reserve(tokens, picos, now_s, &breach):
                for earlier in use.key.limits[:taken]:
                    (<UsageLimits>earlier).settle(tokens, picos, 0, 0, now_s)
                ctx.reply = spent(one, &breach, tokens if breach.unit == U_TOKENS else picos, now_s)
                return RESPOND
            taken += 1
        use.tokens, use.picos = tokens, picos
        return CONTINUE


cdef int64_t worst_price(RequestContext ctx, LlmCall call, int64_t prompt, int64_t output, int64_t* prompt_picos) except? -2:
    """What the tokens cost at most, -1 without a price: a cache is written, and all of an answer is reasoning."""
    cdef PriceList prices = <PriceList>call.prices
    cdef TokenUsage usage = TokenUsage.__new__(TokenUsage)
    cdef Cost cost
    cdef Rates rates
    usage.add(TokenUsage(prompt, output))
    cost = prices.price(ctx.provider, None, ctx.requested_model, usage, False)
    if cost is None:
        return -1
    rates = cost.rates
    if prompt_picos != NULL:
        prompt_picos[0] = min(product(prompt, rates.rate_of(P_INPUT)), MOST)
    return min(product(prompt, max(rates.rate_of(P_INPUT), rates.rate_of(P_CACHE_WRITE)))
               + product(output, max(rates.rate_of(P_OUTPUT), rates.rate_of(P_REASONING))), MOST)


cdef inline int64_t product(int64_t tokens, int64_t rate) noexcept:
    if tokens <= 0 or rate <= 0:
        return 0
    return tokens * rate if tokens <= MOST // rate else MOST
