"""Compilation of a configuration's guards, and their execution for one request."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Coroutine, Iterable
from functools import partial
from typing import Any, Final, TypeVar, assert_never

import re2

from headgate.backend.llm.guards.bedrock import Guardrail
from headgate.backend.llm.guards.content_safety import ContentSafety
from headgate.backend.llm.guards.contract import (
    ORIGIN,
    VERDICTS,
    Guard,
    GuardCheck,
    GuardFailure,
    GuardRefusal,
    Known,
    Pairs,
    Phase,
    Verdicts,
)
from headgate.backend.llm.guards.model_armor import ModelArmor
from headgate.backend.llm.guards.moderation import Moderation
from headgate.backend.llm.guards.realtime import GuardedTunnel, Judges, RealtimeTunnel
from headgate.backend.llm.guards.regex import PatternGuard, scanner_of, streamed_rules
from headgate.backend.llm.guards.stream import FAILED, GuardedStream, machine
from headgate.backend.llm.guards.webhook import REASON, Webhook
from headgate.backend.llm.off_loop import LONG_BYTES, LONG_NS, off_loop
from headgate.dialect.llm import enrichment
from headgate.dialect.llm.transcript.contract import TextScope, Transcript
from headgate.dialect.llm.transcript.table import GUARDED, reply_texts, request_texts
from headgate.document.lazy_dataclass import dataclass
from headgate.ir.match import ValueMatch
from headgate.ir.policy.prompt_guard import (
    BedrockGuard,
    ContentSafetyGuard,
    GuardEntry,
    GuardKind,
    ModelArmorGuard,
    ModerationGuard,
    PromptEnrichment,
    PromptGuard,
    RegexGuard,
    WebhookGuard,
)
from headgate.policy.environment import Environment
from headgate.telemetry.metrics import series_key
from headgate_engine.context.field_names import REQUEST_FRAMING
from headgate_engine.context.request import Reply, RequestContext, log_extra
from headgate_engine.expr.program import Program
from headgate_engine.guard.stream import REALTIME
from headgate_engine.llm.translate.readers import Garbage
from headgate_engine.llm.translate.sliced import load_sliced
from headgate_engine.shared.counters import Counter

logger = logging.getLogger("headgate.guard")

# Upper bound of the time to extract the texts of a body, per byte.
READ_NS: Final = 4
CHECKS: Final = "gw_guardrail_checks_total"
ACTIONS: Final = ("Allow", "Mask", "Reject", "FailOpen", "FailClosed")
LOG_FIELD: Final = "gw.ai.guardrail"
TEXT: Final = (b"content-type", b"text/plain")
CANNOT_TELL: Final = Reply(503, b"failed to process LLM request: prompt guard failed", (TEXT,), REASON)
# Fields of the connection and of the body, which are never forwarded to webhooks.
NOT_FORWARDED: Final = REQUEST_FRAMING | {"content-encoding", "expect"}
Outcome = bytes | Reply
T = TypeVar("T")


async def settled(found: T | Awaitable[T]) -> T:
    """Return a value, awaiting it if it is an awaitable."""
    return await found if isinstance(found, Awaitable) else found


@dataclass(slots=True)
class _Entry:
    """One compiled guard. `programs`: (header name, expression); `forwarded`: (header name, test of its value)."""

    guard: Guard
    source: GuardEntry
    scopes: frozenset[TextScope]
    refusal: Reply
    counters: dict[str, Counter]
    programs: tuple[tuple[str, Program], ...] = ()
    forwarded: tuple[tuple[str, Any], ...] = ()

    def count(self, action: str) -> None:
        counter = self.counters.get(action)
        if counter is not None:
            counter.add(1)


class Guards:
    """The compiled guards of a model, backend or route."""

    def __init__(self, guard: PromptGuard, env: Environment) -> None:
        self.source = guard
        self.spawn = env.spawn
        self.entries: dict[Phase, tuple[_Entry, ...]] = {
            "request": tuple(_entry(one, "request", env) for one in guard.request),
            "response": tuple(_entry(one, "response", env) for one in guard.response),
        }
        self.reads_request = any(
            any(name.split(".")[0] == "llmRequest" for name in program.variables)
            for entry in self.entries["request"]
            for _, program in entry.programs
        )
        answers = self.entries["response"]
        rules = streamed_rules(guard)
        self.stream_scanner = scanner_of(rules, env.scanners) if rules else None
        self.stream_judges = tuple(one for one in answers if not _masks(one))
        self.asks = {phase: any(one.guard.asks for one in entries) for phase, entries in self.entries.items()}

    def is_long(self, phase: Phase, body: bytes) -> bool:
        """Return True if inspecting a body would block the event loop for too long."""
        spent = len(body) * READ_NS
        for one in self.entries[phase]:
            if spent > LONG_NS:
                break
            if isinstance(one.guard, PatternGuard):
                spent += one.guard.scanner.nanoseconds(body)
        return spent > LONG_NS

    def begin(self, ctx: RequestContext) -> GuardCall:
        """Start guarding a request, while its head is still the client's."""
        return GuardCall(self, ctx)


