"""Finds credentials in free-form fields of a configuration: values of headers, bodies and metadata.

The shape of the file defines which fields are secrets. It cannot know whether a header that a policy sets, or an
argument of a command, is one; their names decide. Expressions that only read a credential stay readable, because they
contain no secret.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any, Final

from headgate.document.credentials import names_credential, names_option, shown_url
from headgate.document.secret import REDACTED

# Their maps hold expressions.
_EXPRESSIONS: Final = frozenset((
    "transformations", "transformation", "finalTransformation", "finalTransformations", "directResponse", "webhook",
    "additionalParams", "fields", "accessLog",
))  # fmt: skip
_QUOTES: Final = re.compile("[\"']")
# What divides names and values inside an argument: `--api-key=x`, `TOKEN=x`, `Authorization: x`, `https://h/?token=x`.
_DIVIDERS: Final = re.compile("[=:?&]")
# A password, or a token in place of the user's name.
_USER_IN_URL: Final = re.compile(r"://([^/\s:@]*:[^/\s@]+|[^/\s:@]{20,})@")


class Concealer:
    """Replaces values under names of credentials by `<redacted>`. `headers`: further names, case-insensitive.

    `hidden`: the replaced texts, which are secret in other places, too.
    """

    def __init__(self, headers: Collection[str] = ()) -> None:
        self._headers = frozenset(name.lower() for name in headers)
        self.hidden: set[str] = set()

    def names(self, key: str) -> bool:
        """Tell whether the name is that of a credential."""
        return names_credential(key) or key.lower() in self._headers

    def arguments(self, words: Sequence[str]) -> list[bool]:
        """Tell for each argument of a command whether it contains a credential, by its own name or by the preceding
        option."""
        found: list[bool] = []
        awaited = False
        for word in words:
            *names, last = (part.strip().lstrip("-") for part in _DIVIDERS.split(word))
            named = last != "" and any(self._option(name) for name in names)
            found.append(named or (awaited and not word.startswith("--")) or _USER_IN_URL.search(word) is not None)
            awaited = not names and word.startswith("-") and self._option(last)
        return found

    def _option(self, name: str) -> bool:
        return self.names(name) or names_option(name)

    def shown(self, document: Any, expressions: bool = False) -> Any:
        """Return JSON without credentials. `expressions`: the values are expressions, of which only literals can be
        credentials."""
        if isinstance(document, list):
            return [self.shown(one, expressions) for one in document]
        if isinstance(document, str):
            return shown_url(document)
        if not isinstance(document, dict):
            return document
        return {
            key: self._value(key, value, expressions or key in _EXPRESSIONS) for key, value in document.items()
        }

    def _value(self, key: str, value: Any, expressions: bool) -> Any:
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            if key == "args":
                marked = zip(value, self.arguments(value), strict=True)
                return [self._hide(one) if hide else one for one, hide in marked]
            return [self._value(key, one, expressions) for one in value]
        if not isinstance(value, str):
            return self.shown(value, expressions)
        if value == REDACTED or not self.names(key) or (expressions and _QUOTES.search(value) is None):
            return shown_url(value)
        return self._hide(value)

    def _hide(self, value: str) -> str:
        self.hidden.add(value)
        return REDACTED
