"""Reads protobuf's text format, as much of it as the conformance files use: a message is a list of (field, value)."""

from __future__ import annotations

import re
from typing import Any

TOKEN = re.compile(
    r"""\s+|\#[^\n]*|(?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|(?P<extension>\[[^\]\s]+\])"""
    r"""|(?P<word>[-+]?[A-Za-z0-9_.][-+A-Za-z0-9_.]*)|(?P<mark>[{}\[\]<>:,;])""",
    re.VERBOSE,
)
ESCAPES = {"n": 10, "r": 13, "t": 9, "a": 7, "b": 8, "f": 12, "v": 11}


def unescape(token: str) -> bytes:
    """The bytes of a quoted text."""
    out = bytearray()
    body, at = token[1:-1], 0
    while at < len(body):
        char = body[at]
        at += 1
        if char != "\\":
            out += char.encode()
            continue
        kind = body[at]
        at += 1
        if kind in ESCAPES:
            out.append(ESCAPES[kind])
        elif kind in "xX":
            digits = re.match("[0-9a-fA-F]{1,2}", body[at:])[0]  # type: ignore[index]
            at += len(digits)
            out.append(int(digits, 16))
        elif kind in "uU":
            length = 4 if kind == "u" else 8
            out += chr(int(body[at : at + length], 16)).encode()
            at += length
        elif kind in "01234567":
            digits = re.match("[0-7]{1,3}", body[at - 1 :])[0]  # type: ignore[index]
            at += len(digits) - 1
            out.append(int(digits, 8))
        else:
            out += kind.encode()
    return bytes(out)


def tokens(text: str) -> list[tuple[str, str]]:
    found, at = [], 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise ValueError(text[at : at + 40])
        at = match.end()
        if match.lastgroup:
            found.append((match.lastgroup, match[0]))
    return found


class Reader:
    def __init__(self, text: str) -> None:
        self.tokens = tokens(text)
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def message(self, end: str = "") -> list[tuple[str, Any]]:
        found = []
        while self.peek() != end:
            name = self.peek()
            self.at += 1
            if self.peek() == ":":
                self.at += 1
            found += [(name, value) for value in self.values()]
            if self.peek() in (",", ";"):
                self.at += 1
        self.at += 1
        return found

    def values(self) -> list[Any]:
        if self.peek() != "[":
            return [self.value()]
        self.at += 1
        found = []
        while self.peek() != "]":
            found.append(self.value())
            if self.peek() == ",":
                self.at += 1
        self.at += 1
        return found

    def value(self) -> Any:
        kind, token = self.tokens[self.at]
        self.at += 1
        if token in "{<" and kind == "mark":
            return self.message("}" if token == "{" else ">")
        if kind != "string":
            return token
        raw = unescape(token)
        while self.at < len(self.tokens) and self.tokens[self.at][0] == "string":
            raw += unescape(self.tokens[self.at][1])
            self.at += 1
        return raw


def parse(text: str) -> list[tuple[str, Any]]:
    return Reader(text).message()


def get(message: list[tuple[str, Any]], name: str, default: Any = None) -> Any:
    return next((value for key, value in message if key == name), default)


def every(message: list[tuple[str, Any]], name: str) -> list[Any]:
    return [value for key, value in message if key == name]
