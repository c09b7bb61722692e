"""The list of groups to kill."""

from __future__ import annotations

import pytest

from headgate.backend.mcp.targets.guard_process import note


@pytest.mark.parametrize(
    ("lines", "groups"),
    [
        ([b"+12\n", b"+13\n", b"-12\n"], {13}),
        ([b"-12\n", b"+12\n"], {12}),
        ([b"+0\n", b"+1\n", b"+-5\n", b"+\n", b"12\n", b"\n", b"+x\n"], set()),
    ],
)
def test_groups_are_noted_and_taken_off(lines: list[bytes], groups: set[int]) -> None:
    found: set[int] = set()
    for line in lines:
        note(found, line)
    assert found == groups
