"""Virtual keys; see virtual_key.pxd.

A key is found by the SHA-256 digest of what the client presents. One round of a fast hash is right here: keys are 256
random bits, so there is nothing to guess that a slow hash would protect, and a look-up by digest reveals nothing by its
duration.
"""

from collections import deque
from hashlib import sha256
import json
import time

from headgate_engine.clock cimport wall_ns
from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.limit.account cimport U_PICOS, U_REQUESTS, Breach, LeaseState, SpendCell, UsageLimits
from headgate_engine.llm.attempt cimport LlmAttempt, LlmCall
from headgate_engine.llm.pattern cimport ModelPattern
from headgate_engine.plan.plans cimport RoutePlan
from headgate_engine.plan.step cimport CONTINUE, RESPOND, SUSPEND
from headgate_engine.shared.segment cimport Segment
from headgate_engine.steps.identity cimport ApiKeyStep
from headgate_engine.steps.location cimport CredentialLocation

from libc.stdint cimport int64_t

from headgate_engine.limit.account import UNITS, WINDOWS
from headgate_engine.shared.segment import SegmentFull
from headgate_engine.steps.local_rate_limit import FREE

# Cells that were made of late, with the Unix seconds until which they are kept.
cdef object fresh = deque()
cdef int64_t FRESH_SECONDS = 10
cdef Py_ssize_t MOST_FRESH = 4096
# Tokens of a stream that are reserved at once beyond what was reserved before it.
cdef int64_t STEP = 64


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

    def __cinit__(self):
        self.state = LeaseState()

    def __init__(self):
        self.keys = {}

    def turn(self, dict keys not None, tuple assumed not None, LeaseState state=None, desk=None, *, bint stops=False,
             converse=None):
        """Put other keys in force. assumed: tokens of an answer whose length the request does not bound, of a picture, and
        of what a request names and does not carry. desk: asks for leases of the store of `state`. stops: a stream ends
        where limits have no more for it. converse(tunnel, ctx, guarded): what holds limits in a realtime conversation.
        """
        for one in keys.values():
            if not isinstance(one, VirtualKey):
                raise TypeError("virtual keys are wanted")
        self.keys, self.stops, self.converse = keys, stops, converse
        self.assumed, self.per_picture, self.per_named = assumed
        self.state, self.desk = LeaseState() if state is None else state, desk

    def __len__(self):
        return len(self.keys)


