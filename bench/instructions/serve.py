"""One worker in one process, without a supervisor: what callgrind and strace can follow.

Usage: python -m bench.instructions.serve FILE     FILE: a configuration; the access log goes to /dev/null

HEAP_PROFILE_RATE samples allocations, as it does in a gateway.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from pathlib import Path
from typing import NoReturn

import uvloop

from headgate.backend.mcp.relay import Relay
from headgate.backend.mcp.session import SessionIds
from headgate.config.load import FileSource, load
from headgate.net.sockets import open_socket
from headgate.net.tasks import spawner
from headgate.pipeline.compile import compile_gateway
from headgate.server import heap
from headgate.server.listen import Acceptor
from headgate_engine.link.client import HttpClient
from headgate_engine.link.protocols import Port
from headgate_engine.link.worker import Worker
from headgate_engine.shared.segment import Segment

# Under valgrind all takes fifty times as long.
HANDSHAKE_SECONDS = 60.0


def _nobody(index: int, _patient: bool) -> HttpClient:
    raise LookupError(f"there is no worker {index}")


async def serve(path: Path) -> NoReturn:
    """Serve until killed."""
    gateway = load(FileSource(str(path))).gateway
    loop = asyncio.get_running_loop()
    log = os.open(os.devnull, os.O_WRONLY)
    worker = Worker(loop, Segment.create(), 0, log, spawner(loop))
    worker.access_log_on = gateway.process.log_level == "info"
    heap.switch(heap.rate_of(os.environ.get(heap.VARIABLE)))
    relay = Relay(0, SessionIds(bytes(32)), _nobody)
    running = compile_gateway(gateway, None, worker=worker, generation=1, relay=relay)
    running.activate()
    acceptors = []
    for bind in gateway.binds:
        sock = open_socket(bind.host, bind.port, shared=False)
        port = Port(worker, bind.key)
        port.secure(running.names.get(bind.key), HANDSHAKE_SECONDS)
        acceptor = Acceptor(sock, port)
        await acceptor.start()
        acceptors.append(acceptor)
    gc.freeze()
    gc.set_threshold(5_000, 20, 50)
    await loop.create_future()
    raise AssertionError("the future has no result")


if __name__ == "__main__":
    uvloop.run(serve(Path(sys.argv[1])))
