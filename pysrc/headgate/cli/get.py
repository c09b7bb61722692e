"""`gwctl get`: what is in force where, and why not, in a cluster or at the gateway of this machine."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from headgate.cli.cluster_target import home, is_here
from headgate.cli.target import admin_port_option, local_option
from headgate.cli.text_table import show_table

if TYPE_CHECKING:  # loaded where there is a cluster
    from headgate.cluster.api import ApiServer

Json = dict[str, Any]
_HEADS: Final = {
    "kind": "KIND", "namespace": "NAMESPACE", "name": "NAME", "class": "CLASS", "addresses": "ADDRESS",
    "address": "ADDRESS", "protocol": "PROTOCOL", "hostname": "HOSTNAME", "hostnames": "HOSTNAMES", "parent": "PARENT",
    "backends": "BACKENDS", "routes": "ROUTES", "type": "TYPE", "says": "SAYS", "targets": "TARGETS", "where": "WHERE",
    "usedBy": "USED BY", "listeners": "LISTENERS", "acknowledged": "ACKNOWLEDGED", "inForce": "IN FORCE", "why": "WHY",
}  # fmt: skip


def show_rows(rows: list[Json]) -> None:
    """Print rows as columns, in the order of their fields; fields without a heading are left out."""
    names = [name for name in (rows[0] if rows else ()) if name in _HEADS]
    show_table([_HEADS[name] for name in names], ([_cell(row, name) for name in names] for row in rows))


def _cell(row: Mapping[str, Any], name: str) -> str:
    value = row[name]
    if name == "acknowledged":
        value = f"{'-' if value is None else value} of {row['generation']}"
    elif name == "listeners":
        value = [_listener(one) for one in value]
    return (", ".join(map(str, value)) if isinstance(value, list) else str(value)) or "-"


def _listener(one: Mapping[str, Any]) -> str:
    told = "" if one["inForce"] == "yes" else f" ({one['inForce']}: {one['why']})"
    return f"{one['name']}:{one['port']}/{one['protocol']}{told}"


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option(
            "-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True
        ),
        click.option("-n", "--namespace", metavar="NAME", help="Default: that of the kubeconfig."),
        click.option("-A", "--all-namespaces", is_flag=True, help="Of all namespaces."),
        admin_port_option("--proxy-admin-port"),
        local_option,
        click.argument("name", required=False),
    ):
        command = option(command)
    return command


@click.group("get", context_settings={"help_option_names": ["-h", "--help"]})
def get() -> None:
    """Show what is in force where, and why not.

    \b
    In a cluster it says what the statuses say: what a controller has accepted, which
    generation the data planes have acknowledged, which conflicts there are. It needs the
    right to list these kinds, and no other. Without a cluster it shows what the gateway
    on this machine runs.

    \b
    Examples:
      gwctl get routes -A
      gwctl get policies -n shop -o yaml
      gwctl get gateways --local
    """


@get.command("gateways")
@_options
def gateways(**options: Any) -> None:
    """Show Gateways with their listeners, and which generation their data planes have acknowledged."""
    _show("gateways", options)


@get.command("routes")
@_options
def routes(**options: Any) -> None:
    """Show routes, and at which parents they are in force."""
    _show("routes", options)


@get.command("backends")
@_options
def backends(**options: Any) -> None:
    """Show backends, and which routes lead to them."""
    _show("backends", options)


@get.command("policies")
@_options
def policies(**options: Any) -> None:
    """Show policies, and at which Gateways they are in force."""
    _show("policies", options)


def _show(what: str, options: Mapping[str, Any]) -> None:
    api = None if is_here(None, options["local"]) else _api_server()
    rows = list(_local(what, options["admin_port"]) if api is None else _cluster(api, what, options))
    if options["name"] is not None:
        rows = [one for one in rows if one["name"] == options["name"]]
        if not rows:
            raise click.ClickException(f"no {what} named {options['name']}")
    if options["output"] == "json":
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
    elif options["output"] == "yaml":
        import yaml

        click.echo(yaml.safe_dump(rows, allow_unicode=True, sort_keys=False), nl=False)
    elif rows:
        show_rows(rows)
    else:
        click.echo(f"no {what}", err=True)


def _api_server() -> ApiServer:
    """Return the API server of the cluster; raises ClickException."""
    from headgate.cluster.api import ApiServer
    from headgate.cluster.errors import ClusterError
    from headgate.cluster.kubeconfig import load_access

    try:
        return ApiServer(load_access(click.get_current_context().find_root().obj, os.environ, home()))
    except ClusterError as error:
        raise click.ClickException(str(error)) from None


def _local(what: str, port: int) -> Iterable[Json]:
    from headgate.cli import local_rows
    from headgate.cli.admin_client import fetch
    from headgate.cli.proxy_config import ANSWER, parse

    dump = parse(fetch(port, "GET", "/config_dump"), ANSWER)
    readers: dict[str, Callable[[Json], Iterable[Json]]] = {
        "gateways": local_rows.gateway_rows,
        "routes": local_rows.route_rows,
        "backends": local_rows.backend_rows,
        "policies": local_rows.policy_rows,
    }
    return readers[what](dump)


def _cluster(api: ApiServer, what: str, options: Mapping[str, Any]) -> list[Json]:
    from headgate.cluster import inventory
    from headgate.cluster.errors import ClusterError

    space = None if options["all_namespaces"] else options["namespace"] or api.access.namespace

    def every(*kinds: str, namespace: str | None) -> list[Json]:
        return [one for kind in kinds for one in inventory.listed(api, kind, namespace)]

    try:
        if what == "gateways":
            return list(inventory.gateway_rows(every("Gateway", namespace=space)))
        if what == "policies":
            return list(inventory.policy_rows(every("GatewayPolicy", "BackendTLSPolicy", namespace=space)))
        # What leads somewhere may stand in another namespace.
        if what == "routes":
            of_all = every("Gateway", namespace=None)
            return list(inventory.route_rows(every(*inventory.ROUTES, namespace=space), of_all))
        users = every(*inventory.ROUTES, namespace=None)
        return list(inventory.backend_rows(every("GatewayBackend", namespace=space), users))
    except ClusterError as error:
        raise click.ClickException(str(error)) from None
