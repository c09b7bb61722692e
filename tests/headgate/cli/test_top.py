"""`gwctl top` without the library of its live view."""

from __future__ import annotations

import contextlib
import importlib
import sys

import click
import pytest

top = importlib.import_module("headgate.cli.top")


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.delitem(sys.modules, "headgate.cli.top_ui", raising=False)
    monkeypatch.setitem(sys.modules, "textual.app", None)
    monkeypatch.setattr(top, "admin_port", lambda *_words: contextlib.nullcontext(1))
    options = {"namespace": None, "local": True, "admin_port": 1}
    with pytest.raises(click.ClickException, match=r"needs the library textual: pip install 'headgate\[tui\]', or use --once"):
        top.top.callback(resource=None, view="routes", delay=2.0, once=False, **options)
