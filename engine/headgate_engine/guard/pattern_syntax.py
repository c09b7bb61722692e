"""Reads patterns of RE2 (https://github.com/google/re2/wiki/Syntax) into positions of a nondeterministic automaton.

The automaton answers one question about a text that still grows: may a match have begun here that is not complete? So
it may find more than the pattern does, and never less: assertions (`\\b`, `^`) count as fulfilled, most characters
beyond ASCII as one another, and long repetitions as endless ones. Patterns are valid: RE2 has compiled them.
"""

from __future__ import annotations

import unicodedata
from typing import NamedTuple

ASCII = (1 << 128) - 1
# Sets of bytes have one bit for each.
CONTINUATION = sum(1 << byte for byte in range(0x80, 0xC0))
LEADS = sum(1 << byte for byte in range(0xC2, 0xF5))
ANY_BYTE = (1 << 256) - 1
# Copies of a repetition have at most so many positions together. A longer repetition counts as endless.
MOST_COPIES = 96
# Positions of all patterns together.
MOST_POSITIONS = 512
# Groups within one another. RE2 has a limit of its own (1,000).
MOST_DEPTH = 50

DIGITS = sum(1 << code for code in range(0x30, 0x3A))
UPPER = sum(1 << code for code in range(0x41, 0x5B))
LOWER = UPPER << 32
WORD = DIGITS | UPPER | LOWER | 1 << 0x5F
BLANKS = sum(1 << code for code in b"\t\n\f\r ")
PERL = {"d": DIGITS, "w": WORD, "s": BLANKS}
POSIX = {
    "alnum": DIGITS | UPPER | LOWER,
    "alpha": UPPER | LOWER,
    "ascii": ASCII,
    "blank": 1 << 9 | 1 << 32,
    "cntrl": (1 << 32) - 1 | 1 << 127,
    "digit": DIGITS,
    "graph": sum(1 << code for code in range(33, 127)),
    "lower": LOWER,
    "print": sum(1 << code for code in range(32, 127)),
    "punct": sum(1 << code for code in range(33, 127)) & ~(DIGITS | UPPER | LOWER),
    "space": BLANKS | 1 << 11,
    "upper": UPPER,
    "word": WORD,
    "xdigit": DIGITS | sum(1 << code for code in b"ABCDEFabcdef"),
}
CONTROLS = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}
CATEGORIES = frozenset(("L", "M", "N", "P", "S", "Z", "C"))


class UnreadPatternError(Exception):
    """The pattern has something that is not read here, or is too large."""


class Characters(NamedTuple):
    """A set of characters: those of ASCII, and bytes that others begin with. `exact`: the ASCII part has no others."""

    ascii: int = 0
    leads: int = 0
    exact: bool = True

    def joined(self, other: Characters) -> Characters:
        return Characters(self.ascii | other.ascii, self.leads | other.leads, self.exact and other.exact)

    def others(self) -> Characters:
        """Return all characters that may be outside of the set."""
        return Characters(ASCII & ~self.ascii if self.exact else ASCII, LEADS, self.exact)

    def folded(self) -> Characters:
        """Return the set with the other cases of its characters. k, s and i have some beyond ASCII, which have them."""
        found = self.ascii | (self.ascii & UPPER) << 32 | (self.ascii & LOWER) >> 32
        leads = LEADS if self.leads else 0
        for letters, first in ((b"kK", 0xE2), (b"sS", 0xC5), (b"iI", 0xC4)):
            both = sum(1 << code for code in letters)
            if self.leads:
                found |= both
            elif found & both:
                leads |= 1 << first
        return Characters(found, leads, False)


class Bytes(NamedTuple):
    """One byte of a set."""

    those: int


class Sequence(NamedTuple):
    """Parts in their order."""

    parts: tuple[Node, ...] = ()


class Choice(NamedTuple):
    """One of several parts."""

    parts: tuple[Node, ...]


class Repetition(NamedTuple):
    """A part several times. most: None for no end."""

    part: Node
    least: int
    most: int | None


Node = Bytes | Sequence | Choice | Repetition
NOTHING = Sequence()


def node_of(those: Characters) -> Node:
    """Return what matches one character of a set, in UTF-8."""
    if not those.leads:
        return Bytes(those.ascii)
    beyond = Sequence((Bytes(those.leads), Repetition(Bytes(CONTINUATION), 1, None)))
    return Choice((Bytes(those.ascii), beyond)) if those.ascii else beyond


class Flags(NamedTuple):
    """What (?is) have set."""

    fold: bool = False
    dot_newline: bool = False


