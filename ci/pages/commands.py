"""Writes docs/commands.md from the parsers of command lines: python ci/pages/commands.py > docs/commands.md"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Iterator
from typing import Final

import click

from headgate.cli.bench import command as bench
from headgate.cli.convert import command as convert
from headgate.cli.gwctl import root
from headgate.cli.main import PROGRAMS
from headgate.cli.options import parser

HEAD: Final = """# Command lines

```sh
headgate -f config.yaml --validate-only
gwctl proxy trace --local
```

The man pages headgate(1), headgate-bench(1), headgate-convert(1) and gwctl(1) have the same contents (`make man`). So
has `--help` of each command. `gwctl completion bash` (`zsh`, `fish`) prints a completion script. This page is generated
from the programs' parsers (`make commands`).
"""
# What begins a program of its own (headgate.cli.main.PROGRAMS), and where it is described.
ELSEWHERE: Final = {
    "bench": "see [below](#headgate-bench); [capacity.md](capacity.md) explains the figures",
    "controller": "runs the [controller](controller.md) of a cluster, configured by [variables](environment.md)",
    "convert": "see [below](#headgate-convert)",
    "import": "translates a configuration from [another product](migrate.md)",
}


def cell(words: str) -> str:
    """Text in a cell of a table."""
    return " ".join(words.split()).replace("|", "\\|")


def of_argparse(name: str, found: argparse.ArgumentParser) -> Iterator[str]:
    """A program whose arguments argparse reads."""
    usage = " ".join(found.format_usage().split()).removeprefix("usage: ")
    yield from (f"## {name}", "", "```text", usage, "```", "", "| option | |", "|---|---|")
    for action in found._actions:
        value = action.metavar or (action.dest if not action.option_strings else "")
        shown = str(value) if action.nargs != 0 and value else ""
        names = (
            ", ".join(f"`{option} {shown}`" if shown else f"`{option}`" for option in action.option_strings)
            or f"`{shown}`"
        )
        yield f"| {names} | {cell((action.help or '') % {**vars(action), 'prog': name})} |"
    yield ""


def of_click(command: click.Command, context: click.Context, level: int) -> Iterator[str]:
    """A command and all commands below it."""
    usage = " ".join(command.collect_usage_pieces(context))
    yield from (
        f"{'#' * level} {context.command_path}",
        "",
        "```text",
        f"{context.command_path} {usage}".strip(),
        "```",
        "",
    )
    yield from (*paragraphs(command.help or ""), "")
    records = [record for each in command.get_params(context) if (record := each.get_help_record(context)) is not None]
    own = [record for record in records if not record[0].endswith("--help")]
    if own:
        yield from ("| option | |", "|---|---|", *(f"| `{cell(name)}` | {cell(about)} |" for name, about in own), "")
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from of_click(below, click.Context(below, info_name=name, parent=context), min(level + 1, 4))


def paragraphs(words: str) -> Iterator[str]:
    """The help of a command; what \\b keeps from being filled stays as it is."""
    for number, paragraph in enumerate(inspect.cleandoc(words).split("\n\n")):
        if number:
            yield ""
        if paragraph.startswith("\b\n"):
            yield from ("```text", *(line.rstrip() for line in paragraph.removeprefix("\b\n").splitlines()), "```")
        else:
            yield " ".join(paragraph.split()).replace("<", "&lt;")


def page() -> str:
    """Return the page. Raises KeyError for a program that is described nowhere."""
    lines = [HEAD, *of_argparse("headgate", parser())]
    lines += ["| program | |", "|---|---|", *(f"| `headgate {name}` | {ELSEWHERE[name]} |" for name in PROGRAMS), ""]
    lines += of_click(bench, click.Context(bench, info_name="headgate bench", **bench.context_settings), 2)
    lines += of_click(convert, click.Context(convert, info_name="headgate convert", **convert.context_settings), 2)
    lines += of_click(root, click.Context(root, info_name="gwctl", **root.context_settings), 2)
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(page())
