"""`virtualKeys` to the IR and back. A key that says nothing of a matter has what its team says of it."""

from __future__ import annotations

import json
import re
from typing import Any, Final
from urllib.parse import urlsplit

from headgate.config.check import Record, near
from headgate.config.context import Context
from headgate.config.policy.identity import HASH, checked_models
from headgate.document.fields import show_milliseconds
from headgate.document.lazy_dataclass import replace
from headgate.document.secret import REDACTED, Secret
from headgate.errors import Problem
from headgate.ir.backend import RouteBackend
from headgate.ir.mcp import McpBackend
from headgate.ir.policy.authorization import Authorization
from headgate.ir.process import ProcessSettings
from headgate.ir.virtual_keys import (
    ASSUMED_IMAGE,
    ASSUMED_INPUT,
    ASSUMED_OUTPUT,
    AlertHook,
    KeyRecord,
    KeyTeam,
    LeaseFailure,
    LeaseStore,
    UsageLimit,
    VirtualKeys,
)

UNITS: Final = ("requests", "tokens", "dollars")
# The sections of the file by the routes that stand for them.
SECTIONS: Final = {"llm": ("internal", "llm:request"), "mcp": ("internal", "default")}
MAX_NAME: Final = 128
ALERT_TIMEOUT_MS: Final = 5000
# What a URL is written in (RFC 3986): no spaces, no control characters.
PLAIN: Final = re.compile(r"[!-~]+")
NO_STORE: Final = (
    "a limit by day or month has to survive a restart, and there is no config.database to keep what was used"
)


def parse(context: Context, record: Record, settings: ProcessSettings) -> VirtualKeys:
    """Return the keys and teams. `settings` have the stores that there are."""
    reader = _Reader(context, settings.request_log is not None)
    leases, failure = _leases(record, settings)
    teams: dict[str, KeyTeam] = {}
    for entry in record.records("teams"):
        team = reader.team(entry)
        if team.name in teams:
            context.fault(Problem.CONFLICT, entry, "name", f"team {team.name!r} is defined twice")
        teams[team.name] = team
    keys: dict[str, KeyRecord] = {}
    digests: set[bytes] = set()
    for entry in record.records("keys"):
        key = reader.key(entry, teams)
        if key is None:
            continue
        if key.name in keys:
            context.fault(Problem.CONFLICT, entry, "name", f"key {key.name!r} is defined twice")
        if key.digest in digests:
            context.fault(Problem.CONFLICT, entry, "keyHash", "another key has this hash")
        digests.add(key.digest)
        keys[key.name] = key
    return VirtualKeys(
        keys=tuple(keys.values()), teams=tuple(teams.values()),
        assumed_output=record.get("assumedOutputTokens") or ASSUMED_OUTPUT,
        assumed_image=record.get("assumedImageTokens") or ASSUMED_IMAGE,
        assumed_input=record.get("assumedInputTokens") or ASSUMED_INPUT, leases=leases, failure=failure,
        alerts=_alerts(context, record), stops=record.get("stopStreams", False),
        journal=_journal(context, record, settings),
    )  # fmt: skip


def _alerts(context: Context, record: Record) -> AlertHook | None:
    """Return the receiver of warnings about limits."""
    entry = record.get("alerts")
    if entry is None:
        return None
    url, secret = entry["url"], entry.get("secret")
    assert isinstance(url, Secret)
    try:
        parts = urlsplit(url.reveal())
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    usable = parts.scheme in ("http", "https") and "@" not in parts.netloc and PLAIN.fullmatch(url.reveal())
    if not parts.hostname or not usable:
        context.fault(Problem.VALUE, entry, "url", "not http://host/path or https://host/path, without a login")
        return None
    if secret is not None and not secret.reveal():
        context.fault(Problem.VALUE, entry, "secret", "the secret is empty")
    if entry.get("timeout") == 0:
        context.fault(Problem.VALUE, entry, "timeout", "the time must be longer than 0")
    # What is behind the host is a credential at many receivers.
    place = parts.hostname if port is None else f"{parts.hostname}:{port}"
    return AlertHook(url=url, place=place, secret=secret, timeout_ms=entry.get("timeout") or ALERT_TIMEOUT_MS)


