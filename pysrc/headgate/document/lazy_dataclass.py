"""Dataclasses with slots whose methods are generated when they are called often.

The standard decorator looks at all fields of a class and compiles six methods when its module is imported. That was a
quarter of the time that a start took, and a start makes few objects of most of these classes, if any. What is left to
do at import is to make the slots. The first objects of a class are made, compared and hashed by functions that all
classes share; from then on each method is compiled for its class when it is called (`field_methods`).
`dataclasses.fields`, `replace` and `is_dataclass`, pickle and `match` work as usual.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from headgate.document.field_methods import FieldPart, method

METHODS: Final = ("__init__", "__repr__", "__eq__")
FIELDS: Final = "__dataclass_fields__"
MATCHED: Final = "__match_args__"
PARAMETERS: Final = "__dataclass_params__"
# The attribute with what is known of a class.
BODY: Final = "__lazy_body__"
# For a class without a docstring the standard library writes one from its signature, which takes longer than all else.
DOCUMENTED: Final[dict[str, Any]] = {"__doc__": "Lends its methods."}
# To compile a method of a class takes as long as some 50 calls of the shared one take longer.
SHARED_CALLS: Final = 50

Made = TypeVar("Made")

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, slots: bool, frozen: bool = False, kw_only: bool = False) -> Any:
        """As `dataclasses.dataclass`, which these parameters are those of. `slots` must be True."""
        if not slots:
            raise TypeError("a lazy dataclass has slots")
        return lambda plain: _lazy(plain, frozen, kw_only)


def replace(one: Made, /, **changes: Any) -> Made:
    """As `dataclasses.replace`, which has the standard library look at all fields of the class first: a third of a
    millisecond. Raises ValueError for a field that `__init__` does not set, TypeError for one that is not there.
    """
    body: _ClassBody | None = getattr(one, BODY, None)
    if body is None:
        plain: Any = one
        replaced: Made = dataclasses.replace(plain, **changes)
        return replaced
    for name, part in body.parts().items():
        if not part.init and name in changes:
            raise ValueError(f"field {name} is declared with init=False, it cannot be specified with replace()")
        if part.init and name not in changes:
            changes[name] = getattr(one, name)
    return type(one)(**changes)


def field_names(kind: type) -> list[str]:
    """Return the names of the fields of a dataclass, in their order. Raises TypeError for any other class."""
    body: _ClassBody | None = getattr(kind, BODY, None)
    if body is None or body.owner is not kind:
        return [one.name for one in dataclasses.fields(kind)]
    return list(body.parts())


def _lazy(plain: type, frozen: bool, kw_only: bool) -> type:
    """Return the class with slots. All is there when it is made: to change a class is slow."""
    own = dict(vars(plain))
    annotations = own.get("__annotations__", {})
    names = [name for name, kind in annotations.items() if "ClassVar" not in kind]
    inherited = {name for base in plain.__mro__[1:] for name in vars(base).get("__slots__", ())}
    methods = [name for name in METHODS if name not in own]
    if frozen and "__hash__" not in own:
        methods.append("__hash__")
    elif not frozen and "__eq__" not in own:
        own["__hash__"] = None
    body = _ClassBody(annotations, {name: own.pop(name) for name in names if name in own}, methods, frozen, kw_only)
    for name in ("__dict__", "__weakref__"):
        own.pop(name, None)
    own["__slots__"] = tuple(name for name in names if name not in inherited)
    own |= {BODY: body, **LATER} | {name: SHARED[name] for name in methods}
    if frozen:
        own |= FROZEN
    cls = type(plain)(plain.__name__, plain.__bases__, own)
    cls.__qualname__ = plain.__qualname__
    body.owner = cls
    return cls


class _ClassBody:
    """What the body of a class says of its fields."""

    __slots__ = ("_annotations", "_calls", "_defaults", "_frozen", "_kw_only", "_methods", "_parts", "owner")

    def __init__(
        self, annotations: dict[str, Any], defaults: dict[str, Any], methods: list[str], frozen: bool, kw_only: bool
    ) -> None:
        self._annotations = annotations
        self._defaults = defaults
        self._methods = methods
        self._frozen = frozen
        self._kw_only = kw_only
        self._calls = 0
        self._parts: dict[str, FieldPart] | None = None
        self.owner: Any = None

    def parts(self) -> dict[str, FieldPart]:
        """Return the fields, those of the bases first."""
        if self._parts is None:
            found: dict[str, FieldPart] = {}
            for base in reversed(self.owner.__mro__[1:]):
                found |= vars(base)[BODY].parts() if BODY in vars(base) else {}
            self._parts = found | {
                name: self._part(name) for name, kind in self._annotations.items() if "ClassVar" not in kind
            }
        return self._parts

    def _part(self, name: str) -> FieldPart:
        default: Any = self._defaults.get(name, dataclasses.MISSING)
        if not isinstance(default, dataclasses.Field):
            if type(default).__hash__ is None:
                raise ValueError(f"mutable default for field {name} is not allowed: use default_factory")
            return FieldPart(default, dataclasses.MISSING, True, True, True, self._kw_only)
        kw_only = self._kw_only if default.kw_only is dataclasses.MISSING else default.kw_only
        hashed = default.compare if default.hash is None else default.hash
        return FieldPart(default.default, default.default_factory, default.init, default.compare, hashed, kw_only)

    def shared(self) -> dict[str, FieldPart] | None:
        """Return the fields for a call of a shared function; None when it is time for a method of the class."""
        self._calls += 1
        return self.parts() if self._calls <= SHARED_CALLS else None

    def compile(self, name: str) -> Callable[..., Any]:
        """Give the owner a method of its own, and return it."""
        found = method(name, self.parts(), self.owner, self._frozen)
        setattr(self.owner, name, found)
        return found

    def describe(self) -> None:
        """Have the standard library look at a class with the same body, and give what it finds to the owner."""
        owner = self.owner
        same = {**self._defaults, "__annotations__": self._annotations, "__module__": owner.__module__, **DOCUMENTED}
        plain = type(owner.__name__, (), same)
        twin: Any = dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=self._kw_only)(plain)
        fields: dict[str, Any] = {}
        for base in reversed(owner.__mro__[1:]):
            fields |= getattr(base, FIELDS, {})
        fields |= twin.__dataclass_fields__
        matched = (one.name for one in fields.values() if one.init and not one.kw_only)
        for name, value in ((FIELDS, fields), (MATCHED, tuple(matched)), (PARAMETERS, twin.__dataclass_params__)):
            setattr(owner, name, value)
        owner.__dataclass_params__.frozen = self._frozen

    def generate(self) -> None:
        """Have the standard library generate the methods for the same fields, and give them to the owner."""
        owner = self.owner
        specification = [
            (
                one.name,
                one.type,
                dataclasses.field(
                    default=one.default, default_factory=one.default_factory, init=one.init, repr=one.repr,
                    hash=one.hash, compare=one.compare, kw_only=one.kw_only,
                ),
            )
            for one in dataclasses.fields(owner)
        ]  # fmt: skip
        # __init__ calls __post_init__ if the class has one.
        rest = DOCUMENTED | ({"__post_init__": owner.__post_init__} if hasattr(owner, "__post_init__") else {})
        twin = dataclasses.make_dataclass(
            owner.__name__, specification, frozen=self._frozen, slots=True, namespace=rest
        )
        for name in self._methods:
            method = getattr(twin, name)
            method.__qualname__ = f"{owner.__qualname__}.{name}"
            setattr(owner, name, method)


class _Later:
    """An attribute that the standard library makes of the fields; it is put there when it is looked up first."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, _instance: object, asked: Any) -> Any:
        body: _ClassBody = asked.__lazy_body__
        body.describe()
        return vars(body.owner)[self._name]