class PatternReader:
    """Reads one pattern."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.flags = Flags()
        self.depth = 0

    def whole(self) -> Node:
        """Return the pattern's tree."""
        found = self._choice()
        if self.at < len(self.text):
            raise UnreadPatternError(self.text[self.at :])
        return found

    def _next(self, word: str) -> bool:
        """Pass a word if it stands here."""
        if self.text.startswith(word, self.at):
            self.at += len(word)
            return True
        return False

    def _take(self) -> str:
        if self.at >= len(self.text):
            raise UnreadPatternError("the end")
        self.at += 1
        return self.text[self.at - 1]

    def _until(self, end: str) -> str:
        stop = self.text.find(end, self.at)
        if stop < 0:
            raise UnreadPatternError(f"no {end}")
        found, self.at = self.text[self.at : stop], stop + len(end)
        return found

    def _choice(self) -> Node:
        parts = [self._sequence()]
        while self._next("|"):
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            if self._next("\\Q"):
                stop = self.text.find("\\E", self.at)
                quoted = self.text[self.at :] if stop < 0 else self.text[self.at : stop]
                self.at = len(self.text) if stop < 0 else stop + 2
                parts += [self._literal(ord(one)) for one in quoted]
                if parts:
                    parts.append(self._repeated(parts.pop()))
                continue
            parts.append(self._repeated(self._atom()))
        return Sequence(tuple(parts))

    def _repeated(self, part: Node) -> Node:
        while self.at < len(self.text):
            if self._next("*"):
                part = Repetition(part, 0, None)
            elif self._next("+"):
                part = Repetition(part, 1, None)
            elif self._next("?"):
                part = Repetition(part, 0, 1)
            elif (bounds := self._bounds()) is not None:
                part = Repetition(part, *bounds)
            else:
                break
            self._next("?")  # as few as possible: the same matches
        return part

    def _bounds(self) -> tuple[int, int | None] | None:
        """Pass {n}, {n,} or {n,m}. Another bracket is a character."""
        stop = self.text.find("}", self.at)
        if not self.text.startswith("{", self.at) or stop < 0:
            return None
        least, comma, most = self.text[self.at + 1 : stop].partition(",")
        if not is_number(least) or (most and not is_number(most)):
            return None
        self.at = stop + 1
        if not comma:
            return int(least), int(least)
        return int(least), int(most) if most else None

    def _atom(self) -> Node:
        one = self._take()
        if one == "(":
            return self._group()
        if one == "[":
            return node_of(self._set())
        if one == ".":
            return node_of(Characters(ASCII if self.flags.dot_newline else ASCII & ~(1 << 10), LEADS))
        if one in "^$":
            return NOTHING
        return self._escaped() if one == "\\" else self._literal(ord(one))

    def _group(self) -> Node:
        before = self.flags
        if self._next("?"):
            if self._next("P<") or self._next("<"):
                self._until(">")
            else:
                flags = self._flags()
                if self.text[self.at - 1] == ")":
                    self.flags = flags  # up to the end of the group around it
                    return NOTHING
                self.flags = flags
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise UnreadPatternError("groups")
        found = self._choice()
        self.depth -= 1
        if not self._next(")"):
            raise UnreadPatternError("(")
        self.flags = before
        return found

    def _flags(self) -> Flags:
        """Pass flags and the colon or bracket behind them."""
        found, value = self.flags, True
        while (one := self._take()) not in ":)":
            if one == "-":
                value = False
            elif one == "i":
                found = found._replace(fold=value)
            elif one == "s":
                found = found._replace(dot_newline=value)
            elif one not in "mU":
                raise UnreadPatternError(one)
        return found

    def _literal(self, code: int) -> Node:
        those = self._character(code)
        if self.flags.fold:
            return node_of(those.folded())
        if code < 128:
            return Bytes(those.ascii)
        return Sequence(tuple(Bytes(1 << byte) for byte in chr(code).encode()))

    def _character(self, code: int) -> Characters:
        return Characters(1 << code) if code < 128 else Characters(0, 1 << chr(code).encode()[0])

    def _escaped(self) -> Node:
        one = self.text[self.at : self.at + 1]
        if one and one in "AbBz":
            self.at += 1
            return NOTHING
        if self._next("C"):
            return Bytes(ANY_BYTE)
        known = self._known()
        if known is not None:
            return node_of(known.folded() if self.flags.fold else known)
        return self._literal(self._code())

    def _known(self) -> Characters | None:
        """Pass the rest of \\d or \\pN, and their opposites. Return None for anything else."""
        one = self.text[self.at : self.at + 1]
        if one and one in "dDwWsS":
            self.at += 1
            found = Characters(PERL[one.lower()])
        elif one and one in "pP":
            self.at += 1
            name = self._until("}") if self._next("{") else self._take()
            if name.startswith("^"):
                one, name = ("p" if one == "P" else "P"), name[1:]
            found = category(name)
        else:
            return None
        return found.others() if one.isupper() else found

    def _code(self) -> int:
        """Pass the rest of an escape that stands for one character."""
        one = self._take()
        if one in CONTROLS:
            return CONTROLS[one]
        if one == "x":
            digits = self._until("}") if self._next("{") else self._take() + self._take()
            try:
                return int(digits, 16)
            except ValueError:
                raise UnreadPatternError(digits) from None
        if one in "01234567":
            while len(one) < 3 and self.at < len(self.text) and self.text[self.at] in "01234567":
                one += self._take()
            return int(one, 8)
        if one.isalnum():
            raise UnreadPatternError("\\" + one)
        return ord(one)

    def _set(self) -> Characters:
        found = Characters()
        negated = self._next("^")
        first = True
        while first or not self._next("]"):
            found = found.joined(self._item())
            first = False
        if negated:
            found = found.others()
        return found.folded() if self.flags.fold else found

    def _item(self) -> Characters:
        if self._next("[:"):
            name = self._until(":]")
            found = POSIX.get(name.removeprefix("^"))
            if found is None:
                raise UnreadPatternError(name)
            return Characters(found).others() if name.startswith("^") else Characters(found)
        if self.text.startswith("\\", self.at):
            self.at += 1
            known = self._known()
            if known is not None:
                return known
            low = self._code()
        else:
            low = ord(self._take())
        if not self.text.startswith("-", self.at) or self.text.startswith("-]", self.at):
            return self._character(low)
        self.at += 1
        one = self._take()
        return between(low, self._code() if one == "\\" else ord(one))


