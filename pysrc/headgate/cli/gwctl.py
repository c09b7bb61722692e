"""`gwctl`: the operator's tool."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog="gwctl", description="Look at and steer a running gateway.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("version", help="print the version")
    for name in ("proxy", "controller"):
        commands.add_parser(name, help="not supported yet", add_help=False)
    options, _rest = parser.parse_known_args(arguments)
    if options.command == "version":
        from headgate.telemetry.build_info import build_info

        print(build_info()["version"])
        return 0
    if options.command is None:
        parser.print_help()
        return 2
    print(f"gwctl: not supported yet: {options.command}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
