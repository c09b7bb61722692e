"""Writes engine/headgate_engine/guard/phone_rules.h: the telephone rules of `phonenumbers`, as the engine reads them.

    python ci/phone_rules.py     # after a new version of the library; tests/engine/guard/test_phone.py compares

The library (Apache License 2.0, https://github.com/daviddrysdale/python-phonenumbers) has one regular expression for
each type of number and region. Here all expressions of one country calling code become one tree over digits in which
equal branches are shared, so that a number costs a look at each of its digits. What takes a national or international
prefix off stays an ordered program, because the first alternative that fits counts there.
"""

from __future__ import annotations

import re._constants as sre
import re._parser as sre_parser
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import phonenumbers
from phonenumbers import COUNTRY_CODE_TO_REGION_CODE, PhoneMetadata
from phonenumbers.phonemetadata import PhoneNumberDesc

# Countries whose numbers count without a country code, in the order in which they are tried.
REGIONS: Final = ("US", "GB", "DE", "IL", "IN", "CA", "BR")
LONGEST: Final = 17            # digits of a national number (ITU-T E.164 allows 15 with the country code)
HEADER: Final = Path(__file__).parents[1] / "engine/headgate_engine/guard/phone_rules.h"
TYPES: Final = (
    "premium_rate", "toll_free", "shared_cost", "voip", "personal_number", "pager", "uan", "voicemail", "fixed_line",
    "mobile",
)  # fmt: skip
DIGITS: Final = range(10)
# Operations of a program: (SET, mask of digits), (SPLIT, where to go on when this way fails), (JUMP, where),
# (SAVE, slot), (END,), (MATCH,).
SET, SPLIT, JUMP, SAVE, END, MATCH = range(6)


# -- one expression as an automaton -----------------------------------------------------------------------------------
class Automaton:
    """States of a nondeterministic automaton over digits. `steps`: state -> (mask, next); `free`: state -> next."""

    def __init__(self, pattern: str) -> None:
        self.steps: dict[int, tuple[int, int]] = {}
        self.free: dict[int, list[int]] = {}
        self.last = 0
        self._behind: dict[frozenset[int], tuple[frozenset[int], ...]] = {}
        self.final = self._add(sre_parser.parse(pattern).data, 0)

    def _new(self) -> int:
        self.last += 1
        return self.last

    def _add(self, parts: Iterable[tuple[Any, Any]], at: int) -> int:
        for kind, value in parts:
            if kind is sre.BRANCH:
                end = self._new()
                for way in value[1]:
                    begin = self._new()
                    self.free.setdefault(at, []).append(begin)
                    self.free.setdefault(self._add(way, begin), []).append(end)
                at = end
            elif kind is sre.SUBPATTERN:
                at = self._add(value[3], at)
            elif kind is sre.MAX_REPEAT:
                least, most, inner = value
                for _ in range(least):
                    at = self._add(inner, at)
                end = self._new()
                self.free.setdefault(at, []).append(end)
                for _ in range(most - least):
                    at = self._add(inner, at)
                    self.free.setdefault(at, []).append(end)
                at = end
            else:
                after = self._new()
                self.steps[at] = (mask_of(kind, value), after)
                at = after
        return at

    def closed(self, states: Iterable[int]) -> frozenset[int]:
        """Return the states with all that are reached without a digit."""
        found: set[int] = set()
        todo = list(states)
        while todo:
            state = todo.pop()
            if state not in found:
                found.add(state)
                todo += self.free.get(state, ())
        return frozenset(found)

    def behind(self, states: frozenset[int]) -> tuple[frozenset[int], ...]:
        """Return the states behind each digit."""
        found = self._behind.get(states)
        if found is None:
            steps = [self.steps[state] for state in states if state in self.steps]
            found = tuple(self.closed(after for mask, after in steps if mask >> digit & 1) for digit in DIGITS)
            self._behind[states] = found
        return found


def mask_of(kind: Any, value: Any) -> int:
    """Return the digits that one place of an expression takes; ValueError for what is none."""
    if kind is sre.LITERAL and 48 <= value <= 57:
        return 1 << value - 48
    if kind is sre.CATEGORY and value is sre.CATEGORY_DIGIT:
        return 1023
    if kind is sre.RANGE and 48 <= value[0] <= value[1] <= 57:
        return sum(1 << digit - 48 for digit in range(value[0], value[1] + 1))
    if kind is sre.IN:
        mask = 0
        for one in value:
            mask |= mask_of(*one)
        return mask
    raise ValueError(f"not over digits: {kind} {value}")


