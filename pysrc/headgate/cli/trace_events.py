"""Trace events for an operator: one table row per event, and the details of a selected event."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from headgate.cli.trace_bodies import readable

SUMMARY_CHARS = 120
# Events that say why a request was refused.
REFUSALS = ("routeSelection", "authorizationResult", "policy", "policyEvent")
SNAPSHOTS = ("requestSnapshot", "responseSnapshot")
Message = Mapping[str, Any]


def _status(message: Message) -> str:
    error = message.get("error")
    return f"status={message.get('status')}" + (f" error={error}" if error else "")


def _policy(message: Message) -> str:
    result = message.get("result")
    found = result if isinstance(result, dict) else {}
    if found.get("type") == "skip":
        return f"{message.get('kind')} skipped: {found.get('reason')}"
    return f"{message.get('kind')}: {_text(found.get('details'))}"


def _route(message: Message) -> str:
    count = len(message.get("evaluatedRoutes") or ())
    selected = message.get("selectedRoute")
    said = "no route selected" if selected is None else f'selected "{selected}"'
    return f"{said} ({count} evaluated)"


def _policies(message: Message) -> str:
    effective = message.get("effectivePolicy")
    names = [name for name, value in effective.items() if value is not None] if isinstance(effective, dict) else []
    return f"{message.get('phase')} effective policies: {', '.join(names) or 'none'}"


def _authorization(message: Message) -> str:
    rules = [rule for rule in message.get("rules") or () if isinstance(rule, dict)]
    counts = {mode: sum(rule.get("mode") == mode for rule in rules) for mode in ("allow", "deny", "require")}
    verdict = "allowed" if message.get("result") == "allow" else "denied"
    return f"{verdict} ({counts['allow']} allow, {counts['deny']} deny, {counts['require']} require matches)"


def _llm(*names: str) -> Callable[[Message], str]:
    return lambda message: " ".join(f"{name}={_text(message.get(name))}" for name in names)


# Message type to the name in its row and the function that summarises it in one line.
KINDS: dict[str, tuple[str, Callable[[Message], str]]] = {
    "requestStarted": ("Request Start", lambda _message: "request started"),
    "requestSnapshot": ("Snapshot", lambda message: _text(message.get("stage"))),
    "responseSnapshot": ("Snapshot", lambda message: _text(message.get("stage"))),
    "bodySnapshot": ("Body Snapshot", lambda message: _text(message.get("stage"))),
    "cel": ("CEL", lambda message: f"{message.get('expr')} => {_text(message.get('result'))}"),
    "routeSelection": ("Route", _route),
    "policySelection": ("Policies", _policies),
    "policy": ("Policy", _policy),
    "policyEvent": ("Policy Event", lambda message: f"{message.get('kind')}: {_text(message.get('details'))}"),
    "traceSampling": ("Tracing", lambda message: _text(message.get("decision"))),
    "authorizationResult": ("Authz", _authorization),
    "backendCallStart": ("Backend Start", lambda message: _text(message.get("target"))),
    "backendCallResult": ("Backend Result", _status),
    "llmRouteResolved": ("LLM Route", _llm("provider", "routeType")),
    "llmRequestDetected": ("LLM Request", _llm("provider", "inputFormat", "requestModel", "streaming")),
    "llmStreamingTranslation": ("LLM Stream", _llm("provider", "inputFormat", "streamFormat")),
    "requestFinished": ("Request Done", lambda message: f"request finished {_status(message)}"),
}


@dataclass(frozen=True)
class TraceRow:
    """One event. `event` is the complete event as received, or None for a message of the tool itself."""

    kind: str
    summary: str
    severity: str
    event: dict[str, Any] | None

    @property
    def message(self) -> Message:
        """Return what the event says; empty for a message of the tool itself."""
        found = self.event.get("message") if self.event else None
        return found if isinstance(found, dict) else {}

    @property
    def at(self) -> str:
        """Return when the event happened, in milliseconds since the beginning of the request."""
        found = self.event.get("eventEnd") if self.event else None
        return f"{found / 1000:.3f}" if isinstance(found, int | float) else ""

    @property
    def duration_us(self) -> int | None:
        """Return the duration of the event in microseconds, None if the event has none."""
        start, end = (self.event.get("eventStart"), self.event.get("eventEnd")) if self.event else (None, None)
        return int(end - start) if isinstance(start, int | float) and isinstance(end, int | float) else None

    @property
    def state(self) -> dict[str, Any] | None:
        """Return the state of the request, if the event is a snapshot of it."""
        message = self.event.get("message") if self.event else None
        if isinstance(message, dict) and message.get("type") in SNAPSHOTS:
            state = message.get("requestState")
            return readable_bodies(state) if isinstance(state, dict) else {}
        return None


def message_row(text: str, severity: str = "error") -> TraceRow:
    """Return a row with a message of the tool itself."""
    return TraceRow("Message", cut(text), severity, None)


def read_row(text: str) -> TraceRow:
    """Return the row for an event's JSON text; a text that is not an event becomes a message row."""
    try:
        event = json.loads(text)
    except ValueError:
        return message_row(text)
    message = event.get("message") if isinstance(event, dict) else None
    if not isinstance(message, dict) or message.get("type") not in KINDS:
        return TraceRow("Message", cut(text), "error", event if isinstance(event, dict) else None)
    kind, summarize = KINDS[message["type"]]
    scope = event.get("scope")
    prefix = " > ".join(map(str, scope)) + ": " if isinstance(scope, list) and scope else ""
    return TraceRow(kind, cut(prefix + summarize(message)), str(event.get("severity", "info")), event)


