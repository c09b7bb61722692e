"""The terminal UI, driven by its own test driver."""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import click
import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from headgate.cli.trace_events import read_row
from headgate.cli.trace_source import SENT, WAITING, Saved
from headgate.cli.trace_ui import COMPLETE, TraceApp

SAMPLE = Path(__file__).parent / "data" / "trace.jsonl"
PICTURES = Path(__file__).parents[3] / "docs" / "pictures"


class Scripted:
    """A source that gives what the test says, when it says so."""

    def __init__(self, lines: list[str], error: str | None = None) -> None:
        self.lines, self.error, self.closed = lines, error, False
        self.go_on = threading.Event()

    def events(self, on_state: Callable[[str], None] = lambda _state: None) -> Iterator[str]:
        yield from self.lines[:3]
        on_state(SENT)
        self.go_on.wait(20)
        yield from self.lines[3:]
        if self.error:
            raise click.ClickException(self.error)

    def close(self) -> None:
        self.closed = True
        self.go_on.set()


def shown(app: TraceApp) -> str:
    return app._shown


def help_text(app: TraceApp) -> str:
    return str(app.query_one("#help", Static).content)


async def until(pilot: Pilot[None], condition: Callable[[], bool]) -> None:
    for _ in range(400):
        if condition():
            await pilot.pause()
            return
        await pilot.pause(0.05)
    raise AssertionError("never")


def drive(
    source: object, steps: Callable[[Pilot[None], TraceApp], Awaitable[None]], size: tuple[int, int] = (140, 40)
) -> TraceApp:
    app = TraceApp(source, "standalone")  # type: ignore[arg-type]

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            await steps(pilot, app)

    asyncio.run(run())
    return app


def test_a_saved_trace_is_browsed_with_the_keys() -> None:
    async def steps(pilot: Pilot[None], app: TraceApp) -> None:
        await until(pilot, lambda: app.state.startswith("stream complete"))
        assert len(app.rows) == app.table.row_count == 19
        assert app.table.cursor_row == 15, "it opens on the event that decided"
        assert "press q to exit" in help_text(app)
        assert "backendCallResult" in shown(app)
        await pilot.press("down", "down", "down")
        assert "requestFinished" in shown(app)
        await pilot.press("up")
        await pilot.press("s")
        assert '"code": 200' in shown(app)
        await pilot.press("up", "up", "up", "up", "up", "d")
        assert app.table.cursor_row == 12
        assert "+++ final request" in shown(app)
        assert "+    \"path\": \"/v2/cart\"," in shown(app)
        await pilot.press("f")
        assert "+  path: /v2/cart" in shown(app)
        await pilot.press("e", "down", "down", "down")
        assert "2.000 ms" in str(app.query_one("#details").border_title)
        assert app.focused is app.table
        await pilot.press("tab")
        assert app.focused is app.query_one("#details")
        await pilot.press("tab")
        assert app.focused is app.table
        await pilot.press("q")

    drive(Saved(str(SAMPLE)), steps)


def test_what_a_trace_tells_does_not_steer_the_terminal() -> None:
    message = {"type": "backendCallStart", "target": "one\nnear\x1b]52;c;b3du\x07\x9b2J"}
    source = Scripted([json.dumps({"eventStart": None, "eventEnd": 1, "severity": "info", "message": message})])
    source.go_on.set()

    async def steps(pilot: Pilot[None], app: TraceApp) -> None:
        await until(pilot, lambda: app.table.row_count == 1)
        [cell] = [cell for cell in app.table.get_row_at(0) if "near" in cell.plain]
        assert re.search(r"near\?\]52;c;b3du\?\?2J", cell.plain)
        details = str(app.query_one("#text", Static).content)
        assert "b3du" in details
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", details)

    drive(source, steps)


def test_a_small_terminal_shows_all_keys_and_whole_rows() -> None:
    async def steps(pilot: Pilot[None], app: TraceApp) -> None:
        await until(pilot, lambda: app.state.startswith("stream complete"))
        keys = str(app.query_one("#help", Static).content).splitlines()[1]
        words = re.sub(r"\[/?b\]", "", keys)
        assert len(words) <= 76, "what is within border and padding"
        picture = app.export_screenshot().replace("&#160;", " ")
        for word in ("Tab", "quit", "backendCallResult", "2.165", "status=200"):
            assert word in picture, word
        details, events = app.query_one("#details").region, app.table.region
        assert (details.width, events.width) == (80, 80)
        assert details.y >= events.y + events.height

    drive(Saved(str(SAMPLE)), steps, (80, 24))


