"""The report of licences: read from metadata of packages, and nothing unknown passes."""

from __future__ import annotations

from importlib.metadata import distributions
from pathlib import Path

import pytest
from tests.deploy.script_rig import ROOT, script

licences = script("ci/licences.py")
CLASSIFIER = "Classifier: License :: OSI Approved :: "


def package(folder: Path, name: str, *lines: str, text: str = "") -> None:
    inner = folder / f"{name}-1.0.dist-info"
    inner.mkdir()
    (inner / "METADATA").write_text("\n".join(["Metadata-Version: 2.4", f"Name: {name}", "Version: 1.0", *lines, ""]))
    (inner / "RECORD").write_text(f"{name}-1.0.dist-info/licenses/LICENSE,,\n")
    if text:
        (inner / "licenses").mkdir()
        (inner / "licenses/LICENSE").write_text(text)


KNOWN = (
    (("License-Expression: Apache-2.0 OR BSD-3-Clause",), "", "Apache-2.0 OR BSD-3-Clause", "expression"),
    (("License-Expression: MPL-2.0 AND (Apache-2.0 OR MIT)",), "", "MPL-2.0 AND (Apache-2.0 OR MIT)", "expression"),
    (("License: Apache Software License 2.0",), "", "Apache-2.0", "field"),
    (("License: Dual License", CLASSIFIER + "BSD License", CLASSIFIER + "Apache Software License"), "",
     "Apache-2.0 OR BSD-3-Clause", "classifiers"),
    ((), "\n   Apache License\n   Version 2.0, January 2004\n", "Apache-2.0", "licence file"),
)  # fmt: skip


@pytest.mark.parametrize(("lines", "text", "expression", "source"), KNOWN, ids=[case[3] + case[2] for case in KNOWN])
def test_known_licences(
    lines: tuple[str, ...], text: str, expression: str, source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    package(tmp_path, "thing", *lines, text=text)
    assert licences.main([str(tmp_path)]) == 0
    assert f"| thing | 1.0 | {expression} | {source} |\n" in capsys.readouterr().out


UNKNOWN = (
    ((), "All rights reserved.", "unknown"),
    (("License: Commercial",), "", "unknown"),
    (("License-Expression: GPL-3.0-only",), "", "GPL-3.0-only"),
    (("License-Expression: MIT AND LicenseRef-Own",), "", "MIT AND LicenseRef-Own"),
    # One that is known beside one that is not.
    ((CLASSIFIER + "MIT License", CLASSIFIER + "GNU General Public License v3 (GPLv3)"), "", "unknown"),
)


@pytest.mark.parametrize(("lines", "text", "told"), UNKNOWN)
def test_unknown_licences_are_refused(
    lines: tuple[str, ...], text: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    package(tmp_path, "fine", "License: MIT")
    package(tmp_path, "thing", *lines, text=text)
    assert licences.main([str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"thing 1.0: licence {told}\n"


def test_an_empty_folder_is_no_report(tmp_path: Path) -> None:
    assert licences.main([str(tmp_path)]) == 1


def test_every_package_of_the_lock_that_is_installed_here_passes() -> None:
    locked = {line.partition("==")[0] for line in (ROOT / "ci/locks/run.txt").read_text().splitlines() if "==" in line}
    found = [licences.licence_of(each) for each in distributions() if each.metadata["Name"].lower() in locked]
    assert len(found) > 30
    assert [each for each in found if not licences.is_accepted(each.expression)] == []
