"""Routes, models and MCP targets, from a dump and a state."""

from __future__ import annotations

from typing import Any

import pytest
from tests.headgate.cli.traffic_rig import BOUNDS, DUMP, STATE, TARGETS

from headgate.cli import traffic_rows
from headgate.cli.traffic_rows import quantile


def test_every_route_has_a_row_and_so_has_what_found_none() -> None:
    rows = traffic_rows.routes(DUMP, STATE)
    assert traffic_rows.route_cells(rows) == [
        ("default/busy", "[::]:80 web", "POST /a x-team, ~/b.*", "a.test:80", "10", "2", "1", "10.0ms", "98.2ms"),
        ("", "-", "-", "-", "3", "3", "0", "5.0ms", "9.9ms"),
        ("default/quiet", "[::]:80 web", "/*", "-", "0", "0", "0", "-", "-"),
    ]


def test_models_that_are_configured_and_models_that_were_asked_for() -> None:
    assert traffic_rows.model_cells(traffic_rows.models(DUMP, STATE)) == [
        ("claude-x", "anthropic", "-", "9", "1", "2", "-"),
        ("small", "openai", "a.test:443", "4", "40", "8", "$0.5"),
        ("claude-*", "anthropic", "b.test:443", "0", "0", "0", "-"),
    ]


def test_mcp_targets_those_that_are_down_first() -> None:
    assert traffic_rows.mcp_cells(traffic_rows.mcp(STATE, TARGETS)) == [
        ("near", "down", "-", "2", "1", "1", "-", "-", "tools", "uvx", "cannot be started"),
        ("far", "up", "shop 1.2", "2", "6", "2", "1.5ms", "250ms", "tools", "c.test:443/mcp", "-"),
    ]
    assert traffic_rows.mcp({}, []) == []


@pytest.mark.parametrize("reader", [traffic_rows.routes, traffic_rows.models])
def test_nothing_has_no_rows(reader: Any) -> None:
    assert reader({}, {}) == []


@pytest.mark.parametrize(
    ("share", "counts", "found"),
    [
        (0.5, [0, 0, 0, 0], None),
        (0.5, [2, 0, 0, 0], 5.0),
        (0.5, [1, 1, 0, 0], 10.0),
        (0.75, [0, 4, 0, 0], 77.5),
        (0.99, [0, 0, 0, 3], 1000.0),
    ],
)
def test_quantiles_lie_between_bounds(share: float, counts: list[int], found: float | None) -> None:
    assert quantile(share, counts, BOUNDS) == (None if found is None else pytest.approx(found))
