"""Request headers that repeat values of the body: `mcp-method`, `mcp-name`, `mcp-param-*`.

A proxy may use the header and the server the body, so both must agree. A value that is not valid in a header is encoded
as `=?base64?...?=` (UTF-8, standard alphabet, padded).

Source: https://modelcontextprotocol.io/specification/2026-07-28/basic/transports.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable

from headgate.dialect.mcp import versions
from headgate.dialect.mcp.jsonrpc import RpcMessage
from headgate.dialect.mcp.methods import INITIALIZE

METHOD_HEADER = "mcp-method"
NAME_HEADER = "mcp-name"
PARAM_PREFIX = "mcp-param-"
SENTINEL_START, SENTINEL_END = "=?base64?", "?="


def encode(value: str) -> str:
    """Return a value in the form for a header, encoded if necessary."""
    plain = value.isascii() and value.isprintable() and value == value.strip(" ")
    if plain and not (value.startswith(SENTINEL_START) and value.endswith(SENTINEL_END)):
        return value
    return SENTINEL_START + base64.b64encode(value.encode("utf-8", "replace")).decode() + SENTINEL_END


def decode(field: str) -> str:
    """Return the value of a header. Raises ValueError if its encoding is malformed."""
    if not (field.startswith(SENTINEL_START) and field.endswith(SENTINEL_END)):
        return field
    if len(field) < len(SENTINEL_START) + len(SENTINEL_END):
        raise ValueError("cut short")
    try:
        return base64.b64decode(field[len(SENTINEL_START) : -len(SENTINEL_END)], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from None


def mismatch(message: RpcMessage, headers: Iterable[tuple[str, str]]) -> str | None:
    """Return how the headers contradict the message, None if they do not."""
    expected = {METHOD_HEADER: message.method, NAME_HEADER: message.name}
    version: str | None = None
    for name, field in headers:
        name = name.lower()
        if name == versions.HEADER:
            if version is not None and field != version:
                # The server might use the other value.
                return f"{name} occurs twice"
            version = field
            continue
        known = name in expected
        if not known and not name.startswith(PARAM_PREFIX):
            continue
        try:
            value = decode(field)
        except ValueError:
            return f"{name} is not decodable"
        if known and value != expected[name] and not (name == NAME_HEADER and expected[name] is None):
            return f"{name} does not match the body"
    return None


def version_mismatch(message: RpcMessage, version: str | None) -> bool:
    """Return whether `initialize` asks for a different revision than the version header `version`."""
    if version is None or message.method != INITIALIZE:
        return False
    wanted = message.protocol_version
    return wanted is not None and wanted != version


def of(message: RpcMessage) -> list[tuple[str, str]]:
    """Return the headers for a message."""
    if message.method is None:
        return []
    fields = [(METHOD_HEADER, encode(message.method))]
    if message.name is not None:
        fields.append((NAME_HEADER, encode(message.name)))
    return fields
