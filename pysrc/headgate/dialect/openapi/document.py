"""Parsing of OpenAPI documents, and resolution of the references within them."""

from __future__ import annotations

import json
from typing import Any, Final
from urllib.parse import unquote

from headgate.document.nodes import plain
from headgate.document.read import read
from headgate.errors import ConfigErrors

MAX_CHARS: Final = 16 * 1024 * 1024
MAX_DEPTH: Final = 128
# The maximum length of a chain of references.
MAX_HOPS: Final = 16
Json = dict[str, Any]


class OpenApiError(ValueError):
    """The document cannot be served as tools. The text has the reason and the path in the document."""


def parse(text: str, name: str = "OpenAPI document") -> Json:
    """Return a document as plain values. `name` is the name of the document in error messages.

    Raises OpenApiError if the text is neither JSON nor YAML, too large, or not OpenAPI 3.0 or 3.1.
    """
    if len(text) > MAX_CHARS:
        raise OpenApiError(f"the OpenAPI document is longer than {MAX_CHARS} characters")
    found = _decoded(text, name)
    if not isinstance(found, dict):
        raise OpenApiError("the OpenAPI document is not a map")
    if "swagger" in found:
        raise OpenApiError("the document is Swagger 2; OpenAPI 3 is needed")
    # In YAML, an unquoted 3.1 is a number.
    if not str(found.get("openapi")).startswith(("3.0", "3.1")):
        raise OpenApiError("'openapi' is not 3.0 or 3.1: not an OpenAPI 3 document")
    return found


def _decoded(text: str, name: str) -> object:
    if text.lstrip("\ufeff \t\r\n")[:1] == "{":
        try:
            found = json.loads(text.removeprefix("\ufeff"))
        except (ValueError, RecursionError) as error:
            # The text may still be a YAML flow mapping, which begins like a JSON object.
            reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
            if len(text) > 65536 or isinstance(error, RecursionError):
                raise OpenApiError(f"the OpenAPI document is not JSON: {reason}") from None
        else:
            _check_depth(found)
            return found
    try:
        return plain(read(text, name))
    except ConfigErrors as errors:
        reasons = "; ".join(str(error) for error in errors.errors[:3])
        raise OpenApiError(f"the OpenAPI document cannot be read: {reasons}") from None


def _check_depth(root: object) -> None:
    """Raise OpenApiError for containers nested deeper than MAX_DEPTH. This function does not recurse."""
    level = [root]
    for _ in range(MAX_DEPTH):
        below: list[object] = []
        for one in level:
            if isinstance(one, dict):
                below += [value for value in one.values() if isinstance(value, dict | list)]
            elif isinstance(one, list):
                below += [value for value in one if isinstance(value, dict | list)]
        if not below:
            return
        level = below
    raise OpenApiError(f"the OpenAPI document is nested deeper than {MAX_DEPTH} levels")


def resolve(document: Json, reference: str, where: str) -> Json:
    """Return the target of a reference (RFC 6901). `where` is its path for error messages. Raises OpenApiError.

    References to other documents are refused: the gateway would have to fetch and trust documents that the
    configuration does not name.
    """
    for _ in range(MAX_HOPS):
        found = _pointed(document, reference, where)
        further = found.get("$ref")
        if not isinstance(further, str):
            return found
        reference = further
    raise OpenApiError(f"{where}: the reference {reference[:200]!r} is circular")


def _pointed(document: Json, reference: str, where: str) -> Json:
    if not reference.startswith("#/"):
        raise OpenApiError(f"{where}: the reference {reference[:200]!r} is outside of the document")
    found: object = document
    for part in reference[2:].split("/"):
        key = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and key in found:
            found = found[key]
        elif isinstance(found, list) and key.isdigit() and len(key) < 9 and int(key) < len(found):
            found = found[int(key)]
        else:
            raise OpenApiError(f"{where}: the reference {reference[:200]!r} refers to nothing")
    if not isinstance(found, dict):
        raise OpenApiError(f"{where}: the reference {reference[:200]!r} does not refer to a map")
    return found


def resolved(document: Json, value: object, where: str) -> Json:
    """Return a map of the document, or the target if the map is a reference. Raises OpenApiError."""
    if not isinstance(value, dict):
        raise OpenApiError(f"{where}: not a map")
    reference = value.get("$ref")
    return resolve(document, reference, where) if isinstance(reference, str) else value