class GuardCall:
    """The guards' state for one request."""

    def __init__(self, guards: Guards, ctx: RequestContext) -> None:
        self.guards = guards
        self.ctx = ctx
        self.known = Known()
        call = ctx.llm
        self.verdicts = Verdicts()
        if call is not None:
            call.verdicts = self.verdicts = call.verdicts or self.verdicts
        head = ctx.request
        if any(entry.forwarded for entries in guards.entries.values() for entry in entries):
            self.known.forwarded = [(name.lower(), value) for name, value in head.items()]
            self.known.traceparent = head.get("traceparent")
        # Evaluated now: later the head has the provider's credential, which no webhook may see.
        for index, entry in enumerate(guards.entries["response"]):
            if entry.programs:
                self.known.headers[index, "response"] = _values(entry, ctx)

    def request(self, body: bytes, form: str) -> Outcome | Awaitable[Outcome]:
        """Return the body for the provider, or the reply that refuses the request."""
        if form not in GUARDED or not self.guards.entries["request"]:
            return body
        long = self.guards.is_long("request", body)
        if self.guards.reads_request and (long or len(body) > LONG_BYTES):
            return self._check_long_request(body, form)
        if self.guards.reads_request:
            self._publish(decoded(body))
        self._evaluate()
        work = self._run("request", body, form, self.known.forwarded, long)
        return work if long or self.guards.asks["request"] else finished(work)

    async def _check_long_request(self, body: bytes, form: str) -> Outcome:
        """Inspect a long body, which expressions read as well."""
        self._publish(await off_loop(decoded, body))
        self._evaluate()
        return await self._run("request", body, form, self.known.forwarded, True)

    def _evaluate(self) -> None:
        for index, entry in enumerate(self.guards.entries["request"]):
            if entry.programs:
                self.known.headers[index, "request"] = _values(entry, self.ctx)

    def answers(self, form: str) -> bool:
        """Return True if a guard inspects responses of that format."""
        return form in GUARDED and bool(self.guards.entries["response"])

    def cannot_tell(self, reason: str) -> Reply:
        """Return the reply that replaces an unreadable response."""
        logger.warning("reply not readable", extra=log_extra(self.ctx, error=reason))
        self.ctx.add_log_field(LOG_FIELD, "unreadable")
        return CANNOT_TELL

    def response(self, body: bytes, form: str, headers: Iterable[tuple[str, str]] = ()) -> Outcome | Awaitable[Outcome]:
        """Return the response body for the client, or the reply that replaces it. `headers`: the provider's fields."""
        if form not in GUARDED or not self.guards.entries["response"]:
            return body
        long = self.guards.is_long("response", body)
        work = self._run("response", body, form, self._answered(headers), long)
        return work if long or self.guards.asks["response"] else finished(work)

    def stream(self, form: str, headers: Iterable[tuple[str, str]] = ()) -> GuardedStream | None:
        """Return the filter for a streamed response, None if no guard inspects it."""
        guards = self.guards
        if not guards.source.streaming or form not in GUARDED:
            return None
        judges = guards.stream_judges
        if not judges and guards.stream_scanner is None:
            return None
        sizes = (guards.source.window, guards.source.overlap)
        forwarded = self._answered(headers)

        def judge(texts: list[bytes]) -> GuardRefusal | Awaitable[GuardRefusal | None] | None:
            work = self._window(texts, forwarded)
            return work if guards.asks["response"] else finished(work)

        return GuardedStream(
            machine(form, bool(judges), guards.stream_scanner, sizes), judge, _message, self._masked_stream
        )

    def tunnel(self, tunnel: RealtimeTunnel) -> GuardedTunnel | None:
        """Return the filter for a realtime conversation, None if no guard inspects it."""
        guards = self.guards
        masks = guards.stream_scanner
        if not guards.source.streaming or not (guards.entries["request"] or guards.stream_judges or masks):
            return None

        def check_event(event: bytes) -> GuardRefusal | bytes | Awaitable[GuardRefusal | bytes | None] | None:
            work = self._check_event(event)
            return work if guards.asks["request"] or guards.is_long("request", event) else finished(work)

        sizes = (guards.source.window, guards.source.overlap)

        def window(texts: list[bytes]) -> GuardRefusal | Awaitable[GuardRefusal | None] | None:
            work = self._window(texts, [])
            return work if guards.asks["response"] else finished(work)

        return GuardedTunnel(
            tunnel,
            Judges(
                check_event=check_event if guards.entries["request"] else None,
                window=window if guards.stream_judges else None,
                message=_message,
                spawn=guards.spawn,
                size=guards.source.window,
                overlap=guards.source.overlap,
                masker=None if masks is None else partial(machine, REALTIME, False, masks, sizes),
                masked=self._masked_stream,
            ),
        )

    async def _check_event(self, event: bytes) -> GuardRefusal | bytes | None:
        """Check a user's event in a conversation; return the masked event if masks apply, None if it is unchanged."""
        self.verdicts = Verdicts()  # verdicts apply to one event only
        found = await self._run("request", event, REALTIME, [], self.guards.is_long("request", event))
        if found is CANNOT_TELL:
            return GuardRefusal(Reply(503, FAILED.encode(), (), REASON))
        if isinstance(found, Reply):
            return GuardRefusal(found)
        return found if self.guards.source.stream_masks and found is not event else None

    # -- evaluation ----------------------------------------------------------------------------------------------------
    async def _run(self, phase: Phase, body: bytes, form: str, forwarded: Pairs, long: bool) -> Outcome:
        if not self.guards.asks[phase]:
            return await self._judged(phase, body, form, forwarded, long)
        verdicts = VERDICTS.set(self.verdicts if phase == "request" else VERDICTS.get())
        origin = ORIGIN.set(self.ctx)
        try:
            return await self._judged(phase, body, form, forwarded, long)
        finally:
            ORIGIN.reset(origin)
            VERDICTS.reset(verdicts)

    async def _judged(self, phase: Phase, body: bytes, form: str, forwarded: Pairs, long: bool) -> Outcome:
        """Run the guards. If `long`, extracting and searching texts runs in a thread."""
        read = request_texts if phase == "request" else reply_texts
        transcript = None
        for index, entry in enumerate(self.guards.entries[phase]):
            try:
                if transcript is None:
                    transcript = await off_loop(read, body, form) if long else read(body, form)
                asked = self._guard_check(entry, index, phase, transcript, forwarded)
                if long and not entry.guard.asks:
                    answer = await settled(await off_loop(entry.guard.judge, asked))
                else:
                    answer = await settled(entry.guard.judge(asked))
            except (GuardFailure, ValueError) as error:
                if self._failed(entry, error, phase):
                    continue
                return CANNOT_TELL
            if isinstance(answer, GuardRefusal):
                self._log(entry, answer)
                return answer.reply or entry.refusal
            self._count(entry, phase, "Allow" if answer is None else "Mask")
            if answer is not None:
                body, transcript = answer, None
        return body

    async def _window(self, texts: list[bytes], forwarded: Pairs) -> GuardRefusal | None:
        """Check the texts of one window. They are checked like a response with one choice per text."""
        told = [{"message": {"role": "assistant", "content": text.decode("utf-8", "replace")}} for text in texts]
        transcript = reply_texts(json.dumps({"choices": told}, ensure_ascii=False).encode(), "completions")
        for index, entry in enumerate(self.guards.entries["response"]):
            if entry not in self.guards.stream_judges:
                continue
            try:
                asked = self._guard_check(entry, index, "response", transcript, forwarded)
                answer = await settled(entry.guard.judge(asked))
            except (GuardFailure, ValueError) as error:
                if self._failed(entry, error):
                    continue
                return GuardRefusal(Reply(503, FAILED.encode(), (), REASON))
            if isinstance(answer, GuardRefusal):
                self._log(entry, answer)
                return GuardRefusal(answer.reply or entry.refusal)
            entry.count("Allow")
        return None

    def _guard_check(
        self, entry: _Entry, index: int, phase: Phase, transcript: Transcript, forwarded: Pairs
    ) -> GuardCheck:
        headers = self.known.headers.get((index, phase), [])
        if entry.forwarded:
            own = {name for name, _ in headers}
            headers = [*headers, *((name, value) for name, value in _fitting(entry, forwarded) if name not in own)]
        return GuardCheck(phase, transcript, entry.scopes, headers, self.known.budget)

    # -- data of the request -------------------------------------------------------------------------------------------
    def _publish(self, document: object) -> None:
        if document is not None:
            self.ctx.dynamic = (self.ctx.dynamic or {}) | {"llmRequest": document}

    def _answered(self, headers: Iterable[tuple[str, str]]) -> Pairs:
        """Return the provider's header fields, with the `traceparent` of the request."""
        if not any(entry.forwarded for entry in self.guards.entries["response"]):
            return []
        found = [(name.lower(), value) for name, value in headers]
        if self.known.traceparent is not None:
            found = [(name, value) for name, value in found if name != "traceparent"]
            found.append(("traceparent", self.known.traceparent))
        return found

    def _count(self, entry: _Entry, phase: Phase, action: str) -> None:
        """Count a check. Request checks count once, however many attempts the request takes."""
        seen = (id(entry.source), action)
        if phase == "request" and seen in self.verdicts.counted:
            return
        self.verdicts.counted.add(seen)
        entry.count(action)

    def _failed(self, entry: _Entry, error: Exception, phase: Phase = "response") -> bool:
        """Log a guard's failure; return True if the text may pass nevertheless (fail open)."""
        may_pass = entry.source.fail_open and entry.guard.asks
        fields = log_extra(self.ctx, guard=entry.guard.kind, error=str(error), passed=may_pass)
        logger.warning("guard failed", extra=fields)
        self._count(entry, phase, "FailOpen" if may_pass else "FailClosed")
        if not may_pass:
            self.ctx.add_log_field(LOG_FIELD, f"{entry.guard.kind}: failed")
        return may_pass

    def _log(self, entry: _Entry, refused: GuardRefusal) -> None:
        entry.count("Reject")
        self.ctx.add_log_field(LOG_FIELD, f"{entry.guard.kind}: {refused.rule}" if refused.rule else entry.guard.kind)

    def _masked_stream(self) -> None:
        for entry in self.guards.entries["response"]:
            if _masks(entry):
                entry.count("Mask")