class Repeats:
    """Tells events apart that are about the same thing: the second evaluation of an expression, the second attempt."""

    # What an event is about, by its type.
    ABOUT: ClassVar[Mapping[str, str]] = {
        "cel": "expr",
        "policy": "kind",
        "backendCallStart": "target",
        "policySelection": "phase",
        "llmRouteResolved": "provider",
    }

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], int] = {}

    def marked(self, row: TraceRow) -> TraceRow:
        """Return the row, with the number of the event among those about the same thing from the second on."""
        kind = str(row.message.get("type"))
        if kind not in self.ABOUT:
            return row
        key = (kind, _text(row.message.get(self.ABOUT[kind])))
        count = self._seen[key] = self._seen.get(key, 0) + 1
        return row if count == 1 else replace(row, summary=f"#{count} {row.summary}")


def deciding(rows: list[TraceRow]) -> int:
    """Return the index of the event that decided how the request was answered: what refused it, else the last call of
    its backend, else the policy that answered, else the last event. Calls beside it, such as mirrors, decide nothing.
    """
    own = [at for at, row in enumerate(rows) if row.event is not None and not row.event.get("scope")]
    for at in own:
        if rows[at].severity == "error" and rows[at].message.get("type") in REFUSALS:
            return at
    for kind in ("backendCallResult", "policy"):
        found = [at for at in own if rows[at].message.get("type") == kind and _applied(rows[at].message)]
        if found:
            return found[-1]
    return len(rows) - 1


def _applied(message: Message) -> bool:
    result = message.get("result")
    return not isinstance(result, dict) or result.get("type") == "apply"


def raw_details(row: TraceRow, form: str) -> str:
    """Return the event without empty members and with decoded bodies."""
    if row.event is None:
        return row.summary
    event = {name: value for name, value in row.event.items() if value is not None}
    message = event.get("message")
    if isinstance(message, dict):
        shown = dict(message)
        if isinstance(shown.get("requestState"), dict):
            # Last: it is long, and the result of an expression would stand below it.
            shown["requestState"] = readable_bodies(shown.pop("requestState"))
        if shown.get("type") == "bodySnapshot":
            shown["body"] = readable(shown.get("body"))
        event["message"] = shown
    return rendered(event, form)


def rendered(value: Any, form: str) -> str:
    """Return a value as JSON or YAML. In JSON a body of several lines stands below, where its lines are lines."""
    if form != "json":
        return render(value, form)
    texts: list[str] = []
    shown = _without_texts(value, texts)
    return "\n\n".join((render(shown, form), *texts))


def _without_texts(value: Any, texts: list[str]) -> Any:
    if isinstance(value, list):
        return [_without_texts(one, texts) for one in value]
    if not isinstance(value, dict):
        return value
    found = {}
    for name, one in value.items():
        if name in ("body", "text", "reasoning") and isinstance(one, str) and "\n" in one.strip():
            texts.append(one)
            found[name] = f"<text {len(texts)} below>"
        else:
            found[name] = _without_texts(one, texts)
    return found


def snapshot_at(rows: list[TraceRow], number: int) -> int | None:
    """Return the index of the newest snapshot at or before a row."""
    return next((index for index in range(number, -1, -1) if rows[index].state is not None), None)


def snapshot_details(rows: list[TraceRow], number: int, form: str) -> str:
    """Return the state of the request at a row."""
    index = snapshot_at(rows, number)
    return "no snapshot yet" if index is None else rendered(rows[index].state, form)


def diff_details(rows: list[TraceRow], number: int, form: str) -> str:
    """Return a unified diff of the newest two snapshots at or before a row."""
    index = snapshot_at(rows, number)
    before = None if index is None else snapshot_at(rows, index - 1)
    if index is None or before is None:
        return "no earlier snapshot to compare with"
    old, new = (render(rows[item].state, form).splitlines() for item in (before, index))
    lines = list(difflib.unified_diff(old, new, rows[before].summary, rows[index].summary, lineterm=""))
    return "\n".join(lines) or f"no change between {rows[before].summary} and {rows[index].summary}"


def render(value: Any, form: str) -> str:
    """Return a value formatted as `json` or `yaml`."""
    if form == "yaml":
        import yaml

        return str(yaml.safe_dump(value, allow_unicode=True, sort_keys=False)).rstrip("\n")
    return json.dumps(value, indent=2, ensure_ascii=False)


def readable_bodies(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request state whose base64 bodies are replaced by text or JSON."""
    shown = dict(state)
    for side in ("request", "response"):
        part = shown.get(side)
        if isinstance(part, dict) and "body" in part:
            shown[side] = {**part, "body": readable(part["body"])}
    return shown


def cut(text: str) -> str:
    """Return the text on one line, shortened to the width of a summary."""
    line = " ".join(text.split())
    return line if len(line) <= SUMMARY_CHARS else line[: SUMMARY_CHARS - 3] + "..."


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
