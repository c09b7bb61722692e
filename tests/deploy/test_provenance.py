"""What ci/provenance.py says of the files of a release."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path

import pytest
from tests.deploy.script_rig import ROOT, script

provenance = script("ci/provenance.py")


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SOURCE_COMMIT", "c" * 40)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    (tmp_path / "headgate-1.whl").write_bytes(b"wheel")
    (tmp_path / "headgate-1.tar.gz").write_bytes(b"sources")
    assert provenance.main([str(tmp_path)]) == 0
    return tmp_path


def test_the_statement_names_files_commit_and_locks(built: Path) -> None:
    found = json.loads((built / "provenance.json").read_text())
    assert found["_type"] == "https://in-toto.io/Statement/v1"
    assert [(one["name"], one["digest"]["sha256"]) for one in found["subject"]] == [
        ("headgate-1.tar.gz", hashlib.sha256(b"sources").hexdigest()),
        ("headgate-1.whl", hashlib.sha256(b"wheel").hexdigest()),
    ]
    definition = found["predicate"]["buildDefinition"]
    assert definition["internalParameters"]["SOURCE_DATE_EPOCH"] == "1700000000"
    source, *locks = definition["resolvedDependencies"]
    assert source["digest"] == {"gitCommit": "c" * 40}
    assert found["predicate"]["runDetails"]["metadata"]["startedOn"] == "2023-11-14T22:13:20Z"
    run = next(one for one in locks if one["name"] == "ci/locks/run.txt")
    assert run["digest"]["sha256"] == hashlib.sha256((ROOT / "ci/locks/run.txt").read_bytes()).hexdigest()
    lines = [
        line for line in (ROOT / "ci/locks/run.txt").read_text().splitlines() if "==" in line and "--hash" not in line
    ]
    assert len(run["annotations"]["packages"]) == len(lines)
    assert any(one.startswith("cryptography==") for one in run["annotations"]["packages"])


def test_the_hashes_are_read_by_sha256sum(built: Path) -> None:
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=built, capture_output=True, text=True, check=True
    )
    assert done.stdout.count(": OK\n") == 3


def test_equal_files_have_equal_statements(built: Path) -> None:
    before = (built / "provenance.json").read_bytes()
    assert provenance.main([str(built)]) == 0
    assert (built / "provenance.json").read_bytes() == before


def test_an_empty_folder_has_none(tmp_path: Path) -> None:
    assert provenance.main([str(tmp_path)]) == 1
    assert list(tmp_path.iterdir()) == []
