"""Tells whoever has started the gateway that it serves traffic."""

from __future__ import annotations

import logging
import os

logger = logging.getLogger("headgate.supervisor")


def tell_ready() -> None:
    """Write a line to the descriptor named by the environment variable READY_FD, and close it."""
    text = os.environ.pop("READY_FD", "")
    if not text:
        return
    try:
        with open(int(text), "wb", buffering=0) as file:
            file.write(b"ready\n")
    except (OSError, ValueError) as error:
        logger.warning("READY_FD cannot be written to", extra={"value": text, "error": str(error)})
