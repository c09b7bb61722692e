"""The tests that the checklists of ci/ name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# With how many names of tests there are at least.
CHECKLISTS = {"llm-checklist.md": 80, "mcp-checklist.md": 90, "operate-checklist.md": 150}
NAME = re.compile(r"`([^` ]+\.py[^` ]*|[A-Z]::[^` ]+|[A-Z]/[^` ]+)`")


def rows(name: str) -> list[str]:
    """What the table says of each behaviour."""
    text = (ROOT / "ci" / name).read_text()
    return [line for line in text.splitlines() if re.match(r"\| \d+ \|", line)]


def named(name: str) -> list[str]:
    """Every test of the table, with its file written out."""
    short = dict(re.findall(r"`([A-Z])` = `([^`]+)`", (ROOT / "ci" / name).read_text()))
    found = [test for row in rows(name) for test in NAME.findall(row)]
    return [re.sub(r"^([A-Z])(?=::|/)", lambda match: short[match[1]], test) for test in found]


@pytest.mark.parametrize("checklist", CHECKLISTS)
def test_the_tests_of_the_checklist_exist(checklist: str) -> None:
    missing = []
    for name in named(checklist):
        path, _, function = name.partition("::")
        file = ROOT / "tests" / path
        if not file.is_file() or (function and f"def {function}(" not in file.read_text()):
            missing.append(name)
    assert missing == []
    assert len(named(checklist)) > CHECKLISTS[checklist]


@pytest.mark.parametrize("checklist", CHECKLISTS)
def test_every_row_of_the_checklist_names_a_test(checklist: str) -> None:
    for row in rows(checklist):
        tested = row.split("|")[3]
        assert NAME.search(tested), row
    numbers = [int(row.split("|")[1]) for row in rows(checklist)]
    assert numbers == sorted(set(numbers))
