"""Checks a document tree against a shape. Returns the values, and adds all errors to a report.

The value of a scalar is the result of its `parse`; a map with fields becomes a `Record`. A field that is not built yet
is checked like any other, reported as not supported, and left out of the record, so that later steps see only what they
support.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from headgate.config.shape.vocabulary import (
    Anything,
    Case,
    ListOf,
    MapOf,
    Object,
    ObjectField,
    Ref,
    Scalar,
    Shape,
    Union,
    WordChoice,
)
from headgate.document.nodes import KINDS, DocumentNode, MapEntry, Report, child, plain
from headgate.document.read import resolve
from headgate.errors import Problem

BAD: Final = object()
# What other programs call a field: paths from the object where it stands, of which the first that is there is offered.
OTHER_WORDS: Final = {
    "rateLimit": ("localRateLimit",),
    "usd": ("dollars",),
    "cost": ("dollars",),
    "budget": ("limits",),
    "max_budget": ("limits",),
    "key": ("keyHash",),
    "url": ("mcp.host", "sse.host"),
    "command": ("stdio.cmd", "cmd"),
    "api_key": ("params.apiKey", "apiKey"),
    "base_url": ("params.baseUrl", "baseUrl"),
    "api_base": ("params.baseUrl", "baseUrl"),
    "model_name": ("name",),
}
# Whole files of other programs, by a field at their top.
OTHER_FILES: Final = dict.fromkeys(("model_list", "litellm_settings", "general_settings"), "litellm") | {
    "mcpServers": "mcp-servers"
}
# Fields at the top that many other places have as well.
COMMON: Final = frozenset(("policies", "config"))
_MAX_QUOTED: Final = 60


class Record:
    """A checked map. `rec.get("name")` is None if the field is absent, null or not supported yet."""

    __slots__ = ("node", "path", "values")

    def __init__(self, node: DocumentNode, path: str, values: dict[str, Any]) -> None:
        self.node = node
        self.path = path
        self.values = values

    def get(self, key: str, default: Any = None) -> Any:
        return self.values.get(key, default)

    def __getitem__(self, key: str) -> Any:
        return self.values[key]

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def records(self, key: str) -> list[Record]:
        """Return the list `key` of maps, empty when it is absent."""
        found: list[Record] = self.values.get(key) or []
        return found

    def at(self, key: str) -> MapEntry | DocumentNode:
        """Return the position of `key`, or else of the map."""
        entries = self.node.value
        return entries[key] if isinstance(entries, dict) and key in entries else self.node


def _matches_type(value: object, types: tuple[type, ...]) -> bool:
    # bool is an int in Python, not in a document
    kind = type(value)
    return kind in types or (kind is int and float in types)


def _quoted(node: DocumentNode) -> str:
    """Return the value for a message, or an empty text if it may be a secret."""
    if node.expanded or not isinstance(node.value, str | int | float):
        return ""
    text = repr(node.value)
    return f" {text}" if len(text) <= _MAX_QUOTED else ""


def near(word: str, known: Iterable[str]) -> str:
    """Return the hint `, did you mean ...?` if a known word is similar, otherwise ""."""
    return _suggestion(word, list(known))


def _suggestion(word: str, known: list[str]) -> str:
    import difflib  # for what is wrong alone

    close = difflib.get_close_matches(word, known, 1)
    # Cluster resources have longer names for the same, `jwtAuthentication` for `jwtAuth`.
    shorter = [name for name in known if len(name) > 3 and word.startswith(name)]
    if shorter:
        close = [max(shorter, key=len)]
    return f", did you mean {close[0]!r}?" if close else ""


class Checker:
    """Checks documents and adds errors to one report. `indexes`: the indexes of list items that are checked without the
    rest of their list, by line and column."""

    def __init__(self, report: Report, indexes: Mapping[tuple[int, int], int] | None = None) -> None:
        self.report = report
        self.indexes = indexes
        self._top: Object | None = None

    def start(self, shape: Shape, node: DocumentNode) -> Any:
        """Check a whole document, as check() does a part."""
        found = _target(shape)
        self._top = found if isinstance(found, Object) else None
        return self.check(shape, node, "")

    def hint(self, word: str, shape: Object, free: list[str], path: str) -> str:
        """Return where an unknown field may belong, or what may be meant."""
        if not path and word in OTHER_FILES:
            return f": `headgate import {OTHER_FILES[word]} FILE` makes a configuration of such a file"
        for way in OTHER_WORDS.get(word, ()):
            first, _, inner = way.partition(".")
            if first in free and (not inner or inner in _fields_of(shape, first, inner)):
                return f", did you mean {way!r}?"
        for name in free:
            if word in _fields_of(shape, name):
                return f", did you mean '{name}.{word}'?"
        if self._top is not None and self._top is not shape and word in self._top.fields and word not in COMMON:
            return ": it stands at the top of the file"
        return _suggestion(word, free)

    def check(self, shape: Shape, node: DocumentNode, path: str) -> Any:
        """Return the value of `node`, or BAD after reporting the reason."""
        return CHECKS[type(shape)](self, shape, node, path)  # as in object(), which most values come from

    def wrong_type(self, node: DocumentNode, path: str, wanted: str, more: str = "") -> object:
        self.report.add(Problem.TYPE, path, f"expected {wanted}, found {node.kind}{more}", node)
        return BAD

    def scalar(self, shape: Scalar, node: DocumentNode, path: str) -> Any:
        value = node.value
        if not _matches_type(value, shape.types):
            other = resolve(value) if node.loose and isinstance(value, str) else value
            if not _matches_type(other, shape.types):
                wanted = " or ".join(KINDS[kind] for kind in shape.types)
                return self.wrong_type(node, path, wanted, _asked(shape, value))
            value = other
        if isinstance(value, float) and not math.isfinite(value):
            self.report.add(Problem.VALUE, path, "not a finite number", node)
            return BAD
        if shape.parse is None:
            return value
        try:
            return shape.parse(value)
        except ValueError as error:
            shown = "" if shape.secret else _quoted(node)
            self.report.add(Problem.VALUE, path, f"{error}{':' if shown else ''}{shown}", node)
            return BAD

    def choice(self, shape: WordChoice, node: DocumentNode, path: str) -> Any:
        spellings = shape.spellings()
        if not isinstance(node.value, str):
            return self.wrong_type(node, path, f"one of {_words(shape)}")
        word = spellings.get(node.value)
        if word is None:
            offered = [one for one, meant in spellings.items() if meant not in shape.later]
            hint = _suggestion(node.value, offered) if not node.expanded else ""
            words = _words(shape)
            self.report.add(Problem.VALUE, path, f"unknown value{_quoted(node)}{hint} (one of {words})", node)
            return BAD
        if word in shape.later:
            self.unsupported(node, path, f" = {word}")
            return None
        return word

    def unsupported(self, at: DocumentNode | MapEntry, path: str, what: str = "") -> None:
        self.report.add(Problem.UNSUPPORTED, path, what, at)

    def list(self, shape: ListOf, node: DocumentNode, path: str) -> Any:
        items = node.value
        if not isinstance(items, list):
            return self.wrong_type(node, path, "a list")
        if len(items) < shape.least or (shape.most is not None and len(items) > shape.most):
            bounds = f"at least {shape.least}" if shape.most is None else f"{shape.least}..{shape.most}"
            self.report.add(Problem.VALUE, path, f"{len(items)} entries, expected {bounds}", node)
        if shape.unique and len({str(item.value) for item in items}) < len(items):
            self.report.add(Problem.VALUE, path, "an entry is given twice", node)
        known = self.indexes
        checked = [
            self.check(shape.item, item, f"{path}[{known.get((item.line, item.column), index) if known else index}]")
            for index, item in enumerate(items)
        ]
        return [value for value in checked if value is not BAD]

    def map(self, shape: MapOf, node: DocumentNode, path: str) -> Any:
        entries = node.value
        if not isinstance(entries, dict):
            return self.wrong_type(node, path, "a map")
        found: dict[str, Any] = {}
        for key, entry in entries.items():
            inner = child(path, key)
            name = key
            if shape.key is not None:
                try:
                    name = shape.key(key)
                except ValueError as error:
                    self.report.add(Problem.VALUE, inner, str(error), entry)
                    continue
            value = self.check(shape.item, entry.node, inner)
            if name in found:
                self.report.add(Problem.CONFLICT, inner, "the same name is given twice", entry)
            elif value is not BAD:
                found[name] = value
        return found

    def union(self, shape: Union, node: DocumentNode, path: str) -> Any:
        for case in shape.cases:
            inner = case.shape if isinstance(case, Case) else case
            if self.fits(case, inner, node):
                return self.check(inner, node, path)
        wanted = dict.fromkeys(word for case in shape.cases for word in _wanted(case))
        return self.wrong_type(node, path, " or ".join(wanted))

    def fits(self, case: Shape | Case, shape: Shape, node: DocumentNode) -> bool:
        value = node.value
        if type(shape) is Scalar:
            return _matches_type(value, shape.types)
        match shape:
            case Object() | MapOf():
                return isinstance(value, dict) and (not isinstance(case, Case) or _has(case, value))
            case ListOf():
                return isinstance(value, list)
            case WordChoice():
                return isinstance(value, str)
            case Union():
                return any(self.fits(one, one.shape if isinstance(one, Case) else one, node) for one in shape.cases)
            case Ref():
                return self.fits(case, shape.target(), node)
            case _:
                return True

    def object(self, shape: Object, node: DocumentNode, path: str) -> Any:
        entries = node.value
        if not isinstance(entries, dict):
            return self.wrong_type(node, path, "a map")
        values: dict[str, Any] = {}
        fields = shape.fields
        before = self.report.count
        # The names of fields are plain words.
        prefix = f"{path}." if path else ""
        for key, entry in entries.items():
            name = key
            spec = fields.get(key)
            if spec is not None and not spec.later:
                node_of = entry.node
                if node_of.value is None and spec.nullable:
                    continue
                of = spec.shape
                value = CHECKS[type(of)](self, of, node_of, prefix + key)
                if value is not BAD:
                    values[key] = value
                continue
            if spec is None:
                name = shape.aliases.get(key, "")
                if not name:
                    free = [known for known, one in fields.items() if not one.later and known not in entries]
                    hint = self.hint(key, shape, free, path)
                    if key in shape.removed:
                        hint = f": {shape.removed[key]}"
                    self.report.add(Problem.UNKNOWN_FIELD, path, f"unknown field {key!r}{hint}", entry)
                    continue
                spec = fields[name]
                if name in entries:
                    self.report.add(Problem.CONFLICT, path, f"{key!r} and {name!r} are the same field", entry)
            value = self.field(spec, entry, child(path, key))
            if value is not BAD:
                values[name] = value
        if shape.ruled:
            self.rules(shape, entries, node, path)
        if self.report.count > before and _has_holes(shape, values):
            return BAD
        return Record(node, path, values)

    def field(self, spec: ObjectField, entry: MapEntry, path: str) -> Any:
        node = entry.node
        if spec.nullable and node.value is None:
            return BAD
        value = self.check(spec.shape, node, path)
        if spec.later and value is not BAD and not _harmless(node, spec.unless):
            self.unsupported(entry, path)
        return BAD if spec.later else value

    def rules(self, shape: Object, entries: dict[str, MapEntry], node: DocumentNode, path: str) -> None:
        """Check which keys are required, optional or mutually exclusive."""
        for key in shape.needed:
            if key not in entries:
                self.report.add(Problem.MISSING, path, f"missing field {key!r}", node)
        if shape.one_of:
            given = [key for key in shape.one_of if key in entries]
            names = _offered(shape, shape.one_of)
            if len(given) > 1:
                listed = ", ".join(given)
                self.report.add(Problem.CONFLICT, path, f"only one of {names} is allowed, found {listed}", node)
            elif not given and not shape.one_of_optional:
                self.report.add(Problem.MISSING, path, f"one of {names} is required", node)
        if shape.any_of and not any(key in entries for key in shape.any_of):
            self.report.add(Problem.MISSING, path, f"one of {_offered(shape, shape.any_of)} is required", node)
        for one, other in shape.apart:
            if one in entries and other in entries:
                self.report.add(Problem.CONFLICT, path, f"{one!r} and {other!r} exclude each other", entries[other])


def _asked(shape: Scalar, value: object) -> str:
    """Return what a text has to be like, for a number where a text such as `5s` is wanted."""
    if shape.parse is None or shape.secret or str not in shape.types or type(value) not in (int, float):
        return ""
    try:
        shape.parse(str(value))
    except ValueError as error:
        return f": {error}"
    return ""


def _target(shape: Shape) -> Shape:
    return _target(shape.target()) if isinstance(shape, Ref) else shape


def _fields_of(shape: Object, name: str, *otherwise: str) -> tuple[str, ...]:
    """Return the fields that can be used of the object in a field, `otherwise` for another shape."""
    inner = _target(shape.fields[name].shape)
    if not isinstance(inner, Object):
        return otherwise
    return tuple(key for key, one in inner.fields.items() if not one.later)


def _words(shape: WordChoice) -> str:
    """Return the words that can be used."""
    return ", ".join(one for one in shape.words if one not in shape.later)


def _offered(shape: Object, keys: tuple[str, ...]) -> str:
    """Return those of the keys that can be used."""
    return ", ".join(one for one in keys if not shape.fields[one].later)


def _has_holes(shape: Object, values: dict[str, Any]) -> bool:
    """Tell whether an invalid map lacks required fields. Such a map is not checked further."""
    if any(spec.required and not spec.later and key not in values for key, spec in shape.fields.items()):
        return True
    given = sum(key in values or shape.fields[key].later for key in shape.one_of)
    return bool(shape.one_of) and (given == 0 and not shape.one_of_optional)


def _has(case: Case, entries: dict[str, MapEntry]) -> bool:
    if case.has and any(key in entries for key in case.has):
        return True
    if not case.key or case.key not in entries:
        return False
    value = entries[case.key].node.value
    return isinstance(value, str) and value[:1].lower() + value[1:] == case.value


def _harmless(node: DocumentNode, unless: tuple[Any, ...]) -> bool:
    if not unless:
        return False
    value = plain(node)
    return any(type(value) is type(one) and value == one for one in unless)


def _wanted(case: Shape | Case) -> list[str]:
    shape = case.shape if isinstance(case, Case) else case
    match shape:
        case Scalar():
            return [KINDS[kind] for kind in shape.types]
        case WordChoice():
            return [f"one of {_words(shape)}"]
        case ListOf():
            return ["a list"]
        case Object() | MapOf():
            named = case.has if isinstance(case, Case) else ()
            if isinstance(shape, Object):
                named = tuple(one for one in named if one not in shape.fields or not shape.fields[one].later)
            return [f"a map with {' or '.join(map(repr, named))}" if named else "a map"]
        case Union():
            return [word for one in shape.cases for word in _wanted(one)]
        case Ref():
            return _wanted(shape.target())
        case Anything():
            return ["any value"]


# How each kind of shape is checked. A `match` would try one kind after the other for each value of a large file.
CHECKS: Final[dict[type, Callable[[Checker, Any, DocumentNode, str], Any]]] = {
    Scalar: Checker.scalar,
    Object: Checker.object,
    ListOf: Checker.list,
    Union: Checker.union,
    WordChoice: Checker.choice,
    MapOf: Checker.map,
    Ref: lambda checker, shape, node, path: checker.check(shape.target(), node, path),
    Anything: lambda _checker, _shape, node, _path: plain(node),
}


def check(
    shape: Shape, node: DocumentNode, report: Report, indexes: Mapping[tuple[int, int], int] | None = None
) -> Any:
    """Check the document `node` against `shape`. With errors, returns what could be read, or BAD."""
    return Checker(report, indexes).start(shape, node)
