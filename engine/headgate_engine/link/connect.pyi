import asyncio
from typing import Any

from headgate_engine.link.worker import Worker

WILDCARD: str

def begin(worker: Worker, transport: asyncio.Transport, protocol: Any, rest: bytes) -> None:
    """Start the protocol of what is in a tunnel. rest: what came behind the request for it."""
