"""A build says which sources it was made from."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from headgate.telemetry.build_info import build_info, checked_out

ROOT = Path(__file__).resolve().parents[3]
QUIET = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "HEADGATE_ONLY": "none of them"}


def git(tree: Path, *words: str) -> str:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.com")
    done = subprocess.run(
        ["git", *who, "-C", str(tree), *words], capture_output=True, text=True, check=True, env=os.environ | QUIET
    )
    return done.stdout.strip()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The sources that a build without extensions needs."""
    tree = tmp_path / "tree"
    (tree / "pysrc/headgate/telemetry").mkdir(parents=True)
    (tree / "engine").mkdir()
    for name in ("setup.py", "pysrc/headgate/__init__.py", "pysrc/headgate/telemetry/build_info.py"):
        shutil.copy(ROOT / name, tree / name)
    (tree / "pyproject.toml").write_text('[project]\nname = "headgate"\nversion = "0"\n')
    return tree


def build(tree: Path, *command: str, **environment: str) -> None:
    words = [sys.executable, "setup.py", "-q", *(command or ("build_py", "--build-lib", "built"))]
    held = {key: value for key, value in os.environ.items() if key not in ("SOURCE_COMMIT", "SOURCE_DATE_EPOCH", "PYTHONPATH")}
    subprocess.run(words, cwd=tree, check=True, env=held | QUIET | environment, capture_output=True)


def told(tree: Path, monkeypatch: pytest.MonkeyPatch, **environment: str) -> dict[str, str]:
    """What a build would say of the sources: setup.py is run for that without a process of its own."""
    with monkeypatch.context() as inner:
        for name in ("SOURCE_COMMIT", "SOURCE_DATE_EPOCH"):
            inner.delenv(name, raising=False)
        for name, value in (QUIET | environment).items():
            inner.setenv(name, value)
        found: dict[str, str] = runpy.run_path(str(tree / "setup.py"), run_name="setup")["source"]()
    return found


def built(tree: Path) -> dict[str, str]:
    found: dict[str, str] = json.loads((tree / "built/headgate/build.json").read_text())
    return found


def commit(tree: Path) -> str:
    git(tree, "init", "-q")
    git(tree, "add", "pysrc", "setup.py", "pyproject.toml")
    git(tree, "commit", "-q", "-m", "x", "--date", "2026-01-02T03:04:05Z")
    return git(tree, "rev-parse", "HEAD")


def test_a_checkout_gives_its_commit(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = commit(tree)
    build(tree, SOURCE_COMMIT="not-this-one", SOURCE_DATE_EPOCH="1000000000")
    assert built(tree) == {"commit": made, "date": "2001-09-09T01:46:40Z"}
    assert not (tree / "pysrc/headgate/build.json").exists()
    assert told(tree, monkeypatch, SOURCE_COMMIT="not-this-one", SOURCE_DATE_EPOCH="1000000000") == built(tree)
    (tree / "setup.py").write_text((tree / "setup.py").read_text() + "\n")
    found = told(tree, monkeypatch)
    assert found["commit"] == f"{made}-dirty"
    seconds = int(git(tree, "log", "-1", "--format=%ct"))
    assert found["date"].startswith(str(1970 + seconds // 31556952))


def test_without_git_the_environment_tells(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A repository of the packager around it is not ours.
    git(tree.parent, "init", "-q")
    build(tree, SOURCE_COMMIT="abc123")
    assert built(tree) == told(tree, monkeypatch, SOURCE_COMMIT="abc123") == {"commit": "abc123", "date": ""}
    assert told(tree, monkeypatch) == {"commit": "", "date": ""}
    assert told(tree, monkeypatch, SOURCE_COMMIT="abc123", PATH="/nowhere")["commit"] == "abc123"


def test_a_source_distribution_knows_where_it_comes_from(tree: Path) -> None:
    made = commit(tree)
    build(tree, "sdist", "--formats=gztar", SOURCE_DATE_EPOCH="1000000000")
    archive = next((tree / "dist").glob("*.tar.gz"))
    shutil.unpack_archive(archive, tree.parent / "unpacked", filter="data")
    other = next((tree.parent / "unpacked").iterdir())
    (other / "engine").mkdir(exist_ok=True)
    build(other)
    assert built(other) == {"commit": made, "date": "2001-09-09T01:46:40Z"}


def test_a_working_tree_is_read_without_git(tree: Path) -> None:
    assert checked_out(tree) is None
    made = commit(tree)
    assert checked_out(tree) == made
    git(tree, "pack-refs", "--all")
    assert checked_out(tree) == made
    git(tree, "worktree", "add", "-q", "-b", "side", "../side")
    assert checked_out(tree.parent / "side") == made
    git(tree, "checkout", "-q", "--detach")
    assert checked_out(tree) == made
    (tree / ".git/HEAD").write_text("ref: refs/heads/nothing\n")
    assert checked_out(tree) is None


def test_this_tree_knows_its_commit() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("no checkout")
    assert build_info()["git_revision"] == git(ROOT, "rev-parse", "HEAD")
