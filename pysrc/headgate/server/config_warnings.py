"""Warnings about a configuration that is in force."""

from __future__ import annotations

import logging
from typing import Final

from headgate.config.load import Loaded

logger = logging.getLogger("headgate.server.supervisor")
# Settings of the process that a reload does not change: the field of ProcessSettings, and its path in the file.
AT_START: Final = (
    ("admin", "config.adminAddr"),
    ("stats", "config.statsAddr"),
    ("readiness", "config.readinessAddr"),
    ("workers", "config.workerThreads"),
    ("session_key", "config.session.key"),
    ("histograms", "config.histograms"),
)


def warn(loaded: Loaded, before: Loaded | None = None) -> None:
    """Log the warnings of the loader, and what differs from the configuration `before` but waits for the next start."""
    for warning in loaded.warnings:
        logger.warning("configuration", extra={"warning": warning})
    if before is None:
        return
    old, new = before.gateway.process, loaded.gateway.process
    for name, path in AT_START:
        if getattr(old, name) != getattr(new, name):
            logger.warning("configuration", extra={"warning": f"{path}: a change takes effect at the next start"})
