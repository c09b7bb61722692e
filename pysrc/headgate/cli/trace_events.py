"""Trace events for an operator: one table row per event, and the details of a selected event."""

from __future__ import annotations

import base64
import binascii
import difflib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

SUMMARY_CHARS = 120
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


def raw_details(row: TraceRow, form: str) -> str:
    """Return the event without empty members and with decoded bodies."""
    if row.event is None:
        return row.summary
    event = {name: value for name, value in row.event.items() if value is not None}
    message = event.get("message")
    if isinstance(message, dict):
        shown = dict(message)
        if isinstance(shown.get("requestState"), dict):
            shown["requestState"] = readable_bodies(shown["requestState"])
        if shown.get("type") == "bodySnapshot":
            shown["body"] = readable(shown.get("body"))
        event["message"] = shown
    return render(event, form)


def snapshot_at(rows: list[TraceRow], number: int) -> int | None:
    """Return the index of the newest snapshot at or before a row."""
    return next((index for index in range(number, -1, -1) if rows[index].state is not None), None)


def snapshot_details(rows: list[TraceRow], number: int, form: str) -> str:
    """Return the state of the request at a row."""
    index = snapshot_at(rows, number)
    return "no snapshot yet" if index is None else render(rows[index].state, form)


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


def readable(body: Any) -> Any:
    """Return a base64 body as a JSON value if it parses, else as text, else unchanged."""
    if not isinstance(body, str):
        return body
    try:
        text = base64.b64decode(body, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return body
    try:
        return json.loads(text)
    except ValueError:
        return text


def cut(text: str) -> str:
    """Return the text on one line, shortened to the width of a summary."""
    line = " ".join(text.split())
    return line if len(line) <= SUMMARY_CHARS else line[: SUMMARY_CHARS - 3] + "..."


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