def test_live_rows_follow_until_the_user_moves() -> None:
    source = Scripted(SAMPLE.read_text().splitlines())

    async def steps(pilot: Pilot[None], app: TraceApp) -> None:
        assert "waiting for trace data" in help_text(app) or app.rows
        await until(pilot, lambda: app.state == SENT)
        assert app.table.cursor_row == 2
        await pilot.press("up")
        assert app.table.cursor_row == 1
        source.go_on.set()
        await until(pilot, lambda: len(app.rows) == 19)
        assert app.table.cursor_row == 1
        await pilot.press("escape")

    drive(source, steps)
    assert source.closed


def test_a_trace_that_is_over_before_curl_has_ended_is_over() -> None:
    app = TraceApp(Scripted([]), "standalone")
    # The thread that sends may say so behind the end.
    app._found.extend([*map(read_row, SAMPLE.read_text().splitlines()), COMPLETE, SENT])

    async def run() -> None:
        async with app.run_test(size=(140, 40)) as pilot:
            await until(pilot, lambda: app.state != WAITING)
            assert "press q to exit" in help_text(app)
            assert app.table.cursor_row == 15

    asyncio.run(run())


def test_a_long_trace_is_there_soon() -> None:
    source = Scripted(SAMPLE.read_text().splitlines() * 200)
    source.go_on.set()

    async def steps(pilot: Pilot[None], app: TraceApp) -> None:
        await until(pilot, lambda: app.state.startswith("stream complete"))
        assert len(app.rows) == app.table.row_count == 3800
        assert app.table.cursor_row == 3796

    drive(source, steps)


def test_rows_drawn_before_the_table_has_settled_are_drawn_whole() -> None:
    """DataTable measures automatic columns when it is idle, and keeps cells that were drawn before that."""
    source = Scripted(SAMPLE.read_text().splitlines())
    drawn: list[str] = []

    async def steps(pilot: Pilot[None], app: TraceApp) -> None:
        await until(pilot, lambda: app.state == SENT)
        app._taking.stop()
        source.go_on.set()
        await until(pilot, lambda: len(app._found) == 17)
        app._take()
        app.table.refresh()
        drawn.append(app.export_screenshot())
        await pilot.pause()
        drawn.append(app.export_screenshot())

    drive(source, steps)
    assert ["(2&#160;evaluated)" in picture for picture in drawn] == [True, True]


def test_a_broken_stream_ends_with_a_red_row() -> None:
    source = Scripted(SAMPLE.read_text().splitlines()[:5], "the trace stream broke")
    source.go_on.set()

    async def steps(pilot: Pilot[None], app: TraceApp) -> None:
        await until(pilot, lambda: app.state.startswith("stream complete"))
        last = app.rows[-1]
        assert (last.kind, last.summary, last.severity) == ("Message", "the trace stream broke", "error")
        await pilot.press("d")

    drive(source, steps)


def test_details_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []
    monkeypatch.setattr("headgate.cli.trace_ui.copy", lambda text, _terminal: taken.append(text) or "test")

    async def steps(pilot: Pilot[None], app: TraceApp) -> None:
        await until(pilot, lambda: app.state.startswith("stream complete"))
        await pilot.press("c")

    drive(Saved(str(SAMPLE)), steps)
    assert "backendCallResult" in taken[0]


@pytest.mark.parametrize(("name", "keys"), [("gwctl-trace", ()), ("gwctl-trace-diff", ("up",) * 3 + ("d", "f"))])
def test_the_pictures_of_the_documentation(name: str, keys: tuple[str, ...]) -> None:
    """HEADGATE_PICTURES=1 draws them anew."""

    async def steps(pilot: Pilot[None], app: TraceApp) -> None:
        await until(pilot, lambda: app.state.startswith("stream complete"))
        await pilot.press(*keys)
        pictures: list[str] = []

        def drawn() -> bool:
            pictures.append(app.export_screenshot(title="gwctl proxy trace --local"))
            return "selected" in pictures[-1]

        await until(pilot, drawn)
        picture = pictures[-1]
        path = PICTURES / f"{name}.svg"
        if os.environ.get("HEADGATE_PICTURES"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(picture)
        assert path.exists()

    drive(Saved(str(SAMPLE)), steps)