def _journal(context: Context, record: Record, settings: ProcessSettings) -> str | None:
    """Return the folder of what was spent last; a relative one starts at the file's folder."""
    folder: str | None = record.get("journalFolder")
    if folder is None:
        return None
    if not folder or "\0" in folder:
        context.fault(Problem.VALUE, record, "journalFolder", "not the path of a folder")
        return None
    if settings.request_log is None:
        context.fault(Problem.MISSING, record, "journalFolder", "without config.database nothing is kept")
    return str((context.folder / folder).absolute())


def _leases(record: Record, settings: ProcessSettings) -> tuple[LeaseStore | None, LeaseFailure]:
    """Return the store that gateways share, and what holds without it. One in memory is faster than a database."""
    said: LeaseFailure | None = record.get("failureMode")
    if settings.shared_state is not None:
        return "redis", said or settings.shared_state.failure
    database = settings.request_log is not None and settings.request_log.url is not None
    return ("postgres" if database else None), said or "local"


# What `allowedTools` means: tools by name, `target/tool`, and `target/*`. A client without such a key may use all.
TOOL_RULE: Final = (
    "!has(apiKey.allowedTools) || !has(mcp.tool) || apiKey.allowedTools.exists(one, one == mcp.tool.name"
    " || one == mcp.tool.target + '/' + mcp.tool.name || one == mcp.tool.target + '/*')"
)


def with_tool_rule(context: Context, entry: RouteBackend) -> RouteBackend:
    """Return a backend of a route, if it is one of MCP with the rule for the tools of virtual keys."""
    backend = entry.backend
    if not isinstance(backend, McpBackend):
        return entry
    context.notes.expressions[TOOL_RULE, "mcp"] = None
    rules = backend.rules or Authorization(allow=(), deny=(), require=())
    return replace(entry, backend=replace(backend, rules=replace(rules, require=(*rules.require, TOOL_RULE))))


class _Reader:
    def __init__(self, context: Context, stores: bool) -> None:
        self._context = context
        self._stores = stores

    def _name(self, record: Record) -> str:
        name: str = record["name"]
        if not name or len(name) > MAX_NAME or not name.isprintable():
            self._context.fault(Problem.VALUE, record, "name", f"a name has 1 to {MAX_NAME} printable characters")
        return name

    def team(self, record: Record) -> KeyTeam:
        models, tools, routes = self._allowed(record)
        return KeyTeam(
            name=self._name(record), limits=self._limits(record, "limits"),
            key_limits=self._limits(record, "keyLimits"), models=models, tools=tools, routes=routes,
        )  # fmt: skip

    def key(self, record: Record, teams: dict[str, KeyTeam]) -> KeyRecord | None:
        name, team_name = self._name(record), record.get("team")
        team = None if team_name is None else teams.get(team_name)
        if team_name is not None and team is None:
            fault = f"there is no team {team_name!r}{near(team_name, teams)}"
            self._context.fault(Problem.VALUE, record, "team", fault)
        found = HASH.fullmatch(record["keyHash"].reveal())
        if found is None:
            self._context.fault(Problem.VALUE, record, "keyHash", "not sha256: and 64 hexadecimal digits")
            return None
        given = record.get("metadata")
        if given is not None and not isinstance(given, dict):
            self._context.fault(Problem.TYPE, record, "metadata", "expected a map")
            given = None
        models, tools, routes = self._allowed(record)
        limits = self._limits(record, "limits")
        if team is not None:
            models = team.models if models is None else models
            tools = team.tools if tools is None else tools
            routes = team.routes if routes is None else routes
            limits = team.key_limits if record.get("limits") is None else limits
        seen: dict[str, Any] = {**(given or {}), "name": name}
        seen |= {key: record[key] for key in ("owner", "team") if record.get(key) is not None}
        seen |= {"tags": dict(record["tags"])} if record.get("tags") else {}
        seen |= {} if tools is None else {"allowedTools": list(tools)}
        return KeyRecord(
            name=name, digest=bytes.fromhex(found[1]), metadata=json.dumps(seen, sort_keys=True), team=team_name or "",
            models=models, tools=tools, routes=routes, expires_s=record.get("expires"),
            revoked=record.get("revoked", False), limits=limits,
        )  # fmt: skip

    def _limits(self, record: Record, key: str) -> tuple[UsageLimit, ...]:
        found: dict[tuple[str, str], UsageLimit] = {}
        for entry in record.records(key) if record.get(key) is not None else ():
            unit: Any = next(unit for unit in UNITS if unit in entry)
            window: Any = entry["per"]
            if (unit, window) in found:
                self._context.fault(Problem.CONFLICT, entry, unit, f"there are two limits of {unit} per {window}")
            if window != "minute" and not self._stores:
                self._context.fault(Problem.MISSING, entry, "per", NO_STORE)
            found[unit, window] = UsageLimit(
                unit=unit, window=window, most=entry[unit], warn_percent=entry.get("warnAtPercent")
            )
        return tuple(found.values())

    def _allowed(
        self, record: Record
    ) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None, tuple[tuple[str, str], ...] | None]:
        models = checked_models(self._context, record)
        tools, routes = record.get("allowedTools"), record.get("allowedRoutes")
        return models, None if tools is None else tuple(tools), None if routes is None else tuple(map(_route, routes))


