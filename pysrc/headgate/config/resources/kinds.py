"""The kinds of stored resources: where each stands in the model of the file, and how its values are identified.

A resource of kind `llm.model` with the id `gpt-4o`, for example, is an item of `llm.models` whose name is `gpt-4o`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple

from headgate.config.shape.root import ROOT
from headgate.config.shape.vocabulary import ListOf, MapOf, Object, Ref, Shape

# Of a kind whose values have no name: the only resource of it, unless the client gives others an id.
DEFAULT_ID: Final = "default"
MAX_ID: Final = 512
# `item`: of a list. `entry`: of a map; its value has the key as `name`. `field`: `{name: content}`, a field of an
# object. `fields`: several fields of an object, all in one resource.
Form = Literal["item", "entry", "field", "fields"]


class InvalidResource(ValueError):
    """A resource does not fit its kind. The message contains no values."""


class StoredKind(NamedTuple):
    """`place` leads to the list, map or object of the file. `names`: paths within a value to what identifies it, the
    first of them that has a text. `unnamed`: a value without any of them has the id DEFAULT_ID. `waits_for`: without
    the section in the file, resources of this kind have no effect until there is one of that kind.
    """

    name: str
    place: tuple[str, ...]
    form: Form
    names: tuple[tuple[str, ...], ...] = ()
    unnamed: bool = False
    waits_for: str | None = None
    fields: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The place as messages have it."""
        return ".".join(self.place)


_NAME: Final = (("name",),)
_ROWS: Final = (
    StoredKind("modelCatalog", ("config", "modelCatalog"), "item", unnamed=True),
    StoredKind("llm.provider", ("llm", "providers"), "item", _NAME, waits_for="llm.model"),
    StoredKind("llm.model", ("llm", "models"), "item", (("id",), ("name",)), waits_for="llm.model"),
    StoredKind("llm.virtualModel", ("llm", "virtualModels"), "item", _NAME, waits_for="llm.model"),
    StoredKind("llm.policy", ("llm", "policies"), "field", waits_for="llm.model"),
    # Behind the policy: keys are items of `apiKey`, which may be stored as well.
    StoredKind(
        "llm.apiKey", ("llm", "policies", "apiKey", "keys"), "item", (("metadata", "id"), ("metadata", "name")),
        waits_for="llm.model",
    ),
    StoredKind("mcp.target", ("mcp", "targets"), "item", _NAME, waits_for="mcp.target"),
    StoredKind("mcp.policy", ("mcp", "policies"), "field", waits_for="mcp.target"),
    StoredKind(
        "mcp.settings", ("mcp",), "fields", unnamed=True, waits_for="mcp.target",
        fields=("gateways", "port", "statefulMode", "prefixMode", "failureMode", "dnsRebindingProtection"),
    ),
    StoredKind("traffic.gateway", ("gateways",), "entry", _NAME),
    StoredKind("traffic.route", ("routes",), "item", _NAME),
    StoredKind("traffic.tcpRoute", ("tcpRoutes",), "item", _NAME),
    StoredKind("virtualKeys.team", ("virtualKeys", "teams"), "item", _NAME),
    StoredKind("virtualKeys.key", ("virtualKeys", "keys"), "item", _NAME),
    StoredKind("ui.policy", ("ui", "policies"), "field", waits_for="ui"),
)  # fmt: skip
KINDS: Final = {kind.name: kind for kind in _ROWS}


def shape_of(kind: StoredKind) -> Shape:
    """Return the shape of what stands at the place of a kind."""
    shape: Shape = ROOT
    for step in kind.place:
        shape = _target(shape)
        assert isinstance(shape, Object)
        shape = shape.fields[step].shape
    return _target(shape)


def _target(shape: Shape) -> Shape:
    while isinstance(shape, Ref):
        shape = shape.target()
    return shape


def value_shape(kind: StoredKind) -> Shape:
    """Return the shape of a value of an item or an entry, and the object that a field belongs to."""
    shape = shape_of(kind)
    return _target(shape.item) if isinstance(shape, ListOf | MapOf) else shape


def identity(kind: StoredKind, value: Any) -> str | None:
    """Return the id in a value, None if there is none."""
    if not isinstance(value, dict):
        return None
    if kind.form == "field":
        return next(iter(value)) if len(value) == 1 else None
    for names in kind.names:
        found: Any = value
        for name in names:
            found = found.get(name) if isinstance(found, dict) else None
        if isinstance(found, str) and found:
            namespace = value.get("namespace") if kind.name.startswith("traffic.") else None
            return f"{namespace}/{found}" if isinstance(namespace, str) and namespace else found
    return DEFAULT_ID if kind.unnamed else None


def resource_id(kind: StoredKind, value: Any, given: str | None) -> str:
    """Return the id of a resource that a client writes. Raises InvalidResource.

    `given` is the id that the client names beside the value, None if it names none.
    """
    if not isinstance(value, dict):
        raise InvalidResource("the value must be an object")
    said = identity(kind, value)
    if kind.form == "field" and said is None:
        raise InvalidResource("the value must have one key, which is the name of the policy")
    if kind.form == "fields" and given not in (None, DEFAULT_ID):
        raise InvalidResource(f"this kind has a single resource, whose id is {DEFAULT_ID}")
    if kind.form == "fields" and not value.keys() <= set(kind.fields):
        raise InvalidResource(f"the value may have {', '.join(kind.fields)}")
    named = said is not None and not (kind.unnamed and said == DEFAULT_ID)
    # The keys of virtual users may have any metadata, so another id may be given to them.
    if given is not None and named and given != said and kind.name != "llm.apiKey":
        raise InvalidResource("the name in the value differs from the id")
    found = given if given is not None else said
    if found is None:
        told = " or ".join(".".join(names) for names in kind.names)
        raise InvalidResource(f"the value needs {told}, or the resource an id")
    if kind.form == "item" and kind.names == _NAME and said is None:
        raise InvalidResource("the value needs a name")
    if len(found) > MAX_ID or not found.isprintable():
        raise InvalidResource(f"an id has at most {MAX_ID} printable characters")
    return found


def items(kind: StoredKind, document: Any) -> Iterator[tuple[str | None, Any]]:
    """Yield the resources of a kind that a document in the form of the file has: id and value.

    The id is None where the document does not say one.
    """
    found = document
    for step in kind.place:
        found = found.get(step) if isinstance(found, dict) else None
    if kind.form == "item" and isinstance(found, list):
        for value in found:
            yield identity(kind, value), value
    elif kind.form == "entry" and isinstance(found, dict):
        for name, value in found.items():
            yield name, {"name": name, **value} if isinstance(value, dict) else value
    elif kind.form == "field" and isinstance(found, dict):
        for name, value in found.items():
            yield name, {name: value}
    elif kind.form == "fields" and isinstance(found, dict):
        fields = {name: value for name, value in found.items() if name in kind.fields}
        if fields:
            yield DEFAULT_ID, fields
