"""The options of `headgate`, of which the help and all errors are told. `-f PATH` alone needs none of this."""

from __future__ import annotations

import argparse


def parser() -> argparse.ArgumentParser:
    """Return the argument parser of `headgate`."""
    found = argparse.ArgumentParser(prog="headgate", description="A gateway for agents.")
    found.add_argument("-f", "--file", metavar="PATH", help="configuration file, YAML or JSON; - is standard input")
    found.add_argument("-c", "--config", metavar="TEXT", help="configuration given inline")
    found.add_argument("--validate-only", action="store_true", help="check the configuration and exit")
    found.add_argument(
        "--diff",
        metavar="URL",
        nargs="?",
        const="http://127.0.0.1:15000",
        help="check the configuration, print what it would change at the gateway with this admin address, and exit: "
        "0 nothing, 3 something (default: %(const)s)",
    )
    found.add_argument("-V", dest="short_version", action="store_true", help="print the version")
    found.add_argument("--version", action="store_true", help="print the version and build as JSON")
    found.add_argument(
        "action",
        nargs="?",
        choices=("oneshot",),
        help="oneshot: run the command after -- when the gateway is ready, and stop the gateway when the command ends",
    )
    found.add_argument(
        "--output", metavar="PATH", help="with oneshot: file for the log of the gateway (default: standard error)"
    )
    return found
