"""`gwctl controller log`: show or change the log levels of the control plane."""

from __future__ import annotations

from typing import Any

import click

from headgate.cli.admin_client import fetch
from headgate.cli.cluster_target import cluster_pods
from headgate.cli.proxy_log import LEVELS, check_level, clauses, exclusive
from headgate.cli.target import local_option

COMPONENTS = ("gw/syncer", "gw/translator", "gateway-controller", "deployer", "default")
CONTROLLER_PORT = 9095
# Where the chart puts the control plane.
NAMESPACE = "headgate-system"
DEPLOYMENT = "deployment/headgate"


@click.command("log")
@click.option(
    "-n", "--namespace", metavar="NAME", default=NAMESPACE, show_default=True, help="Namespace of the control plane."
)
@local_option
@click.option(
    "-p", "--controller-admin-port", type=click.IntRange(1, 65535), default=CONTROLLER_PORT, show_default=True,
    metavar="PORT", help="Admin port of the control plane.",
)  # fmt: skip
@click.option("--level", metavar="LEVEL", help=f"Level of all components: {', '.join(LEVELS)}.")
@click.option("--set", "settings", multiple=True, metavar="COMPONENT=LEVEL", help=f"One of {', '.join(COMPONENTS)}.")
def log(level: str | None, settings: tuple[str, ...], **options: Any) -> None:
    """Show the log levels of the control plane's components, or change them in all of its replicas.

    \b
    Examples:
      gwctl controller log
      gwctl controller log --set deployer=debug
    """
    exclusive(level, settings)
    if level is not None:
        check_level(level)
    chosen = clauses(settings, "component")
    for component, _ in chosen:
        if component not in COMPONENTS:
            raise click.ClickException(f'unknown component "{component}"; must be one of {", ".join(COMPONENTS)}')
    directive = level if level is not None else ",".join("=".join(one) for one in chosen)
    port = options["controller_admin_port"]
    if options["local"]:
        click.echo(change(port, directive), nl=False)
        return
    cluster = cluster_pods(DEPLOYMENT, options["namespace"], "pass --local for a control plane on this machine")
    failures = []
    for pod in cluster.pods:
        try:
            with cluster.port(pod, port) as local:
                told = change(local, directive)
        except click.ClickException as error:
            failures.append(error.message if len(cluster.pods) == 1 else f"{pod.place}: {error.message}")
            continue
        click.echo(told if len(cluster.pods) == 1 else f"{pod.place}:\n".encode() + told, nl=False)
    if failures:
        raise click.ClickException("\n".join(failures))


def change(port: int, directive: str) -> bytes:
    """Set levels at an admin server of a controller, unless `directive` is empty, and return all of them.

    Raises ClickException.
    """
    told = fetch(port, "POST", "/logging", {"level": directive} if directive else None)
    if not told.startswith(f"{COMPONENTS[0]}: ".encode()):
        raise click.ClickException(f"the server at port {port} is not a control plane")
    return told
