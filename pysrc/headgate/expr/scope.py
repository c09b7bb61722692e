"""The names that an expression may use while it is compiled: names bound by macros, variables, and bindings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from headgate.expr.suggestions import near
from headgate.expr.variables import DYN, VARIABLES, Variable, outside
from headgate_engine.expr.answers import BY_NAME
from headgate_engine.expr.comprehensions import Hoisted
from headgate_engine.expr.nodes import Binding, Const, ExpressionNode, Local, Select
from headgate_engine.expr.views import (
    READERS,
    ClaimsVariable,
    Gathered,
    HeaderField,
    NullableReader,
    RequestMethod,
    RequestPath,
    VariableReader,
)

FAST: Final = {"request.path": RequestPath, "request.method": RequestMethod, "jwt": ClaimsVariable}


@dataclass(slots=True)
class Typed:
    """A compiled part of an expression: its node and its static type, `dyn` if the type is known only at evaluation.

    `path` is the dotted name of the variable or field that the part reads, "" for any other part.
    """

    node: ExpressionNode
    kind: str = DYN
    path: str = ""

    @property
    def constant(self) -> bool:
        return isinstance(self.node, Const)

    @property
    def steady(self) -> bool:
        """Whether the part has one value for all members that a macro visits."""
        return self.constant or bool(self.path) or isinstance(self.node, Hoisted)


@dataclass(slots=True)
class NameScope:
    """The names of one expression. With `open_names` (tests only), unknown names become bindings instead of faults.

    `slots` counts the bound names, `read` collects the variables that are read. While `tolerant` is above 0,
    unknown names and variables of other phases are accepted, because a macro handles their absence.
    `constants_read` is True if the program depends on the value of a constant, not only on its type. `hoisted` has
    the slots of parts that are evaluated once per evaluation of the outermost macro, by their names; None outside
    of macros. `bound_reads` counts reads of bound names.
    """

    phase: str
    open_names: bool = False
    locals: dict[str, Typed] = field(default_factory=dict)
    slots: int = 0
    read: set[str] = field(default_factory=set)
    tolerant: int = 0
    constants_read: bool = False
    hoisted: dict[str, int] | None = None
    bound_reads: int = 0

    def bind(self, kind: str = DYN) -> tuple[int, Typed]:
        """Return a new slot and the part that reads it."""
        slot = self.slots
        self.slots += 1
        return slot, Typed(Local(slot), kind)

    def root(self, name: str) -> Typed | str | None:
        """Return the part for a name without dots, or an error message for a variable of other phases.

        None: the name is unknown.
        """
        if name in self.locals:
            self.bound_reads += 1
            return self.locals[name]
        if self.open_names:
            return Typed(Binding(name))
        variable = VARIABLES.get(name)
        if variable is None:
            return Typed(Binding(name)) if self.tolerant else None
        if self.phase not in variable.phases:
            return Typed(Const(None), DYN, name) if self.tolerant else outside(name, variable.phases, self.phase)
        self.read.add(name)
        if variable.fields is None:
            return Typed(_reader(name), DYN, name)
        return Typed(self._whole(name, variable), DYN, name)

    def names(self) -> frozenset[str]:
        """Return the names that may be used here."""
        variables = (name for name, variable in VARIABLES.items() if self.phase in variable.phases)
        return frozenset((*self.locals, *variables))

    def field(self, holder: Typed, name: str, *, raw: bool = False) -> Typed | str:
        """Return the part for a field of a variable, or an error message if the variable has no such field here.

        With `raw`, a field without a value is absent and not null, as has() wants it.
        """
        path = f"{holder.path}.{name}"
        variable = VARIABLES.get(holder.path)
        if holder.path.endswith(".headers"):
            return Typed(self.once(path.lower(), HeaderField(name, holder.path == "response.headers")))
        if variable is None or (variable.fields is None and path not in READERS):
            return Typed(Select(holder.node, name))
        if variable.fields is not None and name not in variable.fields:
            known = {field: kind for field, kind in variable.fields.items() if self.phase in variable.phases_of(field)}
            return f"{holder.path} has no field {name!r}{near(name, known)}"
        kind = DYN if variable.fields is None else variable.fields[name]
        phases = variable.phases_of(name)
        if self.phase not in phases:
            return Typed(Select(Const(None), name), kind) if self.tolerant else outside(path, phases, self.phase)
        self.read.add(path)
        if raw or name not in variable.nullable:
            return Typed(self.once(path, _reader(path)), kind, path)
        return Typed(self.once(f"{path}?", NullableReader(path, READERS[path])), kind, path)

    def once(self, name: str, node: ExpressionNode) -> ExpressionNode:
        """Return a node that evaluates `node` once per evaluation of the outermost macro, or `node` outside of macros.

        `node` must not read bound names. Nodes with equal names share a slot.
        """
        if self.hoisted is None:
            return node
        if name not in self.hoisted:
            self.hoisted[name] = self.slots
            self.slots += 1
        return Hoisted(self.hoisted[name], node)

    def _whole(self, name: str, variable: Variable) -> ExpressionNode:
        """Return a node that gives a variable with known fields as one map of the fields that have a value."""
        paths = [f"{name}.{one}" for one in variable.fields or () if self.phase in variable.phases_of(one)]
        # Fields that need the body are left out: reading the whole variable must not cause the body to be buffered.
        names = [one for one in paths if (one in READERS or one in FAST) and "body" not in one and one not in BY_NAME]
        return Gathered({path.rpartition(".")[2]: _reader(path) for path in names})


def _reader(path: str) -> ExpressionNode:
    if path in FAST:
        return FAST[path]()
    read = READERS.get(path)
    return Select(Const(None), path.rpartition(".")[2]) if read is None else VariableReader(path, read)
