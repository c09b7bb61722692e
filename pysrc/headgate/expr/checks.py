"""Static type checks of expressions when a configuration is loaded."""

from __future__ import annotations

from typing import Final

from lark import Token, Tree

from headgate.expr.scope import Typed
from headgate.expr.variables import DYN
from headgate_engine.expr.functions import pattern as compiled_pattern
from headgate_engine.expr.nodes import Const
from headgate_engine.expr.values import EvaluationError

# Type names of runtime values, mapped to the kinds used here.
KINDS: Final = {
    "bool": "bool", "int": "int", "uint": "uint", "double": "double", "string": "string", "bytes": "bytes",
    "list": "list", "map": "map", "type": "type", "optional_type": "optional_type",
    "google.protobuf.Duration": "duration", "google.protobuf.Timestamp": "timestamp",
}  # fmt: skip
NUMBERS: Final = frozenset(("int", "uint", "double"))
ORDERED: Final = frozenset((*NUMBERS, "bool", "string", "bytes", "duration", "timestamp"))
ADDED: Final = {
    ("int", "int"): "int", ("uint", "uint"): "uint", ("double", "double"): "double", ("string", "string"): "string",
    ("bytes", "bytes"): "bytes", ("list", "list"): "list", ("duration", "duration"): "duration",
    ("timestamp", "duration"): "timestamp", ("duration", "timestamp"): "timestamp",
}  # fmt: skip
SUBTRACTED: Final = {
    ("int", "int"): "int", ("uint", "uint"): "uint", ("double", "double"): "double",
    ("duration", "duration"): "duration", ("timestamp", "timestamp"): "duration",
    ("timestamp", "duration"): "timestamp",
}  # fmt: skip
MULTIPLIED: Final = {(kind, kind): kind for kind in NUMBERS}
DIVIDED: Final = {("int", "int"): "int", ("uint", "uint"): "uint"}
OVERLOADS: Final = {"+": ADDED, "-": SUBTRACTED, "*": MULTIPLIED, "/": MULTIPLIED, "%": DIVIDED}
# Result kinds of methods and functions. The kind of any other method or function is known only at evaluation.
TEXT_METHODS: Final = {
    "startsWith": "bool", "endsWith": "bool", "matches": "bool", "lowerAscii": "string", "upperAscii": "string",
    "trim": "string", "charAt": "string", "substring": "string", "replace": "string", "stripPrefix": "string",
    "stripSuffix": "string", "regexReplace": "string", "indexOf": "int", "lastIndexOf": "int",
}  # fmt: skip
RESULTS: Final = {
    "size": "int", "contains": "bool", "int": "int", "uint": "uint", "double": "double", "string": "string",
    "bytes": "bytes", "bool": "bool", "duration": "duration", "timestamp": "timestamp", "type": "type",
    "toJson": "string", "to_json": "string", "random": "double", "uuid": "string", "base64.encode": "string",
    "base64.decode": "bytes", "url.encode": "string", "url.decode": "string", "form.encode": "string",
    "sha1.encode": "string", "sha256.encode": "string", "md5.encode": "string", "isIP": "bool",
    "flatten": "map", "flattenRecursive": "map", "flatten_recursive": "map",
    "optional.of": "optional_type", "optional.none": "optional_type", "hasValue": "bool",
}  # fmt: skip
SIZED: Final = frozenset(("string", "bytes", "list", "map", "headers"))


class ExpressionFault(ValueError):
    """An error in a part of an expression. The text starts with the line and column of the part."""

    def __init__(self, tree: Tree[Token], message: str) -> None:
        meta = tree.meta
        at = "1:1" if meta.empty else f"{meta.line}:{meta.column}"
        super().__init__(f"{at}: {message}")
        self.message = message


class UnknownFunction(ExpressionFault):
    """There is no function or method of that name."""


def _overload(tree: Tree[Token], name: str, *kinds: str) -> ExpressionFault:
    return ExpressionFault(tree, f"no such overload: {name} of {', '.join(kinds)}")