def is_number(text: str) -> bool:
    """Return whether a text consists of ASCII digits."""
    return text.isascii() and text.isdigit()


def category(name: str) -> Characters:
    """Return the characters of a category or script of Unicode."""
    if name[:1] in CATEGORIES and len(name) <= 2:
        return Characters(
            sum(1 << code for code in range(128) if unicodedata.category(chr(code)).startswith(name)), LEADS
        )
    return Characters(ASCII, LEADS, False)


def between(low: int, high: int) -> Characters:
    """Return the characters of a range."""
    found = Characters()
    if low < 128:
        found = Characters(sum(1 << code for code in range(low, min(high, 127) + 1)))
    if high >= 128:
        first = 0xC2 if low < 128 else lead(low)
        found = found.joined(Characters(0, sum(1 << byte for byte in range(first, lead(high) + 1))))
    return found


def lead(code: int) -> int:
    """Return the first byte of a character beyond ASCII in UTF-8 (RFC 3629 section 3)."""
    if code < 0x800:
        return 0xC0 | code >> 6
    return 0xE0 | code >> 12 if code < 0x10000 else 0xF0 | code >> 18


class Part(NamedTuple):
    """Positions of a part of a pattern, one bit each: where it may begin and end. `empty`: it may match nothing."""

    empty: bool = True
    first: int = 0
    last: int = 0


class Positions:
    """The automaton of several patterns (V. M. Glushkov, 1961): each position is one byte of a match.

    bytes_of: the bytes of a position. follow: positions that may come next. first, last: where matches begin and end.
    """

    def __init__(self) -> None:
        self.bytes_of: list[int] = []
        self.follow: list[int] = []
        self.first = 0
        self.last = 0

    def add(self, node: Node) -> None:
        """Add a pattern."""
        part = self._part(node)
        self.first |= part.first
        self.last |= part.last

    def _part(self, node: Node) -> Part:
        if isinstance(node, Bytes):
            return self._position(node.those)
        if isinstance(node, Sequence):
            found = Part()
            for one in node.parts:
                found = self._behind(found, self._part(one))
            return found
        if isinstance(node, Choice):
            parts = [self._part(one) for one in node.parts]
            first = last = 0
            for part in parts:
                first, last = first | part.first, last | part.last
            return Part(any(part.empty for part in parts), first, last)
        return self._copies(node)

    def _position(self, those: int) -> Part:
        if len(self.follow) == MOST_POSITIONS:
            raise UnreadPatternError("positions")
        self.bytes_of.append(those)
        self.follow.append(0)
        bit = 1 << len(self.follow) - 1
        return Part(False, bit, bit)

    def _behind(self, one: Part, other: Part) -> Part:
        self._link(one.last, other.first)
        return Part(
            one.empty and other.empty,
            one.first | other.first if one.empty else one.first,
            one.last | other.last if other.empty else other.last,
        )

    def _link(self, last: int, first: int) -> None:
        while last:
            self.follow[(last & -last).bit_length() - 1] |= first
            last &= last - 1

    def _copies(self, node: Repetition) -> Part:
        if node.most == 0:
            return Part()
        before = len(self.follow)
        part = self._part(node.part)
        size = len(self.follow) - before
        count = node.least if node.most is None else node.most
        if count <= 1 or size * count > MOST_COPIES or not size:
            if node.most != 1:
                self._link(part.last, part.first)
            return part._replace(empty=part.empty or node.least == 0)
        found = part if node.least else part._replace(empty=True)
        for number in range(1, count):
            before_it, part = part, self._part(node.part)
            if number < node.least or part.empty:
                found = self._behind(found, part if number < node.least else part._replace(empty=True))
            else:
                # x{1,3} is x(x(x)?)?: each copy stands behind the one before it.
                self._link(before_it.last, part.first)
                found = found._replace(last=found.last | part.last)
        if node.most is None:
            self._link(part.last, part.first)
        return found


def positions(patterns: list[str]) -> Positions | None:
    """Return the automaton of patterns, None if one of them cannot be read or all have too many positions."""
    found = Positions()
    try:
        for pattern in patterns:
            found.add(PatternReader(pattern).whole())
    except (UnreadPatternError, UnicodeEncodeError):
        return None
    return found
