"""Where two sequences differ."""

from __future__ import annotations

from operator import is_

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.document.hunks import Hunk, hunks


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ("abc", "abc", []),
        ("", "", []),
        ("abcdef", "aXcdYZ", [Hunk(1, 2, 1, 2), Hunk(4, 6, 4, 6)]),
        ("abc", "abXc", [Hunk(2, 2, 2, 3)]),
        ("abc", "ac", [Hunk(1, 2, 1, 1)]),
        ("abc", "", [Hunk(0, 3, 0, 0)]),
        ("", "abc", [Hunk(0, 0, 0, 3)]),
        ("abc", "Xabc", [Hunk(0, 0, 0, 1)]),
        ("abc", "abcX", [Hunk(3, 3, 3, 4)]),
        ("aa", "aaa", [Hunk(2, 2, 2, 3)]),
    ],
)
def test_what_changed_is_found(before: str, after: str, found: list[Hunk]) -> None:
    assert hunks(before, after) == found


@given(st.text("ab", max_size=8), st.text("ab", max_size=8))
def test_the_second_comes_of_the_first_and_the_hunks(before: str, after: str) -> None:
    made = list(before)
    for hunk in reversed(hunks(before, after)):
        made[hunk.i1 : hunk.i2] = after[hunk.j1 : hunk.j2]
    assert "".join(made) == after


def test_items_can_be_compared_as_objects() -> None:
    one, other = [1], [1]
    assert hunks([one], [other]) == []
    assert hunks([one], [other], is_) == [Hunk(0, 1, 0, 1)]
