"""Places of values and comments in a text."""

from __future__ import annotations

from headgate.document.spans import Spans, edited

TEXT = """\
# first é😀
a: 'one' # behind
b:
  - {c: "t#wo", d: plain}   # flow
  - |
    block # no comment
    more
# last"""


def test_values_are_found_with_their_quotes() -> None:
    spans = Spans(TEXT)
    paths = [("a",), ("b", 0, "c"), ("b", 0, "d"), ("b", 1)]
    found = [TEXT[slice(*spans.scalar(path))] for path in paths]
    assert found == ["'one'", '"t#wo"', "plain", "|\n    block # no comment\n    more"]


def test_anchors_and_tags_are_not_of_the_value() -> None:
    text = "a: &one !!str secret\nb: *one\nc: &two 'x'\n"
    spans = Spans(text)
    assert [text[slice(*spans.scalar((key,)))] for key in "abc"] == ["secret", "secret", "'x'"]


def test_comments_are_found_and_nothing_else() -> None:
    found = [TEXT[start:end] for start, end in Spans(TEXT).comments()]
    assert found == ["# first é😀", "# behind", "# flow", "# last"]


def test_parts_are_replaced_in_any_order() -> None:
    assert edited("abcdef", {(4, 5): "X", (0, 2): ""}) == "cdXf"
