"""Compiles macros, whose arguments are not evaluated before the call, and calls of custom functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from lark import Token, Tree

from headgate.expr import checks
from headgate.expr.checks import ExpressionFault
from headgate.expr.functions import QUANTIFIERS
from headgate.expr.scope import NameScope, Typed
from headgate.expr.variables import DYN, VARIABLES
from headgate_engine.expr.comprehensions import Comprehension, CustomCall, HoistScope, OptionalMap, With
from headgate_engine.expr.nodes import Coalesce, Default, OptionalOr
from headgate_engine.expr.views import Gathered

if TYPE_CHECKING:
    from headgate.expr.compile import ExpressionCompiler

Part = Tree[Token]
RESULT_KINDS: Final = {"all": "bool", "exists": "bool", "existsOne": "bool", "filter": "list", "map": "list"}


def known_names() -> tuple[str, ...]:
    """Return the names of the variables."""
    return tuple(VARIABLES)


def _name(tree: Part, argument: Part) -> str:
    """Return the identifier that an argument consists of. Raises Fault if the argument is anything else."""
    while len(argument.children) == 1 and isinstance(argument.children[0], Tree):
        argument = argument.children[0]
    if argument.data != "ident":
        raise ExpressionFault(tree, "a macro binds a simple name")
    return str(argument.children[0])


class _Bound:
    """Context manager that binds names inside a macro. Names that they shadow are restored at the end."""

    def __init__(self, scope: NameScope, *names: str) -> None:
        self.scope = scope
        self.names = names
        self.slots: list[int] = []
        self.hidden: dict[str, Typed] = {}

    def __enter__(self) -> list[int]:
        self.hidden = dict(self.scope.locals)
        for name in self.names:
            slot, part = self.scope.bind()
            self.slots.append(slot)
            self.scope.locals[name] = part
        return self.slots

    def __exit__(self, *_: object) -> None:
        self.scope.locals = self.hidden


def method(compiler: ExpressionCompiler, tree: Part, name: str, holder: Typed, given: list[Part], depth: int) -> Typed:
    """Compile a macro that is called as a method of `holder`."""
    if name in QUANTIFIERS:
        checks.count(tree, name, len(given), 2, 3)
        return _with_hoisted(
            compiler.scope, lambda: _comprehend(compiler, tree, QUANTIFIERS[name], holder, given, depth)
        )
    if name in ("map", "filter", "transformList", "transformMap", "transformMapEntry", "mapValues", "filterKeys"):
        return _with_hoisted(compiler.scope, lambda: _build(compiler, tree, name, holder, given, depth))
    if name in ("or", "orValue"):
        checks.count(tree, name, len(given), 1, 1)
        return Typed(OptionalOr(holder.node, compiler.part(given[0], depth).node, name == "orValue"))
    checks.count(tree, name, len(given), 2, 2)
    with _Bound(compiler.scope, _name(tree, given[0])) as slots:
        body = compiler.part(given[1], depth)
    if name == "with":
        return Typed(With(holder.node, slots[0], body.node), body.kind)
    return Typed(OptionalMap(holder.node, slots[0], body.node, name == "optFlatMap"), "optional_type")


def _with_hoisted(scope: NameScope, compiled: Callable[[], Typed]) -> Typed:
    """Return a compiled macro. The outermost macro evaluates once what does not depend on variables of macros."""
    if scope.hoisted is not None:
        return compiled()
    scope.hoisted = {}
    try:
        found = compiled()
        if scope.hoisted:
            found.node = HoistScope(tuple(scope.hoisted.values()), found.node)
    finally:
        scope.hoisted = None
    return found


def _iterable(tree: Part, name: str, holder: Typed) -> None:
    if holder.kind not in (DYN, "list", "map", "headers"):
        raise ExpressionFault(tree, f"{name}() wants a list or a map, not a {holder.kind}")


def _comprehend(
    compiler: ExpressionCompiler, tree: Part, kind: str, holder: Typed, given: list[Part], depth: int
) -> Typed:
    _iterable(tree, kind, holder)
    names = [_name(tree, one) for one in given[:-1]]
    if len(set(names)) < len(names):
        raise ExpressionFault(tree, "the two variables need two names")
    with _Bound(compiler.scope, *names) as slots:
        predicate = compiler.part(given[-1], depth)
    checks.want(tree, predicate, "bool", f"{kind}()")
    second = slots[1] if len(slots) > 1 else -1
    return Typed(Comprehension(kind, holder.node, slots[0], second, predicate.node), "bool")


def _build(compiler: ExpressionCompiler, tree: Part, name: str, holder: Typed, given: list[Part], depth: int) -> Typed:
    _iterable(tree, name, holder)
    two = name.startswith("transform")
    extra = name in ("map", "transformList", "transformMap", "transformMapEntry")
    least = 3 if two else 2
    checks.count(tree, name, len(given), least, least + extra)
    variables = 2 if two else 1
    names = [_name(tree, one) for one in given[:variables]]
    if len(set(names)) < len(names):
        raise ExpressionFault(tree, "the two variables need two names")
    with _Bound(compiler.scope, *names) as slots:
        parts = [compiler.part(one, depth) for one in given[variables:]]
    second = slots[1] if two else -1
    if name in ("filter", "filterKeys"):
        checks.want(tree, parts[0], "bool", f"{name}()")
        node = Comprehension(name, holder.node, slots[0], second, parts[0].node)
        return Typed(node, "list" if name == "filter" else "map")
    predicate = parts[0] if len(parts) == 2 else None
    if predicate is not None:
        checks.want(tree, predicate, "bool", f"{name}()")
    node = Comprehension(
        name, holder.node, slots[0], second, None if predicate is None else predicate.node, parts[-1].node
    )
    return Typed(node, "list" if name in ("map", "transformList") else "map")


def function(compiler: ExpressionCompiler, tree: Part, name: str, given: list[Part], depth: int) -> Typed:
    """Compile a macro that is called as a function."""
    scope = compiler.scope
    if name == "has":
        checks.count(tree, name, len(given), 1, 1)
        return compiler.has(tree, given[0], depth)
    if name == "variables":
        checks.count(tree, name, len(given), 0, 0)
        parts = {one: scope.root(one) for one in VARIABLES}
        return Typed(Gathered({one: part.node for one, part in parts.items() if part is not None}), "map")
    if name == "cel.bind":
        checks.count(tree, name, len(given), 3, 3)
        value = compiler.part(given[1], depth)
        with _Bound(scope, _name(tree, given[0])) as slots:
            body = compiler.part(given[2], depth)
        return Typed(With(value.node, slots[0], body.node), body.kind)
    if name == "default":
        checks.count(tree, name, len(given), 2, 2)
        scope.tolerant += 1
        first = compiler.part(given[0], depth)
        scope.tolerant -= 1
        return Typed(Default(first.node, compiler.part(given[1], depth).node))
    checks.count(tree, name, len(given), 1, 64)
    scope.tolerant += 1
    parts_ = [compiler.part(one, depth) for one in given]
    scope.tolerant -= 1
    return Typed(Coalesce(tuple(part.node for part in parts_)))


def custom(
    compiler: ExpressionCompiler, tree: Part, name: str, holder: Typed | None, given: list[Part], depth: int
) -> Typed:
    """Compile the call of a custom function by inlining its body."""
    assert compiler.functions is not None
    definition = compiler.functions[name]
    parts = [compiler.part(one, depth) for one in given]
    checks.count(tree, name, len(parts), len(definition.parameters), len(definition.parameters))
    names = (*definition.parameters, "this") if holder is not None else definition.parameters
    outside = compiler.scope.locals
    compiler.scope.locals = {}
    try:
        with _Bound(compiler.scope, *names) as slots:
            body = compiler.part(definition.body, depth + 1)
    finally:
        compiler.scope.locals = outside
    values = (*parts, holder) if holder is not None else tuple(parts)
    return Typed(CustomCall(tuple(slots), tuple(part.node for part in values), body.node), body.kind)
