"""The configuration file as JSON for the admin server: as written, variables unexpanded, secrets `<redacted>`.

The shape of the file defines the secrets. Unknown fields, and values under names of credentials, are redacted as well.
"""

from __future__ import annotations

import re
from typing import Any, Final

from headgate.config.concealed import Concealer
from headgate.config.shape.root import ROOT
from headgate.config.shape.vocabulary import (
    Anything,
    Case,
    ListOf,
    MapOf,
    Object,
    Ref,
    Scalar,
    Shape,
    Union,
    WordChoice,
)
from headgate.document.credentials import shown_url
from headgate.document.nodes import DocumentNode, plain
from headgate.document.read import read
from headgate.document.secret import REDACTED

_CREDENTIAL: Final = re.compile(r"(?i)authorization|cookie|passw|secret|credential|api[-_]?key|(^|[-_])token$")
_PRIVATE_KEY: Final = "PRIVATE KEY-----"
_VARIABLE: Final = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}|\$[A-Za-z_][A-Za-z0-9_]*")


def file_view(text: str, name: str) -> Any:
    """Return the document. Raises ConfigErrors if it is not valid YAML."""
    return document_view(read(text, name))


def document_view(root: DocumentNode) -> Any:
    """Return the view of a document in the form of the file."""
    return _view((ROOT,), root)


def _view(shapes: tuple[Shape, ...], node: DocumentNode) -> Any:
    """Return the view of a node that several shapes may describe: what one of them hides is hidden."""
    flat = tuple(_flat(shapes))
    value = node.value
    if isinstance(value, dict):
        return {key: _entry(flat, key, entry.node) for key, entry in value.items()}
    if isinstance(value, list):
        lists = [one for one in flat if isinstance(one, ListOf | Anything)]
        items = tuple(one.item if isinstance(one, ListOf) else one for one in lists)
        return [_view(items, one) for one in value]
    if value is None or isinstance(value, bool):
        return value
    fitting = [one for one in flat if isinstance(one, Scalar | WordChoice | Anything)]
    hidden = not fitting or any(isinstance(one, Scalar) and _is_secret(one, value) for one in fitting)
    # A key where the name of its file may stand, or belongs.
    hidden = hidden or (isinstance(value, str) and _PRIVATE_KEY in value)
    lines = isinstance(value, str) and ("\n" in value or value.startswith("-----"))
    hidden = hidden or (lines and any(isinstance(one, Scalar) and one.secret_lines for one in fitting))
    # The name of a variable is no secret, and tells where it comes from.
    if hidden and not _is_variable(value):
        return REDACTED
    shown = plain(node)
    return shown_url(shown) if isinstance(shown, str) else shown


def _is_secret(shape: Scalar, value: object) -> bool:
    known = shape.open_start and isinstance(value, str) and value.startswith(shape.open_start) and "?" not in value
    return shape.secret and not known


def _entry(shapes: tuple[Shape, ...], key: str, node: DocumentNode) -> Any:
    inner: list[Shape] = []
    known = False
    for shape in shapes:
        match shape:
            case Object(fields=fields, aliases=aliases):
                field = fields.get(aliases.get(key, key))
                if field is not None:
                    known = True
                    inner.append(field.shape)
            case MapOf(item=item):
                inner.append(item)
            case Anything():
                inner.append(shape)
            case _:
                pass
    # Of its own fields the shape knows better: `authorizationEndpoint` is none.
    if not known and isinstance(node.value, str) and not _is_variable(node.value) and _CREDENTIAL.search(key):
        return REDACTED
    shown = _view(tuple(inner), node)
    return _arguments(shown) if key == "args" and isinstance(shown, list) else shown


def _arguments(words: list[Any]) -> list[Any]:
    """Return the arguments of a command without credentials. A reference to a variable is none."""
    secret = Concealer().arguments([str(word) for word in words])
    return [
        REDACTED if hide and not _is_variable(str(word).rpartition("=")[2]) else word
        for word, hide in zip(words, secret, strict=True)
    ]


def _is_variable(value: object) -> bool:
    return isinstance(value, str) and _VARIABLE.fullmatch(value) is not None


def _flat(shapes: tuple[Shape, ...]) -> list[Shape]:
    """Return the shapes with unions and references replaced by what they lead to."""
    found: list[Shape] = []
    for shape in shapes:
        match shape:
            case Union(cases=cases):
                found += _flat(tuple(one.shape if isinstance(one, Case) else one for one in cases))
            case Ref():
                found += _flat((shape.target(),))
            case _:
                found.append(shape)
    return found
