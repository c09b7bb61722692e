"""Header fields of the client's request that a policy server is told, and those that it changes for the target."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from headgate.backend.contract import Call
from headgate.backend.mcp.http_service import GatewayValue
from headgate_engine.context.field_names import REQUEST_FRAMING

logger = logging.getLogger("headgate.mcp")

Fields = list[tuple[str, str]]
OWN: Final = "x-gw-relay-"
# What describes the request to the target itself.
DESCRIBING: Final = REQUEST_FRAMING | {
    "accept", "accept-encoding", "content-encoding", "content-type", "expect", "mcp-method", "mcp-name",
    "mcp-protocol-version", "mcp-session-id",
}  # fmt: skip
TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
# RFC 9110 section 5.5: visible characters, blanks and tabs inside, and what is beyond ASCII.
VALUE: Final = re.compile(rb"(?:[\x21-\x7e\x80-\xff](?:[\x20-\x7e\x80-\xff\t]*[\x21-\x7e\x80-\xff])?)?")


class FieldFilter:
    """`allowed`: names that are told, () for all and the pseudo-fields; `disallowed`: those that never are."""

    def __init__(self, allowed: Iterable[str], disallowed: Iterable[str]) -> None:
        self._allowed = frozenset(name.lower() for name in allowed)
        self._disallowed = frozenset(name.lower() for name in disallowed)

    def passes(self, name: str) -> bool:
        """Tell whether a field, its name in lower case, may be told."""
        if name in self._disallowed or name.startswith(OWN):
            return False
        return not self._allowed or name in self._allowed

    def told(self, call: Call) -> list[tuple[str, bytes]]:
        """Return names in lower case and values as they came, one for each field line."""
        asked = call.context or call  # of a relayed request the context alone has the client's words
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
    """Apply a HeaderMutation in place: of `sets` the first of a name replaces all there is, further ones are added;
    then `removes`. What cannot stand in a request, or describes its body, is passed over with a warning.
    """
    seen: set[str] = set()
    for one in sets:
        name = one.key.lower()
        if not is_changeable(name) or VALUE.fullmatch(one.value) is None:
            logger.warning("policy server: header field is passed over", extra={"field": one.key[:80]})
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
            logger.warning("policy server: header field is passed over", extra={"field": removed[:80]})


def is_changeable(name: str) -> bool:
    """Tell whether a policy server may set or remove a field, its name in lower case."""
    return TOKEN.fullmatch(name) is not None and name not in DESCRIBING and not name.startswith(OWN)


def _drop(fields: Fields, name: str) -> None:
    fields[:] = [field for field in fields if field[0].lower() != name]
