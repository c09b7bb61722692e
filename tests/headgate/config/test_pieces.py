"""Texts cut at the items of a list."""

from __future__ import annotations

import pytest

from headgate.config.pieces import LEAST_ITEMS, best_cut, cut, mark, split_item


def test_a_text_is_its_pieces() -> None:
    text = "a: 1\nb:\n- c\n  # said\n- d: |\n    - e\nf: 2\n"
    found = cut(text, 0)
    assert found is not None
    assert (found.head, found.items) == ("a: 1\nb:", ["c\n  # said", "d: |\n    - e\nf: 2"])
    assert mark(0).join([found.head, *found.items]) + "\n" == text


def test_a_text_that_ends_within_a_line_is_cut_unless_a_value_may_depend_on_it() -> None:
    assert cut("a:\n- b", 0) == cut("a:\n- b\n", 0)
    assert cut("a:\n- |\n  b", 0) is None


@pytest.mark.parametrize(
    ("item", "column", "tail"),
    [
        ("a: 1\n  b: 2", 0, ""),
        ("a: 1\nb: 2", 0, "\nb: 2"),
        ("a: 1\n\n# said\n  b: 2\n\n", 0, ""),
        ("a: 1\n  b: 2\n\n  # said\nc: 3\nd: 4", 0, "\nc: 3\nd: 4"),
        ("a: 1\n    b: 2\n  c: 3", 2, "\n  c: 3"),
        ("a: 1\n...", 0, "\n..."),
        ("a: 1\n\tb: 2", 0, "\n\tb: 2"),
        ("a: 1\r\n\r\n  b: 2\r", 0, ""),
    ],
)
def test_an_item_ends_where_something_is_indented_less(item: str, column: int, tail: str) -> None:
    found = split_item(item, column)
    assert (found.body + found.tail, found.tail) == (item, tail)


def test_the_cut_is_the_one_in_which_a_change_touches_least() -> None:
    routes = "".join(f"    - name: r{number}\n      backends:\n      - host: h:1\n" for number in range(LEAST_ITEMS))
    short = "".join(f"- name: b{number}\n" for number in range(LEAST_ITEMS))
    found = best_cut(f"backends:\n{short}binds:\n- listeners:\n  - routes:\n{routes}")
    assert found is not None
    assert found.column == 4
    assert best_cut("routes:\n" + "- a\n" * (LEAST_ITEMS - 1)) is None
