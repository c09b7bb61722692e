"""Finds and reads result files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "results"
MACRO = "rows"
MICRO = "micro"


def read(path: Path) -> dict[str, Any]:
    """One result file."""
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def newest(key: str, folder: Path = FOLDER) -> tuple[Path, dict[str, Any]] | None:
    """The youngest file of a kind (MACRO or MICRO) by the date written in it."""
    found = [(path, document) for path in folder.glob("*.json") if key in (document := read(path))]
    return max(found, key=lambda pair: pair[1]["date"], default=None)
