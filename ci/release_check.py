"""Goes through the checklist of a release and stops at the first thing that is missing.

    python ci/release_check.py [--from STEP] [--to STEP] [--list]

Nothing is published: dist/ has everything at the end, with provenance.json and SHA256SUMS (docs/releasing.md).
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
# What is in dist/ at the end, one of each.
WHEEL = "headgate-{version}-*.whl"
SDIST = "headgate-{version}.tar.gz"
DEB = "headgate_{version}_*.deb"
BINARY = "headgate-{version}-linux-x86_64"
COMPONENTS = "headgate-{version}-linux-x86_64.cdx.json"
SBOM = "headgate-{version}.cdx.json"
LICENCES = "headgate-{version}-licences.md"
PROVENANCE = "provenance.json"
ARTEFACTS = (WHEEL, SDIST, DEB, BINARY, COMPONENTS, SBOM, LICENCES, PROVENANCE)


class Step(NamedTuple):
    """One line of the checklist. `check` returns what is missing in a tree, "" if nothing is."""

    name: str
    about: str
    check: Callable[[Path], str]


def git(root: Path, *words: str) -> str:
    """Return what git says of a tree. Raises CalledProcessError."""
    return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=True).stdout.strip()


def make(*targets: str, kept: bool = False) -> Callable[[Path], str]:
    """Return a check that these targets of the Makefile succeed; what they print is shown.

    `kept`: they take the wheel that is there. To build it empties dist/.
    """

    def check(root: Path) -> str:
        for target in targets:
            done = subprocess.run(["make", "-C", str(root), target, *(["WHEEL=kept"] if kept else [])], check=False)
            if done.returncode:
                return f"`make {target}` ended with {done.returncode}"
        return ""

    return check


def one_file(pattern: str, target: str, kept: bool = True) -> Callable[[Path], str]:
    """Return a check that `make target` succeeds, and that exactly one file then has this name in dist/.

    {version} in the pattern is that of pyproject.toml.
    """

    def check(root: Path) -> str:
        name = pattern.format(version=project_version(root))
        missing = make(target, kept=kept)(root)
        found = sorted(path.name for path in (root / "dist").glob(name))
        return missing or ("" if len(found) == 1 else f"dist/{name} is {found or 'not there'} after `make {target}`")

    return check


def project_version(root: Path) -> str:
    """Return the version of pyproject.toml."""
    return str(tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"])


def is_clean(root: Path) -> str:
    """Say what is changed or not committed."""
    changed = git(root, "status", "--porcelain")
    return f"not committed:\n{changed}" if changed else ""


def versions_agree(root: Path) -> str:
    """Say where the package and CHANGELOG.md have another version than pyproject.toml."""
    version = project_version(root)
    told = re.search(r'^__version__ = "(.*)"', (root / "pysrc/headgate/__init__.py").read_text(), re.MULTILINE)
    if told is None or told[1] != version:
        return f"pysrc/headgate/__init__.py says {told and told[1]}, pyproject.toml {version}"
    newest = re.search(r"^## (\S+)", (root / "CHANGELOG.md").read_text(), re.MULTILINE)
    if newest is None or newest[1] != version:
        return f"CHANGELOG.md begins with {newest and newest[1]}; it needs a section {version} with a date"
    return ""


def has_tag(root: Path) -> str:
    """Say which tag the commit does not have."""
    version = project_version(root)
    tags = git(root, "tag", "--points-at", "HEAD").split()
    if f"v{version}" not in tags:
        return f"the commit has no tag v{version} (it has {', '.join(tags) or 'none'})"
    return ""


def hashes_hold(root: Path) -> str:
    """Say which file of dist/ is not listed in SHA256SUMS or is another one."""
    folder = root / "dist"
    sums = folder / "SHA256SUMS"
    if not sums.exists():
        return "dist/SHA256SUMS is not there"
    listed = {name: digest for digest, name in (line.split("  ", 1) for line in sums.read_text().splitlines())}
    there = {path.name for path in folder.iterdir() if path.is_file()} - {sums.name}
    if listed.keys() != there:
        return f"dist/SHA256SUMS and dist/ differ in {', '.join(sorted(listed.keys() ^ there))}"
    for pattern in ARTEFACTS:
        name = pattern.format(version=project_version(root))
        if len(list(folder.glob(name))) != 1:
            return f"dist/ has not one {name}"
    for name, digest in sorted(listed.items()):
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() != digest:
            return f"dist/{name} is not the file of dist/SHA256SUMS"
    return ""


STEPS = (
    Step("clean", "nothing is changed or not committed", is_clean),
    Step("version", "pyproject.toml, the package and CHANGELOG.md have one version", versions_agree),
    Step("lint", "linters, types and stubs", make("lint", "types", "stubs")),
    Step("tests", "all tests but the slow ones", make("test")),
    Step("tools", "what looks at wheels and lists components, in the versions of the lock", make("wheel-tools")),
    Step("wheel", "the wheel, which serves from a clean environment",
         one_file(WHEEL, "wheel-check", kept=False)),
    Step("sdist", "the source distribution, which builds the same wheel bit by bit",
         one_file(SDIST, "reproducible")),
    Step("deb", "the Debian package", one_file(DEB, "deb")),
    Step("binary", "the one-file program, and its tests in an empty root",
         one_file(BINARY, "binary-check")),
    Step("sbom", "the list of components", one_file(SBOM, "sbom")),
    Step("licences", "the licences of all dependencies, all of them known",
         one_file(LICENCES, "licences")),
    Step("site", "the documents as a site", make("site")),
    Step("provenance", "what it was built from", one_file(PROVENANCE, "provenance")),
    Step("hashes", "SHA256SUMS lists every file", hashes_hold),
    # Last, so that only a commit that has passed all else gets one.
    Step("tag", "the commit has the tag of its version", has_tag),
)  # fmt: skip


def run(root: Path, steps: Sequence[Step]) -> int:
    """Go through the steps; return the exit status."""
    for number, step in enumerate(steps, 1):
        print(f"[{number}/{len(steps)}] {step.name}: {step.about}", flush=True)
        missing = step.check(root)
        if missing:
            print(f"release check stopped at {step.name}: {missing}", file=sys.stderr)
            return 1
    print("release check passed")
    return 0


def main(words: Sequence[str]) -> int:
    """Run the checklist; return the exit status."""
    names = [step.name for step in STEPS]
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--from", dest="first", choices=names, default=names[0], help="begin at this step")
    reader.add_argument("--to", dest="last", choices=names, default=names[-1], help="end after this step")
    reader.add_argument("--list", action="store_true", help="only list the steps")
    options = reader.parse_args(words)
    if options.list:
        print(*(f"{step.name:<12}{step.about}" for step in STEPS), sep="\n")
        return 0
    return run(ROOT, STEPS[names.index(options.first) : names.index(options.last) + 1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
