"""Copying text out of a terminal program."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
from collections.abc import Callable

# The program that owns the clipboard, and the variable that says it can reach one.
NATIVE = (
    ("wl-copy", (), "WAYLAND_DISPLAY"),
    ("xclip", ("-selection", "clipboard"), "DISPLAY"),
    ("xsel", ("--clipboard", "--input"), "DISPLAY"),
    ("pbcopy", (), ""),
)
SECONDS = 3.0


def copy(text: str, terminal: Callable[[str], None]) -> str:
    """Copy by the desktop's own program, else through the terminal; return which way was taken.

    `terminal` writes the control sequence OSC 52. Inside tmux it must be wrapped to reach the terminal outside.
    """
    for program, arguments, variable in NATIVE:
        if (not variable or os.environ.get(variable)) and (path := shutil.which(program)):
            try:
                subprocess.run([path, *arguments], input=text.encode(), timeout=SECONDS, check=True)
                return program
            except (OSError, subprocess.SubprocessError):
                continue
    if os.environ.get("TMUX") and sys.__stdout__ is not None:
        sys.__stdout__.write(tmux_sequence(text))
        sys.__stdout__.flush()
        return "tmux"
    terminal(text)
    return "terminal"


def tmux_sequence(text: str) -> str:
    """Return OSC 52 inside tmux's pass-through, in which every escape is doubled."""
    inner = f"\x1b]52;c;{base64.b64encode(text.encode()).decode()}\x07"
    return "\x1bPtmux;" + inner.replace("\x1b", "\x1b\x1b") + "\x1b\\"
