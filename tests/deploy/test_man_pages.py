"""The man pages that ci/man_pages.py writes: they name every option and command, and groff has nothing to say."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from headgate.cli.bench import command as bench
from headgate.cli.gwctl import root
from headgate.cli.options import parser

ROOT = Path(__file__).parents[2]


def write(folder: Path, **environment: str) -> dict[str, str]:
    """The pages, as a shell writes them."""
    subprocess.run(
        [sys.executable, str(ROOT / "ci" / "man_pages.py"), str(folder)],
        check=True, timeout=120, env={**os.environ, **environment},
    )  # fmt: skip
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return write(tmp_path_factory.mktemp("man"), SOURCE_DATE_EPOCH="1700000000")


def commands(command: click.Command, context: click.Context) -> Iterator[click.Context]:
    yield context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from commands(below, click.Context(below, info_name=name, parent=context))


def plain(page: str) -> str:
    return page.replace("\\-", "-").replace("\\fB", "").replace("\\fR", "")


def test_every_option_of_headgate_is_there(pages: dict[str, str]) -> None:
    page = plain(pages["headgate.1"])
    options = [option for action in parser()._actions for option in action.option_strings]
    assert len(options) > 8
    assert [option for option in options if f"\n{option}" not in page and f", {option}" not in page] == []
    assert "oneshot" in page
    assert "%(" not in page


def test_every_command_and_option_of_gwctl_is_there(pages: dict[str, str]) -> None:
    page = plain(pages["gwctl.1"])
    found = list(commands(root, click.Context(root, info_name="gwctl", **root.context_settings)))
    assert len(found) > 10
    for context in found:
        assert f".B {context.command_path}\n" in page
        for parameter in context.command.get_params(context):
            record = parameter.get_help_record(context)
            assert record is None or record[0] in page, (context.command_path, record)


def test_every_command_and_option_of_the_bench_is_there(pages: dict[str, str]) -> None:
    page = plain(pages["headgate-bench.1"])
    found = list(commands(bench, click.Context(bench, info_name="headgate bench", **bench.context_settings)))
    assert [context.info_name for context in found[1:]] == ["compare", "run", "serve"]
    for context in found:
        assert f".B {context.command_path}\n" in page
        for parameter in context.command.get_params(context):
            record = parameter.get_help_record(context)
            assert record is None or record[0] in page, (context.command_path, record)


def test_the_debian_package_has_every_page(pages: dict[str, str]) -> None:
    [listed] = re.findall(r'^for page in ([^;]*); do\n  install -D -m 644 "build/man', (ROOT / "ci/deb.sh").read_text(), re.MULTILINE)
    assert {f"{name}.1" for name in listed.split()} == set(pages)


def test_equal_sources_give_equal_pages(pages: dict[str, str], tmp_path: Path) -> None:
    assert write(tmp_path / "again", SOURCE_DATE_EPOCH="1700000000") == pages
    assert '.TH HEADGATE 1 "2023-11-14"' in pages["headgate.1"]


@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff (package groff-base)")
def test_groff_finds_no_fault(pages: dict[str, str]) -> None:
    for page in pages.values():
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z"], input=page, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z"], input=".nosuch\n", capture_output=True, text=True, timeout=60)
    assert "nosuch" in done.stderr, "it would tell an unknown request"
