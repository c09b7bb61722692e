"""`transformations` to the IR and back."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.policy.conditional import conditions
from headgate.config.policy.expression import check, check_map
from headgate.errors import Problem
from headgate.ir.policy.transformation import Transform, Transformation
from headgate_engine.steps.transform import TransformStep

MAPS: Final = ("metadata", "add", "set")
TEXTS: Final = ("replace", "body")


def parse(context: Context, record: Record) -> tuple[Transformation, ...]:
    """Return the entries: one without a condition, or those of the form with conditions."""
    return tuple(
        Transformation(
            request=_half(context, entry.get("request"), context.phase),
            response=_half(context, entry.get("response"), "response"),
            condition=condition,
        )
        for entry, condition in conditions(context, record)
    )


def _half(context: Context, record: Record | None, phase: str) -> Transform | None:
    if record is None:
        return None
    maps = {key: check_map(context, record, key, phase) for key in MAPS}
    texts = {key: record.get(key) for key in TEXTS}
    for key, text in texts.items():
        if text is not None:
            check(context, record, key, text, phase)
    removed = tuple(record.get("remove") or ())
    added, replaced = (tuple(name for name, _ in maps[key]) for key in ("add", "set"))
    if wrong := _wrong_names(phase, added, replaced, removed):
        context.fault(Problem.VALUE, record, "", wrong)
    return Transform(
        metadata=maps["metadata"],
        add=maps["add"],
        set=maps["set"],
        remove=removed,
        replace=texts["replace"],
        body=texts["body"],
    )


# Many routes change the same headers.
@lru_cache(maxsize=256)
def _wrong_names(phase: str, added: tuple[str, ...], replaced: tuple[str, ...], removed: tuple[str, ...]) -> str:
    """Return what is wrong with names of headers; empty if nothing is."""
    try:
        # Names alone: the expressions are compiled by each worker.
        TransformStep(
            phase == "response",
            added=[(name, None) for name in added],  # type: ignore[misc]
            replaced=[(name, None) for name in replaced],  # type: ignore[misc]
            removed=removed,
        )
    except UnicodeEncodeError as error:
        return f"{error.object!r} is not a header name"
    except ValueError as error:
        return str(error)
    return ""


def dump(entries: tuple[Transformation, ...]) -> dict[str, Any]:
    """Return the form of the configuration dump."""
    shown = []
    for entry in entries:
        found: dict[str, Any] = {} if entry.condition is None else {"condition": entry.condition}
        for name in ("request", "response"):
            half = getattr(entry, name)
            if half is not None:
                found[name] = _shown(half)
        shown.append(found)
    return shown[0] if len(shown) == 1 and "condition" not in shown[0] else {"conditional": shown}


def _shown(half: Transform) -> dict[str, Any]:
    found: dict[str, Any] = {key: dict(getattr(half, key)) for key in MAPS if getattr(half, key)}
    if half.remove:
        found["remove"] = list(half.remove)
    return found | {key: getattr(half, key) for key in TEXTS if getattr(half, key) is not None}
