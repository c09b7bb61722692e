"""Conversion of tool calls to HTTP requests, and of HTTP responses to tool results."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any, Final
from urllib.parse import quote

from headgate.dialect.openapi.document import Json
from headgate.dialect.openapi.operations import PLACES, Body, Parameter
from headgate.dialect.openapi.tools import OperationTool
from headgate.document.lazy_dataclass import dataclass

DELIMITERS: Final = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}
# The maximum number of bytes of an error response that are passed to the client.
MAX_TOLD: Final = 4096
STATUS_META: Final = "headgate.dev/status"


class ArgumentError(ValueError):
    """The arguments are not valid. The text names the argument and the reason, but never its value."""


@dataclass(frozen=True, slots=True)
class OperationRequest:
    """An HTTP request. `target` is path and query, `headers` are those of arguments, `media` is the content type."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes | None
    media: str | None


def request_of(tool: OperationTool, arguments: object) -> OperationRequest:
    """Return the request for a call of a tool. Raises ArgumentError."""
    given = arguments if isinstance(arguments, dict) else {} if arguments is None else None
    if given is None:
        raise ArgumentError("arguments is not an object")
    values: dict[str, Json] = {}
    for place in PLACES:
        found = given.get(place)
        if found is not None and not isinstance(found, dict):
            raise ArgumentError(f"{place} is not an object")
        values[place] = found or {}
    try:
        path = _path(tool, values["path"])
        query = _query(tool, values["query"])
        body = _body(tool.body, given.get("body"), "body" in given)
        headers = _headers(tool, values["header"])
    except (UnicodeEncodeError, RecursionError):
        raise ArgumentError("it contains invalid UTF-8, or is nested too deeply") from None
    media = None if body is None or tool.body is None else tool.body.media
    return OperationRequest(tool.method, f"{path}?{query}" if query else path, headers, body, media)


def _text(value: object, where: str) -> str:
    """Return a string as it is, and a number or bool in its JSON form. Raises ArgumentError for any other value."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        try:
            return json.dumps(value, allow_nan=False)
        except ValueError:
            pass
    raise ArgumentError(f"{where} is not a string, a number or a bool")


def _escaped(value: object, where: str) -> str:
    return quote(_text(value, where), safe="")


def _path(tool: OperationTool, values: Json) -> str:
    found: list[str] = []
    for piece in tool.pieces:
        if isinstance(piece, str):
            found.append(piece)
            continue
        where = f"path.{piece.name}"
        value = values.get(piece.name)
        if value is None:
            raise ArgumentError(f"{where} is missing")
        written = (
            ",".join(_escaped(one, where) for one in value) if isinstance(value, list) else _escaped(value, where)
        )
        # With an empty value the path could be that of another operation, for example of a whole collection.
        if not written:
            raise ArgumentError(f"{where} is empty")
        found.append(written)
    path = "".join(found)
    # Dots cannot be escaped (RFC 3986 section 2.3), so a segment `..` would lead to a parent path.
    if any(segment in (".", "..") for segment in path.split("/")):
        raise ArgumentError("path has a dot segment")
    return path


def _query(tool: OperationTool, values: Json) -> str:
    known = {one.name: one for one in tool.parameters if one.place == "query"}
    found: list[str] = []
    for name, value in values.items():
        parameter = known.get(name)
        if parameter is None:
            raise ArgumentError(f"query.{name[:80]} is not a parameter of this tool")
        found += _pairs(parameter, value)
    return "&".join(found)


def _pairs(parameter: Parameter, value: object) -> list[str]:
    """Return the `name=value` pairs of a query parameter ("Style Examples" in OpenAPI 3.1 section 4.8.12)."""
    key, where = quote(parameter.name, safe=""), f"query.{parameter.name}"
    if value is None:
        return [key]
    if isinstance(value, list):
        items = [_escaped(one, where) for one in value if one is not None]
        if parameter.explode or parameter.style == "deepObject":
            return [f"{key}={one}" for one in items]
        return [f"{key}={DELIMITERS[parameter.style].join(items)}"]
    if isinstance(value, dict):
        members = [
            (quote(name, safe=""), _escaped(one, where)) for name, one in value.items() if one is not None
        ]
        if parameter.style == "deepObject":
            return [f"{key}%5B{name}%5D={one}" for name, one in members]
        if parameter.explode:
            return [f"{name}={one}" for name, one in members]
        return [f"{key}={DELIMITERS[parameter.style].join(','.join(one) for one in members)}"]
    return [f"{key}={_escaped(value, where)}"]


def _headers(tool: OperationTool, values: Json) -> tuple[tuple[str, str], ...]:
    """Return the headers for declared parameters. Other arguments are ignored."""
    found = []
    for parameter in tool.parameters:
        value = values.get(parameter.name) if parameter.place == "header" else None
        if value is None:
            continue
        where = f"header.{parameter.name}"
        text = ",".join(_text(one, where) for one in value) if isinstance(value, list) else _text(value, where)
        if not all(" " <= char <= "~" or char == "\t" for char in text):
            raise ArgumentError(f"{where} has characters that a header cannot have")
        found.append((parameter.name, text.strip(" \t")))
    return tuple(found)


def _body(body: Body | None, value: object, given: bool) -> bytes | None:
    if body is None or not given:
        if given:
            raise ArgumentError("body is not an argument of this tool")
        if body is not None and body.required:
            raise ArgumentError("body is missing")
        return None
    if body.form == "json":
        try:
            return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        except UnicodeEncodeError:
            raise
        except ValueError:
            raise ArgumentError("body has a number that is too large") from None
    if not isinstance(value, str):
        raise ArgumentError("body is not a string")
    if body.form == "text":
        return value.encode()
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise ArgumentError("body is not base64") from None


def result_of(status: int, body: bytes) -> bytes:
    """Return the `result` of a call as JSON. It contains the response body, unchanged if that is a JSON object.

    `status` is below 500 and is passed in `_meta`, so that the caller can interpret a status such as 404.
    """
    text, kind = _decoded(body)
    if kind is None:
        text = json.dumps({"code": status, "message": text}, ensure_ascii=False)
    elif kind not in (dict, type(None)):
        text = f'{{"data":{text}}}'
    content = json.dumps([{"type": "text", "text": text}], ensure_ascii=False).encode("utf-8", "replace")
    structured = b"" if kind is type(None) else b'"structuredContent":' + text.encode("utf-8", "replace") + b","
    meta = json.dumps({STATUS_META: status}).encode()
    return b'{"content":' + content + b"," + structured + b'"isError":false,"_meta":' + meta + b"}"


def _decoded(body: bytes) -> tuple[str, type | None]:
    """Return a body as text, and the type of its JSON value, None if the body is not JSON."""
    text = body.decode("utf-8", "replace").removeprefix("\ufeff")
    try:
        body.decode()
        found: Any = json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError):
        return text, None
    return text.strip(), type(found)


def _refused(word: str) -> object:
    raise ValueError(word)


def failure_of(tool: str, status: int, body: bytes) -> str:
    """Return the error message for a response with status 500 or above."""
    text = body[:MAX_TOLD].decode("utf-8", "replace").strip()
    return f"Upstream API call for tool {tool!r} failed with status {status}" + (f": {text}" if text else "")
