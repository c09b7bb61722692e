"""What ci/compare_wheels.py says of two wheels."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.deploy.script_rig import script

compare = script("ci/compare_wheels.py")
DATE = (2027, 1, 31, 12, 0, 0)
Entry = tuple[str, bytes, tuple[int, ...], int]
FILES: tuple[Entry, ...] = (
    ("headgate/__init__.py", b"one = 1\n", DATE, 0o644),
    ("headgate_engine/wire.so", b"\x7fELF" + bytes(3000), DATE, 0o755),
    ("headgate-1.dist-info/RECORD", b"headgate/__init__.py,,\n", DATE, 0o644),
)


@pytest.fixture
def wheel(tmp_path: Path) -> Callable[..., Path]:
    def make(name: str, files: tuple[Entry, ...] = FILES, compression: int = zipfile.ZIP_DEFLATED) -> Path:
        path = tmp_path / f"{name}.whl"
        with zipfile.ZipFile(path, "w", compression) as archive:
            for inner, data, date, mode in files:
                info = zipfile.ZipInfo(inner, date)  # type: ignore[arg-type]
                info.external_attr = mode << 16
                info.compress_type = compression
                archive.writestr(info, data)
        return path

    return make


def test_equal_wheels(wheel: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert compare.main([str(wheel("a")), str(wheel("b"))]) == 0
    assert capsys.readouterr().out.startswith("equal: ")


CHANGED = (
    ("content", (FILES[0][0], b"one = 2\n", DATE, 0o644), "content of headgate/__init__.py"),
    ("date", (FILES[0][0], FILES[0][1], (2027, 2, 1, 0, 0, 0), 0o644), "date of headgate/__init__.py"),
    ("mode", (FILES[0][0], FILES[0][1], DATE, 0o664), "mode of headgate/__init__.py"),
    ("both", (FILES[0][0], b"", DATE, 0o600), "content and mode of headgate/__init__.py"),
)


@pytest.mark.parametrize(("entry", "line"), [case[1:] for case in CHANGED], ids=[case[0] for case in CHANGED])
def test_what_differs_is_named(
    entry: Entry, line: str, wheel: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare.main([str(wheel("a")), str(wheel("b", (entry, *FILES[1:])))]) == 1
    assert capsys.readouterr().out == f"{line}\n"


def test_a_file_of_one_alone(wheel: Callable[..., Path]) -> None:
    one, other = wheel("a", FILES[1:]), wheel("b", FILES[:2])
    assert compare.differences(one, other) == [
        f"only in {one}: {FILES[2][0]}",
        f"only in {other}: {FILES[0][0]}",
    ]


def test_another_order_and_another_compression(wheel: Callable[..., Path]) -> None:
    said = ["the same files in another order or compression"]
    assert compare.differences(wheel("a"), wheel("b", tuple(reversed(FILES)))) == said
    assert compare.differences(wheel("a"), wheel("c", compression=zipfile.ZIP_STORED)) == said


def test_where_a_binary_differs_is_told(wheel: Callable[..., Path]) -> None:
    """By offset, and by a path of the build if it has one: most differences are one."""
    name = FILES[1][0]
    one = (name, b"\x7fELF" + bytes(96) + b"/tmp/first/engine/wire.c" + bytes(100), DATE, 0o755)
    other = (name, b"\x7fELF" + bytes(96) + b"/tmp/other/engine/wire.c" + bytes(100), DATE, 0o755)
    [line] = compare.differences(wheel("a", (one,)), wheel("b", (other,)))
    assert line == f"content of {name}, from byte 105: /tmp/first/engine/wire.c and /tmp/other/engine/wire.c"


def test_it_wants_two_wheels(capsys: pytest.CaptureFixture[str]) -> None:
    assert compare.main(["one.whl"]) == 2
    assert "Usage" in capsys.readouterr().err
