"""Credentials that a configuration holds in fields for anything: values of headers, of bodies, of metadata.

The shape of the file knows which fields are secrets. It cannot know that a header which a policy sets is one; its name
tells. Expressions that only take a credential from elsewhere stay readable: what they say is no secret.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, Final

from headgate.document.secret import REDACTED

# Names of headers, of fields of bodies and of parameters whose values are credentials.
_NAME: Final = re.compile(
    r"(proxy-)?authorization|(set-)?cookie2?|.*passw(or)?d|.*secret|.*credentials?|.*api[-_]?key|(.*[-_])?token", re.I
)
# Their maps hold expressions.
_EXPRESSIONS: Final = frozenset((
    "transformations", "transformation", "finalTransformation", "finalTransformations", "directResponse", "webhook",
    "additionalParams", "fields", "accessLog",
))  # fmt: skip
_QUOTES: Final = re.compile("[\"']")


class Concealer:
    """Replaces values under such names by `<redacted>`. `headers`: further names, in any case.

    `hidden`: the texts that were replaced: elsewhere they are secret as well.
    """

    def __init__(self, headers: Collection[str] = ()) -> None:
        self._headers = frozenset(name.lower() for name in headers)
        self.hidden: set[str] = set()

    def names(self, key: str) -> bool:
        """Tell whether what has that name is a credential."""
        return _NAME.fullmatch(key) is not None or key.lower() in self._headers

    def shown(self, document: Any, expressions: bool = False) -> Any:
        """Return JSON without them. `expressions`: it holds expressions, in which only literals can be credentials."""
        if isinstance(document, list):
            return [self.shown(one, expressions) for one in document]
        if not isinstance(document, dict):
            return document
        return {
            key: self._value(key, value, expressions or key in _EXPRESSIONS) for key, value in document.items()
        }

    def _value(self, key: str, value: Any, expressions: bool) -> Any:
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            return [self._value(key, one, expressions) for one in value]
        if not isinstance(value, str):
            return self.shown(value, expressions)
        if value == REDACTED or not self.names(key) or (expressions and _QUOTES.search(value) is None):
            return value
        self.hidden.add(value)
        return REDACTED
