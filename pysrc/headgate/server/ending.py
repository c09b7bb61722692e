"""How processes of a gateway end: at once, and within a bound.

A thread that waits for a file system that is gone would keep the supervisor for ever, and signals do nothing by then.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import sys
import threading
from collections.abc import Callable
from typing import Final, NoReturn

logger = logging.getLogger("headgate.supervisor")

# How long tasks and threads may take once the gateway has stopped.
END_SECONDS: Final = 10.0
# How many functions of a thread are named, the innermost first.
DEPTH: Final = 5


def bound_end(status: int, clean: Callable[[], None], seconds: float = END_SECONDS) -> None:
    """Have the process exit with `status` after `seconds`, if it has not ended by then. What it waited for is logged,
    and `clean` is called before. To be called in the loop that ends.

    asyncio.run() waits without a limit for tasks that it has cancelled and for the threads of executors, and the
    interpreter for other threads.
    """
    loop = asyncio.get_running_loop()

    def cut() -> None:
        logger.error(
            "shutdown takes too long and is forced",
            extra={"tasks": _tasks(loop) or None, "threads": _threads() or None},
        )
        clean()
        os._exit(status)

    timer = threading.Timer(seconds, cut)
    timer.daemon = True
    timer.start()


def leave(status: int) -> NoReturn:
    """End the process as the interpreter does, which waits for threads, calls what `atexit` has and writes what streams
    hold, but leave its memory to the kernel.

    To take all objects apart takes 30 ms of CPU time, and makes copies of the memory that processes share.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # closed, or its reader has gone
            stream.flush()
    os._exit(status)


def _tasks(loop: asyncio.AbstractEventLoop) -> str:
    return ", ".join(sorted(task.get_name() for task in asyncio.all_tasks(loop)))


def _threads() -> str:
    """Return the threads that the end of the interpreter waits for, each with the functions that it is in."""
    frames = sys._current_frames()
    found = []
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.main_thread():
            names: list[str] = []
            frame = frames.get(thread.ident or 0)
            while frame is not None and len(names) < DEPTH:
                names.append(frame.f_code.co_name)
                frame = frame.f_back
            found.append(f"{thread.name}: {' < '.join(names)}")
    return ", ".join(sorted(found))
