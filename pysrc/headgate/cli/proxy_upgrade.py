"""`gwctl proxy upgrade`: have what is installed now take the place of the running gateway."""

from __future__ import annotations

import json

import click

from headgate.cli.admin_client import ask
from headgate.cli.target import admin_port_option

# The new process has two minutes to serve (server/successor).
ANSWER_SECONDS = 150.0
CONFLICT = 409


@click.command("upgrade")
@admin_port_option("--proxy-admin-port")
def upgrade(admin_port: int) -> None:
    """Start the installed version of a gateway on this machine in the place of the running one.

    The new process takes the listening sockets over, and the old one finishes what is in flight. If the new one cannot
    serve, the reason is printed and nothing changes.

    \b
    Examples:
      gwctl proxy upgrade
      gwctl proxy upgrade -p 15001
    """
    answer = ask(admin_port, "POST", "/upgrade", seconds=ANSWER_SECONDS)
    text = answer.body.decode(errors="replace").strip()
    if answer.status == CONFLICT:
        raise click.ClickException(f"the gateway continues unchanged: {text}")
    if answer.status != 200:
        raise click.ClickException(f"the admin server answers {answer.status}: {text}")
    click.echo(f"process {json.loads(answer.body)['pid']} serves now; the old one finishes what is in flight")
