"""Plots as SVG, drawn without a library and without scripts. Colours are classes, which the page sets for light and
dark."""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape
from typing import Final, NamedTuple

WIDTH: Final = 640
HEIGHT: Final = 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 84, 16, 44
# Of each line, beside its colour.
_DASHES: Final = ("", "7 3", "2 3", "9 3 2 3")
_TICKS: Final = 5
# Height of a name.
_NAME: Final = 13


class Line(NamedTuple):
    """A line of points (x, y), in ascending order of x."""

    name: str
    points: tuple[tuple[float, float], ...]


class Axis(NamedTuple):
    """label: with its unit. ticks: (value, text) where they are not round numbers."""

    label: str
    log: bool = False
    ticks: tuple[tuple[float, str], ...] = ()


class Plot(NamedTuple):
    """mark: (x, text) of a line across the plot."""

    title: str
    x: Axis
    y: Axis
    lines: tuple[Line, ...]
    mark: tuple[float, str] | None = None


def number(value: float) -> str:
    """Return a number as ticks show it."""
    if value == 0:
        return "0"
    if abs(value) >= 1_000_000:
        return f"{value / 1_000_000:g}M"
    if abs(value) >= 10_000:
        return f"{value / 1000:g}k"
    return f"{value:g}"


def _round_ticks(low: float, high: float) -> list[float]:
    """Return about five round numbers from `low` to `high`."""
    raw = (high - low) / _TICKS or 1.0
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw - 1e-12)
    first = math.ceil(low / step - 1e-9)
    return [round(index * step, 10) for index in range(first, math.floor(high / step + 1e-9) + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    found = [10.0**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    inside = [value for value in found if low <= value <= high]
    if len(inside) >= 2:
        return inside
    return [value * factor for value in found for factor in (1, 2, 5) if low <= value * factor <= high]


class _Scale:
    """From values to places on one axis."""

    def __init__(self, axis: Axis, values: Iterable[float], start: float, end: float) -> None:
        self.axis, self.start, self.end = axis, start, end
        found = [value for value in values if math.isfinite(value) and (value > 0 or not axis.log)] or [1.0]
        low, high = min(found), max(found)
        if axis.log:
            low, high = low / 1.2, high * 1.2
        elif not axis.ticks:
            low, high = min(low, 0.0), high * 1.05 or 1.0
        self.low, self.high = low, high if high > low else low + 1.0

    def at(self, value: float) -> float:
        low, high = self.low, self.high
        if self.axis.log:
            value, low, high = math.log(max(value, self.low)), math.log(low), math.log(high)
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    def ticks(self) -> list[tuple[float, str]]:
        if self.axis.ticks:
            return [one for one in self.axis.ticks if self.low <= one[0] <= self.high]
        values = _log_ticks(self.low, self.high) if self.axis.log else _round_ticks(self.low, self.high)
        return [(value, number(value)) for value in values]


def _text(kind: str, anchor: str, x: float, y: float, words: str) -> str:
    return f'<text class="{kind}" text-anchor="{anchor}" x="{x:.1f}" y="{y:.1f}">{escape(words)}</text>'


def svg(plot: Plot) -> str:
    """Return the plot."""
    points = [point for line in plot.lines for point in line.points]
    marked = [plot.mark[0]] if plot.mark else []
    x = _Scale(plot.x, [*(one[0] for one in points), *marked], _LEFT, WIDTH - _RIGHT)
    y = _Scale(plot.y, (one[1] for one in points), HEIGHT - _BOTTOM, _TOP)
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(plot.title)}">']
    for value, text in y.ticks():
        at = y.at(value)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(f'<text class="tick" text-anchor="end" x="{_LEFT - 6}" y="{at + 4:.1f}">{escape(text)}</text>')
    for value, text in x.ticks():
        parts.append(_text("tick", "middle", x.at(value), HEIGHT - _BOTTOM + 18, text))
    parts.append(
        f'<line class="axis" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{HEIGHT - _BOTTOM}" y2="{HEIGHT - _BOTTOM}"/>'
    )
    parts.append(_text("label", "middle", (_LEFT + WIDTH - _RIGHT) / 2, HEIGHT - 6, plot.x.label))
    middle = (_TOP + HEIGHT - _BOTTOM) / 2
    parts.append(
        f'<g transform="translate(14 {middle}) rotate(-90)">{_text("label", "middle", 0, 0, plot.y.label)}</g>'
    )
    if plot.mark:
        at = x.at(plot.mark[0])
        parts.append(f'<line class="mark" x1="{at:.1f}" x2="{at:.1f}" y1="{_TOP}" y2="{HEIGHT - _BOTTOM}"/>')
        parts.append(
            f'<text class="tick" text-anchor="end" x="{at - 5:.1f}" y="{_TOP + 10}">{escape(plot.mark[1])}</text>'
        )
    parts += _drawn(plot, x, y)
    return "".join([*parts, "</svg>"])


def _drawn(plot: Plot, x: _Scale, y: _Scale) -> list[str]:
    """Return the lines, their points with what they say, and their names at the ends."""
    found = []
    ends: list[tuple[float, int, str]] = []
    for index, line in enumerate(plot.lines):
        places = [(x.at(one[0]), y.at(one[1])) for one in line.points]
        if not places:
            continue
        tone = index % 4 + 1
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
        found.append(f'<polyline class="s{tone}" stroke-dasharray="{_DASHES[index % 4]}" points="{path}"/>')
        kind, size = (f"p{tone}", 3) if len(places) <= 80 else (f"h{tone}", 5)
        for (a, b), (value, height) in zip(places, line.points, strict=True):
            words = f"{line.name}: {height:.4g} at {value:.6g}"
            found.append(
                f'<circle class="{kind}" cx="{a:.1f}" cy="{b:.1f}" r="{size}"><title>{escape(words)}</title></circle>'
            )
        ends.append((places[-1][1] + 4, tone, line.name))
    return [*found, *_named(ends)]


def _named(ends: list[tuple[float, int, str]]) -> list[str]:
    """Return the names of lines beside their ends, from the top down; those that would lie on another one move down."""
    found = []
    below = 0.0
    for number, (at, tone, name) in enumerate(sorted(ends)):
        lowest = HEIGHT - _BOTTOM + 4 - _NAME * (len(ends) - 1 - number)
        place = max(min(at, lowest), below)
        below = place + _NAME
        found.append(f'<text class="n{tone}" x="{WIDTH - _RIGHT + 8}" y="{place:.1f}">{escape(name)}</text>')
    return found
