"""Rules of the engine that can be read off its sources."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

ENGINE = Path(__file__).resolve().parents[2] / "engine" / "headgate_engine"


def lines_with(pattern: str) -> list[str]:
    return [
        f"{path.relative_to(ENGINE)}: {line.strip()}"
        for path in sorted(ENGINE.rglob("*.p[yx][xd]"))
        for line in path.read_text().splitlines()
        if re.search(pattern, line)
    ]


def test_tasks_have_one_owner() -> None:
    assert lines_with(r"create_task|ensure_future") == [], (
        "tasks are started by Worker.spawn, which owns their failures"
    )


def test_nothing_is_used_again_because_few_refer_to_it() -> None:
    assert lines_with(r"ob_refcnt|getrefcount") == [], "only the memory of objects that are gone is used again"


# Those that are told of events, and may let go of themselves while they are: who tells them has them in a local variable, which
# holds a reference. A field does not, for the length of a call (engine/README.md, "Who holds references").
TOLD = {"RequestSink", "ResponseSink", "Takeover", "StreamTunnel"}
# Fields that keep what they have while their owner lives, or whose calls need no more than that.
KEPT = {
    ("link/client.pyx", "call"): "an answer keeps its call; who reads it has it in hand",
    ("link/handler.pyx", "exchange"): "a handler's call keeps its request",
    ("link/exchange.pyx", "attempt"): "notes what an endpoint answered, and tells nobody",
}

_CLASS = re.compile(r"cdef class (\w+)(?:\((\w+)\))?")
_FIELD = re.compile(r"\s+cdef (?:readonly |public )?(\w+) (\w+(?:, \w+)*)\s*(?:#.*)?$")
_METHOD = re.compile(r"\s+cdef (?:inline )?\w[\w\[\]* ]* \*?(\w+)\((?!.*\bnoexcept\b)")
_CALL = re.compile(r"\.(\w+)\)?\.(\w+)\(")


@dataclass
class DeclaredClass:
    """What a cdef class says in its .pxd."""

    parent: str
    fields: dict[str, str] = field(default_factory=dict)     # name -> type
    methods: set[str] = field(default_factory=set)           # those that may raise, and so may do anything


def declared_classes() -> dict[str, DeclaredClass]:
    found: dict[str, DeclaredClass] = {}
    for path in sorted(ENGINE.rglob("*.pxd")):
        current = DeclaredClass("")
        for line in path.read_text().splitlines():
            if opened := _CLASS.match(line):
                current = found[opened[1]] = DeclaredClass(opened[2] or "")
            elif one := _FIELD.match(line):
                current.fields.update(dict.fromkeys(one[2].split(", "), one[1]))
            elif method := _METHOD.match(line):
                current.methods.add(method[1])
    return found


def lineage(classes: dict[str, DeclaredClass], name: str) -> list[str]:
    """Return a class and those it comes of."""
    found = []
    while name in classes:
        found.append(name)
        name = classes[name].parent
    return found


def borrowed_calls() -> list[tuple[str, str, str]]:
    """Return file, field and line of each call of someone who is told, through a field that may let go of him meanwhile."""
    classes = declared_classes()
    told = {name for name in classes if TOLD.intersection(lineage(classes, name))}
    calls: dict[str, set[str]] = {}
    for one in classes.values():
        for name, kind in one.fields.items():
            if kind in told:
                calls.setdefault(name, set()).update(*(classes[base].methods for base in lineage(classes, kind)))
    return [
        (str(path.relative_to(ENGINE)), called[1], line.strip())
        for folder in ("link", "llm", "mcp", "a2a")
        for path in sorted((ENGINE / folder).rglob("*.pyx"))
        for line in path.read_text().splitlines()
        for called in _CALL.finditer(line.partition("#")[0])
        if called[2] in calls.get(called[1], ())
    ]


def test_who_is_told_is_held_for_the_call() -> None:
    found = borrowed_calls()
    assert [call for call in found if call[:2] not in KEPT] == [], "take the field into a local variable first"
    assert KEPT.keys() - {call[:2] for call in found} == set(), "these say why nothing needs to be held where nothing is called"