def _route(text: str) -> tuple[str, str]:
    """Return namespace and name of a route as it is written: a section, `name`, or `namespace/name`."""
    if text in SECTIONS:
        return SECTIONS[text]
    namespace, slash, name = text.rpartition("/")
    return (namespace if slash else "default"), name


def _shown_route(place: tuple[str, str]) -> str:
    section = next((name for name, one in SECTIONS.items() if one == place), None)
    return section or (place[1] if place[0] == "default" else "/".join(place))


def shown_limits(limits: tuple[UsageLimit, ...]) -> list[dict[str, Any]]:
    """Return limits in the form of the file; amounts of dollars as decimal texts, which are exact."""
    found = []
    for one in limits:
        most: Any = dollars_text(one.most) if one.unit == "dollars" else one.most
        entry: dict[str, Any] = {one.unit: most, "per": one.window}
        found.append(entry if one.warn_percent is None else entry | {"warnAtPercent": one.warn_percent})
    return found


def dollars_text(picos: int) -> str:
    """Return picodollars as a decimal text of dollars, without zeros at the end."""
    whole, rest = divmod(picos, 10**12)
    return f"{whole}.{rest:012d}".rstrip("0").rstrip(".")


def _dump_allowed(one: KeyRecord | KeyTeam) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if one.models is not None:
        found["allowedModels"] = list(one.models)
    if one.tools is not None:
        found["allowedTools"] = list(one.tools)
    if one.routes is not None:
        found["allowedRoutes"] = [_shown_route(place) for place in one.routes]
    return found


def _dump_alerts(hook: AlertHook | None) -> dict[str, Any]:
    if hook is None:
        return {}
    secret = {} if hook.secret is None else {"secret": REDACTED}
    return {"alerts": {"url": REDACTED, "timeout": show_milliseconds(hook.timeout_ms), **secret}}


def dump(keys: VirtualKeys) -> dict[str, Any]:
    """Return the form of the configuration dump: each key with what it has from its team."""
    return {
        "assumedOutputTokens": keys.assumed_output,
        "assumedImageTokens": keys.assumed_image,
        "assumedInputTokens": keys.assumed_input,
        "failureMode": keys.failure,
        "stopStreams": keys.stops,
        **({} if keys.journal is None else {"journalFolder": keys.journal}),
        **_dump_alerts(keys.alerts),
        "teams": [
            {"name": one.name, "limits": shown_limits(one.limits), "keyLimits": shown_limits(one.key_limits)}
            | _dump_allowed(one)
            for one in keys.teams
        ],
        "keys": [
            {"keyHash": REDACTED, "revoked": one.revoked, "limits": shown_limits(one.limits)}
            | json.loads(one.metadata)
            | ({} if one.expires_s is None else {"expires": one.expires_s})
            | _dump_allowed(one)
            for one in keys.keys
        ],
    }
