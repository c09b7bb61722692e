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
from headgate_engine.expr.nodes import Coalesce, Default, MakeList, OptionalOr
from headgate_engine.expr.views import Gathered

if TYPE_CHECKING:
    from headgate.expr.compile import ExpressionCompiler

Part = Tree[Token]
MOST_ARGUMENTS: Final = 64
RESULT_KINDS: Final = {"all": "bool", "exists": "bool", "existsOne": "bool", "filter": "list", "map": "list"}


def _name(tree: Part, argument: Part) -> str:
    """Return the identifier that an argument consists of. Raises Fault if the argument is anything else."""
    while len(argument.children) == 1 and isinstance(argument.children[0], Tree):
        argument = argument.children[0]
    if argument.data != "ident":
        raise ExpressionFault(tree, "the variable of a macro must be a simple name")
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
        raise ExpressionFault(tree, f"{name}() needs a list or a map, not a {holder.kind}")


def _comprehend(
    compiler: ExpressionCompiler, tree: Part, kind: str, holder: Typed, given: list[Part], depth: int
) -> Typed:
    _iterable(tree, kind, holder)
    names = [_name(tree, one) for one in given[:-1]]
    if len(set(names)) < len(names):
        raise ExpressionFault(tree, "the two variables need different names")
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
        raise ExpressionFault(tree, "the two variables need different names")
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
        parts = {one: scope.root(one) for one, variable in VARIABLES.items() if scope.phase in variable.phases}
        return Typed(Gathered({one: part.node for one, part in parts.items() if isinstance(part, Typed)}), "map")
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
    """Compile the call of a custom function by inlining its body. Raises ExpressionFault."""
    assert compiler.functions is not None
    definition = compiler.functions[name]
    parts = [compiler.part(one, depth) for one in given]
    fixed = len(definition.parameters)
    checks.count(tree, name, len(parts), fixed, MOST_ARGUMENTS if definition.rest else fixed)
    names, values = [*definition.parameters], [part.node for part in parts[:fixed]]
    if definition.rest:
        names.append(definition.rest)
        values.append(MakeList(tuple(part.node for part in parts[fixed:])))
    if holder is not None:
        names.append("this")
        values.append(holder.node)
    outside = compiler.scope.locals
    compiler.scope.locals = {}
    try:
        with _Bound(compiler.scope, *names) as slots:
            body = compiler.part(definition.body, depth + 1)
    except ExpressionFault as error:
        # The place of the call: that within the function means nothing here.
        raise ExpressionFault(tree, f"in {name}(): {error.message}") from None
    finally:
        compiler.scope.locals = outside
    return Typed(CustomCall(tuple(slots), tuple(values), body.node), body.kind)


def check_functions(compiler: ExpressionCompiler) -> None:
    """Compile each custom function for itself. Raises ValueError with the line of the function and the reason."""
    for name, definition in (compiler.functions or {}).items():
        names = (*definition.parameters, *((definition.rest,) if definition.rest else ()), "this")
        try:
            with _Bound(compiler.scope, *names):
                compiler.part(definition.body, 0)
        except (ExpressionFault, RecursionError) as error:
            told = str(error) if isinstance(error, ExpressionFault) else "nested too deeply"
            raise ValueError(f"line {definition.line}: in {name!r}: {told}") from None
