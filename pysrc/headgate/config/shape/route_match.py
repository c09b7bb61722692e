"""The match conditions of routes."""

from __future__ import annotations

from typing import Final

from headgate.config.shape.scalars import HEADER_MATCH_NAME, REGEX, STRING
from headgate.config.shape.vocabulary import ListOf, Object, Scalar, Union, WordChoice, optional, required


def _path(text: str) -> str:
    if not text.startswith("/"):
        raise ValueError("a path must begin with /")
    if "?" in text or "#" in text:
        raise ValueError("a path to match has no query and no fragment")
    return text


def _method(text: str) -> str:
    if (
        not text
        or not text.isascii()
        or not all(char.isalnum() or char in "!#$%&'*+-.^_`|~" for char in text)
    ):
        raise ValueError("not a method")
    return text


PATH: Final = Scalar("Path", (str,), _path, {"pattern": "^/[^?#]*$"})
METHOD: Final = Scalar("Method", (str,), _method)
INVALID: Final = WordChoice("Invalid", ("invalid",), later=("invalid",))
MATCH_VALUE: Final = Union(
    "MatchValue",
    (
        INVALID,
        Object("MatchText", {"exact": optional(STRING), "regex": optional(REGEX)}, one_of=("exact", "regex")),
    ),
)
HEADER_MATCH: Final = Object(
    "HeaderMatch", {"name": required(HEADER_MATCH_NAME), "value": required(MATCH_VALUE)}
)
QUERY_MATCH: Final = Object("QueryMatch", {"name": required(STRING), "value": required(MATCH_VALUE)})
PATH_KINDS: Final = ("exact", "pathPrefix", "regex")
PATH_MATCH: Final = Union(
    "PathMatch",
    (
        INVALID,
        Object(
            "PathText",
            {"exact": optional(PATH), "pathPrefix": optional(PATH), "regex": optional(REGEX)},
            one_of=PATH_KINDS,
        ),
    ),
)
ROUTE_MATCH: Final = Object(
    "RouteMatch",
    {
        "path": optional(PATH_MATCH),
        "method": optional(METHOD),
        "headers": optional(ListOf(HEADER_MATCH)),
        "query": optional(ListOf(QUERY_MATCH)),
    },
)
