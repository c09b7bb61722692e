"""The checklist of a release: what each step that reads the tree finds, and that the first thing missing ends it."""

from __future__ import annotations

import hashlib
import re
import subprocess
from pathlib import Path

import pytest
from tests.deploy.script_rig import ROOT, script

check = script("ci/release_check.py")


def git(root: Path, *words: str) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@localhost")
    subprocess.run(["git", "-C", str(root), *who, *words], check=True, capture_output=True)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree that is ready for the release 1.2.0."""
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "headgate"\nversion = "1.2.0"\n')
    (tmp_path / "pysrc/headgate").mkdir(parents=True)
    (tmp_path / "pysrc/headgate/__init__.py").write_text('__version__ = "1.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.0 (2027-01-31)\n\n- All of it.\n")
    (tmp_path / ".gitignore").write_text("/dist/\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "Release 1.2.0")
    git(tmp_path, "tag", "v1.2.0")
    return tmp_path


def test_a_tree_that_is_ready(tree: Path) -> None:
    assert check.is_clean(tree) == ""
    assert check.versions_agree(tree) == ""
    assert check.has_tag(tree) == ""


def test_what_is_not_committed(tree: Path) -> None:
    (tree / "new.py").write_text("")
    assert "new.py" in check.is_clean(tree)


VERSIONS = (
    ("pysrc/headgate/__init__.py", '__version__ = "1.1.0"\n', "__init__.py says 1.1.0"),
    ("pysrc/headgate/__init__.py", "\n", "__init__.py says None"),
    ("CHANGELOG.md", "## Unreleased\n\n- More.\n\n## 1.2.0\n", "begins with Unreleased"),
    ("pyproject.toml", '[project]\nversion = "1.3.0"\n', "pyproject.toml 1.3.0"),
)


@pytest.mark.parametrize(("name", "text", "told"), VERSIONS)
def test_versions_that_do_not_agree(name: str, text: str, told: str, tree: Path) -> None:
    (tree / name).write_text(text)
    assert told in check.versions_agree(tree)


def test_a_commit_without_its_tag(tree: Path) -> None:
    git(tree, "tag", "-d", "v1.2.0")
    git(tree, "tag", "v1.1.9")
    assert check.has_tag(tree) == "the commit has no tag v1.2.0 (it has v1.1.9)"
    assert check.STEPS[-1].check is check.has_tag, "it gets its tag when all else has passed"


def write_sums(dist: Path) -> None:
    files = sorted(path for path in dist.iterdir() if path.name != "SHA256SUMS")
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (dist / "SHA256SUMS").write_text("".join(lines))


def test_hashes(tree: Path) -> None:
    assert check.hashes_hold(tree) == "dist/SHA256SUMS is not there"
    dist = tree / "dist"
    dist.mkdir()
    for pattern in check.ARTEFACTS:
        (dist / pattern.format(version="1.2.0").replace("*", "any")).write_text(pattern)
    write_sums(dist)
    assert check.hashes_hold(tree) == ""
    (dist / "more").write_bytes(b"b")
    assert check.hashes_hold(tree) == "dist/SHA256SUMS and dist/ differ in more"
    (dist / "more").unlink()
    (dist / "provenance.json").write_bytes(b"other")
    assert check.hashes_hold(tree) == "dist/provenance.json is not the file of dist/SHA256SUMS"


def test_a_file_that_a_later_step_has_removed(tree: Path) -> None:
    """As a second build of the wheel does: it begins with an empty dist/."""
    dist = tree / "dist"
    dist.mkdir()
    for pattern in check.ARTEFACTS:
        (dist / pattern.format(version="1.2.0").replace("*", "any")).write_text(pattern)
    (dist / "headgate_1.2.0_any.deb").unlink()
    write_sums(dist)
    assert check.hashes_hold(tree) == "dist/ has not one headgate_1.2.0_*.deb"


def test_only_the_step_of_the_wheel_builds_it(tree: Path) -> None:
    (tree / "Makefile").write_text("show:\n\t@mkdir -p dist\n\t@touch dist/x-$(WHEEL)-1.2.0\n")
    assert check.one_file("x-kept-{version}", "show")(tree) == ""
    assert check.one_file("x--{version}", "show", kept=False)(tree) == ""


def test_a_target_that_fails_and_a_file_that_is_not_made(tree: Path) -> None:
    (tree / "Makefile").write_text(
        "bad:\n\t@exit 3\ngood:\n\t@mkdir -p dist\n\t@touch dist/headgate-1.2.0-x.whl\nnone:\n\t@true\n"
    )
    assert check.make("good", "bad")(tree) == "`make bad` ended with 2"
    assert check.one_file("headgate-{version}-*.whl", "good")(tree) == ""
    assert "is not there after `make none`" in check.one_file("headgate_{version}.deb", "none")(tree)


def test_it_stops_at_the_first_thing_missing(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done: list[str] = []

    def step(name: str, missing: str) -> object:
        return check.Step(name, f"about {name}", lambda root: done.append(f"{name} {root == tree}") or missing)

    assert check.run(tree, [step("one", ""), step("two", "no deb"), step("three", "")]) == 1
    assert done == ["one True", "two True"]
    told = capsys.readouterr()
    assert "[2/3] two: about two" in told.out
    assert told.err == "release check stopped at two: no deb\n"
    assert check.run(tree, [step("four", "")]) == 0


def test_every_step_of_the_makefile_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    steps = (ROOT / "ci/release_check.py").read_text().split("STEPS = (", 1)[1].split("# fmt: skip", 1)[0]
    named = re.findall(r"\bmake\(([^)]*)\)|one_file\([A-Z]+, (\"[^\"]*\")", steps)
    wanted = {word for pair in named for word in re.findall(r'"([a-z-]+)"', " ".join(pair))}
    assert len(wanted) > 10
    assert wanted <= targets
    assert check.main(["--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(check.STEPS)


def test_a_wheel_that_is_kept_is_not_built() -> None:
    done = subprocess.run(["make", "-n", "wheel", "WHEEL=kept"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "ls dist/headgate-*linux_*.whl" in done.stdout
    assert "ci/wheel.sh" not in done.stdout
    done = subprocess.run(["make", "-n", "wheel"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "ci/wheel.sh" in done.stdout
    assert "HEADGATE_COMPILED" not in done.stdout
    done = subprocess.run(["make", "-n", "wheel", "COMPILED=kept"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert f"HEADGATE_COMPILED={ROOT}/engine ci/wheel.sh" in done.stdout
