"""The report as one HTML page: plots, tables, light and dark, nothing from elsewhere and no script."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any, Final

from headgate.capacity.report.plots import Axis, Line, Plot, svg
from headgate.capacity.report.text import ms, told_step

Json = dict[str, Any]
STYLE: Final = Path(__file__).with_name("page.css")
# Of the plot of all percentiles: x is how rare a value is, one of so many.
_RARITIES: Final = (
    (2.0, "50 %"),
    (10.0, "90 %"),
    (100.0, "99 %"),
    (1000.0, "99.9 %"),
    (10_000.0, "99.99 %"),
    (100_000.0, "99.999 %"),
)
_TIMES: Final = (("latency_ms", "latency"), ("first_token_ms", "first token"), ("between_tokens_ms", "between tokens"))


def _distribution(steps: list[Json]) -> Plot:
    lines = []
    for step in _some(steps):
        total = sum(count for _, count in step["histogram_ns"])
        seen, points = 0, []
        for least, count in step["histogram_ns"]:
            seen += count
            left = total - seen
            points.append((total / left if left else float(total) * 2, least / 1e6))
        name = f"{step['rate']:,.0f}/s" if step["rate"] else "all"
        lines.append(Line(name, tuple((max(rare, 1.0), value) for rare, value in points)))
    return Plot(
        "Latency by percentile", Axis("percentile", log=True, ticks=_RARITIES), Axis("ms", log=True), tuple(lines)
    )


def _some(steps: list[Json]) -> list[Json]:
    """Return up to four steps with latencies, the first and the last among them."""
    found = [step for step in steps if step["histogram_ns"]]
    if len(found) <= 4:
        return found
    return [found[round(index * (len(found) - 1) / 3)] for index in range(4)]


def _seconds(step: Json) -> list[Plot]:
    rows = step["series_ms"]
    time = Axis("seconds")
    latency = tuple(
        Line(name, tuple((row["second"], row[name]) for row in rows if row["good"] or row["max"]))
        for name in ("p50", "p99", "max")
    )
    counts = [Line("answered", tuple((row["second"], row["good"]) for row in rows))]
    if step["failed"]:
        counts.append(Line("failed", tuple((row["second"], row["failed"]) for row in rows)))
    return [
        Plot("Latency by second", time, Axis("ms", log=True), latency),
        Plot("Answers by second", time, Axis("a second"), tuple(counts)),
    ]


def _by_rate(steps: list[Json], knee: float | None) -> list[Plot]:
    rows = sorted((step for step in steps if step["rate"]), key=lambda step: float(step["rate"]))
    told = [step for step in rows if step["latency_ms"]]
    mark = None if knee is None else (knee, f"{knee:,.0f}/s")
    rate = Axis("requests a second asked for")
    found = [
        Plot("Latency by rate", rate, Axis("ms", log=True), tuple(
            Line(name, tuple((step["rate"], step["latency_ms"][name]) for step in told))
            for name in ("p50", "p90", "p99")
        ), mark),
        Plot("Answers by rate", rate, Axis("a second"), (
            Line("answered", tuple((step["rate"], step["achieved"]) for step in rows)),
            Line("asked", tuple((step["rate"], step["rate"]) for step in rows)),
        ), mark),
    ]  # fmt: skip
    measured = [step for step in rows if step["target"]]
    if measured:
        found.append(
            Plot(
                "CPU of the target by rate",
                rate,
                Axis("processors"),
                (Line("target", tuple((step["rate"], step["target"]["processors"]) for step in measured)),),
                mark,
            )
        )
    return found


def _plots(document: Json) -> list[Plot]:
    steps = document["steps"]
    search = document["saturation"]
    rates = {step["rate"] for step in steps}
    found = _by_rate(steps, search["knee"] if search else None) if len(rates) > 1 else _seconds(steps[-1])
    return [plot for plot in [*found, _distribution(steps)] if any(line.points for line in plot.lines)]


def _tiles(document: Json) -> list[tuple[str, str]]:
    search = document["saturation"]
    step = told_step(document)
    found = []
    if search:
        found.append(("none" if search["knee"] is None else f"{search['knee']:,.0f}/s", "carried at most"))
    found.append((f"{step['achieved']:,.0f}/s", "answered"))
    found.append((f"{step['error_share']:.2%}", "failed"))
    if latency := step["latency_ms"]:
        found += [(ms(latency["p50"]), "latency p50"), (ms(latency["p99"]), "latency p99")]
    if first := step["first_token_ms"]:
        found += [(ms(first["p50"]), "first token p50"), (ms(first["p99"]), "first token p99")]
    if step["target"] and step["target"]["cpu_us_per_request"] is not None:
        found += [
            (f"{step['target']['cpu_us_per_request']:,.0f} us", "CPU a request"),
            (f"{step['target']['peak_mb']:,.0f} MB", "memory"),
        ]
    return found


def _asked(step: Json) -> str:
    return f"{step['rate']:,.0f}" if step["rate"] else "max"


def _table(head: list[str], rows: list[list[str]]) -> str:
    """Return a table; a row of one cell is as wide as all of it."""
    cells = "".join(f"<th>{escape(name)}</th>" for name in head)
    whole = f'<td colspan="{len(head)}">'
    body = "".join(
        "<tr>" + "".join(f"{whole if len(row) == 1 else '<td>'}{cell}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


def _steps_table(steps: list[Json]) -> str:
    rows = []
    for step in steps:
        latency = step["latency_ms"] or {}
        target = step["target"]
        cells = [ms(latency[key]) if latency else "-" for key in ("p50", "p90", "p99", "p999", "max")]
        used = [f"{target['processors']:.2f}", f"{target['peak_mb']:,.0f}"] if target else ["-", "-"]
        asked = f"{step['rate']:,.0f}" if step["rate"] else "max"
        rows.append(
            [
                asked,
                f"{step['achieved']:,.0f}",
                f"{step['error_share']:.2%}",
                *cells,
                *used,
                f"{step['generator']['busy']:.0%}",
            ]
        )
        if step["verdict"]:
            rows.append([f'<div class="bad left">{escape(step["verdict"])}</div>'])
    return _table(
        [
            "asked/s",
            "answered/s",
            "failed",
            "p50",
            "p90",
            "p99",
            "p99.9",
            "max",
            "target CPUs",
            "MB",
            "generator CPU",
        ],
        rows,
    )


def _token_table(steps: list[Json]) -> str:
    rows = [
        [
            _asked(step), f'<div class="left">{name}</div>',
            *(ms(step[key][part]) for part in ("p50", "p90", "p99", "max")),
        ]
        for step in steps for key, name in _TIMES[1:] if step[key]
    ]  # fmt: skip
    return (
        f"<section><h2>Tokens</h2>{_table(['asked/s', '', 'p50', 'p90', 'p99', 'max'], rows)}</section>" if rows else ""
    )


def _error_table(steps: list[Json]) -> str:
    rows = [
        [f"{step['rate']:,.0f}" if step["rate"] else "max", escape(kind), f"{count:,}"]
        for step in steps
        for kind, count in step["errors"].items()
    ]
    return f"<section><h2>Errors</h2>{_table(['asked/s', 'kind', 'requests'], rows)}</section>" if rows else ""


def page(document: Json) -> str:
    """Return the page."""
    workload, machine = document["workload"], document["machine"]
    how = f"HTTP/{workload['protocol']}, {workload['connections']} connections" + (
        f" of {workload['streams']} streams" if workload["streams"] else ""
    )
    search = document["saturation"]
    verdict = ""
    if search:
        words = (
            "no bound was met"
            if not search["limit"]
            else ("beyond it: " if search["knee"] is not None else "not even the first rate was carried: ")
            + search["limit"]
        )
        verdict = f"<p>{escape(words)}</p>"
    tiles = "".join(f"<div><b>{escape(value)}</b>{escape(name)}</div>" for value, name in _tiles(document))
    plots = "".join(f"<section><h2>{escape(plot.title)}</h2>{svg(plot)}</section>" for plot in _plots(document))
    steps = document["steps"]
    where = f"{machine['cpu']}, {machine['cpus']} processors, {machine['system']}"
    foot = f"headgate {document['version']}, {document['date']}, {where}"
    title = f"{workload['kind']}: {workload['method']} {workload['url']}"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>{escape(title)}</title><style>{STYLE.read_text()}</style></head><body><main>
<h1>{escape(title)}</h1><p class="soft">{escape(how)}, {workload["seconds"]:g} s a step behind
{workload["warm_up"]:g} s of warm-up. Latency counts from when a request was due.</p>
{verdict}<div class="tiles">{tiles}</div><div class="plots">{plots}</div>
<section><h2>Steps</h2>{_steps_table(steps)}</section>{_token_table(steps)}{_error_table(steps)}
<p class="soft">{escape(foot)}</p></main></body></html>
"""
