"""Measurements of the controller and its delivery. What they share with tests lies in tests/oracles; this puts it on the path."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "oracles"))