# -- all expressions of a country as one tree -------------------------------------------------------------------------
class Tree:
    """Nodes (accepts, node behind each digit); node 0 accepts nothing. Equal nodes are one."""

    def __init__(self) -> None:
        self.nodes: list[tuple[bool, tuple[int, ...]]] = []
        self._known: dict[tuple[bool, tuple[int, ...]], int] = {}
        self._node(False, (0,) * 10)

    def _node(self, accepts: bool, behind: tuple[int, ...]) -> int:
        key = (accepts, behind)
        if key not in self._known:
            self._known[key] = len(self.nodes)
            self.nodes.append(key)
        return self._known[key]

    def root(self, patterns: list[str], accepts: Any) -> int:
        """Return the root for numbers that `accepts(fits, length)`: fits: which of the patterns match all of it."""
        automata = [Automaton(pattern) for pattern in patterns]
        seen: dict[tuple[int, tuple[frozenset[int], ...]], int] = {}

        def grow(length: int, states: tuple[frozenset[int], ...]) -> int:
            if not any(states):
                return 0
            found = seen.get((length, states))
            if found is None:
                good = accepts([one.final in state for one, state in zip(automata, states, strict=True)], length)
                behind = (0,) * 10
                if length < LONGEST:
                    ways = zip(*(one.behind(own) for one, own in zip(automata, states, strict=True)), strict=True)
                    behind = tuple(grow(length + 1, way) for way in ways)
                found = seen[length, states] = self._node(good, behind)
            return found

        return grow(0, tuple(one.closed([0]) for one in automata))


def described(metadata: PhoneMetadata) -> Iterator[PhoneNumberDesc]:
    """Return what a region has of each type of number."""
    for name in TYPES:
        found = getattr(metadata, name)
        if found is not None and found.national_number_pattern:
            yield found


def general_root(tree: Tree, metadata: PhoneMetadata) -> int:
    """Return the root for numbers that fit the general description; their length does not count there."""
    pattern = metadata.general_desc.national_number_pattern
    return tree.root([pattern], lambda fits, _length: fits[0]) if pattern else 0


def valid_root(tree: Tree, code: int) -> int:
    """Return the root for valid national numbers of a country calling code."""
    patterns: list[str] = []
    regions = []
    several = len(COUNTRY_CODE_TO_REGION_CODE[code]) > 1
    for metadata in all_metadata(code):
        own = []
        for one in (metadata.general_desc, *described(metadata)):
            own.append((len(patterns), frozenset(one.possible_length)))
            patterns.append(one.national_number_pattern)
        # A region with leading digits has whatever begins with them, valid or not.
        lead = metadata.leading_digits if several else None
        if lead:
            patterns.append(f"(?:{lead})\\d{{0,{LONGEST}}}")
        regions.append((own, len(patterns) - 1 if lead else None))

    def accepts(fits: list[bool], length: int) -> bool:
        for own, lead in regions:
            general, *types = (fits[index] and (not sizes or length in sizes) for index, sizes in own)
            good = general and any(types)
            if lead is not None and fits[lead]:
                return good
            if lead is None and good:
                return True
        return False

    return tree.root(patterns, accepts)


def all_metadata(code: int) -> list[PhoneMetadata]:
    """Return what the library knows of the regions with that code, the main one first."""
    found = (PhoneMetadata.metadata_for_region_or_calling_code(code, one) for one in COUNTRY_CODE_TO_REGION_CODE[code])
    return [one for one in found if one is not None]


# -- programs ---------------------------------------------------------------------------------------------------------
class Programs:
    """Ordered programs one behind the other; 0 stands for none."""

    def __init__(self) -> None:
        self.code: list[int] = [MATCH]

    def add(self, pattern: str | None) -> int:
        """Return where the program of a pattern begins."""
        if not pattern:
            return 0
        start = len(self.code)
        self._add(sre_parser.parse(pattern).data)
        self.code.append(MATCH)
        return start

    def _add(self, parts: Iterable[tuple[Any, Any]]) -> None:
        code = self.code
        for kind, value in parts:
            if kind is sre.BRANCH:
                jumps = []
                for way in value[1][:-1]:
                    code += [SPLIT, 0]
                    split = len(code) - 1
                    self._add(way)
                    code += [JUMP, 0]
                    jumps.append(len(code) - 1)
                    code[split] = len(code)
                self._add(value[1][-1])
                for jump in jumps:
                    code[jump] = len(code)
            elif kind is sre.SUBPATTERN:
                group = value[0]
                code += [] if group is None else [SAVE, 2 * group - 2]
                self._add(value[3])
                code += [] if group is None else [SAVE, 2 * group - 1]
            elif kind is sre.MAX_REPEAT:
                least, most, inner = value
                for _ in range(least):
                    self._add(inner)
                splits = []
                for _ in range(most - least):
                    code += [SPLIT, 0]
                    splits.append(len(code) - 1)
                    self._add(inner)
                for split in splits:
                    code[split] = len(code)
            elif kind is sre.AT and value is sre.AT_END:
                code.append(END)
            else:
                code += [SET, mask_of(kind, value)]


