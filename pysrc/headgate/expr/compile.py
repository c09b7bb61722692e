"""Compiles the syntax tree of an expression to a checked and folded tree of engine nodes.

The compiler refuses syntax errors, unknown names and functions, wrong numbers of arguments and mismatched types when a
configuration is loaded. All other errors occur at evaluation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from lark import Token, Tree

from headgate.expr import checks, macros
from headgate.expr.checks import ExpressionFault, UnknownFunction
from headgate.expr.custom import CustomFunctions
from headgate.expr.faults import ExpressionError
from headgate.expr.functions import FUNCTIONS, GLOBAL_MACROS, GLOBAL_NAMES, METHOD_MACROS, NAMESPACES
from headgate.expr.grammar import MAX_DEPTH, RESERVED, SyntaxFault, parse
from headgate.expr.literals import integer, octets, string, unsigned
from headgate.expr.scope import NameScope, Typed
from headgate.expr.suggestions import meant, near
from headgate.expr.syntax import PASSED, STEPS, Part, arguments, chain, field_name, inner
from headgate.expr.variables import ANY, DYN, PHASES
from headgate_engine.expr.marks import OPEN
from headgate_engine.expr.nodes import (
    And,
    Arithmetic,
    CallNode,
    Const,
    Equal,
    EqualText,
    Has,
    In,
    Index,
    InTexts,
    MakeList,
    MakeMap,
    Negate,
    Not,
    OptionalIndex,
    OptionalSelect,
    Or,
    Present,
    Select,
    StartsWith,
    Ternary,
)
from headgate_engine.expr.program import Program
from headgate_engine.expr.values import EvaluationError, TypeValue, cel_type

MAX_CHARS: Final = 16_384
# Calls of custom functions are inlined, so a chain of functions that each call the next one twice doubles every time.
MAX_PARTS: Final = 100_000
TYPE_NAMES: Final = {
    "bool": "bool", "int": "int", "uint": "uint", "double": "double", "string": "string", "bytes": "bytes",
    "list": "list", "map": "map", "null_type": "null_type", "type": "type", "optional_type": "optional_type",
    "google.protobuf.Timestamp": "google.protobuf.Timestamp", "google.protobuf.Duration": "google.protobuf.Duration",
    "net.IP": "net.IP", "net.CIDR": "net.CIDR",
}  # fmt: skip
# Functions that are never folded, because their result differs from call to call, or because they always fail.
IMPURE: Final = frozenset(("random", "uuid", "fail"))


def compile_expression(
    text: str, phase: str = "route", functions: CustomFunctions | None = None, *, open_names: bool = False
) -> Program:
    """Return the program of an expression for one phase (see variables.py). Raises ExpressionError.

    With `open_names`, unknown names become bindings of `Program.evaluate_with()`. Only tests use this.
    """
    return _compiled(text, NameScope(phase, open_names), functions)


def compile_noted(text: str, phase: str) -> tuple[Program, bool]:
    """Return the program of an expression, and whether it depends on the value of a constant.

    Raises ExpressionError.
    """
    scope = NameScope(phase)
    return _compiled(text, scope, None), scope.constants_read


def _compiled(text: str, scope: NameScope, functions: CustomFunctions | None) -> Program:
    if scope.phase not in PHASES:
        raise ValueError(f"phase {scope.phase!r}")
    if len(text) > MAX_CHARS:
        raise ExpressionError(f"longer than {MAX_CHARS} characters")
    compiler = ExpressionCompiler(scope, functions)
    try:
        found = compiler.part(parse(text), 0)
    except (SyntaxFault, ExpressionFault) as error:
        raise ExpressionError(str(error), unknown_function=isinstance(error, UnknownFunction)) from None
    except RecursionError:
        raise ExpressionError("nested too deeply") from None
    return Program(text, found.node, scope.slots, scope.read)


def check_functions(functions: CustomFunctions) -> None:
    """Compile custom functions, whether called or not. Raises ValueError with the line and the reason."""
    macros.check_functions(ExpressionCompiler(NameScope(ANY), functions))


class ExpressionCompiler:
    """Compiles one expression, with one method per rule of the grammar.

    Chains (`a || b || c`, `a.b.c`) are compiled in a loop, nested parts by recursion.
    """

    def __init__(self, scope: NameScope, functions: CustomFunctions | None) -> None:
        self.scope = scope
        self.functions = functions
        self.parts = 0

    def part(self, tree: Part, depth: int) -> Typed:
        """Compile any rule. Rules with a single rule as their child are skipped. Raises ExpressionFault."""
        while tree.data in PASSED and len(tree.children) == 1:
            tree = inner(tree, 0)
        if depth > MAX_DEPTH * 3:
            raise ExpressionFault(tree, "nested too deeply")
        self.parts += 1
        if self.parts > MAX_PARTS:
            raise ExpressionFault(tree, f"more than {MAX_PARTS} parts, with the functions it calls")
        method: Callable[[Part, int], Typed] = getattr(self, f"_{tree.data}")
        return method(tree, depth + 1)

    def _folded(self, found: Typed) -> Typed:
        self.scope.constants_read = True
        return folded(found)

    # -- operators -------------------------------------------------------------------------------------------------
    def _expr(self, tree: Part, depth: int) -> Typed:
        condition, yes, no = (self.part(inner(tree, i), depth) for i in range(3))
        checks.want(tree, condition, "bool", "_?_:_")
        return Typed(Ternary(condition.node, yes.node, no.node), yes.kind if yes.kind == no.kind else DYN)

    def _conditionalor(self, tree: Part, depth: int) -> Typed:
        return self._logic(tree, depth, Or, "||")

    def _conditionaland(self, tree: Part, depth: int) -> Typed:
        return self._logic(tree, depth, And, "&&")

    def _logic(self, tree: Part, depth: int, node: type[And | Or], sign: str) -> Typed:
        parts = [self.part(one, depth) for one in chain(tree)]
        for one in parts:
            checks.want(tree, one, "bool", f"_{sign}_")
        found = parts[0].node
        for one in parts[1:]:
            found = node(found, one.node)
        return Typed(found, "bool")

    def _relation(self, tree: Part, depth: int) -> Typed:
        operator = inner(tree, 0)
        left = self.part(inner(operator, 0), depth)
        right = self.part(inner(tree, 1), depth)
        kind = str(operator.data)
        if kind == "relation_in":
            return self._in(left, right)
        if kind in ("relation_eq", "relation_ne"):
            checks.comparable(tree, left, right)
            negated = kind == "relation_ne"
            for one, other in ((left, right), (right, left)):
                if isinstance(other.node, Const) and type(other.node.value) is str:
                    return Typed(EqualText(one.node, other.node.value, negated), "bool")
            return Typed(Equal(left.node, right.node, negated), "bool")
        sign = {"relation_lt": "<", "relation_le": "<=", "relation_gt": ">", "relation_ge": ">="}[kind]
        checks.ordered(tree, left, right, sign)
        return Typed(Arithmetic(sign, left.node, right.node), "bool")

    def _in(self, left: Typed, right: Typed) -> Typed:
        if isinstance(right.node, Const) and isinstance(right.node.value, list):
            texts = right.node.value
            if texts and all(type(one) is str for one in texts):
                return Typed(InTexts(left.node, frozenset(texts)), "bool")
        return Typed(In(left.node, right.node), "bool")

    def _addition(self, tree: Part, depth: int) -> Typed:
        return self._arithmetic(tree, depth, {"addition_add": "+", "addition_sub": "-"})

    def _multiplication(self, tree: Part, depth: int) -> Typed:
        return self._arithmetic(
            tree, depth, {"multiplication_mul": "*", "multiplication_div": "/", "multiplication_mod": "%"}
        )

    def _arithmetic(self, tree: Part, depth: int, signs: dict[str, str]) -> Typed:
        rest: list[tuple[str, Part, Part]] = []
        while len(tree.children) == 2:
            operator = inner(tree, 0)
            rest.append((signs[str(operator.data)], inner(tree, 1), tree))
            tree = inner(operator, 0)
        found = self.part(tree, depth)
        for sign, operand, place in reversed(rest):
            right = self.part(operand, depth)
            kind = checks.arithmetic(place, found, right, sign)
            both = found.constant and right.constant
            found = Typed(Arithmetic(sign, found.node, right.node), kind)
            found = self._folded(found) if both else found
        return found

    def _unary(self, tree: Part, depth: int) -> Typed:
        signs: list[str] = []
        while len(tree.children) == 2:
            signs.append("!" if inner(tree, 0).data == "unary_not" else "-")
            tree = inner(tree, 1)
        number = _number(tree) if signs and signs[-1] == "-" else None
        if number is not None:
            signs.pop()
            try:
                found = Typed(Const(integer(str(number), negative=True)), "int")
            except ValueError as error:
                raise ExpressionFault(tree, str(error)) from None
        else:
            found = self.part(tree, depth)
        for sign in reversed(signs):
            if sign == "!":
                checks.want(tree, found, "bool", "!_")
                found = Typed(Not(found.node), "bool")
            else:
                checks.negatable(tree, found)
                constant = found.constant
                found = Typed(Negate(found.node), found.kind)
                found = self._folded(found) if constant else found
        return found

    # -- access ----------------------------------------------------------------------------------------------------
    def _member(self, tree: Part, depth: int) -> Typed:
        steps: list[Part] = []
        while tree.data == "member":
            tree = inner(tree, 0)
            if tree.data not in STEPS:
                break
            steps.append(tree)
            tree = inner(tree, 0)
        found, used = dotted_type(tree, steps) or self._start(tree, steps, depth)
        for step in reversed(steps[: len(steps) - used]):
            found = self._step(found, step, depth)
        return found

    def _start(self, tree: Part, steps: list[Part], depth: int) -> tuple[Typed, int]:
        """Compile the start of a chain of accesses. Return it and the number of steps it has consumed.

        A call of a dotted function (`base64.encode(x)`) consumes the first step.
        """
        ident = _ident(tree)
        if ident is not None and ident not in self.scope.locals and steps:
            first = steps[-1]
            if ident in NAMESPACES and first.data == "member_dot_arg":
                name = f"{ident}.{first.children[1]}"
                if name in GLOBAL_NAMES:
                    return self._call(first, name, arguments(first, 2), depth), 1
        return self.part(tree, depth), 0

    def _step(self, holder: Typed, step: Part, depth: int) -> Typed:
        if step.data == "member_dot":
            return self._select(holder, step)
        if step.data == "member_maybe_dot":
            lenient = bool(holder.path)
            return Typed(OptionalSelect(holder.node, field_name(step.children[1]), lenient), "optional_type")
        if step.data == "member_dot_arg":
            return self._method(holder, step, depth)
        if step.data == "member_object":
            raise ExpressionFault(step, "messages cannot be made here")
        key = self.part(inner(step, 1), depth)
        if step.data == "member_maybe_index":
            return Typed(OptionalIndex(holder.node, key.node), "optional_type")
        if holder.path and isinstance(key.node, Const) and type(key.node.value) is str:
            # A shape keeps field names behind a bracket. If a mark stands here all the same (`a[ "b"]`), the program
            # depends on the constant.
            self.scope.constants_read |= OPEN in key.node.value
            found = self._field(step, holder, key.node.value)
            if found is not None:
                return found
        return Typed(Index(holder.node, key.node))

    def _select(self, holder: Typed, step: Part) -> Typed:
        name = field_name(step.children[1])
        checks.selectable(step, holder, name)
        found = self._field(step, holder, name) if holder.path else None
        return Typed(Select(holder.node, name)) if found is None else found

    def _field(self, step: Part, holder: Typed, name: str) -> Typed | None:
        """Return the part for a field of a variable; None if a macro handles that there is no such field."""
        found = self.scope.field(holder, name)
        if isinstance(found, Typed):
            return found
        if not self.scope.tolerant:
            raise ExpressionFault(step, found)
        return Typed(Select(Const(None), name))

    # -- calls -----------------------------------------------------------------------------------------------------
    def _method(self, holder: Typed, step: Part, depth: int) -> Typed:
        name = str(step.children[1])
        given = arguments(step, 2)
        if name in METHOD_MACROS:
            return macros.method(self, step, name, holder, given, depth)
        if self.functions is not None and name in self.functions:
            return macros.custom(self, step, name, holder, given, depth)
        known = FUNCTIONS.get((name, True))
        if known is None:
            raise UnknownFunction(step, f"unknown method {name!r}{meant(name, holder.kind)}")
        function, least, most = known
        checks.count(step, name, len(given), least, most)
        before = self.scope.bound_reads if holder.steady else -1
        parts = [self.part(one, depth) for one in given]
        kind = checks.method(step, name, holder, parts)
        if name == "startsWith" and isinstance(parts[0].node, Const) and type(parts[0].node.value) is str:
            return Typed(StartsWith(holder.node, parts[0].node.value), "bool")
        if name == "matches":
            self.scope.constants_read = True
            checks.pattern(step, parts[0])
        return self._made(name, function, [holder, *parts], kind, before)

    def _call(self, tree: Part, name: str, given: list[Part], depth: int) -> Typed:
        if name in GLOBAL_MACROS:
            return macros.function(self, tree, name, given, depth)
        if self.functions is not None and name in self.functions:
            return macros.custom(self, tree, name, None, given, depth)
        known = FUNCTIONS.get((name, False))
        if known is None:
            raise UnknownFunction(tree, f"unknown function {name!r}{meant(name)}")
        function, least, most = known
        checks.count(tree, name, len(given), least, most)
        before = self.scope.bound_reads
        parts = [self.part(one, depth) for one in given]
        kind = checks.function(tree, name, parts)
        if name == "matches":
            self.scope.constants_read = True
            checks.pattern(tree, parts[1])
        return self._made(name, function, parts, kind, before)

    def _made(self, name: str, function: Callable[..., Any], parts: list[Typed], kind: str, before: int) -> Typed:
        found = Typed(CallNode(name, function, tuple(part.node for part in parts)), kind)
        if parts and name not in IMPURE and all(part.constant for part in parts):
            return self._folded(found)
        if name in IMPURE:
            self.scope.bound_reads += 1      # what contains the call is not hoisted either
        elif before == self.scope.bound_reads:
            found.node = self.scope.once(f"({len(self.scope.hoisted or ())})", found.node)
        return found

    def _ident_arg(self, tree: Part, depth: int) -> Typed:
        return self._call(tree, str(tree.children[0]), arguments(tree, 1), depth)

    _dot_ident_arg = _ident_arg

    # -- names and literals ------------------------------------------------------------------------------------------
    def _ident(self, tree: Part, depth: int) -> Typed:
        name = str(tree.children[0])
        if name in RESERVED:
            raise ExpressionFault(tree, f"{name!r} is a reserved word")
        if name not in self.scope.locals and name in TYPE_NAMES:
            return Typed(Const(TypeValue(TYPE_NAMES[name])), "type")
        found = self.scope.root(name)
        if isinstance(found, str):
            raise ExpressionFault(tree, found)
        if found is None:
            raise ExpressionFault(tree, f"undeclared reference to {name!r}{near(name, self.scope.names())}")
        return found

    def _dot_ident(self, tree: Part, depth: int) -> Typed:
        """Compile `.name`, which always means the variable, even where a macro binds the same name."""
        hidden, self.scope.locals = self.scope.locals, {}
        found = self._ident(tree, depth)
        self.scope.locals = hidden
        return found

    def _paren_expr(self, tree: Part, depth: int) -> Typed:
        return self.part(inner(tree, 0), depth)

    def _list_lit(self, tree: Part, depth: int) -> Typed:
        items = [one for group in tree.children for one in group.children]  # type: ignore[union-attr]
        optional = frozenset(i for i, one in enumerate(items) if one.data == "maybe_item")  # type: ignore[union-attr]
        parts = [self.part(inner(one, 0), depth) for one in items]  # type: ignore[arg-type]
        if not optional and all(part.constant for part in parts):
            return Typed(Const([part.node.value for part in parts]), "list")  # type: ignore[attr-defined]
        return Typed(MakeList(tuple(part.node for part in parts), optional), "list")

    def _map_lit(self, tree: Part, depth: int) -> Typed:
        entries = [one for group in tree.children for one in group.children]  # type: ignore[union-attr]
        optional = frozenset(
            i for i, one in enumerate(entries) if one.data == "maybe_entry"  # type: ignore[union-attr]
        )
        keys = [self.part(inner(one, 0), depth) for one in entries]  # type: ignore[arg-type]
        values = [self.part(inner(one, 1), depth) for one in entries]  # type: ignore[arg-type]
        node = MakeMap(tuple(key.node for key in keys), tuple(value.node for value in values), optional)
        found = Typed(node, "map")
        constant = not optional and all(part.constant for part in (*keys, *values))
        return self._folded(found) if constant else found

    def _literal(self, tree: Part, depth: int) -> Typed:
        token = tree.children[0]
        assert isinstance(token, Token)
        try:
            value, kind = LITERALS[token.type](str(token))
        except ValueError as error:
            raise ExpressionFault(tree, str(error)) from None
        return Typed(Const(value), kind)

    def has(self, tree: Part, operand: Part, depth: int) -> Typed:
        """Compile `has(a.b)`. Raises ExpressionFault."""
        while operand.data in PASSED and len(operand.children) == 1:
            operand = inner(operand, 0)
        if operand.data == "member" and inner(operand, 0).data in ("member_dot", "member_maybe_dot"):
            step = inner(operand, 0)
        else:
            raise ExpressionFault(tree, "has() needs a field, as in has(a.b)")
        self.scope.tolerant += 1
        holder = self.part(inner(step, 0), depth)
        name = field_name(step.children[1])
        checks.selectable(step, holder, name)
        found = self.scope.field(holder, name, raw=True) if holder.path else Typed(Has(holder.node, name))
        self.scope.tolerant -= 1
        if isinstance(found, str):
            raise ExpressionFault(step, found)
        return Typed(Present(found.node) if holder.path else found.node, "bool")


LITERALS: Final[dict[str, Callable[[str], tuple[Any, str]]]] = {
    "INT_LIT": lambda text: (integer(text), "int"),
    "UINT_LIT": lambda text: (unsigned(text), "uint"),
    "FLOAT_LIT": lambda text: (float(text), "double"),
    "STRING_LIT": lambda text: (string(text), "string"),
    "MLSTRING_LIT": lambda text: (string(text), "string"),
    "BYTES_LIT": lambda text: (octets(text), "bytes"),
    "BOOL_LIT": lambda text: (text == "true", "bool"),
    "NULL_LIT": lambda _text: (None, "null"),
}


def folded(found: Typed) -> Typed:
    """Return the value of a constant part as a constant, or the part itself if its evaluation fails."""
    try:
        value = Program("", found.node, 0).evaluate_with({})
    except EvaluationError:
        return found
    if value is None:
        return Typed(Const(None), "null")
    # A part of type `dyn` stays `dyn` although its value has a type: other implementations accept such expressions.
    kind = found.kind if found.kind == DYN else checks.KINDS.get(cel_type(value).name, DYN)
    return Typed(Const(value), kind)


def _ident(tree: Part) -> str | None:
    while tree.data in PASSED and len(tree.children) == 1:
        tree = inner(tree, 0)
    return str(tree.children[0]) if tree.data == "ident" else None


def _number(tree: Part) -> Token | None:
    """Return the int literal that a rule consists of, or None. The smallest int can only be parsed with its minus."""
    while isinstance(tree, Tree) and len(tree.children) == 1 and tree.data in (*PASSED, "member", "literal"):
        child = tree.children[0]
        if isinstance(child, Token):
            return child if child.type == "INT_LIT" else None
        tree = child
    return None


def dotted_type(tree: Part, steps: list[Part]) -> tuple[Typed, int] | None:
    """Return the type that a dotted name denotes (`google.protobuf.Duration`), and the number of steps it consumes."""
    name = _ident(tree)
    if name is None:
        return None
    for used, step in enumerate(reversed(steps), start=1):
        if step.data != "member_dot":
            return None
        name += f".{step.children[1]}"
        if name in TYPE_NAMES:
            return Typed(Const(TypeValue(TYPE_NAMES[name])), "type"), used
    return None
