"""The terminal UI of a trace: events on the left, details of the selected event on the right, keys at the bottom."""

from __future__ import annotations

from collections import deque
from typing import ClassVar

import click
from rich.cells import cell_len
from rich.syntax import Syntax
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import DataTable, Static
from textual.worker import get_current_worker

from headgate.cli.clipboard import copy
from headgate.cli.text_table import printable
from headgate.cli.trace_events import (
    Repeats,
    TraceRow,
    deciding,
    diff_details,
    message_row,
    raw_details,
    read_row,
    snapshot_details,
)
from headgate.cli.trace_source import WAITING, TraceSource

STYLES = {"warn": "yellow", "success": "green", "error": "bold red"}
# It has to fit into 76 columns.
LEGEND = (
    "[b]Tab[/b] pane  [b]arrows[/b] scroll  [b]e[/b] event  [b]s[/b] snapshot  [b]d[/b] diff  "
    "[b]f[/b] YAML  [b]c[/b] copy  [b]q[/b] quit"
)
COMPLETE = "stream complete, press q to exit"
# Interval between updates of the table, and rows per update: keys are handled in between.
TAKE_SECONDS = 0.05
TAKE_MOST = 2000


class TraceApp(App[None]):
    """Shows the rows of a source as they arrive. `name` is the name of the traced gateway."""

    CSS = """
    #panes { height: 1fr; }
    #events { width: 3fr; height: 1fr; border: round $primary-darken-2; }
    #details { width: 2fr; height: 1fr; border: round $primary-darken-2; padding: 0 1; }
    #events:focus, #details:focus { border: round $accent; }
    #help { height: 4; border: round $primary-darken-2; padding: 0 1; }
    .-narrow #panes { layout: vertical; }
    .-narrow #events { width: 1fr; height: 1fr; }
    .-narrow #details { width: 1fr; height: 1fr; }
    .-narrow #help { height: 2; border: none; }
    """
    # Beside each other the panes of a small terminal would show nothing whole.
    HORIZONTAL_BREAKPOINTS: list[tuple[int, str]] | None = [(0, "-narrow"), (110, "-wide")]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("e", "mode('event')", "event"),
        Binding("s", "mode('snapshot')", "snapshot"),
        Binding("d", "mode('diff')", "diff"),
        Binding("f", "form", "YAML/JSON"),
        Binding("c", "copy", "copy"),
        Binding("q,escape", "quit", "quit"),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, source: TraceSource, name: str) -> None:
        """Take ownership of `source`: the UI closes it when it ends."""
        super().__init__()
        self.rows: list[TraceRow] = []
        # Filled by the reading thread with rows and with states to display; COMPLETE is the last item.
        self._found: deque[TraceRow | str] = deque()
        self.mode = "event"
        self.form = "json"
        self.state = WAITING
        self._source = source
        self._name = name
        self._shown = ""
        self._repeats = Repeats()

    def compose(self) -> ComposeResult:
        """Lay out the panes."""
        with Horizontal(id="panes"):
            table: DataTable[Text] = DataTable(id="events", cursor_type="row")
            table.border_title = f"Events {self._name}"
            yield table
            with VerticalScroll(id="details", can_focus=True):
                yield Static(id="text")
        help_box = Static(id="help")
        help_box.border_title = "Help"
        yield help_box

    def on_mount(self) -> None:
        """Start reading."""
        self.table.add_column("#", width=4)
        self.table.add_column("ms", width=9)
        self.table.add_column("Type", width=14)
        # A width of our own: the table measures a column when it is idle, and goes on showing what it drew before.
        self._summary = self.table.columns[self.table.add_column("Summary", width=len("Summary"))]
        self.table.focus()
        self._say(WAITING)
        self._show()
        self._taking = self.set_interval(TAKE_SECONDS, self._take)
        self.run_worker(self._read, thread=True, exit_on_error=False)

    def on_unmount(self) -> None:
        """Close the source."""
        self._source.close()

    @property
    def table(self) -> DataTable[Text]:
        """The table of events."""
        return self.query_one("#events", DataTable)

    def _read(self) -> None:
        worker = get_current_worker()
        try:
            for event in self._source.events(self._found.append):
                if worker.is_cancelled:
                    return
                self._found.append(self._repeats.marked(read_row(event)))
        except click.ClickException as error:
            self._found.append(message_row(error.format_message()))
        self._found.append(COMPLETE)

    def _take(self) -> None:
        """Add the rows that were read since the last call. Single updates would take minutes for a long trace."""
        # The newest row is followed while the cursor stands on it: a key moves it away at once, and later back.
        follows = self.table.cursor_row >= len(self.rows) - 1
        for _ in range(min(len(self._found), TAKE_MOST)):
            found = self._found.popleft()
            if isinstance(found, str):
                # A short trace is over before curl has ended, and says so first.
                self.state = found if self.state != COMPLETE else COMPLETE
                continue
            self.rows.append(found)
            self._summary.width = max(self._summary.width, *map(cell_len, found.summary.split("\n")))
            style = STYLES.get(found.severity, "")
            cells = (str(len(self.rows)), found.at.rjust(9), found.kind, found.summary)
            # Paths, and what others answer, may have what would steer the terminal.
            self.table.add_row(*(Text(_harmless(cell), style) for cell in cells))
        over = self.state == COMPLETE
        if over:
            self._taking.stop()
        if self.rows and follows:
            # At the end it opens on the event that decided, as that is what somebody looks for.
            self.table.move_cursor(row=deciding(self.rows) if over else len(self.rows) - 1)
        self._say(self.state)

    def _say(self, state: str) -> None:
        self.state = state
        count = len(self.rows)
        shown = f"{count} events" if state == WAITING and count else state
        self.query_one("#help", Static).update(f"{shown}\n{LEGEND}")

    def on_data_table_row_highlighted(self, _event: DataTable.RowHighlighted) -> None:
        """Show the row under the cursor."""
        self._show()

    def action_mode(self, mode: str) -> None:
        """Show the `event`, the `snapshot` at the event, or the `diff` to the previous snapshot."""
        self.mode = mode
        self._show()

    def action_form(self) -> None:
        """Switch between JSON and YAML."""
        self.form = "yaml" if self.form == "json" else "json"
        self._show()

    def action_copy(self) -> None:
        """Copy the details to the clipboard."""
        how = copy(self._shown, self.copy_to_clipboard)
        self.notify(f"copied ({how})", timeout=2)

    def _show(self) -> None:
        number = self.table.cursor_row
        row = self.rows[number] if 0 <= number < len(self.rows) else None
        title = [self.mode, self.form.upper()]
        language = self.form
        if row is None:
            self._shown = ""
        elif self.mode == "event":
            self._shown = raw_details(row, self.form)
        elif self.mode == "snapshot":
            self._shown = snapshot_details(self.rows, number, self.form)
        else:
            self._shown, language = diff_details(self.rows, number, self.form), "diff"
        if row is not None and row.duration_us is not None:
            title.insert(1, f"{row.duration_us / 1000:.3f} ms")
        details = self.query_one("#details", VerticalScroll)
        details.border_title = "Details: " + ", ".join(title)
        details.scroll_home(animate=False)
        theme = "ansi_light" if not self.current_theme.dark else "ansi_dark"
        # Use only the theme's text colours: the background is that of the pane.
        code = Syntax("", language, theme=theme, background_color="default").highlight(_harmless(self._shown))
        code.rstrip()
        self.query_one("#text", Static).update(code)


def _harmless(text: str) -> str:
    """Return lines without what would steer the terminal."""
    return "\n".join(map(printable, text.split("\n")))
