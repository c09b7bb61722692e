"""What ci/binary/build.py puts into the one-file program."""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
import tarfile
from pathlib import Path

import pytest
from tests.deploy.script_rig import ROOT, script

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

build = script("ci/binary/build.py")


def test_packages_are_those_of_its_extras() -> None:
    found = build.wanted_packages()
    assert {
        "uvloop",
        "cryptography",
        *(() if sys.version_info >= (3, 14) else ("backports-zstd",)),
        "py-spy",
        "textual",
        "asyncpg",
        "redis",
        "hiredis",
        "pycares",
        "xds-protos",
    } <= found
    assert not found & {"botocore", "google-auth", "grpcio", "aiohttp", "headgate", "pytest"}


def test_their_lock_has_their_hashes_and_nothing_else() -> None:
    text = build.locked({"uvloop", "h11"})
    assert re.findall(r"^(\S+)==", text, re.MULTILINE) == ["h11", "uvloop"]
    assert text.count("--hash=sha256:") > 2
    assert build.locked(build.wanted_packages())


def test_a_package_without_a_lock_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"not in ci/locks/run\.txt: left-pad"):
        build.locked({"h11", "left-pad"})


def test_the_starter_and_the_builder_agree() -> None:
    text = (ROOT / "ci/binary/starter.c").read_text()
    assert f'#define MAGIC "{build.MAGIC.decode()}"' in text
    assert f"#define LINKER_ROOM {build.LINKER_ROOM}\n" in text
    assert f'#define LINKER_MARK "{build.LINKER_MARK}"' in text
    assert f"ZSTD_d_windowLogMax, {build.WINDOW_LOG})" in text
    # The one that looks into the environment is the other end of what extras and upgrades read.
    assert 'setenv("HEADGATE_PROGRAM", program, 1)' in text


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "image"
    for name, data in (
        ("bin/python3", b"\x7fELF"),
        ("lib/b.pyc", b"b" * 5000),
        ("lib/a.so", b"a"),
        ("lib/z/c.pyc", b""),
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return root


def test_the_archive_does_not_depend_on_when_and_by_whom(tree: Path) -> None:
    first = build.archive(tree, 1_700_000_000)
    (tree / "lib/a.so").unlink()
    (tree / "lib/a.so").write_bytes(b"a")
    (tree / "lib/a.so").chmod(0o777)
    assert build.archive(tree, 1_700_000_000) == first
    assert first.size == 4096 + 8192 + 4096
    assert first.entries == len(list(tree.rglob("*"))) == 7
    with tarfile.open(fileobj=io.BytesIO(first.data)) as archive:
        entries = archive.getmembers()
        assert [entry.name for entry in entries if entry.isfile()] == [
            "bin/python3",
            "lib/b.pyc",
            "lib/z/c.pyc",
            "lib/a.so",
        ]
        assert {entry.name: oct(entry.mode) for entry in entries}["bin/python3"] == "0o700"
        assert {entry.mtime for entry in entries} == {1_700_000_000}
        # What the starter does not read: links, and names that need another format.
        assert {entry.type for entry in entries} == {tarfile.REGTYPE, tarfile.DIRTYPE}


def test_the_image_is_one_frame_with_a_checksum(tree: Path) -> None:
    plain = build.archive(tree, 0).data
    packed = build.compressed(plain)
    assert packed == build.compressed(plain)
    assert zstd.decompress(packed) == plain
    spoiled = bytearray(packed)
    spoiled[-1] ^= 1
    with pytest.raises(Exception, match="checksum"):
        zstd.decompress(bytes(spoiled))


def test_what_is_left_out_and_what_is_kept(tmp_path: Path) -> None:
    keep = (
        "redis/client.py",
        "click/testing.py",
        "headgate/sample/http_service.py",
        "textual/css/tokenizer.py",
        "headgate/admin/ui/index.html",
    )
    leave = (
        "redis/tests/test_a.py",
        "headgate_engine/wire/buffer.pxd",
        "headgate_engine/wire/buffer.pyi",
        "headgate/x.h",
        "lark/README.md",
    )
    for name in (*keep, *leave):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    build.prune(tmp_path)
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == set(keep)
    assert not (tmp_path / "redis/tests").exists()


DEBIAN = Path("/usr/bin/python3.11")


@pytest.mark.skipif(shutil.which("dpkg") is None or not DEBIAN.exists(), reason="needs Debian's interpreter")
def test_the_licences_of_the_interpreter_and_of_what_the_starter_has_are_in_it(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/libc.so.6").touch()
    packages = build.debian_packages(tmp_path, DEBIAN)
    assert {"python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib", "libc6"} <= packages.keys()
    assert [name for name in packages if name.endswith("-cross")] == []
    build.licences(tmp_path, packages, DEBIAN)
    found = {path.name for path in (tmp_path / "share/licences").iterdir()}
    assert {"headgate", "python", "python3.11-minimal", "libc6"} <= found
    assert "libzstd-dev" in found or not Path("/usr/share/doc/libzstd-dev").exists()
    assert "PYTHON SOFTWARE FOUNDATION LICENSE" in (tmp_path / "share/licences/python").read_text()


def test_the_list_of_components_has_packages_of_both(tmp_path: Path) -> None:
    for name, version in (("headgate", "1.0"), ("Zope.Thing", "2.0+local")):
        folder = tmp_path / f"{name}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    text = build.components(tmp_path, {"libc6": "2.36-9+deb12u14"}, "1.0")
    told = json.loads(text)
    assert (told["bomFormat"], told["specVersion"]) == ("CycloneDX", "1.6")
    assert told["metadata"]["component"]["version"] == "1.0"
    assert [(one["name"], one["version"], one["purl"]) for one in told["components"]] == [
        ("libc6", "2.36-9+deb12u14", "pkg:deb/debian/libc6@2.36-9%2Bdeb12u14"),
        ("zope-thing", "2.0+local", "pkg:pypi/zope-thing@2.0%2Blocal"),
    ]
    # Equal inputs give equal files: nothing says when it was written.
    assert not {"serialNumber", "timestamp"} & (told.keys() | told["metadata"].keys())
    assert build.components(tmp_path, {"libc6": "2.36-9+deb12u14"}, "1.0") == text
