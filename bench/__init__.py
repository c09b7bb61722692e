"""Measurements. Drivers of the engine (engine/headgate_drivers) are not installed; this puts them on the path."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "engine"))
