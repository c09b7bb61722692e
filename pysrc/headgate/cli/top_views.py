"""The views of `gwctl top`, from what a gateway tells each time that it is asked."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import click

from headgate.cli import traffic_rows
from headgate.cli.admin_client import ask
from headgate.cli.proxy_config import ANSWER, parse
from headgate.cli.requests import asked, error_of, request_of
from headgate.cli.traffic import mcp_targets
from headgate.cli.traffic_rows import NONE, dollars, took

Json = dict[str, Any]
VIEWS: Final = ("routes", "models", "keys", "sessions", "errors")
HEADS: Final[dict[str, tuple[str, ...]]] = {
    "routes": ("ROUTE", "REQ/S", "REQUESTS", "4XX", "5XX", "P50", "P99", "MATCH"),
    "models": ("MODEL", "PROVIDER", "REQ/S", "REQUESTS", "INPUT", "OUTPUT", "TOK/S", "COST"),
    "keys": ("KEY", "TEAM", "STATE", "REQS TODAY", "TOKENS TODAY", "COST TODAY", "LIMITS"),
    "sessions": ("TARGET", "STATE", "SERVER", "SESSIONS", "CALLS/S", "CALLS", "ERRORS", "P50", "P95", "BACKEND"),
    "errors": ("TIME", "STATUS", "TOOK", "REQUEST", "ROUTE", "ERROR"),
}
LATEST_ERRORS: Final = 100


@dataclass
class TopLook:
    """What a gateway has told. `missing`: why a part is not there, by view."""

    state: Json = field(default_factory=dict)
    dump: Json = field(default_factory=dict)
    targets: list[Json] = field(default_factory=list)
    keys: list[Json] = field(default_factory=list)
    spent: dict[str, Json] = field(default_factory=dict)
    errors: list[Json] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)

    @property
    def time_s(self) -> float:
        """The time of the gateway in seconds."""
        return float(self.state.get("time") or 0) / 1000


def fetch(port: int, before: TopLook | None = None) -> TopLook:
    """Ask a gateway; raises ClickException. The configuration is read again only when it has changed."""
    found = TopLook(state=_document(port, "/api/state"))
    unchanged = before is not None and before.state.get("generation") == found.state.get("generation")
    found.dump = before.dump if unchanged and before is not None else _document(port, "/config_dump")
    if (found.state.get("targets") or {}).get("mcp"):
        with _noted(found, "sessions"):
            found.targets = mcp_targets(port)
    if "virtualKeys" in found.dump:
        with _noted(found, "keys"):
            found.keys = list(_document(port, "/api/keys").get("keys") or ())
            day = _document(port, f"/api/spend?by=key&from={_today(found)}")
            found.spent = {one["key"]: one for one in day.get("rows") or ()}
    else:
        found.missing["keys"] = "the configuration has no virtualKeys"
    if not found.state.get("requestLog"):
        found.missing["errors"] = "there is no request log (config.database): these are counts of routes"
        return found
    with _noted(found, "errors"):
        question = {"limit": LATEST_ERRORS, "filters": {"httpStatus": [0, "4xx", "5xx"]}, "includeAttributes": True}
        with asked(port, "/api/logs/search", question, 10.0) as answer:
            found.errors = json.load(answer)["logs"]
    return found


@contextlib.contextmanager
def _noted(found: TopLook, view: str) -> Any:
    try:
        yield
    except click.ClickException as error:
        found.missing[view] = error.format_message()


def _today(found: TopLook) -> str:
    return datetime.fromtimestamp(found.time_s, UTC).date().isoformat()


def _document(port: int, path: str) -> Json:
    answer = ask(port, "GET", path)
    if answer.status != 200:
        raise click.ClickException(f"{path.partition('?')[0]}: {answer.body.decode(errors='replace').strip()}")
    return parse(answer.body, ANSWER)


def rows(view: str, now: TopLook, before: TopLook | None = None) -> list[tuple[str, ...]]:
    """Return the rows of a view. Rates are those since `before`."""
    return _READERS[view](now, before)


def _rate(now: float, before: float | None, seconds: float) -> str:
    if before is None or seconds <= 0 or now < before:
        return NONE
    return f"{(now - before) / seconds:.1f}"


def _since(now: TopLook, before: TopLook | None) -> float:
    return 0.0 if before is None else now.time_s - before.time_s


def _counts(entries: Any, names: tuple[str, ...], value: Callable[[Json], float]) -> dict[tuple[str, ...], float]:
    found: dict[tuple[str, ...], float] = {}
    for one in entries:
        key = tuple(str(one.get(name, "")) for name in names)
        found[key] = found.get(key, 0.0) + value(one)
    return found


def _routes(now: TopLook, before: TopLook | None) -> list[tuple[str, ...]]:
    seconds = _since(now, before)
    old = _counts((before.state.get("routes") or ()) if before else (), ("name",), lambda one: one["requests"])
    found: list[tuple[str, ...]] = []
    for one in traffic_rows.routes(now.dump, now.state):
        past = None if before is None else old.get((one["route"],), 0.0)
        rate = _rate(one["requests"], past, seconds)
        errors = str(one["clientErrors"]), str(one["serverErrors"])
        match = ", ".join(one["match"]) or NONE
        found.append(
            (one["route"] or NONE, rate, str(one["requests"]), *errors, took(one["p50Ms"]), took(one["p99Ms"]), match)
        )
    return found


def _models(now: TopLook, before: TopLook | None) -> list[tuple[str, ...]]:
    seconds = _since(now, before)
    names = ("provider", "model")
    entries = (before.state.get("models") or ()) if before else ()
    asked_before = _counts(entries, names, lambda one: one["requests"])
    tokens_before = _counts(entries, names, lambda one: one["inputTokens"] + one["outputTokens"])
    found: list[tuple[str, ...]] = []
    for one in traffic_rows.models(now.dump, now.state):
        key = (one["provider"], one["model"])
        past, spent = (None, None) if before is None else (asked_before.get(key, 0.0), tokens_before.get(key, 0.0))
        tokens = one["inputTokens"] + one["outputTokens"]
        counts = map(str, (one["requests"], one["inputTokens"], one["outputTokens"]))
        rates = _rate(one["requests"], past, seconds), _rate(tokens, spent, seconds)
        found.append((one["model"], one["provider"] or NONE, rates[0], *counts, rates[1], dollars(one["costUsd"])))
    return found


def _keys(now: TopLook, _before: TopLook | None) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for one in now.keys:
        spent = now.spent.get(one["name"]) or {}
        tokens = int(spent.get("inputTokens") or 0) + int(spent.get("outputTokens") or 0)
        state = "revoked" if one.get("revoked") else "file" if one.get("owned") == "file" else "active"
        limits = ", ".join(
            f"{entry[unit]} {unit}/{entry['per']}"
            for entry in one.get("limits") or ()
            for unit in ("requests", "tokens", "dollars")
            if unit in entry
        )
        cost = dollars(float(spent["cost"])) if spent else NONE
        found.append(
            (
                one["name"],
                one.get("team") or NONE,
                state,
                str(spent.get("requests") or 0),
                str(tokens),
                cost,
                limits or NONE,
            )
        )
    return sorted(found, key=lambda row: (-int(row[3]), row[0]))


def _sessions(now: TopLook, before: TopLook | None) -> list[tuple[str, ...]]:
    seconds = _since(now, before)
    old = _counts(before.targets if before else (), ("backend", "target"), lambda one: one["calls"])
    found: list[tuple[str, ...]] = []
    for one in traffic_rows.mcp(now.state, now.targets):
        past = None if before is None else old.get((one["backend"], one["target"]), 0.0)
        counts = str(one["calls"]), str(one["errors"] + one["failures"])
        found.append(
            (
                one["target"], one["state"], traffic_rows.server_name(one), str(one["sessions"]),
                _rate(one["calls"], past, seconds), *counts, took(one["p50Ms"]), took(one["p95Ms"]), one["backend"],
            )
        )  # fmt: skip
    return found


def _errors(now: TopLook, _before: TopLook | None) -> list[tuple[str, ...]]:
    if "errors" in now.missing:
        failed = [one for one in traffic_rows.routes(now.dump, now.state) if one["clientErrors"] or one["serverErrors"]]
        return [
            (NONE, f"{one['clientErrors']}x 4xx, {one['serverErrors']}x 5xx", NONE, NONE, one["route"], NONE)
            for one in sorted(failed, key=lambda row: (-row["serverErrors"], -row["clientErrors"]))
        ]
    return [_error(one) for one in now.errors]


def _error(one: Mapping[str, Any]) -> tuple[str, ...]:
    own = one.get("attributes") or {}
    when = datetime.fromisoformat(one["completedAt"]).astimezone().strftime("%H:%M:%S")
    return (
        when, str(one["httpStatus"] or "none"), took(one["durationMs"]), request_of(own),
        str(own.get("route", NONE)), error_of(one) or NONE,
    )  # fmt: skip


_READERS: Final[dict[str, Callable[[TopLook, TopLook | None], list[tuple[str, ...]]]]] = {
    "routes": _routes, "models": _models, "keys": _keys, "sessions": _sessions, "errors": _errors,
}  # fmt: skip


def headline(now: TopLook, before: TopLook | None = None) -> str:
    """Return what holds for the whole gateway, as a line."""
    whole = now.state.get("all") or {}
    past = None if before is None else float((before.state.get("all") or {}).get("requests") or 0)
    rate = _rate(float(whole.get("requests") or 0), past, _since(now, before))
    workers = now.state.get("workers") or ()
    connections = sum(int(one.get("connections") or 0) for one in workers)
    stale = () if now.state.get("synchronized", True) else ("the newest configuration could not be loaded",)
    # A narrow terminal cuts the end.
    parts = (
        *stale, *(() if before is None else (f"{rate} req/s",)), _counted(int(whole.get("requests") or 0), "request"),
        _counted(connections, "connection"), _counted(len(workers), "worker"),
        f"configuration {now.state.get('generation', '')}", f"headgate {now.state.get('version', '')}",
    )  # fmt: skip
    return "  ".join(parts)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" + ("" if count == 1 else "s")
