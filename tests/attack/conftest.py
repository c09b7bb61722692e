"""A gateway, a backend and a bystander for all tests of a module: attacks are many, and each is small."""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.attack.recording_rig import Recording
from tests.end_to_end.running import Gateway


def is_long() -> bool:
    """Whether this is `make attack`: more of everything, with figures."""
    return os.environ.get("HEADGATE_ATTACK") == "long"


FIGURES = Path(__file__).resolve().parents[2] / "ci" / "attack-figures.md"
FIGURES_HEAD = """# Figures of the attacks

Written by `make attack`. What a bystander waits for, with a connection of its own, while others attack; how much more memory the one worker
takes at most; what comes of faults. The figures are of one machine and one run, whose load is not known: they show orders of magnitude.
"""


class Figures:
    """What was measured, by class and name."""

    def __init__(self) -> None:
        self.rows: dict[str, list[tuple[str, str, dict[str, str]]]] = {}

    def add(self, kind: str, name: str, what: str, measured: dict[str, str]) -> None:
        """Keep a row; all rows of a class have the same columns."""
        self.rows.setdefault(kind, []).append((name, what, measured))

    def page(self) -> str:
        """Return the rows in Markdown."""
        lines = [FIGURES_HEAD, f"Python {platform.python_version()}, {os.cpu_count()} processors, Linux {platform.release()}."]
        for kind, rows in self.rows.items():
            columns = ["attack", "what", *rows[0][2]]
            lines += ["", f"## {kind.capitalize()}", "", f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
            lines += [f"| {' | '.join([name, what, *measured.values()])} |" for name, what, measured in rows]
        return "\n".join(lines) + "\n"


@pytest.fixture(scope="session")
def figures() -> Iterator[Figures]:
    """Keeps figures; the long form writes them down."""
    found = Figures()
    yield found
    if is_long() and found.rows:
        FIGURES.write_text(found.page())


@pytest.fixture(scope="session")
def long() -> bool:
    return is_long()


@pytest.fixture(scope="module")
def recording() -> Iterator[Recording]:
    found = Recording()
    yield found
    found.close()


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Gateway]]:
    """`serving(text, workers=1, environment={}, settings="")` starts a gateway that ends with the module; no fault of ours may be in its log."""
    started: list[Gateway] = []

    def start(text: str, workers: int = 1, environment: dict[str, str] | None = None, settings: str = "") -> Gateway:
        found = Gateway(tmp_path_factory.mktemp("gateway"), text, workers, environment or {}, settings)
        started.append(found)
        found.wait_ready()
        return found

    yield start
    ended: list[Any] = []
    for one in started:
        with contextlib.suppress(OSError):
            ended.append((one, one.stop()))
    for one, status in ended:
        assert "Traceback" not in one.log(), one.log()[-5000:]
        assert status == 0, one.log()[-5000:]
