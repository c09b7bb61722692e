"""ProxySelector to the clipboard."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from headgate.cli.clipboard import copy, tmux_sequence


@pytest.fixture(autouse=True)
def no_desktop(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WAYLAND_DISPLAY", "DISPLAY", "TMUX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")


def test_the_desktops_program_is_preferred(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "xclip"
    program.write_text(f"#!/bin/sh\n/bin/cat > {tmp_path}/got\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("DISPLAY", ":0")
    assert copy("text", pytest.fail) == "xclip"
    assert (tmp_path / "got").read_text() == "text"
    program.write_text("#!/bin/sh\nexit 1\n")
    taken: list[str] = []
    assert copy("text", taken.append) == "terminal"
    assert taken == ["text"]


def test_inside_tmux_the_sequence_is_wrapped(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TMUX", "x")
    assert copy("hé", pytest.fail) == "tmux"
    text = tmux_sequence("hé")
    assert text.startswith("\x1bPtmux;\x1b\x1b]52;c;")
    assert base64.b64decode(text.split(";")[3].split("\x07")[0]).decode() == "hé"
