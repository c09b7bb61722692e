"""Regular expressions that are compiled when they are first used.

`re` compiles in Python: a pattern takes 0.1 to 1 ms. Those that only some configurations, commands or requests use
would be a tenth of a start.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

METHODS: Final = ("match", "fullmatch", "search", "finditer", "findall", "sub", "split", "pattern")

if TYPE_CHECKING:
    lazy_pattern = re.compile
else:

    class lazy_pattern:
        """A pattern with the methods of `re.Pattern`. Raises re.error at the first use, not here."""

        __slots__ = ("_flags", "_text", *METHODS)

        def __init__(self, text: str | bytes, flags: int = 0) -> None:
            self._text = text
            self._flags = flags

        def __getattr__(self, name: str) -> Any:
            """Compile. From then on the attributes are there, and this is not called."""
            if name not in METHODS:
                raise AttributeError(name)
            pattern = re.compile(self._text, self._flags)
            for one in METHODS:
                setattr(self, one, getattr(pattern, one))
            return getattr(pattern, name)
