"""Pickling of compiled expressions: functions and readers are pickled by the names that they have in expressions.

Many of them are closures, which pickle cannot find by their qualified names. Importing this module registers the
reducer; it does not load the parser.
"""

from __future__ import annotations

import copyreg
from typing import Any, Final

from headgate.expr.functions import FUNCTIONS
from headgate_engine.expr.views import READERS

_NAMES: Final[dict[Any, tuple[str, bool | None]]] = {
    **{function: (name, method) for (name, method), (function, _, _) in FUNCTIONS.items()},
    **{read: (path, None) for path, read in READERS.items()},
}


def named(name: str, method: bool | None) -> Any:
    """Return the function or method with this name in expressions. With `method` None, return a variable's reader."""
    return READERS[name] if method is None else FUNCTIONS[name, method][0]


def _reduced(function: Any) -> Any:
    """Return the pickled form of a function: a call of `named()`, or else the one that it would have anyway."""
    found = _NAMES.get(function)
    return function.__reduce__() if found is None else (named, found)


# Functions without a closure are built-in ones to the interpreter, the others are of a type of Cython's.
for _kind in {type(function) for function in _NAMES} - {type}:
    copyreg.pickle(_kind, _reduced)
