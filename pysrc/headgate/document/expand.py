"""Expansion of environment variables: `${VAR}`, `$VAR`, `${VAR:-default}`, and `$$` for one dollar sign.

Variables are expanded in scalars (keys as well as values) after the document was parsed, so that a value never changes
the structure of the document, and comments are ignored. Any other `$` stays as it is, so `^/v1$` needs no escape.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from headgate.document.lazy_dataclass import dataclass
from headgate_engine.lazy_pattern import lazy_pattern

NOT_FOUND: Final = "environment variable not found"

_REFERENCE = lazy_pattern(
    r"\$(?:\$|\{(?P<braced>[A-Za-z_][A-Za-z0-9_]*)(?P<or>:-(?P<default>[^}]*))?\}|(?P<bare>[A-Za-z_][A-Za-z0-9_]*))"
)


@dataclass(frozen=True, slots=True)
class Expanded:
    """The result of an expansion.

    `missing` are names of unset variables without a default. `whole` is True if the text was exactly one reference,
    `used` if it had at least one reference.
    """

    text: str
    missing: tuple[str, ...]
    whole: bool
    used: bool


def expand(text: str, environ: Mapping[str, str]) -> Expanded:
    """Replace every reference in `text`. A default also replaces an empty variable, as in a POSIX shell."""
    missing: list[str] = []
    used = False

    def value(found: re.Match[str]) -> str:
        nonlocal used
        name = found["braced"] or found["bare"]
        if name is None:
            return "$"
        used = True
        current = environ.get(name)
        if found["or"] is not None:
            return current or found["default"]
        if current is None:
            missing.append(name)
            return found[0]
        return current

    whole = _REFERENCE.fullmatch(text)
    result = _REFERENCE.sub(value, text)
    return Expanded(result, tuple(missing), used and whole is not None, used)
