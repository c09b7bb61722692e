"""Sources of a trace: a watcher at a gateway, optionally with a request that the tool sends, or a saved file."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Protocol

import click

from headgate.cli.trace_request import Injected
from headgate.cli.trace_stream import TraceConnection, events, is_event, open_file

WAITING = "waiting for trace data"
# How long the first event of a request may take that has been answered.
TRACED_SECONDS = 10.0
NOT_TRACED = (
    "the request was sent and answered, but this gateway did not trace it: is --port a listener of the gateway whose "
    "admin server -p names? If a proxy or a container's port mapping is in between, name the request instead, as "
    "in --expression 'request.path == \"/x\"'"
)
SENT = "request sent, waiting for trace to complete"


class TraceSource(Protocol):
    """The input of raw mode and the terminal UI. `events` may run in another thread; `close` ends it."""

    def events(self, on_state: Callable[[str], None] = ...) -> Iterator[str]:
        """Yield the JSON text of each event until the end; raises ClickException if the stream breaks."""

    def close(self) -> None:
        """Stop the source; never raises."""


class Saved:
    """A saved trace in JSON Lines or as server-sent events."""

    def __init__(self, name: str) -> None:
        """Open the file; raises ClickException."""
        self._file = open_file(name)
        self._name = "standard input" if name == "-" else name
        self._seen = False

    def events(self, on_state: Callable[[str], None] = lambda _state: None) -> Iterator[str]:
        """Yield all events of the file; raises ClickException if the file is not a trace."""
        for number, event in enumerate(events(self._file), start=1):
            if not is_event(event):
                raise click.ClickException(f"{self._name} is not a saved trace: object {number} is no event")
            yield event
            self._seen = True
        if not self._seen:
            raise click.ClickException(f"{self._name} is not a saved trace: there is no event in it")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class Live:
    """The next request of a gateway. If `injected` is given, it is sent once the watcher is registered."""

    def __init__(self, port: int, expression: str | None, injected: Injected | None) -> None:
        """Register the watcher; raises ClickException."""
        if expression is None and injected is not None:
            # Others may send requests at the same time.
            expression = injected.expression
        self._watch = TraceConnection(port, expression)
        self._injected = injected
        self._failure: str | None = None
        self._first = threading.Event()

    def events(self, on_state: Callable[[str], None] = lambda _state: None) -> Iterator[str]:
        """Yield events; raises ClickException if the stream breaks or `curl` cannot send the request."""

        def ready() -> None:
            if self._injected is not None:
                threading.Thread(target=self._send, args=(on_state,), daemon=True).start()

        try:
            for event in self._watch.events(ready):
                self._first.set()
                yield event
        except click.ClickException:
            if self._failure is None or self._first.is_set():
                raise
        if self._failure is not None and not self._first.is_set():
            raise click.ClickException(self._failure)

    def _send(self, on_state: Callable[[str], None]) -> None:
        assert self._injected is not None
        problem = self._injected.run()
        if problem is None:
            on_state(SENT)
            if self._first.wait(TRACED_SECONDS):
                return
            self._failure = NOT_TRACED
        else:
            self._failure = f"the request was not sent: {problem}"
        if not self._first.is_set():
            self._watch.close()

    def close(self) -> None:
        """Unregister the watcher."""
        self._watch.close()
