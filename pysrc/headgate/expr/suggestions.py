"""What an unknown name was probably meant to be: a name that fits where it stands."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from headgate.expr.functions import EITHER_WAY, GLOBAL_NAMES, METHOD_MACROS, METHOD_NAMES, QUANTIFIERS
from headgate_engine.expr import addresses, texts, times

_ANY: Final = frozenset(("string", "toJson", "with", "size"))
_NUMBERS: Final = frozenset(("string", "int", "uint", "double"))
_MEMBERS: Final = frozenset((*QUANTIFIERS, "map", "filter", "transformList", "transformMap", "contains")) | _ANY
_MAP: Final = _MEMBERS | {"merge", "mapValues", "filterKeys", "transformMapEntry"}
_TIMES: Final = frozenset(name for name, _ in times.FUNCTIONS) | {"string", "int"}
# Type of a receiver to the methods that it has; all methods where the type is known only at evaluation.
METHODS: Final[dict[str, frozenset[str]]] = {
    "string": frozenset((
        *(name for name, method in texts.FUNCTIONS if method and name != "join"), *(set(EITHER_WAY) - _TIMES),
        *_NUMBERS, "regexReplace", "base64Encode", "base64Decode", "query", "addQuery", "setQuery", "unredacted",
        "toJson", "with",
    )),
    "bytes": frozenset(("base64Encode", "base64Decode", "contains")) | _ANY,
    "list": _MEMBERS | {"join", "unwrapOpt"},
    "map": _MAP,
    "headers": _MAP | {"raw", "redacted", "join", "split", "cookie"},
    "timestamp": _TIMES, "duration": _TIMES, "int": _NUMBERS, "uint": _NUMBERS, "double": _NUMBERS,
    "bool": frozenset(("string", "bool")),
    "optional_type": frozenset(("value", "hasValue", "or", "orValue", "optMap", "optFlatMap")),
    "net.IP": frozenset(name for name, method in addresses.FUNCTIONS if method),
}  # fmt: skip


def near(name: str, known: Iterable[str]) -> str:
    """Return the hint `, did you mean ...?` if a known name is similar, otherwise ""."""
    import difflib  # for what is wrong alone

    close = difflib.get_close_matches(name, list(known), 1)
    return f", did you mean {close[0]!r}?" if close else ""


def meant(name: str, kind: str = "") -> str:
    """Return a hint for an unknown method of a value of type `kind`; without a type, for an unknown function."""
    if not kind:
        return f"; it is a method: x.{name}()" if name in METHOD_NAMES else near(name, GLOBAL_NAMES)
    if name in GLOBAL_NAMES and name not in METHOD_MACROS:
        return f"; it is a function: {name}()"
    return near(name, METHODS.get(kind, METHOD_NAMES))
