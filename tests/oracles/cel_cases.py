"""The official conformance cases of expressions as Python values.

Left out, as out of scope: protobuf messages and enums (requests have none), cases that only check types, and the macros
`cel.block`, `cel.index`, `cel.iterVar` and `cel.accuVar`, which exist for tests of optimizers alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from textproto import every, get, parse

from headgate_engine.expr.values import NONE, Duration, OptionalValue, Timestamp, TypeValue, Uint

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "conformance" / "cel"
FAILS = object()
# Files whose cases are all about messages.
MESSAGES = {"proto2", "proto3", "proto2_ext", "enums", "wrappers"}


class Case(NamedTuple):
    """`wanted`: the value, or FAILS."""

    name: str
    text: str
    bindings: dict[str, Any]
    wanted: Any
    container: str


class OutOfScope(Exception):
    """The case needs something that requests do not have; the text says what."""


def value_of(message: list[tuple[str, Any]]) -> Any:
    kind, found = message[0]
    if kind == "int64_value":
        return int(found, 0)
    if kind == "uint64_value":
        return Uint(int(found, 0))
    if kind == "double_value":
        return float(found)
    if kind == "string_value":
        return found.decode()
    if kind == "bytes_value":
        return found
    if kind == "bool_value":
        return found == "true"
    if kind == "null_value":
        return None
    if kind == "list_value":
        return [value_of(one) for one in every(found, "values")]
    if kind == "map_value":
        return {value_of(get(one, "key")): value_of(get(one, "value")) for one in every(found, "entries")}
    if kind == "type_value":
        return TypeValue(found.decode())
    if kind == "object_value" and len(found) == 1:
        name, inner = found[0]
        if name in DATES:
            ns = int(get(inner, "seconds", "0")) * 10**9 + int(get(inner, "nanos", "0"))
            return DATES[name](ns)
    raise OutOfScope("protobuf message")


DATES = {
    "[type.googleapis.com/google.protobuf.Duration]": Duration,
    "[type.googleapis.com/google.protobuf.Timestamp]": Timestamp,
}


def case_of(file: str, section: str, message: list[tuple[str, Any]]) -> Case:
    text = get(message, "expr").decode()
    container = get(message, "container", b"").decode()
    everything = repr(message)
    if file in MESSAGES or "conformance.proto" in everything or "TestAllTypes" in everything:
        raise OutOfScope("protobuf message")
    if "google.protobuf." in text and "{" in text:
        raise OutOfScope("protobuf message")
    if get(message, "check_only") == "true":
        raise OutOfScope("type check only")
    if "cel.block" in text:
        raise OutOfScope("macros of optimizer tests")
    bindings = {}
    for one in every(message, "bindings"):
        inner = get(get(one, "value"), "value")
        if inner is None:
            raise OutOfScope("unknown values")
        bindings[get(one, "key").decode()] = value_of(inner)
    wanted: Any = True
    if get(message, "eval_error") is not None or get(message, "any_eval_errors") is not None:
        wanted = FAILS
    elif get(message, "value") is not None:
        wanted = value_of(get(message, "value"))
    elif get(message, "typed_result") is not None:
        found = get(get(message, "typed_result"), "result")
        if found is None:
            raise OutOfScope("type check only")
        wanted = value_of(found)
    return Case(f"{file}/{section}/{get(message, 'name').decode()}", text, bindings, wanted, container)


def cases() -> tuple[list[Case], dict[str, int]]:
    """All cases in scope, and how many are left out for which reason."""
    found, left_out = [], {}
    for path in sorted(FOLDER.glob("*.textproto")):
        for section in every(parse(path.read_text(encoding="utf-8")), "section"):
            for message in every(section, "test"):
                try:
                    found.append(case_of(path.stem, get(section, "name").decode(), message))
                except OutOfScope as error:
                    left_out[str(error)] = left_out.get(str(error), 0) + 1
    return found, left_out


def same(a: Any, b: Any) -> bool:
    """Equal in type and value; NaN is itself, and so is an optional."""
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b)
    if isinstance(a, OptionalValue):
        return isinstance(b, OptionalValue) and a.present == b.present and (not a.present or same(a.inner, b.inner))
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(one, other) for one, other in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return len(a) == len(b) and all(key in b and same(a[key], b[key]) for key in a)
    return type(a) is type(b) and a == b


__all__ = ["FAILS", "FOLDER", "NONE", "Case", "cases", "same"]
