"""A check over all files fails for each file that is wrong, and for no files."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.house.each_rig import each

PATHS = [Path("a.py"), Path("b.pyx"), Path("c.pyx")]


def test_every_file_that_fails_is_named() -> None:
    @each(PATHS, str)
    def check(path: Path) -> None:
        """Sources are Python."""
        assert path.suffix == ".py", f"{path} is none"

    assert (check.__name__, check.__doc__) == ("check", "Sources are Python.")
    with pytest.raises(AssertionError) as caught:
        check()
    assert [line for line in str(caught.value).split("\n") if " is none" in line] == [
        f"{name}: {name} is none" for name in ("b.pyx", "c.pyx")
    ]


def test_no_files_are_a_mistake() -> None:
    with pytest.raises(AssertionError, match="no file"):
        each([], str)(lambda _: None)()
