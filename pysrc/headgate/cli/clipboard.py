"""Copy text from a terminal program to the clipboard."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
from collections.abc import Callable

# Clipboard programs with their arguments, and the environment variable that must be set for the program to work.
NATIVE = (
    ("wl-copy", (), "WAYLAND_DISPLAY"),
    ("xclip", ("-selection", "clipboard"), "DISPLAY"),
    ("xsel", ("--clipboard", "--input"), "DISPLAY"),
    ("pbcopy", (), ""),
)
SECONDS = 3.0


def copy(text: str, terminal: Callable[[str], None]) -> str:
    """Copy text with a clipboard program if one works, else through the terminal; return the name of the method used.

    `terminal` writes the OSC 52 control sequence. Inside tmux the sequence needs tmux's pass-through wrapper, so it is
    written to standard output directly.
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
    """Return OSC 52 in tmux's pass-through sequence, which doubles every escape character."""
    inner = f"\x1b]52;c;{base64.b64encode(text.encode()).decode()}\x07"
    return "\x1bPtmux;" + inner.replace("\x1b", "\x1b\x1b") + "\x1b\\"
