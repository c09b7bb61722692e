"""The report as text for a terminal."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def ms(value: float) -> str:
    """Return milliseconds with three digits that count."""
    if value >= 1000:
        return f"{value / 1000:.3g} s" if value < 999_500 else f"{value / 1000:,.0f} s"
    return f"{value:.3g} ms" if value >= 1 else f"{value * 1000:.3g} us"


def _row(name: str, times: Json) -> str:
    cells = "  ".join(
        f"{label} {ms(times[key]):>8}"
        for key, label in (("p50", "p50"), ("p90", "p90"), ("p99", "p99"), ("p999", "p99.9"), ("max", "max"))
    )
    return f"  {name:<16}{cells}"


def step_lines(step: Json) -> list[str]:
    """Return one step in full."""
    asked = f"{step['rate']:,.0f} a second asked" if step["rate"] else "as fast as connections allow"
    lines = [
        f"  requests        {step['achieved']:,.1f} a second answered, {asked}, "
        f"{step['good']:,} good, {step['failed']:,} failed"
    ]
    for key, name in (
        ("latency_ms", "latency"),
        ("first_token_ms", "first token"),
        ("between_tokens_ms", "between tokens"),
    ):
        if step[key]:
            lines.append(_row(name, step[key]))
    if step["tokens"]:
        lines.append(f"  tokens          {step['tokens']['per_second']:,.0f} a second")
    lines += [f"  error           {count:,} x {kind}" for kind, count in step["errors"].items()]
    if step["reconnects"]:
        lines.append(f"  connections     {step['reconnects']:,} opened again")
    if target := step["target"]:
        each = (
            "" if target["cpu_us_per_request"] is None else f", {target['cpu_us_per_request']:,.1f} us of CPU a request"
        )
        lines.append(
            f"  target          {target['processors']:.2f} processors{each}, "
            f"{target['peak_mb']:,.0f} MB in {target['processes']} processes"
        )
    generator = step["generator"]
    if generator["cpu_us_per_request"] is not None:
        lag = f", sent {ms(generator['lag_ms']['p99'])} late (p99)" if generator["lag_ms"] else ""
        lines.append(
            f"  generator       {generator['busy']:.0%} of a processor, "
            f"{generator['cpu_us_per_request']:.1f} us of CPU a request{lag}"
        )
    return lines


def table_lines(steps: list[Json]) -> list[str]:
    """Return several steps, one on a line."""
    lines = [f"  {'asked/s':>10} {'answered/s':>11} {'errors':>7} {'p50':>9} {'p99':>9} {'max':>9}  "]
    for step in steps:
        latency = step["latency_ms"]
        cells = [ms(latency[key]) if latency else "-" for key in ("p50", "p99", "max")]
        asked = f"{step['rate']:,.0f}" if step["rate"] else "-"
        lines.append(
            f"  {asked:>10} {step['achieved']:>11,.0f} {step['error_share']:>7.1%} "
            + " ".join(f"{cell:>9}" for cell in cells)
            + f"  {step['verdict']}"
        )
    return lines


def told_step(document: Json) -> Json:
    """Return the step that is told in full: that of the largest rate that was carried, else the last one."""
    steps: list[Json] = document["steps"]
    search = document["saturation"]
    if not search or search["knee"] is None:
        return steps[-1]
    knee = search["knee"]
    # Both are rounded.
    return min((step for step in steps if step["rate"]), key=lambda step: abs(float(step["rate"]) - knee))


def report_text(document: Json) -> str:
    """Return the whole report."""
    workload = document["workload"]
    how = f"HTTP/{workload['protocol']}, {workload['connections']} connections"
    if workload["streams"]:
        how += f" of {workload['streams']} streams"
    lines = [
        f"{workload['kind']}: {workload['method']} {workload['url']}",
        f"  {how}, {workload['seconds']:g} s behind {workload['warm_up']:g} s of warm-up",
    ]
    steps = document["steps"]
    if len(steps) == 1:
        lines += step_lines(steps[0])
    else:
        lines += table_lines(steps)
        shown = told_step(document)
        lines += [
            "",
            f"at {shown['rate']:,.0f} a second:" if shown["rate"] else "the last of them:",
            *step_lines(shown),
        ]
    if search := document["saturation"]:
        if search["knee"] is None:
            lines += ["", f"not even the first rate was carried: {search['limit']}"]
        elif search["limit"]:
            lines += [
                "",
                f"saturation: {search['knee']:,.0f} requests a second are carried; beyond them: {search['limit']}",
            ]
        else:
            lines += ["", f"no bound was met: {search['knee']:,.0f} requests a second are carried"]
    return "\n".join(lines) + "\n"
