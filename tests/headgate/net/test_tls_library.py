"""A module whose import makes the first TLS context of a process."""

from __future__ import annotations

import subprocess
import sys

CODE = """
from headgate_engine.tls import context
made = []
class Counted(context.TlsContext):
    def __init__(self, **given):
        made.append(given)
        super().__init__(**given)
context.TlsContext = Counted
import headgate.net.tls_library
print(made)
"""


def test_its_import_makes_a_context() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "[{'server': False}]\n"
