"""`gwctl proxy trace` without the library of its terminal UI."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import pytest

from headgate.cli import proxy_trace
from headgate.cli.trace_source import Saved

SAMPLE = Path(__file__).parent / "data" / "trace.jsonl"


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal, and an installation without the extra."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.delitem(sys.modules, "headgate.cli.trace_ui", raising=False)
    monkeypatch.setitem(sys.modules, "textual.app", None)


def test_the_extra_is_named(bare: None) -> None:
    with pytest.raises(click.ClickException, match=r"needs the library textual: pip install 'headgate\[tui\]', or use --raw"):
        proxy_trace.show(Saved(str(SAMPLE)), "a", raw=False)


def test_json_lines_do_without(bare: None, capsys: pytest.CaptureFixture[str]) -> None:
    proxy_trace.show(Saved(str(SAMPLE)), "a", raw=True)
    assert capsys.readouterr().out.splitlines()[0] == SAMPLE.read_text().splitlines()[0]
