"""What the supervisor does with a template that gives trouble."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from headgate.server.template_handle import TemplateHandle
from headgate_engine.shared.segment import Segment


class Stuck:
    """A process that the kernel does not end at once."""

    pid = 1
    killed = False

    def poll(self) -> None:
        return None

    def kill(self) -> None:
        self.killed = True

    def wait(self, seconds: float) -> int:
        raise subprocess.TimeoutExpired("template", seconds)


def test_a_template_that_does_not_end_keeps_nobody_from_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handle, process = TemplateHandle(Segment.create(), str(tmp_path)), Stuck()
    monkeypatch.setattr(handle, "_process", process)
    handle.kill()
    assert process.killed
    assert handle.pid is None
