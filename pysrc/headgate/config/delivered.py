"""A configuration whose parts are delivered one by one, each with a key, beside a file with the rest.

The parts become a text in which each has lines of its own, so that a part that has changed is read alone
(`source_reader`) and a fault is known to be that of one part. A part that is refused is replaced by what it was before,
if that is good, and else left out; the others are in force all the same.
"""

from __future__ import annotations

import ipaddress
import json
import re
from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import orjson

Key = str
# The place of parts that nothing else depends on.
_ROUTES: Final = "routes"
# What a YAML text may not have as it is, and JSON may.
_UNPRINTABLE: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
BIND_ADDRESS: Final = "BIND_ADDRESS"
STREAM_ADDRESS: Final = "XDS_ADDRESS"


class DeliveredPart(NamedTuple):
    """`place`: the list that it stands in, of the part with the key `parent`, or at the top if that is empty. `order`:
    where in the list; of equal ones the keys decide. `value`: a JSON map on one line, as written() has it.
    """

    place: str
    parent: Key
    order: tuple[Any, ...]
    value: str


class DeliveredText(NamedTuple):
    """`lines`: for each line of the text, from 1, the key of its part; "" for a line of the file."""

    text: str
    lines: list[Key]


class DeliveredParts:
    """All parts, and which of them are refused."""

    def __init__(self) -> None:
        self.wanted: dict[Key, DeliveredPart] = {}
        # What was in force before, of parts that are not in force yet, or are refused.
        self.good: dict[Key, DeliveredPart] = {}
        # Why each one is refused, and those whose good form is refused as well.
        self.refused: dict[Key, str] = {}
        # Those of the refused whose reason may pass without a change of them, such as a port that somebody else has.
        self.passing: set[Key] = set()
        self._absent: set[Key] = set()
        self._unsettled: set[Key] = set()
        self._children: dict[tuple[Key, str], list[tuple[tuple[Any, ...], Key]]] = {}
        # The lists that stand in a part, or at the top.
        self.parents: dict[Key, tuple[str, ...]] = {}

    def change(self, parts: Mapping[Key, DeliveredPart], removed: Iterable[Key] = ()) -> None:
        """Take new parts in the place of those with their keys, and forget others.

        Refused routes stay so until they change themselves; where something else changes, all are tried again.
        """
        gone = [key for key in removed if key in self.wanted]
        moved = [key for key in (*parts, *gone) if key in self.refused]
        if any(one.place != _ROUTES for one in (*parts.values(), *(self.wanted[key] for key in gone))):
            moved = list(self.refused)
        for key in moved:
            self._show(key, self.wanted[key])
        for key in gone:
            self._hide(key, self.wanted.pop(key))
            self.passing.discard(key)
            self.good.pop(key, None)
            self._unsettled.discard(key)
        for key, part in parts.items():
            before = self.wanted.get(key)
            if before is not None and key not in self.refused:
                self.good.setdefault(key, before)
            self._show(key, part)
            self.wanted[key] = part
            self._unsettled.add(key)

    def retry(self) -> None:
        """Try refused parts again if the reason may have passed. What they contain is refused with them."""
        if not self.passing:
            return
        for key in list(self.refused):
            self._show(key, self.wanted[key])
            self._unsettled.add(key)

    def refuse_for_now(self, faults: Mapping[Key, str]) -> None:
        """Refuse parts for a reason outside the configuration (see retry)."""
        self.refuse(faults)
        self.passing.update(faults)

    def refuse(self, faults: Mapping[Key, str]) -> None:
        """Put what was good in the place of refused parts; leave out those of which nothing was, or that as well."""
        for key, message in faults.items():
            before = self.good.get(key)
            if before is None or key in self.refused:
                self._hide(key, self._shown(key))
                self._absent.add(key)
            else:
                self._hide(key, self._shown(key))
                self._insert(key, before)
            self.refused.setdefault(key, message)

    def refuse_unsettled(self, message: str) -> bool:
        """Refuse all that has changed since settle(); tell whether there was anything that was not refused yet."""
        faults = {key: message for key in self._unsettled if key not in self.refused}
        self.refuse_for_now(faults)
        return bool(faults)

    def settle(self) -> None:
        """Note that what the text says is in force."""
        self._unsettled.clear()
        for key in [key for key in self.good if key not in self.refused]:
            del self.good[key]

    def binds_at(self, ports: Iterable[int]) -> list[Key]:
        """Return the keys of the parts that open these ports."""
        wanted = set(ports)
        found = (key for _, key in self._children.get(("", "binds"), ()))
        return [key for key in found if orjson.loads(self._shown(key).value).get("port") in wanted]

    def text(self, file: Mapping[str, Any]) -> DeliveredText:
        """Return the configuration of the parts and of a file; what the file has in a list stands first in it."""
        text = _TextOfParts(self)
        text.map(file, "", "", 0)
        orphans = self.wanted.keys() - self._absent - set(text.lines) if self._has_orphans() else ()
        if orphans:
            self.refuse(dict.fromkeys(orphans, "the object that contains it is missing or refused"))
            self.refuse(dict.fromkeys(orphans - self._absent, ""))
        return DeliveredText("".join(text.pieces), text.lines)

    def _has_orphans(self) -> bool:
        return any(parent and (parent in self._absent or parent not in self.wanted) for parent in self.parents)

    # -- which parts are shown, and where -------------------------------------------------------------------------
    def _shown(self, key: Key) -> DeliveredPart:
        return self.good[key] if key in self.refused and key in self.good else self.wanted[key]

    def _show(self, key: Key, part: DeliveredPart) -> None:
        if key in self.wanted:
            self._hide(key, self._shown(key))
        self.refused.pop(key, None)
        self.passing.discard(key)
        self._absent.discard(key)
        self._insert(key, part)

    def _insert(self, key: Key, part: DeliveredPart) -> None:
        where = (part.parent, part.place)
        found = self._children.get(where)
        if found is None:
            found = self._children[where] = []
            self.parents[part.parent] = (*self.parents.get(part.parent, ()), part.place)
        insort(found, (part.order, key))

    def _hide(self, key: Key, part: DeliveredPart) -> None:
        if key in self._absent:
            return
        where = (part.parent, part.place)
        found = self._children[where]
        del found[bisect_left(found, (part.order, key))]
        if not found:
            del self._children[where]
            left = tuple(one for one in self.parents[part.parent] if one != part.place)
            self.parents[part.parent] = left
            if not left:
                del self.parents[part.parent]

    def shown_in(self, parent: Key, place: str) -> list[tuple[Key, DeliveredPart]]:
        """Return the parts of a list in their order."""
        keys = [key for _, key in self._children.get((parent, place), ())]
        if not self.refused:
            wanted = self.wanted
            return [(key, wanted[key]) for key in keys]
        return [(key, self._shown(key)) for key in keys]


