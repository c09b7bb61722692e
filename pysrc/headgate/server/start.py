"""From a source to a running gateway, in the foreground."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from headgate.admin.servers import preload
from headgate.config.load import Loaded, Source
from headgate.config.source_reader import SourceReader
from headgate.document.lazy_dataclass import replace
from headgate.errors import ConfigErrors
from headgate.ir.gateway import Gateway
from headgate.pipeline.modules import needed_modules
from headgate.server import heap
from headgate.server.config_warnings import warn
from headgate.server.ending import bound_end
from headgate.server.first_load import first_load
from headgate.server.handover import HandoverFailed
from headgate.server.parent_death import die_with_parent
from headgate.server.predecessor import Predecessor
from headgate.server.run_folder import RunFolder
from headgate.server.supervisor import Supervisor
from headgate.server.template import import_all
from headgate.server.template_handle import TemplateHandle
from headgate.server.worker import Life, begin
from headgate.server.worker_care import start_levels
from headgate.telemetry import logs
from headgate.telemetry.levels import Directives
from headgate_engine.shared.segment import Segment

if TYPE_CHECKING:
    from headgate.server.delivery import Feed


def serve(source: Source, feed: Feed | None = None) -> int | Life:
    """Run the gateway in the foreground; return the exit status. Configuration errors go to standard error. `feed`:
    brings further parts of the configuration.

    Also returns in each worker, which is forked inside, with the Life of the worker: the caller then runs its loop.
    """
    parent = os.environ.pop("HEADGATE_PARENT", "")
    if parent.isdigit():
        die_with_parent(int(parent), signal.SIGTERM)
    # Until the supervisor handles it. A process that begins cannot be replaced yet.
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    try:
        predecessor = Predecessor.of(os.environ)
    except HandoverFailed as error:
        print(f"headgate: cannot start: {error}", file=sys.stderr)
        return 1
    reader = _reader(source, feed)
    try:
        first = first_load(reader)
        loaded = first.loaded
        heap.rate_of(os.environ.get(heap.VARIABLE))
        folder = RunFolder.create()
    except ConfigErrors as error:
        return _refused(str(error), predecessor)
    except ValueError as error:
        return _refused(f"headgate: cannot start: {error}", predecessor)
    except OSError as error:
        why = f"cannot create a folder for the sockets of the workers: {error.strerror}; set TMPDIR"
        return _refused(f"headgate: cannot start: {why}", predecessor)
    segment = Segment.create(native_histograms=loaded.gateway.process.histograms != "classic")
    unkept = _keep_spending(loaded.gateway, segment)
    template = TemplateHandle(segment, folder.path, wake_descriptors(_workers(loaded)))
    template.modules = needed_modules(loaded.gateway)
    preload(loaded.gateway.process)
    import_all(template.modules)
    worker = template.fork()
    if worker is not None:
        if predecessor is not None:
            predecessor.forget()
        return begin(worker, loaded.gateway)
    try:
        supervisor = partial(Supervisor, reader, first, segment, folder.path, template, _workers(loaded))
        return _supervise(supervisor, replace(loaded, warnings=(*loaded.warnings, *unkept)), folder, feed, predecessor)
    finally:
        folder.remove()


def _keep_spending(gateway: Gateway, segment: Segment) -> tuple[str, ...]:
    """Let what virtual keys spend outlive a kill of all processes. Return a warning where that cannot be done."""
    keys, process = gateway.virtual_keys, gateway.process
    if process.request_log is None or (keys is None and not process.stores_resources):
        return ()
    from headgate.telemetry.spend import journal  # where there may be virtual keys

    try:
        accounts = 0 if keys is None else len(keys.keys) + len(keys.teams)
        journal.begin(None if keys is None else keys.journal, accounts, segment)
    except OSError as error:
        told = f"virtualKeys: if the whole gateway is killed, the spending of its last second is lost: {error}"
        return (told,)
    return ()


def _refused(why: str, predecessor: Predecessor | None) -> int:
    """Tell why the gateway cannot start; return the exit status."""
    print(why, file=sys.stderr)
    if predecessor is not None:
        predecessor.refuse(why)
    return 1


def _reader(source: Source, feed: Feed | None) -> SourceReader:
    if feed is None:
        return SourceReader(source)
    from headgate.server.delivery import delivered_reader  # most configurations are files

    return delivered_reader(source, feed)


def _supervise(
    make: Callable[[], Supervisor],
    loaded: Loaded,
    folder: RunFolder,
    feed: Feed | None,
    predecessor: Predecessor | None,
) -> int:
    gc.freeze()
    gc.enable()
    logs.set_up(Directives(start_levels(loaded.gateway)), loaded.gateway.process.log_format)
    warn(loaded)

    async def run() -> int:
        supervisor = make()
        if predecessor is not None:
            supervisor.succeed(predecessor)
        if feed is not None:
            supervisor.follow(feed)
        status = await supervisor.run()
        bound_end(status, folder.remove)
        return status

    return asyncio.run(run())


def _workers(loaded: Loaded) -> int:
    return loaded.gateway.process.workers.resolve(len(os.sched_getaffinity(0)))


def wake_descriptors(workers: int) -> tuple[int, ...]:
    """Return an eventfd for each worker. Other workers write to it to wake the worker for accept(). A single worker
    needs none."""
    if workers == 1:
        return ()
    return tuple(os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK) for _ in range(workers))
