"""Writes completions of headgate and gwctl for bash, zsh and fish, from the parsers of their arguments.

Usage: python ci/completions.py FOLDER. The files have the names that shells look for: headgate.bash, _headgate,
headgate.fish.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
from click.shell_completion import get_completion_class

from headgate.cli.bench import command as bench
from headgate.cli.gwctl import root
from headgate.cli.main import PROGRAMS
from headgate.cli.options import parser

NAMES = {"bash": "{0}.bash", "zsh": "_{0}", "fish": "{0}.fish"}
# What has a meaning in a specification of _arguments.
PLAIN = str.maketrans({"'": "", "[": "(", "]": ")", ":": "\\:"})
FILE_OPTIONS = ("file", "output")
# Of a program whose options say what they take by the word in its help.
FILE_WORD = "PATH"


class Option(NamedTuple):
    """An option as shells complete it. takes: what its value is called; "": it has none. choices: all of its values."""

    names: tuple[str, ...]
    about: str
    takes: str = ""
    files: bool = False
    choices: tuple[str, ...] = ()


def of_argparse() -> list[Option]:
    """The options of headgate itself."""
    return [
        Option(
            tuple(one.option_strings),
            (one.help or "").replace("%(const)s", str(one.const)),
            "" if one.nargs == 0 else str(one.metavar or one.dest),
            one.dest in FILE_OPTIONS,
        )
        for one in parser()._actions
        if one.option_strings
    ]


def of_click(command: click.Command) -> list[Option]:
    """The options of a command."""
    found = [Option(("-h", "--help"), "Show what it does.")]
    for one in command.params:
        if isinstance(one, click.Option):
            takes = "" if one.is_flag else one.metavar or one.type.name.upper()
            choices = tuple(map(str, one.type.choices)) if isinstance(one.type, click.Choice) else ()
            found.append(Option(tuple(one.opts), one.help or "", takes, takes == FILE_WORD, choices))
    return found


def words() -> list[str]:
    """What a command line of headgate may begin with. Programs such as `controller` have parsers of their own."""
    chosen = [str(word) for action in parser()._actions if not action.option_strings for word in action.choices or ()]
    return sorted([*chosen, *PROGRAMS])


def programs() -> dict[str, list[Option]]:
    """The options of `headgate bench`, by the command behind it; `run` is the one where none is said."""
    return {name: of_click(one) for name, one in sorted(bench.commands.items())}


def bash_cases(options: list[Option]) -> Iterator[str]:
    """What stands behind an option that takes a value."""
    files = "|".join(name for one in options if one.files for name in one.names)
    if files:
        yield f'{files}) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")); return ;;'
    for one in options:
        if one.choices:
            yield f'{"|".join(one.names)}) COMPREPLY=($(compgen -W "{" ".join(one.choices)}" -- "$word")); return ;;'
    others = "|".join(name for one in options if one.takes and not one.files and not one.choices for name in one.names)
    if others:
        yield f"{others}) return ;;"


def bash_bench() -> str:
    rows = ["_headgate_bench() {", "    local word=$1 before=$2 command=$3 first=$4", "    case $command in"]
    for name, options in programs().items():
        rows += [f"    {name})", "        case $before in"]
        rows += [f"        {row}" for row in bash_cases(options)]
        rows += ["        esac"]
        every = " ".join(name for one in options for name in one.names)
        if name == "run":
            first = f"{every} {' '.join(programs())}"
            rows.append(f'        [ "$first" ] && COMPREPLY=($(compgen -W "{first}" -- "$word")) ||')
        rows.append(f'        COMPREPLY=($(compgen -W "{every}" -- "$word"))')
        if name == "compare":
            rows.append('        [[ $word == -* ]] || { compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")); }')
        rows.append("        ;;")
    return "\n".join([*rows, "    esac", "}"])


def bash() -> str:
    options = of_argparse()
    every = " ".join([*(name for one in options for name in one.names), *words()])
    files = "|".join(name for one in options if one.files for name in one.names)
    return f"""\
{bash_bench()}
_headgate() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command=run first=
    if [[ ${{COMP_WORDS[1]}} == bench && $COMP_CWORD -ge 2 ]]; then
        case ${{COMP_WORDS[2]}} in {"|".join(programs())}) [ $COMP_CWORD -ge 3 ] && command=${{COMP_WORDS[2]}} ;; esac
        [ $COMP_CWORD -eq 2 ] && first=1
        _headgate_bench "$word" "$before" "$command" "$first"
        return
    fi
    case $before in
    {files}) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")) ;;
    *) COMPREPLY=($(compgen -W "{every}" -- "$word")) ;;
    esac
}}
complete -F _headgate headgate
"""


def zsh_rows(options: list[Option]) -> Iterator[str]:
    for one in options:
        what = "_files" if one.files else f"({' '.join(one.choices)})" if one.choices else " "
        takes = f":{one.takes.translate(PLAIN)}:{what}" if one.takes else ""
        for name in one.names:
            yield f"'{name}[{one.about.translate(PLAIN)}]{takes}'"


def zsh() -> str:
    rows = ["#compdef headgate", "_headgate_bench() {", "  local command=run"]
    rows += [f"  case ${{words[2]}} in ({'|'.join(programs())})"]
    rows += ["    command=${words[2]}; shift words; (( CURRENT-- )) ;; esac"]
    rows += ["  case $command in"]
    for name, options in programs().items():
        rest = {"compare": "'*:report:_files'", "run": f"'1:command or URL:({' '.join(programs())})'"}.get(name)
        lines = [*zsh_rows(options), *([rest] if rest else [])]
        rows += [f"  ({name}) _arguments \\", " \\\n".join(f"    {line}" for line in lines), "  ;;"]
    rows += ["  esac", "}", "if [[ ${words[2]} == bench && CURRENT -gt 2 ]]; then"]
    rows += ["  shift words; (( CURRENT-- )); _headgate_bench; return", "fi", "_arguments \\"]
    rows += [f"  {row} \\" for row in zsh_rows(of_argparse())]
    return "\n".join([*rows, f"  '1:command:({' '.join(words())})'"]) + "\n"


def fish_rows(options: list[Option], condition: str) -> Iterator[str]:
    for one in options:
        names = " ".join(f"-s {name[1:]}" if len(name) == 2 else f"-l {name[2:]}" for name in one.names)
        kind = "-r -F" if one.files else "-x" if one.takes else "-f"
        values = f" -a '{' '.join(one.choices)}'" if one.choices else ""
        about = one.about.replace("\\", "\\\\").replace("'", "\\'")
        yield f"complete -c headgate {condition}{names} {kind}{values} -d '{about}'"


def fish() -> str:
    known = " ".join(programs())
    rows = list(fish_rows(of_argparse(), "-n 'not __fish_seen_subcommand_from bench' "))
    rows.append(f"complete -c headgate -n __fish_use_subcommand -f -a '{' '.join(words())}'")
    inside = "__fish_seen_subcommand_from bench"
    rows.append(f"complete -c headgate -n '{inside}; and not __fish_seen_subcommand_from {known}' -f -a '{known}'")
    for name, options in programs().items():
        others = " ".join(other for other in programs() if other != name)
        plain = f"not __fish_seen_subcommand_from {others}" if name == "run" else f"__fish_seen_subcommand_from {name}"
        rows += fish_rows(options, f"-n '{inside}; and {plain}' ")
    return "\n".join(rows) + "\n"


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for shell, text in (("bash", bash()), ("zsh", zsh()), ("fish", fish())):
        (folder / NAMES[shell].format("headgate")).write_text(text)
        kind = get_completion_class(shell)
        assert kind is not None
        (folder / NAMES[shell].format("gwctl")).write_text(kind(root, {}, "gwctl", "_GWCTL_COMPLETE").source() + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
