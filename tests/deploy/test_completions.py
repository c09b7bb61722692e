"""Completions of shells: they know every option, and the shells take them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from headgate.cli.bench import command as bench
from headgate.cli.options import parser

ROOT = Path(__file__).parents[2]
NAMES = {"headgate.bash", "_headgate", "headgate.fish", "gwctl.bash", "_gwctl", "gwctl.fish"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("completions")
    subprocess.run([sys.executable, str(ROOT / "ci" / "completions.py"), str(found)], check=True, timeout=120)
    return found


def completed(folder: Path, *words: str) -> list[str]:
    """What bash offers for the last word."""
    line = " ".join(f"'{word}'" for word in words)
    script = f". {folder}/headgate.bash; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _headgate; echo ${{COMPREPLY[@]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, timeout=60, cwd=ROOT)
    return done.stdout.split()


def test_every_option_is_in_every_shell(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == NAMES
    for action in parser()._actions:
        for name in action.option_strings:
            assert name in (folder / "headgate.bash").read_text()
            assert f"'{name}[" in (folder / "_headgate").read_text()
            fish = f"-s {name[1:]} " if len(name) == 2 else f"-l {name[2:]} "
            assert fish in (folder / "headgate.fish").read_text()


def test_bash_completes(folder: Path) -> None:
    assert completed(folder, "headgate", "--val") == ["--validate-only"]
    assert completed(folder, "headgate", "one") == ["oneshot"]
    assert completed(folder, "headgate", "-f", "pyproj") == ["pyproject.toml"]
    assert completed(folder, "headgate", "--nothing") == []


def test_every_option_of_the_bench_is_in_every_shell(folder: Path) -> None:
    for command in bench.commands.values():
        for option in (name for one in command.params if isinstance(one, click.Option) for name in one.opts):
            assert f" {option} " in (folder / "headgate.bash").read_text().replace('"', " ")
            assert f"    '{option}[" in (folder / "_headgate").read_text()
            fish = f"-s {option[1:]} " if len(option) == 2 else f"-l {option[2:]} "
            assert fish in (folder / "headgate.fish").read_text()


@pytest.mark.parametrize(("words", "offered"), [
    (("bench", "--sat"), ["--saturate"]),
    (("bench", "comp"), ["compare"]),
    (("bench", "http://127.0.0.1/", "comp"), []),
    (("bench", "--kind", ""), ["http", "chat", "stream", "mcp"]),
    (("bench", "-k", "s"), ["stream"]),
    (("bench", "--format", "m"), ["messages"]),
    (("bench", "--rate", ""), []),
    (("bench", "--cacert", "pyproj"), ["pyproject.toml"]),
    (("bench", "run", "--sat"), ["--saturate"]),
    (("bench", "run", "comp"), []),
    (("bench", "serve", "--s"), ["--size"]),
    (("bench", "serve", "--sat"), []),
    (("bench", "compare", "pyproj"), ["pyproject.toml"]),
    (("bench", "compare", "pyproject.toml", "READ"), ["README.md"]),
    (("-f", "bench"), ["bench"]),
])  # fmt: skip
def test_bash_completes_the_bench(folder: Path, words: tuple[str, ...], offered: list[str]) -> None:
    assert completed(folder, "headgate", *words) == offered


@pytest.mark.parametrize("name", sorted(NAMES))
def test_shells_can_read_them(folder: Path, name: str) -> None:
    shell = {"bash": "bash", "fish": "fish"}.get(name.rpartition(".")[2], "zsh")
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert subprocess.run([shell, "-n", str(folder / name)], capture_output=True, timeout=60, check=False).stderr == b""
