"""Compares two wheels bit by bit. Usage: python ci/compare_wheels.py ONE.whl OTHER.whl

Says which files differ, and exits with 1 if any does, or if the archives are not the same bytes.
"""

from __future__ import annotations

import hashlib
import re
import sys
import zipfile
from pathlib import Path


def entries(path: Path) -> dict[str, tuple[str, object, int]]:
    """Return digest, date and mode of each file by name."""
    with zipfile.ZipFile(path) as archive:
        return {
            info.filename: (hashlib.sha256(archive.read(info)).hexdigest(), info.date_time, info.external_attr >> 16)
            for info in archive.infolist()
        }


def content(path: Path, name: str) -> bytes:
    """Return one file of a wheel."""
    with zipfile.ZipFile(path) as archive:
        return archive.read(name)


# A path that a compiler may have left in what it made.
PATH = re.compile(rb"/[\x21-\x7e]{3,200}")


def where(first: bytes, second: bytes) -> str:
    """Return from which byte on two binaries differ, and the paths that stand there; "" for texts."""
    if not first.startswith(b"\x7fELF") or not second.startswith(b"\x7fELF"):
        return ""
    pairs = enumerate(zip(first, second, strict=False))
    at = next((index for index, (here, there) in pairs if here != there), min(len(first), len(second)))
    paths = []
    for data in (first, second):
        start = max(data.rfind(b"\0", 0, at) + 1, at - 200)
        found = PATH.match(data, start)
        paths.append(found[0].decode() if found else "")
    return f", from byte {at}" + (f": {paths[0]} and {paths[1]}" if all(paths) else "")


def differences(one: Path, other: Path) -> list[str]:
    """Return a line for each difference; an empty list means equal bytes."""
    first, second = entries(one), entries(other)
    found = [f"only in {one}: {name}" for name in sorted(first.keys() - second.keys())]
    found += [f"only in {other}: {name}" for name in sorted(second.keys() - first.keys())]
    for name in sorted(first.keys() & second.keys()):
        whats = zip(("content", "date", "mode"), first[name], second[name], strict=True)
        different = [what for what, here, there in whats if here != there]
        if different:
            place = where(content(one, name), content(other, name)) if "content" in different else ""
            found.append(f"{' and '.join(different)} of {name}{place}")
    if not found and one.read_bytes() != other.read_bytes():
        found.append("the same files in another order or compression")
    return found


def main(words: list[str]) -> int:
    """Compare; return the exit status."""
    if len(words) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    one, other = map(Path, words)
    found = differences(one, other)
    for line in found:
        print(line)
    if not found:
        print(f"equal: {hashlib.sha256(one.read_bytes()).hexdigest()}, {len(entries(one))} files")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
