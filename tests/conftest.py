"""Shared test code lies in tests/oracles; this makes it importable."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent / "oracles"))

# CI runs the same examples every time, so that a change is judged by its own merit; every other run explores.
# No deadlines: how long an example takes is the machine's business.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
settings.register_profile("ci", deadline=None, derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")