cdef class KeyUse:
    def __init__(self, VirtualKey key not None):
        self.key = key

    def kept_out(self, RequestContext ctx not None):
        """Return the reply to a request whose route has been chosen now and is not for the key, None where it is."""
        return None if self.key.routes is None or is_for(self.key, ctx) else self.elsewhere

    def narrowed(self, tuple value not None):
        """Return the metadata and models of another key of the same request, with what this key may use at most."""
        metadata, models = value
        tools = self.key.metadata.get("allowedTools")
        if tools is not None:
            others = (metadata or {}).get("allowedTools")
            metadata = {**(metadata or {}), "allowedTools": tools if not isinstance(others, list) else common_tools(tools, others)}
        if models is None:
            models = self.key.models
        elif self.key.models is not None:
            models = common(self.key.models, models)
        return metadata, models

    def knows(self, bytes body):
        """Tell whether it is known what this very body may come to."""
        return self.body is body

    def note(self, bytes body, tuple measured not None):
        """Note what a body may come to, as llm.bounds tells it."""
        self.body, self.measured = body, measured

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

    cdef bint covers(self) except -1:
        """Whether what the client has of the answer is reserved; STEP more tokens are, if need be and if they fit."""
        cdef UsageLimits one
        cdef Breach breach
        cdef int64_t now_s, picos
        cdef int taken = 0
        if not self.stops or self.generated <= self.bound + self.bound // 4:       # the estimate is a mean
            return True
        now_s = wall_ns() // 1000000000
        picos = product(STEP, self.output_rate)
        for one in self.key.limits:
            if not one.reserve(STEP, picos, now_s, &breach):
                for earlier in self.key.limits[:taken]:
                    (<UsageLimits>earlier).settle(STEP, picos, 0, 0, now_s)
                return breach.lacks and not one.state.down and self.asks(picos)
            taken += 1
        self.rounds = 0
        self.tokens += STEP
        self.picos += picos
        self.bound += STEP
        return True

    cdef bint asks(self, int64_t picos) except -1:
        """Whether a lease for the next STEP tokens is requested. The stream continues meanwhile."""
        if self.asking is not None and not self.asking.done():
            return True
        if self.desk is None or self.rounds >= ROUNDS:
            return False
        self.rounds += 1
        self.asking = self.desk.ahead(self.key.limits, (0, STEP, picos))
        return True

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
        cdef bint over
        ctx.key_use = None
        self.tokens = self.picos = 0
        if call.total_usage is not None:
            taken_in, taken_out = max(call.total_usage.input_tokens, 0), max(call.total_usage.output_tokens, 0)
            picos = 0 if call.cost is None else call.cost.total
        elif call.charged and call.format not in FREE:
            # The provider does not say: the prompt and what the client has of the answer, by our estimates.
            taken_in, picos = self.prompt, self.prompt_picos
        if self.generated > taken_out and is_short(call):
            picos += product(self.generated - taken_out, self.output_rate)
            taken_out = self.generated
        # Of a conversation the answers were settled one by one; one may have been under way.
        taken_in = max(taken_in - self.parts_in, 0) + self.open_in
        taken_out = max(taken_out - self.parts_out, 0) + self.open_out
        picos = max(picos - self.parts_picos, 0) + self.open_picos
        for one in self.key.limits:
            one.settle(tokens, reserved, taken_in + taken_out, picos, now_s)
        over = self.parts and not (taken_in or taken_out or picos)
        if was_sent(call) and call.format not in FREE and not over:
            cell = self.cell(ctx, now_s)
            if cell is not None:
                cell.spend(taken_in, taken_out, picos)

    cdef SpendCell cell(self, RequestContext ctx, int64_t now_s):
        """What the key spends with the model of the request."""
        name = "" if ctx.requested_model is None else ctx.requested_model[:256].decode("utf-8", "replace")
        name = name.replace("\0", "\ufffd")             # PostgreSQL has no texts with it, and would refuse the batch
        return self.key.cell(name or "unnamed", now_s)

    def __del__(self):
        # Of a request that has ended in no other way.
        self.free()


cdef tuple common(tuple some, tuple others):
    """The patterns of models that fit one of both lists. One of a start and an end (`a*b`) cannot be said, and fits nothing."""
    cdef list found = []
    cdef ModelPattern one, other
    cdef str both
    for one in some:
        for other in others:
            both = one.meet(other)
            if both is not None and "*" not in both[1:-1]:
                found.append(ModelPattern(both))
    return tuple(found)


cdef list common_tools(list some, list others):
    """The tools that both lists allow. An entry is a tool of any target, `target/tool` or `target/*`."""
    cdef list found = []
    for pair in [(one, other) for one in some for other in others] + [(other, one) for one in some for other in others]:
        wide, narrow = pair
        target, slash, tool = str(narrow).rpartition("/")
        if wide == narrow or wide == f"{target}/*" or wide == tool and tool != "*":
            found.append(narrow)                   # a target's tool or all of its tools, or the same
        elif not slash and wide.endswith("/*"):
            found.append(wide[:-1] + narrow)
    return sorted(set(found))


