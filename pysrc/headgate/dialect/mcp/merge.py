"""Results of several servers as one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headgate.dialect.mcp.modern import SERVER_INFO
from headgate.dialect.mcp.versions import LEGACY
from headgate_engine.peek.items import Item

PREAMBLE: Final = "This server speaks for several others; what each of them says about itself follows."
# What there always is where there are several servers, if only as an empty list: each of them may come, go or change,
# and so may the rules of who sees what.
LISTS: Final = ("tools", "prompts", "resources")
PLAIN: Final = ("logging", "completions")


def initialize(
    results: Mapping[str, Mapping[str, Any]], wanted: str | None, info: Mapping[str, Any]
) -> dict[str, Any]:
    """Return one `initialize` result for those of the targets, in their order.

    The version is the lowest of all; a capability is there when one target has it.
    """
    given = [result.get("protocolVersion") for result in results.values()]
    versions = [one for one in given if isinstance(one, str)]
    found: dict[str, Any] = {
        "protocolVersion": min([*versions, wanted] if wanted is not None else versions or LEGACY),
        "capabilities": capabilities([result.get("capabilities") for result in results.values()]),
        "serverInfo": dict(info),
    }
    text = instructions(results)
    if text is not None:
        found["instructions"] = text
    return found


def discover(
    results: Mapping[str, Mapping[str, Any]], revisions: list[str], info: Mapping[str, Any]
) -> dict[str, Any]:
    """Return one `server/discover` result for those of the targets, in their order."""
    found: dict[str, Any] = {
        "resultType": "complete",
        "supportedVersions": revisions,
        "capabilities": capabilities([result.get("capabilities") for result in results.values()]),
    }
    text = instructions(results)
    if text is not None:
        found["instructions"] = text
    return {**found, "ttlMs": 0, "cacheScope": "private", "_meta": {SERVER_INFO: dict(info)}}


def instructions(results: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return what the targets say of themselves, each under its name; None when none of them says anything."""
    said = [(name, result.get("instructions")) for name, result in results.items()]
    parts = [f"[{name}]\n{text}" for name, text in said if isinstance(text, str) and text]
    return "\n\n".join((PREAMBLE, *parts)) if parts else None


def capabilities(given: list[Any]) -> dict[str, Any]:
    """Return what at least one of the targets can do. Lists are there in any case, and may change."""
    known = [one for one in given if isinstance(one, dict)]
    found: dict[str, Any] = {name: {"listChanged": True} for name in LISTS}
    resources = [one["resources"] for one in known if isinstance(one.get("resources"), dict)]
    if any(one.get("subscribe") is True for one in resources):
        found["resources"]["subscribe"] = True
    for name in PLAIN:
        if any(isinstance(one.get(name), dict) for one in known):
            found[name] = {}
    for name in ("experimental", "extensions"):
        merged = _settings([one[name] for one in known if isinstance(one.get(name), dict)])
        if merged:
            found[name] = merged
    return found


def _settings(given: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the union; settings on which targets differ are left empty."""
    found: dict[str, Any] = {}
    for one in given:
        for key, value in one.items():
            found[key] = value if found.get(key, value) == value else {}
    return found


def owners(lists: Mapping[str, list[Item]]) -> dict[str, str | None]:
    """Return whose each name of an item is; None for one that several targets have, which belongs to nobody."""
    found: dict[str, str | None] = {}
    for target, items in lists.items():
        for item in items:
            if item.name is not None and found.setdefault(item.name, target) != target:
                found[item.name] = None
    return found
