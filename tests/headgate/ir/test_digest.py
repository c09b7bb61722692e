"""Digests of IR values."""

from __future__ import annotations

import pytest

from headgate.document.secret import Secret
from headgate.ir.digest import digest
from headgate.ir.match import Match, PathMatch
from headgate.ir.secret import SecretRef


def test_equal_content_gives_equal_digests() -> None:
    one, other = (Match(path=PathMatch(kind="exact", value="/a"), method="GET") for _ in range(2))
    assert digest(one) == digest(other)
    assert len(digest(one)) == 32


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", "b"), ("ab",)),
        ((("a",), "b"), ("a", ("b",))),
        (("1",), (1,)),
        ((None,), ("None",)),
        ((True,), (1,)),
        ((b"a",), ("a",)),
        ((Match(method="A"),), (Match(method="B"),)),
    ],
)
def test_different_content_gives_different_digests(
    one: tuple[object, ...], other: tuple[object, ...]
) -> None:
    assert digest(*one) != digest(*other)


def test_secrets_count_and_do_not_show() -> None:
    first, second = (SecretRef(secret=Secret(text)) for text in ("a", "b"))
    assert digest(first) != digest(second)
    assert digest(first) == digest(SecretRef(secret=Secret("a")))


def test_what_has_no_place_in_the_ir_is_refused() -> None:
    with pytest.raises(TypeError, match="dict"):
        digest({"a": 1})
