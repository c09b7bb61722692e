"""What a worker loads while it compiles: a program for tests. Its arguments are files as a worker gets them, each with
the modules that are to be loaded before; a JSON line for each says what was loaded after all, and by which thread.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

from headgate.backend.mcp.relay import Relay
from headgate.backend.mcp.session import SessionIds
from headgate.net.tasks import spawner
from headgate.pipeline.compile import compile_steps
from headgate.pipeline.slices import at_once
from headgate.server import worker as _worker  # noqa: F401 (what a template has loaded)
from headgate.server.imports import import_beside
from headgate.server.transfer import KnownParts, load
from headgate_engine.link.worker import Worker
from headgate_engine.shared.segment import Segment


class Finder:
    """Notes who loads a module."""

    def __init__(self) -> None:
        self.loaded: list[tuple[str, bool]] = []

    def find_spec(self, name: str, *_: object) -> None:
        self.loaded.append((name, threading.current_thread() is threading.main_thread()))


async def compiled(path: Path) -> list[str]:
    """Return the modules that the loop's thread has loaded."""
    finder: Any = Finder()
    await asyncio.to_thread(lambda: None)
    sys.meta_path.insert(0, finder)
    loop, segment = asyncio.get_running_loop(), Segment.create()
    worker = Worker(loop, segment, 0, -1, spawner(loop))
    await import_beside(tuple(json.loads(path.with_suffix(".json").read_text())))
    descriptor = os.open(path, os.O_RDONLY)
    received = at_once(load(descriptor, KnownParts()))
    relay: Any = Relay(0, SessionIds(bytes(32)), lambda *_: None)  # type: ignore[arg-type, return-value]
    steps = compile_steps(received.gateway, None, worker=worker, generation=1, relay=relay, programs=received.programs)
    running = at_once(steps)
    await running.aclose()
    await worker.aclose()
    return [name for name, main in finder.loaded if main]


def main() -> None:
    for argument in sys.argv[1:]:
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            try:
                print(json.dumps([argument, asyncio.run(compiled(Path(argument)))]), flush=True)
            finally:
                os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
