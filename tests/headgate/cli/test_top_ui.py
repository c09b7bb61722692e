"""The live view, driven by Textual's own test driver."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import click
import pytest
from tests.headgate.cli.traffic_rig import DUMP, STATE, TARGETS
from textual.pilot import Pilot
from textual.widgets import Static

from headgate.cli import top_views
from headgate.cli.top_ui import TopApp
from headgate.cli.top_views import TopLook

PICTURES = Path(__file__).parents[3] / "docs" / "pictures"
Steps = Callable[[Pilot[None], TopApp], Awaitable[None]]


class Gateway:
    """What is told at each look; `fails`: the gateway does not answer."""

    def __init__(self) -> None:
        self.looks = 0
        self.fails = False
        self.strange = False
        self.more: list[dict[str, Any]] = []

    def fetch(self, _port: int, _before: TopLook | None = None) -> TopLook:
        if self.fails:
            raise click.ClickException("no answer from the admin server")
        self.looks += 1
        if self.strange:
            raise KeyError("routes")
        state = {
            **deepcopy(STATE),
            "time": 1000 * self.looks,
            "generation": 1,
            "workers": [],
            "all": {"requests": 5},
            "version": "1",
        }
        state["routes"][0]["requests"] += 10 * self.looks
        state["routes"] += self.more
        return TopLook(state=state, dump=DUMP, targets=deepcopy(TARGETS), missing={"keys": "the configuration has no virtualKeys"})


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> Gateway:
    found = Gateway()
    monkeypatch.setattr(top_views, "fetch", found.fetch)
    return found


async def until(pilot: Pilot[None], condition: Callable[[], Any]) -> None:
    for _ in range(1200):
        if condition():
            await pilot.pause()
            return
        await pilot.pause(0.05)
    raise AssertionError("never")


def drive(steps: Steps, size: tuple[int, int] = (120, 30)) -> None:
    app = TopApp(1, "routes", 0.05)

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            await until(pilot, lambda: app.shown_rows)
            await steps(pilot, app)

    asyncio.run(run())


def text(app: TopApp, name: str) -> str:
    return str(app.query_one(name, Static).content)


def test_views_are_chosen_by_digits(gateway: Gateway) -> None:
    async def steps(pilot: Pilot[None], app: TopApp) -> None:
        assert [row[0] for row in app.shown_rows] == ["default/busy", "", "default/quiet"] or app.shown_rows[0][
            0
        ] == "default/busy"
        await until(pilot, lambda: app.shown_rows[0][1] == "10.0")
        await pilot.press("2")
        assert {row[0] for row in app.shown_rows} == {"claude-x", "small", "claude-*"}
        assert "[2 models]" in text(app, "#head")
        await pilot.press("3")
        assert app.shown_rows == []
        assert "no virtualKeys" in text(app, "#whole")
        await pilot.press("4")
        assert {row[0] for row in app.shown_rows} == {"far", "near"}
        await pilot.press("q")

    drive(steps)


def test_rows_are_filtered_and_sorted(gateway: Gateway) -> None:
    async def steps(pilot: Pilot[None], app: TopApp) -> None:
        await pilot.press("slash", *"quiet", "enter")
        await until(pilot, lambda: [row[0] for row in app.shown_rows] == ["default/quiet"])
        assert "/quiet" in text(app, "#head")
        await pilot.press("escape")
        await until(pilot, lambda: len(app.shown_rows) == 3)
        await pilot.press("s", "s", "s")
        assert app.sorted_by == 2
        assert [int(row[2]) for row in app.shown_rows] == sorted((int(row[2]) for row in app.shown_rows), reverse=True)
        await pilot.press("q")

    drive(steps)


def test_it_stands_still_and_says_when_nothing_comes(gateway: Gateway) -> None:
    async def steps(pilot: Pilot[None], app: TopApp) -> None:
        await pilot.press("p")
        assert "paused" in text(app, "#head")
        kept, looks = app.shown_rows, gateway.looks
        await until(pilot, lambda: gateway.looks > looks + 1)
        assert app.shown_rows == kept
        await pilot.press("p")
        gateway.fails = True
        await until(pilot, lambda: "no answer" in text(app, "#head"))
        assert app.shown_rows
        await pilot.press("q")

    drive(steps)


def test_an_answer_that_is_not_understood_is_told_and_does_not_end_the_view(gateway: Gateway) -> None:
    async def steps(pilot: Pilot[None], app: TopApp) -> None:
        await until(pilot, lambda: app.shown_rows)
        gateway.strange = True
        await until(pilot, lambda: "not understood: KeyError('routes')" in text(app, "#head"))
        gateway.strange = False
        await until(pilot, lambda: "not understood" not in text(app, "#head"))
        await pilot.press("q")

    drive(steps)


def test_all_keys_are_told_on_a_small_terminal(gateway: Gateway) -> None:
    async def steps(pilot: Pilot[None], app: TopApp) -> None:
        legend = app.query_one("#help", Static)
        assert legend.region.height == 1
        assert legend.region.width == 80
        assert len(str(legend.visual)) <= 78
        assert "q quit" in str(legend.visual)
        await pilot.press("q")

    drive(steps, (80, 24))


def test_columns_fit_a_small_terminal_and_what_is_cut_is_told(gateway: Gateway) -> None:
    name = "default/" + "long-" * 12

    async def steps(pilot: Pilot[None], app: TopApp) -> None:
        for view in ("1", "2", "4"):
            await pilot.press(view)
            await pilot.pause()
            assert app.table.virtual_size.width <= 80
        await pilot.press("1")
        app.table.move_cursor(row=[row[0] for row in app.shown_rows].index(name))
        await pilot.pause()
        assert f"ROUTE {name}" in text(app, "#whole")
        assert app.query_one("#head").region.height == 2
        await pilot.press("q")

    gateway.more = [{**deepcopy(STATE["routes"][0]), "name": name}]

    drive(steps, (80, 24))


def test_the_picture_of_the_documentation(gateway: Gateway) -> None:
    """HEADGATE_PICTURES=1 draws it anew."""

    async def steps(pilot: Pilot[None], app: TopApp) -> None:
        await until(pilot, lambda: app.shown_rows[0][1] == "10.0" or gateway.looks > 2)
        picture = app.export_screenshot(title="gwctl top --local")
        path = PICTURES / "gwctl-top.svg"
        if os.environ.get("HEADGATE_PICTURES"):
            path.write_text(picture)
        assert path.exists()
        await pilot.press("q")

    drive(steps)
