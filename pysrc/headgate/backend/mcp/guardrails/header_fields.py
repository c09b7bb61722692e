"""Header fields of the client's request that a policy server receives, and its changes to them for the target."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from headgate.backend.contract import BackendCall
from headgate.backend.mcp.http_service import GatewayValue
from headgate_engine.context.field_names import REQUEST_FRAMING

logger = logging.getLogger("headgate.mcp")

Fields = list[tuple[str, str]]
OWN: Final = "x-gw-relay-"
# Fields that describe the request to the target; policy servers cannot change them.
DESCRIBING: Final = REQUEST_FRAMING | {
    "accept", "accept-encoding", "content-encoding", "content-type", "expect", "mcp-method", "mcp-name",
    "mcp-protocol-version", "mcp-session-id",
}  # fmt: skip
TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
# RFC 9110 section 5.5: visible characters and bytes above 0x7f, with blanks and tabs in between.
VALUE: Final = re.compile(rb"(?:[\x21-\x7e\x80-\xff](?:[\x20-\x7e\x80-\xff\t]*[\x21-\x7e\x80-\xff])?)?")


class FieldFilter:
    """Selects fields for a policy server: `allowed` names (empty: all, and pseudo-fields) without `disallowed` ones."""

    def __init__(self, allowed: Iterable[str], disallowed: Iterable[str]) -> None:
        self._allowed = frozenset(name.lower() for name in allowed)
        self._disallowed = frozenset(name.lower() for name in disallowed)

    def passes(self, name: str) -> bool:
        """Return True if a field is selected; `name` is in lower case."""
        if name in self._disallowed or name.startswith(OWN):
            return False
        return not self._allowed or name in self._allowed

    def fields_to_send(self, call: BackendCall) -> list[tuple[str, bytes]]:
        """Return the selected fields: names in lower case with unchanged values, one entry per field line."""
        asked = call.context or call  # for a relayed request, only the context has the client's values
        pseudo = (
            (":authority", asked.authority),
            (":method", call.method),
            (":path", call.target),
            (":scheme", "https" if asked.secure else "http"),
        )
        found = [(name, value.encode()) for name, value in pseudo if self.passes(name)]
        for name, value in call.headers.items():
            lower = name.lower()
            if self.passes(lower):
                found.append((lower, value.encode("utf-8", "surrogateescape")))
        return found


def change(fields: Fields, sets: Sequence[Any], removes: Sequence[str]) -> None:
    """Apply a HeaderMutation in place. In `sets`, the first field of a name replaces existing ones, and further ones
    are added; then fields in `removes` are removed. Invalid fields, and fields that describe the body, are skipped with
    a warning.
    """
    seen: set[str] = set()
    for one in sets:
        name = one.key.lower()
        if not is_changeable(name) or VALUE.fullmatch(one.value) is None:
            logger.warning("policy server: header is ignored", extra={"field": one.key[:80]})
            continue
        if name not in seen:
            seen.add(name)
            _drop(fields, name)
        fields.append((name, GatewayValue(one.value.decode("utf-8", "surrogateescape"))))
    for removed in removes:
        name = removed.lower()
        if is_changeable(name):
            _drop(fields, name)
        else:
            logger.warning("policy server: header is ignored", extra={"field": removed[:80]})


def is_changeable(name: str) -> bool:
    """Return True if a policy server may set or remove a field; `name` is in lower case."""
    return TOKEN.fullmatch(name) is not None and name not in DESCRIBING and not name.startswith(OWN)


def _drop(fields: Fields, name: str) -> None:
    fields[:] = [field for field in fields if field[0].lower() != name]