def groups_of(pattern: str | None) -> int:
    """Return how many groups an expression has."""
    return sre_parser.parse(pattern).state.groups - 1 if pattern else 0


def transform(rule: str | None) -> str:
    """Return what a stripped number becomes as a C string: digits, and a letter from `a` on for each group."""
    if not rule:
        return "0"
    found, at = "", 0
    while at < len(rule):
        if rule[at] == "\\":
            found += chr(96 + int(rule[at + 1]))
            at += 1
        else:
            found += rule[at]
        at += 1
    return f'"{found}"'


# -- the header -------------------------------------------------------------------------------------------------------
def mask_of_lengths(lengths: Iterable[int]) -> int:
    """Return a bit for each length."""
    return sum(1 << length for length in lengths)


def plan_row(tree: Tree, programs: Programs, metadata: PhoneMetadata, valid: int) -> str:
    """Return one row of phone_plans."""
    general = metadata.general_desc
    prefix = metadata.national_prefix_for_parsing
    return (
        f"{{{metadata.country_code}, {valid}, {general_root(tree, metadata)}, {programs.add(prefix)}, "
        f"{max(groups_of(prefix), 1)}, {mask_of_lengths(general.possible_length)}, "
        f"{mask_of_lengths(general.possible_length_local_only)}, {transform(metadata.national_prefix_transform_rule)}}}"
    )


def lines(name: str, values: list[Any]) -> str:
    """Return a C array's values over lines."""
    rows = [", ".join(str(value) for value in values[at : at + 24]) for at in range(0, len(values), 24)]
    return f"static const {name}[{len(values)}] = {{\n" + ",\n".join(rows) + "};\n"


def header() -> str:
    """Return the text of the header."""
    tree, programs = Tree(), Programs()
    codes = [0] * 1000
    plans, valids = ['{0, 0, 0, 0, 1, 0, 0, 0}'], {}
    for code in sorted(COUNTRY_CODE_TO_REGION_CODE):
        valids[code] = valid_root(tree, code)
        codes[code] = len(plans)
        plans.append(plan_row(tree, programs, all_metadata(code)[0], valids[code]))
    regions = []
    for region in REGIONS:
        metadata = PhoneMetadata.metadata_for_region(region, None)
        assert metadata is not None
        plans.append(plan_row(tree, programs, metadata, valids[metadata.country_code]))
        regions.append(f"{{{len(plans) - 1}, {programs.add(metadata.international_prefix)}}}")
    assert len(tree.nodes) < 65536
    assert len(programs.code) < 65536
    behind = [child for _, children in tree.nodes for child in children]
    accepts = [int(good) for good, _ in tree.nodes]
    return "\n".join((
        "/* Written by ci/phone_rules.py from the metadata of python-phonenumbers "
        f"{phonenumbers.__version__} (Apache License 2.0). */",
        "#include <stdint.h>",
        "typedef struct { uint16_t code, valid, general, prefix, groups; uint32_t lengths, local_lengths;"
        " const char *transform; } PhonePlan;",
        "typedef struct { uint16_t plan, international; } PhoneRegion;",
        lines("uint16_t phone_behind", behind),
        lines("uint8_t phone_accepts", accepts),
        lines("uint16_t phone_programs", programs.code),
        lines("uint16_t phone_codes", codes),
        f"static const PhonePlan phone_plans[{len(plans)}] = {{\n" + ",\n".join(plans) + "};\n",
        f"static const PhoneRegion phone_regions[{len(regions)}] = {{" + ", ".join(regions) + "};",
        f"enum {{ PHONE_REGIONS = {len(regions)} }};",
        "",
    ))  # fmt: skip


if __name__ == "__main__":
    HEADER.write_text(header())
    sys.stdout.write(f"{HEADER}: {HEADER.stat().st_size} bytes\n")
