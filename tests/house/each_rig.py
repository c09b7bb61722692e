"""One test for all files of a rule: a case for each of thousands costs more than the look at the file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path


def each(paths: Sequence[Path], name_of: Callable[[Path], str]) -> Callable[[Callable[[Path], None]], Callable[[], None]]:
    """Make a check of one file a test of all: it says of each file that fails what failed there."""

    def all_of(check: Callable[[Path], None]) -> Callable[[], None]:
        def test() -> None:
            assert paths, "no file"
            faults = []
            for path in paths:
                try:
                    check(path)
                except AssertionError as error:
                    faults.append(f"{name_of(path)}: {error}")
            if faults:
                raise AssertionError("\n".join(faults))

        test.__name__ = check.__name__
        test.__doc__ = check.__doc__
        return test

    return all_of
