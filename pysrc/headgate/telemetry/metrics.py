"""Exposition of the shared counters as text: in the Prometheus format 0.0.4, and as OpenMetrics 1.0.

Sources: https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format,
https://prometheus.io/docs/specs/om/open_metrics_spec/. They differ in the names of counters' families, in how bounds
are written, and in the end of the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from headgate.telemetry.families import FAMILIES, Family
from headgate_engine.lazy_pattern import lazy_pattern
from headgate_engine.shared.exemplars import FoundExemplar
from headgate_engine.shared.histogram import HistogramValue, Sample

CONTENT_TYPE = "text/plain;charset=utf-8"
_LABEL: Final = lazy_pattern(r'([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)"')
_ESCAPED: Final = lazy_pattern(r"\\(.)")
OPENMETRICS_TYPE = "application/openmetrics-text;version=1.0.0;charset=utf-8"


def label_text(labels: dict[str, str]) -> str:
    """Return labels as `a="1",b="2"` with escaped values, the form used in the keys of series."""
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


@lru_cache(maxsize=65536)
def labels_of(text: str) -> Mapping[str, str]:
    """Return the unescaped labels of a series' key. Keys are immutable, so the result is cached."""
    return {name: _ESCAPED.sub(_unescaped, value) for name, value in _LABEL.findall(text)}


def _unescaped(found: re.Match[str]) -> str:
    return "\n" if found[1] == "n" else found[1]


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def series_key(family: str, labels: dict[str, str]) -> bytes:
    """Return the key of a series in the shared memory segment."""
    return f"{family}\0{label_text(labels)}".encode()


def removed(name: str, remove: Iterable[str]) -> bool:
    """Return whether `remove` names a family. Entries may omit the prefix `gw_`, `_total` and the unit."""
    short = name.removeprefix("gw_").removesuffix("_total")
    bare = short.removesuffix("_seconds").removesuffix("_bytes")
    return any(entry.removeprefix("gw_").removesuffix("_total") in (short, bare) for entry in remove)


class PageForm(NamedTuple):
    """How a page is written. open: as OpenMetrics. classic: with the buckets of the families' bounds, which histograms
    without native ones always have."""

    open: bool = False
    classic: bool = True


TEXT: Final = PageForm()


def render(samples: Iterable[Sample], remove: Iterable[str] = (), form: PageForm = TEXT) -> str:
    """Return the text of all metrics: families in table order with HELP and TYPE, series sorted by labels."""
    remove = tuple(remove)
    by_family: dict[str, list[Sample]] = {}
    for sample in samples:
        by_family.setdefault(sample.family, []).append(sample)
    lines: list[str] = []
    for family in FAMILIES:
        found = by_family.get(family.name)
        if found and not removed(family.name, remove):
            lines += _family_lines(family, found, form)
    if form.open:
        lines.append("# EOF")
    return "\n".join(lines) + "\n"


def _family_lines(family: Family, samples: list[Sample], form: PageForm) -> list[str]:
    name = family.name.removesuffix("_total") if form.open else family.name
    lines = [f"# HELP {name} {family.help}", f"# TYPE {name} {family.kind}"]
    for sample in sorted(samples, key=lambda item: item.labels):
        if isinstance(sample.value, HistogramValue):
            lines += _histogram_lines(family.name, sample.labels, sample.value, form)
        else:
            lines.append(f"{family.name}{_braces(sample.labels)} {_number(sample.value)}")
    return lines


def _number(value: object) -> str:
    """Return a value as text. A Decimal (an amount of money) is exact and has no exponent."""
    if isinstance(value, int | float):
        return str(value)
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _digits(value: object) -> str:
    """Return a number with all its digits and without an exponent."""
    text = repr(value)
    if "e" in text:
        from decimal import Decimal  # loaded by who shows such a number

        text = f"{Decimal(text):f}"
    return text.removesuffix(".0")


@lru_cache(maxsize=256)
def _bound_texts(bounds: tuple[float, ...], fraction: bool) -> tuple[str, ...]:
    """Return the bounds of buckets as text. fraction: with `.0` behind a whole number. Cached, since thousands of
    series share a few lists of bounds."""
    texts = map(_digits, bounds)
    return tuple(f"{text}.0" if fraction and "." not in text else text for text in texts)


def _braces(labels: str) -> str:
    return f"{{{labels}}}" if labels else ""


def _histogram_lines(name: str, labels: str, value: HistogramValue, form: PageForm) -> list[str]:
    separator = "," if labels else ""
    lines = []
    total = sum(value.counts)
    reached = 0
    marked = value.exemplars if form.open else {}
    classic = form.classic or value.native is None
    start = f'{name}_bucket{{{labels}{separator}le="'
    if classic:
        for at, (text, count) in enumerate(zip(_bound_texts(value.bounds, form.open), value.counts, strict=False)):
            reached += count
            lines.append(f'{start}{text}"}} {reached}{_exemplar(marked.get(at))}')
    # Without other buckets the last one has all observations, so any exemplar is one of it.
    last = marked.get(len(value.bounds)) if classic else next(reversed(marked.values()), None)
    lines.append(f'{start}+Inf"}} {total}{_exemplar(last)}')
    lines.append(f"{name}_sum{_braces(labels)} {_digits(value.sum)}")
    lines.append(f"{name}_count{_braces(labels)} {total}")
    return lines


def _exemplar(found: FoundExemplar | None) -> str:
    """Return an exemplar as it stands behind the value of a bucket in OpenMetrics."""
    if found is None:
        return ""
    ids = f'trace_id="{found.trace_id}",span_id="{found.span_id}"'
    return f" # {{{ids}}} {_digits(found.value)} {found.time_s:.3f}"
