"""`gwctl controller log`: show or change the log levels of the control plane."""

from __future__ import annotations

import click

from headgate.cli.proxy_log import LEVELS, check_level, clauses, exclusive
from headgate.cli.target import cluster_refused

COMPONENTS = ("gw/syncer", "gw/translator", "gateway-controller", "deployer", "default")
CONTROLLER_PORT = 9095


@click.command("log")
@click.option("-n", "--namespace", metavar="NAME", help="Namespace of the control plane.")
@click.option(
    "-p", "--controller-admin-port", type=click.IntRange(1, 65535), default=CONTROLLER_PORT, show_default=True,
    metavar="PORT", help="Admin port of the control plane.",
)  # fmt: skip
@click.option("--level", metavar="LEVEL", help=f"Level of all components: {', '.join(LEVELS)}.")
@click.option("--set", "settings", multiple=True, metavar="COMPONENT=LEVEL", help=f"One of {', '.join(COMPONENTS)}.")
def log(namespace: str | None, controller_admin_port: int, level: str | None, settings: tuple[str, ...]) -> None:
    """Show the log levels of the control plane's components, or change them.

    \b
    Examples:
      gwctl controller log
      gwctl controller log --set deployer=debug
    """
    exclusive(level, settings)
    if level is not None:
        check_level(level)
    for component, _ in clauses(settings, "component"):
        if component not in COMPONENTS:
            raise click.ClickException(f'unknown component "{component}"; must be one of {", ".join(COMPONENTS)}')
    raise cluster_refused("there is no control plane to ask")
