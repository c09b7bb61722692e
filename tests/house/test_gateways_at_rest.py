"""Gateways that serve one test after the other, and what is left of the earlier ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.end_to_end import running
from tests.end_to_end.running import Gateway, Pool


class Rested(Gateway):
    """One without a process, which has these samples one after the other."""

    def __init__(self, folder: Path, *samples: dict[str, float]) -> None:
        self.log_path = folder / "log.txt"
        self.log_path.touch()
        self._pages = iter(samples)
        self._counted = {}

    def write(self, text: str) -> None:
        self.log_path.write_text(f"configuration reloaded {text}\n")

    def _samples(self) -> dict[str, float]:
        return dict(next(self._pages))


def test_a_series_that_was_forgotten_begins_anew(tmp_path: Path) -> None:
    found = Rested(tmp_path, {"kept": 5.0, "gone": 7.0}, {"kept": 5.0}, {"kept": 6.0, "gone": 1.0}, {"gone": 1.0})
    found.wake("")
    assert found.metric("") == 2.0
    assert found.metric("gone") == 1.0


def test_watchers_of_the_test_before_are_waited_for(tmp_path: Path) -> None:
    watched, left = {"gw_trace_watchers": 1.0, "kept": 5.0}, {"gw_trace_watchers": 0.0, "kept": 7.0}
    found = Rested(tmp_path, watched, watched, left, left, {**left, "kept": 8.0})
    found.wake("")
    assert found.metric("kept") == 1.0


class Starting:
    """Its first processes fail with these lines in their logs."""

    lines: Iterator[str]

    def __init__(self, *_arguments: object, **_settings: object) -> None:
        self._line = next(self.lines)
        self.process = SimpleNamespace(kill=lambda: None)

    def wait_ready(self) -> None:
        assert not self._line

    def log(self) -> str:
        return self._line


@pytest.mark.parametrize("line", ["bind/1: 0.0.0.0:16001 is already in use", "cannot listen on 127.0.0.1:1: Address already in use"])
def test_a_port_that_somebody_was_quicker_to_take_is_no_failure(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "Gateway", Starting)
    Starting.lines = iter([line, line, ""])
    pool = Pool(lambda: tmp_path)
    assert pool.take("", (1, "{}", "")).log() == ""
    Starting.lines = iter(["cannot start: misspelled"])
    with pytest.raises(AssertionError):
        pool.take("", (1, "{}", ""))
