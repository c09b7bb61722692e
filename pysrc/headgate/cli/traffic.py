"""`gwctl routes`, `gwctl models` and `gwctl mcp`: what runs through a gateway."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import click

from headgate.cli import traffic_rows
from headgate.cli.admin_client import ask, fetch, unexpected
from headgate.cli.cluster_target import admin_port
from headgate.cli.proxy_config import ANSWER, LOCAL, parse
from headgate.cli.target import admin_port_option, local_option, namespace_option
from headgate.cli.text_table import printable, show_table

OK, NOT_FOUND = 200, 404
# Texts that servers choose.
OF_SERVERS = ("name", "version", "protocol", "error")
Rows = list[dict[str, Any]]
Cells = Callable[[Iterable[dict[str, Any]]], list[tuple[str, ...]]]


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option(
            "-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True
        ),
        admin_port_option("--proxy-admin-port"),
        local_option,
        namespace_option,
        click.argument("resource", required=False),
    ):
        command = option(command)
    return command


def read(port: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the configuration dump and the state of a gateway; raises ClickException."""
    return tuple(parse(fetch(port, "GET", path), ANSWER) for path in ("/config_dump", "/api/state"))  # type: ignore[return-value]


def _from_state(reader: Callable[[dict[str, Any], dict[str, Any]], Rows]) -> Callable[[int], Rows]:
    return lambda port: reader(*read(port))


def read_mcp(port: int) -> Rows:
    """Return the rows of the MCP targets of a gateway; raises ClickException."""
    return traffic_rows.mcp(parse(fetch(port, "GET", "/api/state"), ANSWER), mcp_targets(port))


def mcp_targets(port: int) -> Rows:
    """Return what a gateway tells of its MCP targets, in letters that a terminal can show; raises ClickException."""
    answer = ask(port, "GET", "/api/mcp")
    if answer.status == NOT_FOUND:
        raise click.ClickException("this gateway is older than gwctl: it has no /api/mcp")
    if answer.status != OK:
        raise unexpected(answer.status, answer.body)
    rows: Rows = parse(answer.body, ANSWER)["targets"]
    return [one | {key: printable(one[key]) for key in OF_SERVERS if one.get(key) is not None} for one in rows]


def _show(
    reader: Callable[[int], Rows], heads: tuple[str, ...], cells: Cells, resource: str | None, options: dict[str, Any]
) -> None:
    with admin_port(resource, options["namespace"], options["local"], options["admin_port"], LOCAL) as port:
        rows = reader(port)
    if options["output"] == "json":
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
    elif options["output"] == "yaml":
        import yaml

        click.echo(yaml.safe_dump(rows, allow_unicode=True, sort_keys=False), nl=False)
    else:
        show_table(heads, cells(rows), traffic_rows.SPARE)


@click.command("routes")
@_options
def routes(resource: str | None, **options: Any) -> None:
    """Show the routes of a gateway: what they match, where they lead, how they do.

    \b
    Examples:
      gwctl routes --local
      gwctl routes deploy/edge.shop -o json
    """
    _show(_from_state(traffic_rows.routes), traffic_rows.ROUTE_HEADS, traffic_rows.route_cells, resource, options)


@click.command("models")
@_options
def models(resource: str | None, **options: Any) -> None:
    """Show the models of a gateway: where they are, requests, tokens and cost since its start.

    \b
    Examples:
      gwctl models --local
      gwctl models --local -o json
    """
    _show(_from_state(traffic_rows.models), traffic_rows.MODEL_HEADS, traffic_rows.model_cells, resource, options)


@click.command("mcp")
@_options
def mcp(resource: str | None, **options: Any) -> None:
    """Show the MCP targets of a gateway: state, version, and requests since its start, as clients' calls tell.

    A target is `unknown` until the first call, and `down` if the last one had no answer. Errors are answers
    with one and calls without an answer; `-o json` tells them apart.

    \b
    Examples:
      gwctl mcp --local
      gwctl mcp --local -o json
    """
    _show(read_mcp, traffic_rows.MCP_HEADS, traffic_rows.mcp_cells, resource, options)
