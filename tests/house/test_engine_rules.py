"""Rules of the engine that can be read off its sources."""

from __future__ import annotations

import re
from pathlib import Path

ENGINE = Path(__file__).resolve().parents[2] / "engine" / "headgate_engine"


def lines_with(pattern: str) -> list[str]:
    return [
        f"{path.relative_to(ENGINE)}: {line.strip()}"
        for path in sorted(ENGINE.rglob("*.p[yx][xd]"))
        for line in path.read_text().splitlines()
        if re.search(pattern, line)
    ]


def test_tasks_have_one_owner() -> None:
    assert lines_with(r"create_task|ensure_future") == [], (
        "tasks are started by Worker.spawn, which owns their failures"
    )


def test_nothing_is_used_again_because_few_refer_to_it() -> None:
    assert lines_with(r"ob_refcnt|getrefcount") == [], "only the memory of objects that are gone is used again"
