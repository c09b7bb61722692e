"""Writes the licences of all packages that are installed in a folder, as a table.

    python ci/licences.py build/locked/lib/python3.11/site-packages > dist/licences.md

They are read from the metadata of each package: its licence expression, else its field, else its classifiers, else its
licence file. Exits with 1, and says which, if the licence of a package is not known or not one of ACCEPTED.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import NamedTuple

# Licences (SPDX identifiers) of libraries that a program under Apache-2.0 may be given away with.
ACCEPTED = {
    "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "ISC", "MIT", "MIT-0", "MPL-2.0",
    "PSF-2.0", "Python-2.0", "Unlicense", "Zlib",
}  # fmt: skip
# What packages say in the place of an identifier. "BSD" alone: one of the two, which ask for the same.
WORDS = {
    "apache 2.0": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "apache software license 2.0": "Apache-2.0",
    "3-clause bsd license": "BSD-3-Clause",
    "bsd": "BSD-3-Clause",
    "bsd license": "BSD-3-Clause",
    "isc license (iscl)": "ISC",
    "mit license": "MIT",
    "the mit license (mit)": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "python software foundation license": "PSF-2.0",
}
# How the text of a licence begins, for packages that say nothing else.
TEXTS = ((r"Apache License\s+Version 2\.0", "Apache-2.0"), (r"MIT License", "MIT"), (r"ISC License", "ISC"))
TEXT_LENGTH = 1000
CLASSIFIER = "License :: OSI Approved :: "


class Licence(NamedTuple):
    """What one package says. `expression`: SPDX; empty where nothing is known. `source`: where that was read."""

    package: str
    version: str
    expression: str
    source: str


def identifier(words: str) -> str:
    """Return the SPDX identifier for what a package says, "" if it is not known."""
    plain = " ".join(words.split())
    return plain if plain in ACCEPTED else WORDS.get(plain.lower(), "")


def is_accepted(expression: str) -> bool:
    """Tell whether every licence of an expression is known. An alternative of which one is not has to be looked at."""
    names = [word for word in re.findall(r"[^\s()]+", expression) if word not in ("AND", "OR")]
    return bool(names) and all(name in ACCEPTED for name in names)


def licence_text(package: Distribution) -> str:
    """Return the beginning of the first licence file of a package."""
    for file in package.files or ():
        if re.match(r"(LICEN[CS]E|COPYING)", file.name, re.IGNORECASE) and ".dist-info" in str(file):
            path = Path(str(package.locate_file(file)))
            return path.read_text(errors="replace")[:TEXT_LENGTH] if path.exists() else ""
    return ""


def licence_of(package: Distribution) -> Licence:
    """Return the licence of a package."""
    fields = package.metadata
    name, version = fields["Name"], package.version
    expression = fields.get("License-Expression")
    if expression:
        return Licence(name, version, expression, "expression")
    field = identifier(fields.get("License") or "")
    if field:
        return Licence(name, version, field, "field")
    said = [line.removeprefix(CLASSIFIER) for line in fields.get_all("Classifier") or () if line.startswith(CLASSIFIER)]
    known = [identifier(words) for words in said]
    if known and all(known):
        return Licence(name, version, " OR ".join(sorted(set(known))), "classifiers")
    text = licence_text(package)
    found = next((spdx for pattern, spdx in TEXTS if re.search(pattern, text)), "")
    return Licence(name, version, found, "licence file" if found else "")


def table(found: Iterable[Licence]) -> str:
    """Return the licences as a table of Markdown, by package."""
    lines = [
        "# Licences of dependencies",
        "",
        "| package | version | licence (SPDX) | read from |",
        "|---|---|---|---|",
    ]
    rows = sorted(found, key=lambda each: each.package.lower())
    lines += [f"| {row.package} | {row.version} | {row.expression or '?'} | {row.source} |" for row in rows]
    return "\n".join(lines) + "\n"


def main(words: list[str]) -> int:
    """Write the table; return the exit status."""
    if len(words) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    found = [licence_of(package) for package in distributions(path=[words[0]])]
    if not found:
        print(f"no packages in {words[0]}", file=sys.stderr)
        return 1
    print(table(found), end="")
    bad = [row for row in found if not is_accepted(row.expression)]
    for row in sorted(bad):
        print(f"{row.package} {row.version}: licence {row.expression or 'unknown'}", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
