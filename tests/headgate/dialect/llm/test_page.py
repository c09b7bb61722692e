"""The page about translation is that of the table."""

from __future__ import annotations

from pathlib import Path

from headgate.dialect.llm.page import NAMES, page
from headgate.dialect.llm.pairs import PAIRS

PAGE = Path(__file__).resolve().parents[4] / "docs" / "llm-translation.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == page()


def test_every_pair_lists_what_it_cannot_carry() -> None:
    text = page()
    for pair in PAIRS.values():
        section = text.split(f"## {NAMES[pair.client]} to {NAMES[pair.upstream]}\n")[1].split("\n## ")[0]
        assert all(f"- {dropped}" in section for dropped in pair.drops)