def _masks(entry: _Entry) -> bool:
    return isinstance(entry.guard, PatternGuard) and entry.guard.masks


def _message(refused: GuardRefusal) -> str:
    assert refused.reply is not None
    return refused.reply.body.decode("utf-8", "replace")


def decoded(body: bytes) -> object:
    """Return what a body says; None for one that is not JSON."""
    try:
        return load_sliced(body)
    except (Garbage, RecursionError):
        return None


def finished(work: Coroutine[Any, None, T]) -> T:
    """Run a coroutine that never suspends, and return its result."""
    try:
        work.send(None)
    except StopIteration as done:
        found: T = done.value
        return found
    raise RuntimeError("a guard that asks nobody waits")


# -- compiling ---------------------------------------------------------------------------------------------------------
def compile_guards(guard: PromptGuard | None, env: Environment) -> Guards | None:
    """Return the guards of a configuration, None if there are none."""
    return None if guard is None else Guards(guard, env)


def enrich(body: bytes, form: str, added: PromptEnrichment | None) -> bytes:
    """Return the request body with the configured messages before and after the client's."""
    if added is None:
        return body
    prepend, append = (
        [enrichment.EnrichmentMessage(*pair) for pair in pairs] for pairs in (added.prepend, added.append)
    )
    return enrichment.enrich(body, form, prepend, append)


