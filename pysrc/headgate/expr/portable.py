"""Values of expressions as JSON and back, with their types.

A worker to which a request is relayed evaluates expressions for it as the first one would have done. Text,
numbers, booleans and null are themselves. Everything else is a list of a tag and its content.
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Callable, Mapping
from typing import Any, Final

from headgate_engine.context.headers import MessageHead
from headgate_engine.expr.addresses import Address, Network
from headgate_engine.expr.values import Duration, OptionalValue, Redacted, Timestamp, TypeValue, Uint
from headgate_engine.expr.views import FUNCTIONS, HeaderFields, UriText


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _pairs(value: Mapping[Any, Any]) -> list[Any]:
    return [[portable(key), portable(item)] for key, item in value.items()]


def _lines(value: HeaderFields) -> list[list[str]]:
    raw = FUNCTIONS["raw", True][0](value)
    return [[name, line] for name, lines in raw.cel_items() for line in lines]


def _fields(lines: list[list[str]]) -> HeaderFields:
    head = MessageHead()
    for name, line in lines:
        head.add(name, line)
    return HeaderFields(head)


# By type: the tag, the content of a value, and the value of a content.
_KINDS: Final[dict[type, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]]] = {
    list: ("list", lambda value: [portable(one) for one in value], lambda found: [restored(one) for one in found]),
    tuple: ("list", lambda value: [portable(one) for one in value], lambda found: [restored(one) for one in found]),
    dict: ("map", _pairs, lambda found: {restored(key): restored(item) for key, item in found}),
    bytes: ("bytes", _text, base64.b64decode),
    Uint: ("uint", lambda value: value.value, Uint),
    Duration: ("duration", lambda value: value.ns, Duration),
    Timestamp: ("timestamp", lambda value: value.ns, Timestamp),
    Redacted: (
        "redacted",
        lambda value: _text(value.reveal().encode()),
        lambda found: Redacted(base64.b64decode(found)),
    ),
    UriText: ("uri", str, UriText),
    HeaderFields: ("fields", _lines, _fields),
    Address: ("ip", lambda value: value.cel_text(), lambda found: Address(ipaddress.ip_address(found))),
    Network: ("cidr", lambda value: value.cel_text(), lambda found: Network(ipaddress.ip_interface(found))),
    TypeValue: ("type", lambda value: value.name, TypeValue),
    OptionalValue: (
        "optional",
        lambda value: [value.present, portable(value.inner)],
        lambda found: OptionalValue(found[0], restored(found[1])),
    ),
}
_RESTORERS: Final = {tag: restore for tag, _, restore in _KINDS.values()}


def portable(value: Any) -> Any:
    """Return the JSON of a value. Raises TypeError for what no expression results in."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    found = _KINDS.get(type(value))
    if found is None:
        raise TypeError(f"no value of an expression: {type(value).__name__}")
    return [found[0], found[1](value)]


def restored(found: Any) -> Any:
    """Return the value of its JSON. Raises ValueError, KeyError or TypeError for other JSON."""
    if not isinstance(found, list):
        return found
    tag, content = found
    return _RESTORERS[tag](content)
