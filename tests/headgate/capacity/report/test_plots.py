"""Plots: everything lies inside, and ticks are round."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.capacity.report.plots import HEIGHT, WIDTH, Axis, Line, Plot, number, svg

SIZES = st.floats(1e-3, 1e6)


def drawn(plot: Plot) -> ElementTree.Element:
    return ElementTree.fromstring(svg(plot))


@given(st.lists(st.tuples(SIZES, SIZES), min_size=1, max_size=30), st.booleans(), st.booleans())
def test_points_lie_inside(points: list[tuple[float, float]], log_x: bool, log_y: bool) -> None:
    found = drawn(Plot("t", Axis("x", log_x), Axis("y", log_y), (Line("a", tuple(sorted(points))),), (points[0][0], "here")))
    for circle in found.iter("circle"):
        assert 0 <= float(circle.attrib["cx"]) <= WIDTH
        assert 0 <= float(circle.attrib["cy"]) <= HEIGHT
    for line in found.iter("line"):
        assert all(-0.1 <= float(line.attrib[name]) <= WIDTH for name in ("x1", "x2", "y1", "y2"))
    assert len(list(found.iter("polyline"))) == 1


def test_names_are_text_and_not_markup() -> None:
    found = svg(Plot("<t>", Axis("<x>"), Axis("y"), (Line("<b>", ((1.0, 2.0),)),), (1.0, "<m>")))
    assert re.findall(r"<[tbxm]>", found) == []
    assert "&lt;b&gt;: 2 at 1" in found


def test_names_at_the_ends_do_not_lie_on_one_another() -> None:
    lines = tuple(Line(name, ((1.0, 5.0), (2.0, 5.0))) for name in "abcd")
    places = sorted(float(text.attrib["y"]) for text in drawn(Plot("t", Axis("x"), Axis("y"), lines)).iter("text") if text.text in "abcd")
    assert all(later - sooner >= 13 for sooner, later in zip(places, places[1:], strict=False))


@pytest.mark.parametrize(("value", "text"), [(0, "0"), (0.5, "0.5"), (1500, "1500"), (20_000, "20k"), (3_000_000, "3M")])
def test_numbers_of_ticks(value: float, text: str) -> None:
    assert number(value) == text


def test_a_line_without_points_is_left_out() -> None:
    assert list(drawn(Plot("t", Axis("x"), Axis("y", log=True), (Line("a", ()),))).iter("polyline")) == []
