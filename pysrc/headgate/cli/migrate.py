"""`gwctl migrate`: bring resources of a cluster into the form of a newer release."""

from __future__ import annotations

import click

from headgate.cli.target import cluster_refused, namespace_option


@click.command("migrate")
@click.option("--apply", "step", metavar="ID", required=True, help="The change to make.")
@click.option("--write", is_flag=True, help="Write to the cluster instead of showing what would change.")
@namespace_option
def migrate(step: str, write: bool, namespace: str | None) -> None:
    """Bring resources of a cluster into the form of a newer release.

    \b
    Examples:
      gwctl migrate --apply <id>
      gwctl migrate --apply <id> --write
    """
    raise cluster_refused("there are no resources to migrate")
