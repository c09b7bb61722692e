"""The tests that ci/llm-checklist.md names exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "ci" / "llm-checklist.md").read_text()
SHORT = dict(re.findall(r"`([A-Z])` = `([^`]+)`", TEXT))


def named() -> list[str]:
    """Every test of the table, with its file written out."""
    rows = [line for line in TEXT.splitlines() if re.match(r"\| \d+ \|", line)]
    found = [name for row in rows for name in re.findall(r"`([^` ]+\.py[^` ]*|[A-Z]::[^` ]+|[A-Z]/[^` ]+)`", row)]
    return [re.sub(r"^([A-Z])(?=::|/)", lambda match: SHORT[match[1]], name) for name in found]


def test_the_tests_of_the_checklist_exist() -> None:
    missing = []
    for name in named():
        path, _, function = name.partition("::")
        file = ROOT / "tests" / path
        if not file.is_file() or (function and f"def {function}(" not in file.read_text()):
            missing.append(name)
    assert missing == []
    assert len(named()) > 80


def test_every_row_of_the_checklist_names_a_test() -> None:
    rows = [line for line in TEXT.splitlines() if re.match(r"\| \d+ \|", line)]
    assert all("test_" in row.split("|")[3] or "`P::" in row or "`K::" in row for row in rows)
