"""How compiled expressions are pickled: functions and readers by the names that expressions have for them.

Many of them are made by other functions, so pickle does not find them by a name of their own. Importing this module is
enough; it loads no parser.
"""

from __future__ import annotations

import copyreg
from typing import Any, Final

from headgate.expr.functions import FUNCTIONS
from headgate_engine.expr.views import READERS

_KIND: Final = type(next(iter(READERS.values())))
_NAMES: Final[dict[Any, tuple[str, bool | None]]] = {
    **{function: (name, method) for (name, method), (function, _, _) in FUNCTIONS.items()},
    **{read: (path, None) for path, read in READERS.items()},
}


def named(name: str, method: bool | None) -> Any:
    """Return the function or method that an expression calls by a name; `method` None: the reader of a variable."""
    return READERS[name] if method is None else FUNCTIONS[name, method][0]


def _reduced(function: Any) -> Any:
    """Return what pickle writes for a compiled function: its name in the tables, else its own."""
    found = _NAMES.get(function)
    return function.__qualname__ if found is None else (named, found)


copyreg.pickle(_KIND, _reduced)
