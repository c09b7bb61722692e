"""What `gwctl doctor mcp` says of tools."""

from __future__ import annotations

from headgate.cli.doctor_mcp import names_of


def test_tools_are_named() -> None:
    assert names_of([{"name": "wiki_search"}, {"name": "tickets_open"}]) == "wiki_search, tickets_open"
    assert names_of([]) == ""


def test_only_the_first_ones_are_named() -> None:
    assert names_of([{"name": "a"}] * 23).endswith("a, and 3 more")


def test_a_name_does_nothing_to_the_terminal() -> None:
    assert "\x1b" not in names_of([{"name": "a\x1b[2Jb"}, None, {"name": 5}])
