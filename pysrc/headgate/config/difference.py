"""Compares the dumps (config/dump.py) of two configurations, without run-time state."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

Json = dict[str, Any]

# Not of the configuration: counters, versions, states of endpoints.
TOP: Final = frozenset(("workers", "version"))
IGNORED: Final = frozenset(("generation", "digest", "created", "info"))
# Endpoints of one priority, by whether they are in use just now.
SIDES: Final = {"active", "rejected"}
MAX_TEXT: Final = 100
HIDDEN: Final = "~ a secret, or another value that the dump does not show"


def differences(old: Json, new: Json, same: Callable[[], bool] = lambda: False) -> list[str]:
    """Return a line for each difference: `+ path value`, `- path value`, `~ path: old -> new`, in the dump's order.

    Entries of lists are identified by their key or name. Secrets are redacted: the result says only that one has
    changed, where dumps are equal, digests are not, and `same` denies that configurations are the same.
    """
    left = {key: _settled(value) for key, value in old.items() if key not in TOP}
    right = {key: _settled(value) for key, value in new.items() if key not in TOP}
    found = list(_maps("", left, right))
    if not found and _digest(old) != _digest(new) and not same():
        return [HIDDEN]
    return found


def _settled(value: Any) -> Any:
    """Return the configured part of a dump: endpoints without their state, ejected or not."""
    if isinstance(value, list):
        return [_settled(one) for one in value]
    if not isinstance(value, dict):
        return value
    if set(value) == SIDES:
        members = value["active"] | value["rejected"]
        return {key: _settled(members[key]) for key in sorted(members)}
    return {key: _settled(one) for key, one in value.items() if key not in IGNORED}


def _digest(document: Json) -> Any:
    config = document.get("config")
    return config.get("digest") if isinstance(config, dict) else None


def _maps(path: str, old: Json, new: Json) -> Iterator[str]:
    for key in [*old, *(key for key in new if key not in old)]:
        where = f"{path}.{key}" if path else key
        if key not in new:
            yield f"- {where} {_text(old[key])}"
        elif key not in old:
            yield f"+ {where} {_text(new[key])}"
        else:
            yield from _values(where, old[key], new[key])


def _values(path: str, old: Any, new: Any) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        yield from _maps(path, old, new)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _lists(path, old, new)
    elif old != new or type(old) is not type(new):
        yield f"~ {path}: {_text(old)} -> {_text(new)}"


def _lists(path: str, old: list[Any], new: list[Any]) -> Iterator[str]:
    left, right = _known(old), _known(new)
    if left is None or right is None:
        if len(old) == len(new) and all(isinstance(one, dict) for one in (*old, *new)):
            for index, (one, other) in enumerate(zip(old, new, strict=True)):
                yield from _values(f"{path}[{index}]", one, other)
        elif old != new:
            yield f"~ {path}: {_text(old)} -> {_text(new)}"
        return
    for name in [*left, *(name for name in right if name not in left)]:
        where = f"{path}[{name}]"
        if name not in right:
            yield f"- {where}"
        elif name not in left:
            yield f"+ {where}"
        else:
            yield from _values(where, left[name], right[name])


def _known(entries: list[Any]) -> dict[str, Any] | None:
    """The entries by their identifying field, None if there is none."""
    found: dict[str, Any] = {}
    for entry in entries:
        name = _name(entry)
        if name is None or name in found:
            return None
        found[name] = entry
    return found


def _name(entry: Any) -> str | None:
    if not isinstance(entry, dict):
        return None
    for key in ("key", "name", "hostname", "uid"):
        if isinstance(entry.get(key), str):
            return str(entry[key])
    backend = entry.get("backend")
    if isinstance(backend, dict):
        for kind, one in backend.items():
            if isinstance(one, dict) and isinstance(one.get("name"), str):
                return f"{kind} {one.get('namespace', '')}/{one['name']}"
    return None


def _text(value: Any) -> str:
    text = json.dumps(value, separators=(", ", ": "))
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}..."
