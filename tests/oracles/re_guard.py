"""What the scanner should find, with the standard library's backtracking engine and plain arithmetic."""

from __future__ import annotations

import re

BLANK = "(?: |\u00a0|\u2007|\u202f)".encode().replace(b"(?: ", b"(?:[ ]")
DASH = b"(?:-|\xe2\x80[\x90-\x95])"
ANY = b"(?:[.]|" + BLANK + b"|" + DASH + b")"
PAUSE = b"(?:" + BLANK + b"|" + DASH + b")"
START, END = rb"(?<![0-9A-Za-z_])", rb"(?![0-9A-Za-z_])"
EMAIL = re.compile(rb"[a-zA-Z0-9_.+-]+@[a-zA-Z0-9-]+\.[a-zA-Z0-9-.]*[a-zA-Z0-9]")
SSN = re.compile(
    START + rb"(?:\d{9}|\d{5}" + DASH + rb"\d{4}|\d{3}" + DASH + rb"\d{6}|\d{3}" + ANY + rb"\d{2}" + ANY + rb"\d{4})" + END
)
SIN = re.compile(START + rb"(?:\d{9}|\d{3}" + PAUSE + rb"\d{3}" + PAUSE + rb"\d{3})" + END)
CARD = re.compile(START + rb"\d{3,19}(?:" + PAUSE + rb"\d{3,19})*" + END)

Span = tuple[int, int]


def digits(text: bytes) -> str:
    """Only the digits."""
    return re.sub(rb"[^0-9]", b"", text).decode()


def luhn(number: str) -> bool:
    """ISO/IEC 7812-1 annex B."""
    total = 0
    for place, digit in enumerate(reversed(number)):
        value = int(digit) * (1 + place % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def _spans(pattern: re.Pattern[bytes], text: bytes, good) -> list[Span]:
    found, at = [], 0
    while (match := pattern.search(text, at)) is not None:
        if good(match):
            found.append(match.span())
            at = match.end()
        else:
            at = match.start() + 1
    return found


def emails(text: bytes) -> list[Span]:
    return [match.span() for match in EMAIL.finditer(text)]


def ssns(text: bytes) -> list[Span]:
    def good(match: re.Match[bytes]) -> bool:
        number = digits(match.group())
        if len(match.group()) == 9:
            before = text[max(0, match.start() - 40) : match.start()].lower()
            if b"ssn" not in before and b"social" not in before:
                return False
        area = int(number[:3])
        return 0 < area < 900 and area != 666 and number[3:5] != "00" and number[5:] != "0000"

    return _spans(SSN, text, good)


def sins(text: bytes) -> list[Span]:
    def good(match: re.Match[bytes]) -> bool:
        number = digits(match.group())
        return set(number) != {"0"} and luhn(number)

    return _spans(SIN, text, good)


def cards(text: bytes) -> list[Span]:
    """The longest number that begins where one can, among those that end with a group."""
    found, at = [], 0
    for start in re.finditer(START + rb"\d", text):
        if start.start() < at:
            continue
        best = -1
        for stop in range(start.start() + 13, min(len(text), start.start() + 19 + 3 * 8) + 1):
            piece = text[start.start() : stop]
            number = digits(piece)
            if not 13 <= len(number) <= 19 or not CARD.fullmatch(piece) or not re.match(END, text[stop:]):
                continue
            if not re.match(rb"\d*" + END, text[stop:]) or re.match(rb"\d", text[stop:]):
                continue
            issuer = number[0] in "13456" or 2221 <= int(number[:4]) <= 2720
            if issuer and luhn(number):
                best = stop
        if best >= 0:
            found.append((start.start(), best))
            at = best
    return found


FINDERS = {"email": emails, "ssn": ssns, "caSin": sins, "creditCard": cards}
TOKENS = {"email": b"<EMAIL_ADDRESS>", "ssn": b"<SSN>", "caSin": b"<CA_SIN>", "creditCard": b"<CREDIT_CARD>"}
Rule = tuple[str, str]


def _replaced(text: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
    for start, stop, token in sorted(edits, reverse=True):
        text = text[:start] + token + text[stop:]
    return text


def masked(rules: list[Rule], text: bytes) -> bytes:
    """What rules, each ("builtin", name) or ("pattern", text), make of a text.

    They run in their order, each on what the ones before have left; but built-ins that stand side by side look at the
    same text, and where what two of them find overlaps, the one that stands first has it. A built-in counts once.
    """
    seen: set[Rule] = set()
    position = 0
    while position < len(rules):
        sort, what = rules[position]
        edits: list[tuple[int, int, bytes]] = []
        if sort == "pattern":
            edits = [(*match.span(), b"<masked>") for match in re.finditer(what.encode(), text) if match.group()]
            position += 1
        while position < len(rules) and sort == "builtin" == rules[position][0]:
            if rules[position] not in seen:
                seen.add(rules[position])
                name = rules[position][1]
                free = [
                    (start, stop, TOKENS[name])
                    for start, stop in FINDERS[name](text)
                    if all(stop <= low or start >= high for low, high, _ in edits)
                ]
                edits += free
            position += 1
        text = _replaced(text, edits)
    return text
