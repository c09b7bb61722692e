"""`gwctl top`: a live view of routes, models, keys, sessions and errors."""

from __future__ import annotations

import sys
from typing import Any

import click

from headgate.cli import top_views
from headgate.cli.cluster_target import admin_port
from headgate.cli.proxy_config import LOCAL
from headgate.cli.target import admin_port_option, local_option, namespace_option
from headgate.cli.text_table import show_table


@click.command("top")
@click.argument("resource", required=False)
@namespace_option
@local_option
@admin_port_option("--proxy-admin-port")
@click.option("-v", "--view", type=click.Choice(top_views.VIEWS), default="routes", show_default=True)
@click.option(
    "-d",
    "--delay",
    type=click.FloatRange(0.5, 60),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between two updates.",
)
@click.option("--once", is_flag=True, help="Print the view once, for scripts.")
def top(resource: str | None, view: str, delay: float, once: bool, **options: Any) -> None:
    """Watch a gateway: routes, models, virtual keys, MCP sessions, errors.

    \b
    Examples:
      gwctl top --local
      gwctl top --local --view models
      gwctl top --local --once --view errors
    """
    with admin_port(resource, options["namespace"], options["local"], options["admin_port"], LOCAL) as port:
        if once:
            found = top_views.fetch(port)
            click.echo(top_views.headline(found))
            if view in found.missing:
                click.echo(found.missing[view])
            show_table(top_views.HEADS[view], top_views.rows(view, found))
            return
        if not sys.stdout.isatty():
            raise click.ClickException("the live view needs a terminal; use --once")
        try:
            from headgate.cli.top_ui import TopApp
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in ("textual", "rich"):
                raise
            message = "the live view needs the library textual: pip install 'headgate[tui]', or use --once"
            raise click.ClickException(message) from None
        TopApp(port, view, delay).run()
