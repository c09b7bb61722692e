"""The live view of `gwctl top`: a table, its views on digits, a filter, and the state of the gateway above it."""

from __future__ import annotations

import time
from typing import ClassVar

import click
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Input, Static
from textual.worker import get_current_worker

from headgate.cli import top_views, traffic_rows
from headgate.cli.text_table import fitted, kept, printable, shortened, width_of
from headgate.cli.top_views import TopLook

BAD = "bold red"
LEGEND = "[b]1-5[/b] view  [b]s[/b] sort  [b]/[/b] filter  [b]p[/b] pause  [b]q[/b] quit"
# Columns that the table's scrollbar takes.
SCROLLBAR = 2
# At the name of the column that rows are sorted by.
MARK = "*"
# How often a reader that waits looks whether it is still wanted.
STEP_SECONDS = 0.1
# Columns that are red where they are not zero.
ERROR_COLUMNS = ("5XX", "STATUS")


class TopApp(App[None]):
    """Asks the admin server at `port` every `delay` seconds."""

    CSS = """
    #head { height: 2; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    #rows { height: 1fr; }
    #filter { display: none; height: 3; }
    #filter.shown { display: block; }
    #whole { height: auto; max-height: 4; padding: 0 1; color: $text-muted; }
    #help { height: 1; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(at + 1), f"view('{name}')", name) for at, name in enumerate(top_views.VIEWS)),
        Binding("s", "sort", "sort"),
        Binding("slash", "filter", "filter"),
        Binding("p", "pause", "pause"),
        Binding("escape", "all", "all"),
        Binding("q", "quit", "quit"),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, port: int, view: str, delay: float) -> None:
        """`view`: the one that is shown first."""
        super().__init__()
        self.view = view
        self.shown_rows: list[tuple[str, ...]] = []
        self.sorted_by = -1
        self._port, self._delay = port, delay
        self._before: TopLook | None = None
        self._now: TopLook | None = None
        self._problem = ""
        self._paused = False
        self._wanted = ""
        # By the number of a column; those that are not shown are not there.
        self._widths: dict[int, int] = {}

    def compose(self) -> ComposeResult:
        """Lay out head, table, filter and help."""
        yield Static(id="head", markup=False)
        yield DataTable(id="rows", cursor_type="row")
        yield Static(id="whole", markup=False)
        yield Input(id="filter", placeholder="rows with this text")
        yield Static(LEGEND, id="help")

    def on_mount(self) -> None:
        """Start reading."""
        self.table.focus()
        self._draw()
        self.run_worker(self._read, thread=True, exit_on_error=False)

    @property
    def table(self) -> DataTable[Text]:
        """The table of the view."""
        return self.query_one("#rows", DataTable)

    def _read(self) -> None:
        worker = get_current_worker()
        last: TopLook | None = None
        while not worker.is_cancelled:
            try:
                last = top_views.fetch(self._port, last)
                self.call_from_thread(self._take, last)
            except click.ClickException as error:
                self.call_from_thread(self._fail, error.format_message())
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                # Of a gateway of another version, for instance. The next look gets its chance.
                self.call_from_thread(self._fail, f"the answer of the gateway is not understood: {error!r}")
            end = time.monotonic() + self._delay
            while time.monotonic() < end and not worker.is_cancelled:
                time.sleep(STEP_SECONDS)

    def _take(self, found: TopLook) -> None:
        self._problem = ""
        if not self._paused:
            self._before, self._now = self._now, found
            self._draw()

    def _fail(self, problem: str) -> None:
        """Say why there is nothing new; what was there stays."""
        self._problem = problem
        self._draw_head()

    def _draw_head(self) -> None:
        line = top_views.headline(self._now, self._before) if self._now is not None else "waiting for the gateway"
        views = "  ".join(
            f"[{at} {name}]" if name == self.view else f"{at} {name}" for at, name in enumerate(top_views.VIEWS, 1)
        )
        marks = " ".join(filter(None, ("paused" if self._paused else "", f"/{self._wanted}" if self._wanted else "")))
        head = Text(printable(self._problem or line), BAD if self._problem else "")
        self.query_one("#head", Static).update(Text.assemble(head, "\n", f"{views}  {printable(marks)}".rstrip()))

    def _draw(self) -> None:
        self._draw_head()
        heads = top_views.HEADS[self.view]
        found = [] if self._now is None else top_views.rows(self.view, self._now, self._before)
        found = [row for row in found if self._wanted.lower() in " ".join(row).lower()]
        if self.sorted_by >= 0:
            found.sort(key=lambda row: _order(row[self.sorted_by]))
        self.shown_rows = found
        table, place = self.table, self.table.cursor_row
        table.clear(columns=True)
        lines = [heads, *(tuple(map(printable, row)) for row in found)]
        gap = 2 * table.cell_padding
        most = self.size.width - SCROLLBAR - gap
        columns = kept(lines, most, traffic_rows.SPARE, gap)
        marks = (MARK if at == self.sorted_by else "" for at in columns)
        marked = tuple(heads[at] + mark for at, mark in zip(columns, marks, strict=True))
        widths = fitted([marked, *(tuple(line[at] for at in columns) for line in lines[1:])], most, gap)
        self._widths = dict(zip(columns, widths, strict=True))
        for name, width in zip(marked, widths, strict=True):
            table.add_column(name, width=width)
        for line in lines[1:]:
            table.add_row(*(
                Text(shortened(line[at], width), _style(heads[at], line[at])) for at, width in self._widths.items()
            ))  # fmt: skip
        if found:
            table.move_cursor(row=min(max(place, 0), len(found) - 1))
        self._draw_whole()

    def _draw_whole(self) -> None:
        """Show what is cut or left out of the row under the cursor, and what the view does without."""
        place = self.table.cursor_row
        row = self.shown_rows[place] if 0 <= place < len(self.shown_rows) else ()
        told = "" if self._now is None else self._now.missing.get(self.view, "")
        cells = [(name, printable(cell)) for name, cell in zip(top_views.HEADS[self.view], row, strict=False)]
        cut = [f"{name} {cell}" for at, (name, cell) in enumerate(cells) if width_of(cell) > self._widths.get(at, 0)]
        self.query_one("#whole", Static).update("\n".join(filter(None, (printable(told), *cut))))

    def on_data_table_row_highlighted(self, _event: DataTable.RowHighlighted) -> None:
        """Show what is cut of another row."""
        self._draw_whole()

    def on_resize(self) -> None:
        """Fit the columns to the terminal."""
        self._draw()

    def action_view(self, name: str) -> None:
        """Show another view, in its own order."""
        self.view, self.sorted_by = name, -1
        self._draw()

    def action_sort(self) -> None:
        """Sort by the next column, and after the last one in the view's own order."""
        self.sorted_by = -1 if self.sorted_by + 1 >= len(top_views.HEADS[self.view]) else self.sorted_by + 1
        self._draw()

    def action_filter(self) -> None:
        """Ask for a text that rows must have."""
        entry = self.query_one("#filter", Input)
        entry.add_class("shown")
        entry.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show the rows that have the text."""
        self._wanted = event.value
        self._draw()

    def on_input_submitted(self, _event: Input.Submitted) -> None:
        """Go back to the table."""
        self.query_one("#filter", Input).remove_class("shown")
        self.table.focus()

    def action_all(self) -> None:
        """Leave the filter out."""
        entry = self.query_one("#filter", Input)
        entry.value = ""
        entry.remove_class("shown")
        self.table.focus()

    def action_pause(self) -> None:
        """Stand still, or go on."""
        self._paused = not self._paused
        self._draw_head()


def _order(cell: str) -> tuple[int, float, str]:
    """Return a key that puts larger numbers first, texts by the alphabet behind them."""
    digits = cell.removeprefix("$").removesuffix("ms")
    try:
        return 0, -float(digits), ""
    except ValueError:
        return 1, 0.0, cell


def _style(name: str, cell: str) -> str:
    return BAD if name in ERROR_COLUMNS and cell[:1] in "5n123456789" and (name == "5XX" or cell[:1] in "5n") else ""
