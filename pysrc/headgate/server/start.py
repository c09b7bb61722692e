"""From a source to a running gateway, in the foreground."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from typing import Final

from headgate.config.load import Source, load
from headgate.errors import ConfigErrors
from headgate.server import heap
from headgate.server.parent_death import die_with_parent
from headgate.server.supervisor import Supervisor, start_levels, warn
from headgate.server.worker_pool import WorkerHandle
from headgate.telemetry import logs
from headgate.telemetry.levels import Directives
from headgate_engine.shared.segment import Segment

# In memory, and writable where the root of a container is not.
SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 (mkdtemp is private)


def serve(source: Source) -> int:
    """Run the gateway in the foreground; return the exit status. Configuration errors go to standard error."""
    parent = os.environ.pop("HEADGATE_PARENT", "")
    if parent.isdigit():
        die_with_parent(int(parent), signal.SIGTERM)
    segment = Segment.create()
    try:
        folder = private_folder()
    except OSError as error:
        why = f"no folder for the sockets of the workers: {error.strerror}; set TMPDIR"
        print(f"headgate: cannot start: {why}", file=sys.stderr)
        return 1
    try:
        return _serve(source, segment, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _serve(source: Source, segment: Segment, folder: str) -> int:
    early = WorkerHandle(0, segment.fd, folder, lambda _worker: None)
    # The first worker's imports overlap with reading the configuration.
    early.start(os.environ.get("LOG_FORMAT", "text"), "info")
    try:
        loaded = load(source)
    except ConfigErrors as error:
        early.kill()
        print(error, file=sys.stderr)
        return 1
    try:
        heap.rate_of(os.environ.get(heap.VARIABLE))
    except ValueError as error:
        early.kill()
        print(f"headgate: cannot start: {error}", file=sys.stderr)
        return 1
    form = loaded.gateway.process.log_format
    logs.set_up(Directives(start_levels(loaded.gateway)), form)

    warn(loaded)

    async def run() -> int:
        supervisor = Supervisor(source, loaded, segment, folder, early)
        return await supervisor.run()

    return asyncio.run(run())


def private_folder() -> str:
    """Make a folder for what the workers say to one another, which this user alone may enter; OSError."""
    try:
        return tempfile.mkdtemp(prefix="headgate-")
    except OSError as error:
        try:
            return tempfile.mkdtemp(prefix="headgate-", dir=SHARED_MEMORY)
        except OSError:
            raise error from None
