"""The table of loggers, by which directives are checked, has every logger of the gateway and no other."""

from __future__ import annotations

import re
from pathlib import Path

from headgate.telemetry.levels import LOGGERS

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r'getLogger\("(headgate\.[\w.]+|request)"\)')
# The sample services are programs of their own.
LEFT_OUT = ("sample", "headgate_drivers", "build")


def test_the_table_is_what_the_sources_say() -> None:
    files = [
        path for kind in ("*.py", "*.pyx") for folder in ("pysrc", "engine") for path in (ROOT / folder).rglob(kind)
    ]
    texts = [path.read_text() for path in files if not set(path.parts) & set(LEFT_OUT)]
    assert {name for text in texts for name in NAMED.findall(text)} == set(LOGGERS)
    assert list(LOGGERS) == sorted(LOGGERS)
