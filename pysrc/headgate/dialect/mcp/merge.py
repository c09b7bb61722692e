"""Merges the results of several servers into one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headgate.dialect.mcp.modern import SERVER_INFO
from headgate.dialect.mcp.versions import LEGACY
from headgate_engine.peek.items import Item

PREAMBLE: Final = "This server represents several others. Their own instructions follow."
# Capabilities that a backend with several servers always announces, because servers and access rules may change. Their
# lists may be empty.
LISTS: Final = ("tools", "prompts", "resources")
PLAIN: Final = ("logging", "completions")


def initialize(
    results: Mapping[str, Mapping[str, Any]], wanted: str | None, info: Mapping[str, Any]
) -> dict[str, Any]:
    """Return one `initialize` result from the results of the targets, by name and in their order.

    The version is the lowest of all versions. A capability is present if at least one target has it.
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
    """Return one `server/discover` result from the results of the targets, by name and in their order."""
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
    """Return the instructions of all targets, each under its name, None if there are none."""
    said = [(name, result.get("instructions")) for name, result in results.items()]
    parts = [f"[{name}]\n{text}" for name, text in said if isinstance(text, str) and text]
    return "\n\n".join((PREAMBLE, *parts)) if parts else None


def capabilities(given: list[Any]) -> dict[str, Any]:
    """Return the capabilities that at least one target has, and those of LISTS in any case."""
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
    """Return the union of settings. A setting on which targets differ is empty."""
    found: dict[str, Any] = {}
    for one in given:
        for key, value in one.items():
            found[key] = value if found.get(key, value) == value else {}
    return found


def owners(lists: Mapping[str, list[Item]]) -> dict[str, str | None]:
    """Return the target of each item by the item's name. A name that several targets have maps to None."""
    found: dict[str, str | None] = {}
    for target, items in lists.items():
        for item in items:
            if item.name is not None and found.setdefault(item.name, target) != target:
                found[item.name] = None
    return found
