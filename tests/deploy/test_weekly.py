"""The weekly lane: what it says has changed, and that the locks are new only if the tests passed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.deploy.script_rig import script

weekly = script("ci/weekly.py")
OLD = """\
aa==1.0 \\
    --hash=sha256:00
bb[extra]==2.0 ; python_full_version < '3.12' \\
    --hash=sha256:00
bb[extra]==2.1 ; python_full_version >= '3.12' \\
    --hash=sha256:00
cc==3.0
"""
NEW = OLD.replace("aa==1.0", "aa==1.1").replace("bb[extra]==2.1", "bb[extra]==2.2").replace("cc==3.0", "dd==4.0.post1")
MOVES = ["aa: 1.0 -> 1.1 (run)", "bb: 2.0, 2.1 -> 2.0, 2.2 (run)", "cc: 3.0 -> gone (run)", "dd: not there -> 4.0.post1 (run)"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "ci/locks").mkdir(parents=True)
    (tmp_path / "ci/locks/run.txt").write_text(OLD)
    (tmp_path / "ci/locks/build.in").write_text("aa\n")
    return tmp_path


def program(text: str) -> list[str]:
    return [sys.executable, "-S", "-c", text]


RENEWS = program(f"import pathlib; pathlib.Path('ci/locks/run.txt').write_text({NEW!r}); pathlib.Path('ci/locks/more.txt').touch()")


def test_what_has_changed() -> None:
    assert weekly.changes({"run": OLD}, {"run": OLD}) == []
    assert weekly.changes({"run": OLD}, {"run": NEW}) == MOVES
    # What moves alike in several locks is one line.
    assert weekly.changes({"run": OLD, "test": OLD}, {"run": NEW, "test": NEW})[0] == "aa: 1.0 -> 1.1 (run, test)"


def test_new_locks_are_kept_if_the_tests_pass(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    passes = program(f"import pathlib, sys; sys.exit(pathlib.Path('ci/locks/run.txt').read_text() != {NEW!r})")
    assert weekly.weekly(tree, RENEWS, passes) == 0
    assert (tree / "ci/locks/run.txt").read_text() == NEW
    assert (tree / "build/weekly.txt").read_text().split("\n") == ["Renew the locks", "", *MOVES, ""]
    assert "passed, 4 changes" in capsys.readouterr().out


@pytest.mark.parametrize(("lock", "test", "told"), [
    (RENEWS, program("raise SystemExit(2)"), "the tests fail with the newest versions"),
    (program("open('ci/locks/run.txt', 'w').close(); raise SystemExit(1)"), ["never-started"], "could not be written anew"),
], ids=["test", "lock"])  # fmt: skip
def test_the_locks_stay_as_they_were_otherwise(
    tree: Path, capsys: pytest.CaptureFixture[str], lock: list[str], test: list[str], told: str
) -> None:
    assert weekly.weekly(tree, lock, test) == 1
    assert told in capsys.readouterr().err
    assert {path.name: path.read_text() for path in (tree / "ci/locks").iterdir()} == {"run.txt": OLD, "build.in": "aa\n"}
