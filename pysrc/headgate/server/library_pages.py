"""Gives back what the start of a process has mapped of libraries and does not need any more.

A start runs the initialization of 150 libraries, relocates them, and compiles a configuration; the kernel maps 16 pages
around each that is touched. That is 20 MB where no other process has mapped the same files, of which serving a plain
file uses 7. A page that is used again costs a fault without input or output, as long as the kernel has it in its cache.
"""

from __future__ import annotations

from typing import Final

from headgate.pipeline.running import Steps
from headgate_engine.library_pages import drop_library_pages

# Each takes some 15 us, most of it to read the headers of the library.
LIBRARIES_PER_STEP: Final = 16


def drop_steps() -> Steps[None]:
    """Give the pages back, in steps between which the caller may serve others."""
    first = 0
    while drop_library_pages(first, LIBRARIES_PER_STEP) == LIBRARIES_PER_STEP:
        first += LIBRARIES_PER_STEP
        yield
