"""The target of a command: a gateway on this machine, or a resource of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click

from headgate.cli.admin_client import ADMIN_PORT

# A file name that need not exist yet, or `-`; shells complete it.
FILE: Final = click.Path()
FILE.name = "file"


def cluster_refused(alternatives: str) -> click.ClickException:
    """Return the error of a command whose form for clusters is not built."""
    return click.ClickException(f"clusters are not supported by this version of gwctl; {alternatives}")


def namespace_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `-n/--namespace`."""
    return click.option("-n", "--namespace", metavar="NAME", help="Namespace of the resource.")(command)


def local_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--local`."""
    return click.option(
        "--local", is_flag=True, help="A gateway on this machine; the default without a cluster."
    )(command)


def admin_port_option(*other_names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add `-p` and these long names as the parameter `admin_port`."""
    return click.option(
        "-p",
        *other_names,
        "admin_port",
        type=click.IntRange(1, 65535),
        default=ADMIN_PORT,
        show_default=True,
        metavar="PORT",
        help="Port of the admin server.",
    )
