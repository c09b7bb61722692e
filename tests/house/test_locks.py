"""The locks of `make run`, `make test` and other groups: they have what pyproject.toml asks for, in its ranges, and name no host."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ROOT / "ci" / "locks"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
LINE = re.compile(r"([a-z0-9-]+)==(\S+)(?: ; ([^\\]+))? \\")
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}(?: \\)?")
# What one version of a package needs for another version of Python: the lock may have two of a name.
Versions = dict[str, set[Version]]


def applies(marker: Marker | str | None, python: str) -> bool:
    """Whether a requirement or a locked version with this marker is meant for a version of Python ("3.11")."""
    wanted = Marker(marker) if isinstance(marker, str) else marker
    return wanted is None or wanted.evaluate({"python_version": python, "python_full_version": f"{python}.5"})


def locked(name: str, python: str | None = None) -> Versions:
    """The versions of each package of a lock, those for one version of Python or all. A line that is neither a version nor a hash is an error."""
    found: Versions = {}
    for line in (LOCKS / name).read_text().splitlines():
        if HASH.fullmatch(line):
            continue
        match = LINE.fullmatch(line)
        assert match is not None, f"{name}: {line}"
        if python is None or applies(match[3], python):
            found.setdefault(match[1], set()).add(Version(match[2]))
    return found


def extras() -> list[str]:
    return [text for name, texts in PROJECT["project"]["optional-dependencies"].items() if name != "all" for text in texts]


def build_requirements() -> list[str]:
    text = (LOCKS / "build.in").read_text()
    return [line for line in text.splitlines() if line and not line.startswith("#")] + PROJECT["build-system"]["requires"]


GROUPS = PROJECT["dependency-groups"]
WANTED = {
    "build.txt": build_requirements(),
    "run.txt": PROJECT["project"]["dependencies"] + extras(),
    "test.txt": PROJECT["project"]["dependencies"] + extras() + GROUPS["test"] + GROUPS["lint"],
    **{f"{name}.txt": texts for name, texts in GROUPS.items() if name not in ("test", "lint")},
}


@pytest.mark.parametrize("lock", WANTED)
def test_a_lock_has_what_the_project_asks_for(lock: str) -> None:
    for python in PYTHONS:
        versions = locked(lock, python)
        for requirement in map(Requirement, WANTED[lock]):
            if not applies(requirement.marker, python):
                continue
            found = versions.get(canonicalize_name(requirement.name), set())
            assert found, f"{requirement.name} is not in {lock} for Python {python}: make lock KEEP=1"
            assert all(requirement.specifier.contains(version) for version in found), f"{requirement}: {lock} has {found}"


@pytest.mark.parametrize("lock", WANTED)
def test_every_version_has_hashes_and_no_host_is_named(lock: str) -> None:
    text = (LOCKS / lock).read_text()
    assert "://" not in text
    assert "index-url" not in text
    lines = text.splitlines()
    assert len(lines) > 3
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        assert not LINE.fullmatch(line) or HASH.fullmatch(following), line


@pytest.mark.parametrize("lock", sorted(WANTED.keys() - {"test.txt"}))
def test_what_runs_or_stands_beside_the_tests_has_the_same_versions(lock: str) -> None:
    tested = locked("test.txt")
    for name, versions in locked(lock).items():
        assert name not in tested or tested[name] == versions, name


def test_pip_reads_the_locks() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert "INSTALL_GROUP = --require-hashes -r ci/locks/$(1).txt" in makefile
    for lock in WANTED:
        asked = (f"--require-hashes -r ci/locks/{lock}", f"$(call INSTALL_GROUP,{lock.removesuffix('.txt')})")
        assert any(words in makefile for words in asked), lock
    assert "pip install -q --group" not in makefile
