"""Tables of the functions and macros that expressions may call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from headgate_engine.expr import addresses, codings, functions, maths, texts, times, views

Function = tuple[Callable[..., Any], int, int]

# (name, is a method) -> callable, minimum and maximum number of arguments (without the receiver)
FUNCTIONS: Final[dict[tuple[str, bool], Function]] = {
    **functions.FUNCTIONS,
    **times.FUNCTIONS,
    **texts.FUNCTIONS,
    **maths.FUNCTIONS,
    **codings.FUNCTIONS,
    **addresses.FUNCTIONS,
    **views.FUNCTIONS,
}


def _split(value: Any, *arguments: Any) -> Any:
    return FUNCTIONS_OF_TEXT[("split", True)][0](value, *arguments) if arguments else views.split_headers(value)


FUNCTIONS_OF_TEXT: Final = texts.FUNCTIONS
FUNCTIONS["split", True] = (_split, 0, 2)
# Functions that may be called either way: `contains(a, b)` is `a.contains(b)`, `'1'.int()` is `int('1')`.
EITHER_WAY: Final = (
    "size", "contains", "startsWith", "endsWith", "matches", "string", "bytes", "double", "int", "uint", "bool",
    "duration", "timestamp", *(name for name, _ in times.FUNCTIONS),
)  # fmt: skip
for _name in EITHER_WAY:
    if (_name, True) in FUNCTIONS:
        _function, _least, _most = FUNCTIONS[_name, True]
        FUNCTIONS.setdefault((_name, False), (_function, _least + 1, _most + 1))
    else:
        _function, _least, _most = FUNCTIONS[_name, False]
        FUNCTIONS[_name, True] = (_function, _least - 1, _most - 1)
# First parts of dotted function names: in `base64.encode(x)`, `base64` is not a variable.
NAMESPACES: Final = frozenset(name.partition(".")[0] for name, _ in FUNCTIONS if "." in name) | {"cel"}
# Macros that test the items of a list or map, with their names in the engine.
QUANTIFIERS: Final = {
    "all": "all", "exists": "exists", "exists_one": "existsOne", "existsOne": "existsOne",
}  # fmt: skip
METHOD_MACROS: Final = frozenset(
    (*QUANTIFIERS, "map", "filter", "transformList", "transformMap", "transformMapEntry", "mapValues", "filterKeys")
) | {"with", "optMap", "optFlatMap", "or", "orValue"}
GLOBAL_MACROS: Final = frozenset(("has", "default", "coalesce", "variables", "cel.bind"))
METHOD_NAMES: Final = frozenset(name for name, method in FUNCTIONS if method) | METHOD_MACROS | {"split"}
GLOBAL_NAMES: Final = frozenset(name for name, method in FUNCTIONS if not method) | GLOBAL_MACROS