class _TextOfParts:
    """Writes lines, each of them with values that are JSON, which is YAML."""

    def __init__(self, parts: DeliveredParts) -> None:
        self._parts = parts
        self.pieces: list[str] = []
        self.lines: list[Key] = [""]

    def map(self, value: Mapping[str, Any], key: Key, mark: str, column: int) -> None:
        """Write a map: `mark` precedes its first key, spaces precede the others."""
        places = self._parts.parents.get(key, ())
        indent = " " * column
        for name, one in value.items():
            if name not in places:
                self._line(f"{mark}{_json(name)}: {_json(one)}\n", key)
                mark = indent
        for place in sorted(places):
            self._line(f"{mark}{_json(place)}:\n", key)
            mark = indent
            own = value.get(place)
            for one in own if isinstance(own, list) else ():
                self._line(f"{indent}- {_json(one)}\n", key)
            self._list(key, place, column)

    def _list(self, parent: Key, place: str, column: int) -> None:
        mark, parents = " " * column + "- ", self._parts.parents
        pieces, lines = self.pieces, self.lines
        for key, part in self._parts.shown_in(parent, place):
            if key in parents:
                self.map(orjson.loads(part.value), key, mark, column + 2)
            else:
                pieces += mark, part.value, "\n"
                lines.append(key)

    def _line(self, text: str, key: Key) -> None:
        self.pieces.append(text)
        self.lines.append(key)


def _json(value: Any) -> str:
    return _UNPRINTABLE.sub(_escape, json.dumps(value, ensure_ascii=False))


def written(text: str) -> str:
    """Return JSON that YAML reads as the same, with dollars that stand for themselves."""
    if "$" in text:
        text = text.replace("$", "$$")
    return text if text.isascii() and "\x7f" not in text else _UNPRINTABLE.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def bind_host(environ: Mapping[str, str]) -> str | None:
    """Return the address that the ports of a delivered configuration listen on; None means all. Raises ValueError."""
    address = environ.get(BIND_ADDRESS)
    if not address or not environ.get(STREAM_ADDRESS):
        return None
    return str(ipaddress.ip_address(address))
