"""Files that are replaced at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headgate.document.replace import replace_file


def test_mode_and_links_stay_and_nothing_is_left_behind(tmp_path: Path) -> None:
    real = tmp_path / "real.yaml"
    real.write_text("old")
    real.chmod(0o640)
    (tmp_path / "link.yaml").symlink_to(real)
    replace_file(str(tmp_path / "link.yaml"), b"new")
    assert (real.read_text(), real.stat().st_mode & 0o777) == ("new", 0o640)
    assert (tmp_path / "link.yaml").is_symlink()
    assert sorted(os.listdir(tmp_path)) == ["link.yaml", "real.yaml"]


def test_a_new_file_can_be_read_by_all(tmp_path: Path) -> None:
    replace_file(str(tmp_path / "new"), b"x")
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o644


def test_what_ready_raises_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")

    def refuse() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        replace_file(str(tmp_path / "a"), b"new", refuse)
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("a", "old")]


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        replace_file(str(tmp_path / "no" / "a"), b"new")