cdef bint is_short(LlmCall call) except -1:
    """Whether the provider did not come to count all of its answer: the client has left, or the stream has broken."""
    cdef LlmAttempt last
    if call.total_usage is None:
        return call.charged
    if not call.attempts:
        return False
    last = <LlmAttempt>call.attempts[len(call.attempts) - 1]
    return last.outcome == "cancelled" or last.outcome == "broken"


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
    is not for the route. storeless: without the store of leases.
    """

    def __init__(self, CredentialLocation location not None, str mode not None, dict keys not None, KeyTable table not None,
                 tuple replies not None):
        missing, invalid, self.expired, self.withdrawn, self.elsewhere, self.storeless = replies
        ApiKeyStep.__init__(self, "apiKey", location, mode, keys, missing, invalid)
        self.table = table

    cdef int run(self, RequestContext ctx) except -1:
        cdef bytes credential = self.location.find(ctx)
        cdef VirtualKey key
        cdef int64_t now_s
        cdef int verdict
        if credential is None:
            if ctx.key_use is not None and not self.location.conflict:
                return CONTINUE          # the listener has taken the key
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
        if key.routes is not None and ctx.route is not None and not is_for(key, ctx):
            ctx.reply = self.elsewhere
            return RESPOND
        if ctx.key_use is not None and (<KeyUse?>ctx.key_use).key.name == key.name:
            self.location.drop(ctx)          # the listener has taken the very key, from another place of the request
            return CONTINUE
        verdict = self.admit(ctx, key, credential, False)
        if verdict == SUSPEND:
            ctx.exchange.wait_for(self.name, admitted(self, ctx, key, credential), None)
        return verdict

    cdef int admit(self, RequestContext ctx, VirtualKey key, bytes credential, bint last) except -1:
        """Count the request for each account, or none. SUSPEND: a lease has to be asked for, unless this is the `last` try."""
        cdef UsageLimits one
        cdef Breach breach
        cdef int taken = 0
        cdef SpendCell cell
        cdef int64_t now_s = wall_ns() // 1000000000
        for one in key.limits:
            if not one.take_request(now_s, &breach):
                for earlier in key.limits[:taken]:
                    (<UsageLimits>earlier).give_request()
                breach.lacks = breach.lacks and (not last or self.table.state.down)
                return without(self.table, ctx, one, &breach, 1, self.storeless)
            taken += 1
        cell = key.cell("", now_s)
        if cell is not None:
            cell.count_request()
        for one in key.limits:
            if one.near(now_s, &breach):
                ctx.set_response_header(b"x-headgate-budget-warning", warning(one, &breach))
                break
        allowed = (key.metadata, key.models)
        if ctx.key_use is not None:
            allowed = ctx.key_use.narrowed(allowed)        # the key of the listener, from another place of the request
        elif ctx.allowed_models is not None:
            # The same of a key that is not virtual.
            allowed = key.metadata, ctx.allowed_models if key.models is None else common(key.models, ctx.allowed_models)
        ctx.key_use = KeyUse(key)
        if ctx.route is None:
            (<KeyUse>ctx.key_use).elsewhere = self.elsewhere
        self.accept(ctx, credential, allowed)
        return CONTINUE


cdef int without(KeyTable table, RequestContext ctx, UsageLimits limits, Breach* breach, int64_t wanted, Reply storeless) except -1:
    """The verdict on a request without room: a lease may be available, the store is away, or the limit is reached."""
    if breach.lacks and table.state.down:
        ctx.reply = storeless
        return RESPOND
    if breach.lacks and table.desk is not None:
        return SUSPEND
    ctx.reply = spent(limits, breach, wanted, wall_ns() // 1000000000)
    return RESPOND


async def admitted(VirtualKeyStep step, RequestContext ctx, VirtualKey key, bytes credential):
    """Ask for leases until a request is counted or refused. Return the verdict."""
    cdef int verdict = SUSPEND
    cdef int tries = 0
    while verdict == SUSPEND:
        tries += 1
        if step.table.desk is not None:
            await step.table.desk.asked(key.limits, (1, 0, 0))
        verdict = step.admit(ctx, key, credential, tries >= ROUNDS)
    return verdict


cdef bytes warning(UsageLimits limits, Breach* breach):
    return (f"{limits.account.scope}; limit=\"{amount(breach.unit, breach.limit)}\"; window={WINDOWS[breach.window]}; "
            f"left=\"{amount(breach.unit, breach.left)}\"; ends={moment(breach.ends_s)}").encode()


cdef bint is_for(VirtualKey key, RequestContext ctx) except -1:
    cdef RoutePlan route
    route = <RoutePlan>ctx.route
    return (route.namespace, route.name) in key.routes
