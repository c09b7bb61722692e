"""The ports of a local gateway's own servers.

All gateways of a machine have the usual ones, each at its own address. Only a program that listens on all addresses
can have taken one.
"""

from __future__ import annotations

import json
import logging
import os
import socket
from pathlib import Path
from typing import Final

from headgate.cluster.deploy.pod import READY_PORT, STATS_PORT

logger = logging.getLogger("deployer")

FILE: Final = "ports.json"
# By the variable that tells a process its address.
USUAL: Final = {"ADMIN_ADDR": 15_000, "STATS_ADDR": STATS_PORT, "READINESS_ADDR": READY_PORT}


def own_ports(folder: Path, address: str, look: bool, started: bool = False) -> dict[str, int]:
    """Return the ports that were chosen before, or choose them. Raises OSError.

    `look`: choose others for those that are taken, which must not be by the gateway itself. `started`: it may run, with
    the usual ports if no choice is known.
    """
    file = folder / FILE
    try:
        found: dict[str, int] = {**USUAL, **json.loads(file.read_text(encoding="ascii"))}
    except (OSError, ValueError, TypeError):
        found, look = dict(USUAL), look or not started
    if not look:
        return found
    chosen = {name: port if can_bind(address, port) else _free_port(address) for name, port in found.items()}
    for name in chosen:
        if chosen[name] != found[name]:
            about = {"taken": found[name], name.lower(): f"{address}:{chosen[name]}"}
            logger.warning("another program has a port of a local gateway; it gets another one", extra=about)
    new = file.with_suffix(".new")
    with open(new, "w", encoding="ascii", opener=lambda path, flags: os.open(path, flags, 0o600)) as stream:
        stream.write(json.dumps(chosen))
    new.rename(file)
    return chosen


def can_bind(address: str, port: int) -> bool:
    """Tell whether nobody listens at a port. Connections that have ended do not count."""
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True


def _free_port(address: str) -> int:
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])
