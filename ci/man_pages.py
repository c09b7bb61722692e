"""Writes the man pages of headgate, its programs bench and convert, and gwctl from the parsers of their arguments.

Usage: python ci/man_pages.py FOLDER

The format is that of man(7). `SOURCE_DATE_EPOCH` is the date of the pages, so that equal sources give equal pages.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import click

from headgate.cli.bench import command as bench
from headgate.cli.convert import command as convert
from headgate.cli.gwctl import root
from headgate.cli.options import parser

FILES = {
    "headgate": [
        ("/etc/headgate/config.yaml", "The configuration of the service."),
        ("/etc/default/headgate", "Environment variables of the service, one assignment a line."),
    ],
    "headgate-bench": [],
    "headgate-convert": [],
    "gwctl": [],
}


def text(words: str) -> str:
    """Text as roff has it: a backslash and a hyphen are themselves, and no line begins with a control character."""
    plain = words.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line.startswith((".", "'")) else line for line in plain.splitlines())


def head(name: str, about: str) -> Iterator[str]:
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH") or 0)
    date = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d") if seconds else ""
    yield f'.TH {name.upper()} 1 "{date}" "headgate {version("headgate")}" "User Commands"'
    yield f".SH NAME\n{name} \\- {text(about)}"


def tail(name: str, other: str) -> Iterator[str]:
    if FILES[name]:
        yield ".SH FILES"
        for path, words in FILES[name]:
            yield f".TP\n.I {text(path)}\n{text(words)}"
    yield f".SH SEE ALSO\n.BR {other} (1)"


def of_argparse(name: str, found: argparse.ArgumentParser) -> Iterator[str]:
    """The sections of a program whose arguments argparse reads."""
    usage = " ".join(found.format_usage().split()).partition(f"{name} ")[2]
    yield f".SH SYNOPSIS\n.B {name}\n{text(usage)}"
    yield ".SH OPTIONS"
    for action in found._actions:
        names = ", ".join(f"\\fB{text(option)}\\fR" for option in action.option_strings)
        value = action.metavar or (action.dest if not action.option_strings else "")
        if action.nargs != 0 and value:
            names += f" \\fI{text(str(value))}\\fR"
        yield f".TP\n{names.strip()}\n{text((action.help or '') % {**vars(action), 'prog': name})}"


def of_click(command: click.Command, context: click.Context) -> Iterator[str]:
    """The sections of a command and of all commands below it."""
    usage = " ".join(command.collect_usage_pieces(context))
    yield f".B {text(context.command_path)}\n{text(usage)}\n.PP\n{paragraphs(command.help or '')}"
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            yield f".TP\n\\fB{text(record[0])}\\fR\n{text(record[1]) or '.br'}"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            inner = click.Context(below, info_name=name, parent=context)
            yield f'.SS "{text(inner.command_path)}"'
            yield from of_click(below, inner)


def paragraphs(words: str) -> str:
    """The help of a command; what \\b keeps from being filled stays as it is."""
    found = []
    for paragraph in words.strip().split("\n\n"):
        kept = paragraph.startswith("\b\n")
        body = text(paragraph.removeprefix("\b\n"))
        found.append(f".nf\n{body}\n.fi" if kept else body)
    return "\n.PP\n".join(found)


def pages() -> dict[str, str]:
    """The pages by their file names."""
    about = "a gateway for agents: HTTP, LLM, MCP and A2A traffic"
    headgate = [*head("headgate", about), *of_argparse("headgate", parser()), *tail("headgate", "gwctl")]
    about = "a configuration file as resources of a cluster, and back"
    context = click.Context(convert, info_name="headgate convert", **convert.context_settings)
    converted = [
        *head("headgate-convert", about),
        ".SH DESCRIPTION",
        *of_click(convert, context),
        *tail("headgate-convert", "headgate"),
    ]
    context = click.Context(bench, info_name="headgate bench", **bench.context_settings)
    about = "measure what a gateway carries"
    measured = [
        *head("headgate-bench", about),
        ".SH DESCRIPTION",
        *of_click(bench, context),
        *tail("headgate-bench", "headgate"),
    ]
    context = click.Context(root, info_name="gwctl", **root.context_settings)
    about = "look at and steer gateways"
    gwctl = [*head("gwctl", about), ".SH DESCRIPTION", *of_click(root, context), *tail("gwctl", "headgate")]
    found = {"headgate": headgate, "headgate-bench": measured, "headgate-convert": converted, "gwctl": gwctl}
    return {f"{name}.1": "\n".join([*lines, ""]) for name, lines in found.items()}


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in pages().items():
        (folder / name).write_text(page)


if __name__ == "__main__":
    main()
