"""Shared test code lies in tests/oracles; this makes it importable."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "oracles"))
