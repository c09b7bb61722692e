"""Values of the literals in expressions.

Source: https://github.com/google/cel-spec/blob/master/doc/langdef.md#string-and-bytes-values.
"""

from __future__ import annotations

from typing import Final

from headgate_engine.expr.values import INT_MAX, INT_MIN, UINT_MAX, Uint

SIMPLE: Final = {
    "a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92, "'": 39, '"': 34, "`": 96, "?": 63,
}  # fmt: skip
HEX_DIGITS: Final = {"x": 2, "X": 2, "u": 4, "U": 8}
MAX_RUNE: Final = 0x10FFFF


def integer(text: str, *, negative: bool = False) -> int:
    """Return the value of an int token, negated if `negative` is set. Raises ValueError if it is out of range."""
    value = int(text, 16) if text[:2].lower() == "0x" else int(text)
    value = -value if negative else value
    if not INT_MIN <= value <= INT_MAX:
        raise ValueError("integer out of range")
    return value


def unsigned(text: str) -> Uint:
    """Return the value of a uint token. Raises ValueError if it is out of range."""
    digits = text[:-1]
    value = int(digits, 16) if digits[:2].lower() == "0x" else int(digits)
    if value > UINT_MAX:
        raise ValueError("unsigned integer out of range")
    return Uint(value)


def string(token: str) -> str:
    """Return the text of a string token. Raises ValueError for a bad escape."""
    raw, body = _body(token)
    if raw or "\\" not in body:
        return body
    return "".join(chr(code) for code, _ in _codes(body, text=True))


def octets(token: str) -> bytes:
    """Return the bytes of a bytes token. Raises ValueError for a bad escape.

    An escape stands for a single byte; all other characters are encoded in UTF-8.
    """
    raw, body = _body(token)
    if raw:
        return body.encode()
    parts = (bytes((code,)) if escaped else chr(code).encode() for code, escaped in _codes(body, text=False))
    return b"".join(parts)


def _body(token: str) -> tuple[bool, str]:
    if token[0] in "\"'" and token[1:2] != token[0]:
        return False, token[1:-1]
    prefix = 0
    while token[prefix] not in "\"'":
        prefix += 1
    raw = "r" in token[:prefix].lower()
    rest = token[prefix:]
    quotes = 3 if len(rest) >= 6 and rest[:3] in ('"""', "'''") else 1
    return raw, rest[quotes:-quotes].replace("\r\n", "\n") if quotes == 3 else rest[quotes:-quotes]


def _codes(body: str, *, text: bool) -> list[tuple[int, bool]]:
    """Return pairs of a code and whether it is an escaped byte. In a text every code is a code point."""
    found: list[tuple[int, bool]] = []
    at = 0
    while at < len(body):
        char = body[at]
        at += 1
        if char != "\\":
            found.append((ord(char), False))
            continue
        kind = body[at : at + 1]
        at += 1
        if kind in SIMPLE and kind:
            found.append((SIMPLE[kind], not text))
        elif kind in HEX_DIGITS and kind and (text or kind in "xX"):
            digits = body[at : at + HEX_DIGITS[kind]]
            if len(digits) != HEX_DIGITS[kind] or not all(c in "0123456789abcdefABCDEF" for c in digits):
                raise ValueError(f"bad escape \\{kind}{digits}")
            at += len(digits)
            found.append((_rune(int(digits, 16)), not text))
        elif kind and kind in "0123":
            digits = kind + body[at : at + 2]
            if len(digits) != 3 or not all(c in "01234567" for c in digits):
                raise ValueError(f"bad escape \\{digits}")
            at += 2
            found.append((int(digits, 8), not text))
        else:
            raise ValueError(f"bad escape \\{kind}")
    return found


def _rune(code: int) -> int:
    if code > MAX_RUNE or 0xD800 <= code <= 0xDFFF:
        raise ValueError("not a Unicode code point")
    return code