def want(tree: Tree[Token], part: Typed, kind: str, name: str) -> None:
    """Raise Fault if the type of a part is known and is not `kind`."""
    if part.kind not in (kind, DYN):
        raise _overload(tree, name, part.kind)


def comparable(tree: Tree[Token], left: Typed, right: Typed) -> None:
    """Raise Fault for `==` of types that are never equal."""
    kinds = {left.kind, right.kind}
    if DYN in kinds or len(kinds) == 1 or kinds <= NUMBERS or "null" in kinds:
        return
    raise _overload(tree, "_==_", left.kind, right.kind)


def ordered(tree: Tree[Token], left: Typed, right: Typed, sign: str) -> None:
    """Raise Fault for `<`, `<=`, `>` or `>=` of types that have no common order."""
    if DYN in (left.kind, right.kind):
        unordered = {left.kind, right.kind} - {DYN} - ORDERED
        if unordered:
            raise _overload(tree, f"_{sign}_", left.kind, right.kind)
        return
    if left.kind not in ORDERED or (left.kind != right.kind and not {left.kind, right.kind} <= NUMBERS):
        raise _overload(tree, f"_{sign}_", left.kind, right.kind)


def arithmetic(tree: Tree[Token], left: Typed, right: Typed, sign: str) -> str:
    """Return the result type of an arithmetic operation. Raises Fault if there is no overload for the operands."""
    table = OVERLOADS[sign]
    found = table.get((left.kind, right.kind))
    if found is not None:
        return found
    if DYN not in (left.kind, right.kind):
        raise _overload(tree, f"_{sign}_", left.kind, right.kind)
    known = left.kind if right.kind == DYN else right.kind
    if known != DYN and not any(known in kinds for kinds in table):
        raise _overload(tree, f"_{sign}_", left.kind, right.kind)
    return DYN


def negatable(tree: Tree[Token], part: Typed) -> None:
    """Raise Fault for the unary minus of a type that has none."""
    if part.kind not in ("int", "double", "duration", DYN):
        raise _overload(tree, "-_", part.kind)


def selectable(tree: Tree[Token], holder: Typed, name: str) -> None:
    """Raise ExpressionFault for the selection of a field from a type without fields."""
    if holder.kind not in (DYN, "map", "headers", "optional_type", "null"):
        raise ExpressionFault(tree, f"a {holder.kind} has no field {name!r}")


def count(tree: Tree[Token], name: str, given: int, least: int, most: int) -> None:
    """Raise ExpressionFault for a call with the wrong number of arguments."""
    if not least <= given <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        raise ExpressionFault(tree, f"{name}() takes {wanted} arguments, not {given}")


def method(tree: Tree[Token], name: str, holder: Typed, parts: list[Typed]) -> str:
    """Return the result type of a method. Raises Fault if the receiver or an argument has a wrong type."""
    if name in TEXT_METHODS:
        want(tree, holder, "string", f"{name}()")
        if name in ("startsWith", "endsWith", "matches"):
            want(tree, parts[0], "string", f"{name}()")
        return TEXT_METHODS[name]
    if name == "size" and holder.kind != DYN and holder.kind not in SIZED:
        raise _overload(tree, "size()", holder.kind)
    if name in ("raw", "redacted"):
        return "headers"
    return RESULTS.get(name, DYN)


def function(tree: Tree[Token], name: str, parts: list[Typed]) -> str:
    """Return the result type of a function. Raises Fault if an argument has a wrong type."""
    if name == "size" and parts[0].kind != DYN and parts[0].kind not in SIZED:
        raise _overload(tree, "size()", parts[0].kind)
    if name == "matches":
        return "bool"
    return RESULTS.get(name, DYN)


def pattern(tree: Tree[Token], part: Typed) -> None:
    """Compile a constant regular expression. Raises ExpressionFault if it is malformed."""
    if isinstance(part.node, Const) and isinstance(part.node.value, str):
        try:
            compiled_pattern(part.node.value)
        except EvaluationError as error:
            raise ExpressionFault(tree, str(error)) from None