def _entry(source: GuardEntry, phase: Phase, env: Environment) -> _Entry:
    guard = _guard(source.guard, env)
    rejection = source.rejection
    headers = tuple((name.encode(), value.encode("latin-1")) for name, value in rejection.headers)
    found = _Entry(
        guard=guard,
        source=source,
        # Responses only have message texts.
        scopes=frozenset(map(TextScope, source.scopes)) if phase == "request" else frozenset((TextScope.MESSAGES,)),
        refusal=Reply(rejection.status, rejection.body, headers, REASON),
        counters=_counters(env, phase, guard.kind),
    )
    if isinstance(source.guard, WebhookGuard):
        name = "llm" if phase == "request" else "response guard"
        found.programs = tuple((header, env.program(text, name)) for header, text in source.guard.headers)
        found.forwarded = tuple((one.name, _test(one)) for one in source.guard.forwarded)
    return found


def _guard(guard: GuardKind, env: Environment) -> Guard:
    match guard:
        case RegexGuard():
            return PatternGuard(guard, env.scanners)
        case WebhookGuard():
            return Webhook(guard, env)
        case ModerationGuard():
            return Moderation(guard, env)
        case BedrockGuard():
            return Guardrail(guard, env)
        case ModelArmorGuard():
            return ModelArmor(guard, env)
        case ContentSafetyGuard():
            return ContentSafety(guard, env)
        case _:
            assert_never(guard)


def _counters(env: Environment, phase: Phase, kind: str) -> dict[str, Counter]:
    found = {}
    for action in ACTIONS:
        labels = {"phase": phase.capitalize(), "action": action, "guard": kind}
        found[action] = Counter(env.segment, series_key(CHECKS, labels))
    return found


def _test(match: ValueMatch) -> Any:
    if match.kind == "exact":
        return match.value.__eq__
    return re2.compile(match.value).fullmatch


def _fitting(entry: _Entry, headers: Pairs) -> Pairs:
    """Return the headers to forward: all values of a name if one of them matches."""
    names = {
        name
        for wanted, test in entry.forwarded
        for name, value in headers
        if name == wanted and name not in NOT_FORWARDED and test(value)
    }
    return [(name, value) for name, value in headers if name in names]


def _values(entry: _Entry, ctx: RequestContext) -> Pairs:
    """Return the headers computed by expressions; an expression without a value yields no header."""
    found = ((name, program.header_value(ctx)) for name, program in entry.programs)
    return [(name, value.decode("latin-1")) for name, value in found if value]
