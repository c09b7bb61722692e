"""`gwctl proxy log`: show or change the log directive of a gateway."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from headgate.cli.admin_client import fetch
from headgate.cli.cluster_target import cluster_pods, is_here
from headgate.cli.target import admin_port_option, local_option, namespace_option

LEVELS = ("error", "warn", "info", "debug", "trace", "off")


def check_level(level: str) -> str:
    """Return the level; raises ClickException for an unknown one."""
    if level not in LEVELS:
        raise click.ClickException(f'unknown level "{level}"; must be one of {", ".join(LEVELS)}')
    return level


def clauses(settings: tuple[str, ...], what: str) -> list[tuple[str, str]]:
    """Return (name, level) pairs from `name=level` options, each a comma-separated list; raises ClickException."""
    found = []
    for setting in (part.strip() for option in settings for part in option.split(",")):
        name, equals, level = setting.partition("=")
        if not equals or not name:
            raise click.ClickException(f'"{setting}" is not <{what}>=<level>')
        found.append((name, check_level(level)))
    return found


def exclusive(level: str | None, settings: tuple[str, ...]) -> None:
    """Raise ClickException if `--level` and `--set` are given together."""
    if level is not None and settings:
        raise click.ClickException("--level and --set exclude each other")


@click.command("log")
@click.argument("resource", required=False)
@namespace_option
@local_option
@admin_port_option("--proxy-admin-port")
@click.option("--level", metavar="LEVEL", help=f"Level of everything: {', '.join(LEVELS)}.")
@click.option("--set", "settings", multiple=True, metavar="MODULE=LEVEL", help="Level of a module; may be repeated.")
@click.option("--reset", is_flag=True, help="First restore the levels at the start, then apply --level or --set.")
def log(resource: str | None, level: str | None, settings: tuple[str, ...], **options: Any) -> None:
    """Show the log directive of a gateway, or change it in all its processes at once.

    \b
    Examples:
      gwctl proxy log --local
      gwctl proxy log --local --level debug
      gwctl proxy log --local --set headgate.mcp=trace,request=off
      gwctl proxy log --local --reset
    """
    exclusive(level, settings)
    directive = check_level(level) if level is not None else ",".join("=".join(c) for c in clauses(settings, "module"))
    query = {"reset": ""} if options["reset"] else {}
    query |= {"level": directive} if directive else {}
    if is_here(resource, options["local"]):
        click.echo(change(options["admin_port"], query), nl=False)
        return
    cluster = cluster_pods(resource, options["namespace"], "pass --local for a gateway on this machine")
    failures = []
    for pod in cluster.pods:
        try:
            with cluster.port(pod, options["admin_port"]) as port:
                told = change(port, query)
        except click.ClickException as error:
            failures.append(error.message if len(cluster.pods) == 1 else f"{pod.place}: {error.message}")
            continue
        click.echo(told if len(cluster.pods) == 1 else f"{pod.place}:\n".encode() + told, nl=False)
    if failures:
        raise click.ClickException("\n".join(failures))


def change(port: int, query: Mapping[str, str]) -> bytes:
    """Change the log directive of an admin server, or ask for it; return the answer. Raises ClickException."""
    told = fetch(port, "POST", "/logging", query or None)
    if not told.startswith(b"current log level is "):
        raise click.ClickException(f"the server at port {port} is not an admin server")
    return told