def _generated(one: Any, name: str) -> Callable[..., Any]:
    """Return a method of an object as the standard library generates it."""
    body: _ClassBody = one.__lazy_body__
    body.generate()
    method: Callable[..., Any] = getattr(body.owner, name)
    return method


def _init(self: Any, *args: Any, **given: Any) -> None:
    parts = self.__lazy_body__.shared()
    if parts is None:
        self.__lazy_body__.compile("__init__")(self, *args, **given)
        return
    if args and not _placed(parts, args, given):
        _generated(self, "__init__")(self, *args, **given)  # raises TypeError
        return
    unknown = len(given)
    put = object.__setattr__
    for name, part in parts.items():
        if part.init and name in given:
            put(self, name, given[name])
            unknown -= 1
        elif part.default is not dataclasses.MISSING:
            put(self, name, part.default)
        elif part.factory is not dataclasses.MISSING:
            put(self, name, part.factory())
        elif part.init:
            unknown = -1
            break
    if unknown:
        _generated(self, "__init__")(self, **given)  # raises TypeError
    elif hasattr(self, "__post_init__"):
        self.__post_init__()


def _placed(parts: dict[str, FieldPart], args: tuple[Any, ...], given: dict[str, Any]) -> bool:
    """Put positional arguments under their names, if they fit."""
    names = [name for name, part in parts.items() if part.init and not part.kw_only][: len(args)]
    if len(names) < len(args) or not given.keys().isdisjoint(names):
        return False
    given.update(zip(names, args, strict=True))
    return True


def _eq(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    parts = self.__lazy_body__.shared()
    if parts is None:
        return self.__lazy_body__.compile("__eq__")(self, other)
    return _values(self, parts) == _values(other, parts)


def _values(one: object, parts: dict[str, FieldPart]) -> list[Any]:
    return [getattr(one, name) for name, part in parts.items() if part.compare]


def _hash(self: Any) -> int:
    parts = self.__lazy_body__.shared()
    if parts is None:
        found: int = self.__lazy_body__.compile("__hash__")(self)
        return found
    return hash(tuple([getattr(self, name) for name, part in parts.items() if part.hash]))


def _repr(self: Any) -> str:
    text: str = _generated(self, "__repr__")(self)
    return text


def _refuse_to_set(self: object, name: str, _value: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[object]:
    return [getattr(self, name) for name in self.__lazy_body__.parts()]


def _set_state(self: Any, values: list[object]) -> None:
    for name, value in zip(self.__lazy_body__.parts(), values, strict=True):
        object.__setattr__(self, name, value)


SHARED: Final[dict[str, Any]] = {"__init__": _init, "__repr__": _repr, "__eq__": _eq, "__hash__": _hash}
LATER: Final[dict[str, Any]] = {name: _Later(name) for name in (FIELDS, MATCHED, PARAMETERS)}
FROZEN: Final[dict[str, Any]] = {
    "__setattr__": _refuse_to_set,
    "__delattr__": _refuse_to_delete,
    "__getstate__": _state,
    "__setstate__": _set_state,
}
