"""Writes completions of headgate and gwctl for bash, zsh and fish, from the parsers of their arguments.

Usage: python ci/completions.py FOLDER. The files have the names that shells look for: headgate.bash, _headgate,
headgate.fish.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from click.shell_completion import get_completion_class

from headgate.cli.gwctl import root
from headgate.cli.main import PROGRAMS
from headgate.cli.options import parser

NAMES = {"bash": "{0}.bash", "zsh": "_{0}", "fish": "{0}.fish"}
# What has a meaning in a specification of _arguments.
PLAIN = str.maketrans({"'": "", "[": "(", "]": ")", ":": "\\:"})
FILE_OPTIONS = ("file", "output")


def options() -> list[argparse.Action]:
    return [action for action in parser()._actions if action.option_strings]


def words() -> list[str]:
    """What a command line of headgate may begin with. Programs such as `controller` have parsers of their own."""
    chosen = [str(word) for action in parser()._actions if not action.option_strings for word in action.choices or ()]
    return sorted([*chosen, *PROGRAMS])


def bash() -> str:
    every = " ".join([*(name for one in options() for name in one.option_strings), *words()])
    files = "|".join(name for one in options() if one.dest in FILE_OPTIONS for name in one.option_strings)
    return f"""\
_headgate() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
    case $before in
    {files}) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")) ;;
    *) COMPREPLY=($(compgen -W "{every}" -- "$word")) ;;
    esac
}}
complete -F _headgate headgate
"""


def zsh() -> str:
    rows = ["#compdef headgate", "_arguments \\"]
    for one in options():
        about = (one.help or "").replace("%(const)s", str(one.const)).translate(PLAIN)
        what = "_files" if one.dest in FILE_OPTIONS else " "
        takes = "" if one.nargs == 0 else f":{one.metavar or one.dest}:{what}"
        rows += [f"  '{name}[{about}]{takes}' \\" for name in one.option_strings]
    return "\n".join([*rows, f"  '1:command:({' '.join(words())})'"]) + "\n"


def fish() -> str:
    rows = []
    for one in options():
        names = [f"-s {name[1:]}" if len(name) == 2 else f"-l {name[2:]}" for name in one.option_strings]
        kind = "-r -F" if one.dest in FILE_OPTIONS else "-f" if one.nargs == 0 else "-x"
        about = (one.help or "").replace("%(const)s", str(one.const)).replace("'", "\\'")
        rows.append(f"complete -c headgate {' '.join(names)} {kind} -d '{about}'")
    return "\n".join([*rows, f"complete -c headgate -n __fish_use_subcommand -f -a '{' '.join(words())}'"]) + "\n"


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for shell, text in (("bash", bash()), ("zsh", zsh()), ("fish", fish())):
        (folder / NAMES[shell].format("headgate")).write_text(text)
        kind = get_completion_class(shell)
        assert kind is not None
        (folder / NAMES[shell].format("gwctl")).write_text(kind(root, {}, "gwctl", "_GWCTL_COMPLETE").source() + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
