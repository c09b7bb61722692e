"""`gwctl proxy config`: the running configuration of a gateway, complete or as a table of backends."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

import click

from headgate.cli.admin_client import fetch
from headgate.cli.backend_rows import COLUMNS, SPARE, backend_rows
from headgate.cli.cluster_target import admin_port
from headgate.cli.resource_rows import HEADS, resource_rows
from headgate.cli.target import FILE, admin_port_option, local_option, namespace_option
from headgate.cli.text_table import show_table

FORMS = ("short", "json", "yaml")
ANSWER = "the gateway's answer"
LOCAL = "pass --local for a gateway on this machine"


def read_dump(resource: str | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration dump from a file, standard input (`-`) or a gateway; raises ClickException."""
    file, local = options["file"], options["local"]
    if file is not None:
        if resource is not None or local:
            raise click.ClickException("--file excludes a resource and --local")
        return parse(read_file(file), "standard input" if file == "-" else file)
    alternatives = "pass --local for a gateway on this machine, or --file for a saved dump"
    with admin_port(resource, options["namespace"], local, options["admin_port"], alternatives) as port:
        return parse(fetch(port, "GET", "/config_dump"), ANSWER)


def read_file(name: str) -> bytes:
    """Return the bytes of a file or of standard input; raises ClickException."""
    try:
        if name == "-":
            return sys.stdin.buffer.read()
        with open(name, "rb") as file:
            return file.read()
    except OSError as error:
        raise click.ClickException(f"cannot read {name}: {error.strerror}") from None


def parse(content: bytes, origin: str) -> dict[str, Any]:
    """Return the dump as an object; raises ClickException, whose message names `origin`."""
    try:
        found = json.loads(content)
    except ValueError as error:
        hint = ". Is this the port of an admin server (another one is given with -p)?" if origin == ANSWER else ""
        raise click.ClickException(f"{origin} is not JSON: {error}{hint}") from None
    except RecursionError:
        raise click.ClickException(f"{origin} is not a config dump: it is nested too deeply") from None
    if not isinstance(found, dict):
        raise click.ClickException(f"{origin} is not a config dump: expected an object")
    return found


def show(value: Any, form: str) -> None:
    """Print as JSON indented by two, or as YAML with sorted keys."""
    if form == "yaml":
        import yaml

        click.echo(yaml.safe_dump(value, allow_unicode=True), nl=False)
    else:
        click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def shared_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that both subcommands have."""
    for option in (
        click.option("-o", "--output", type=click.Choice(FORMS), default="short", show_default=True),
        admin_port_option("--proxy-admin-port"),
        click.option("-f", "--file", type=FILE, help="A saved dump instead of a gateway; - is standard input."),
        local_option,
        namespace_option,
        click.argument("resource", required=False),
    ):
        command = option(command)
    return command


class Aliases(click.Group):
    """Commands with short names."""

    SHORT = {"b": "backends", "be": "backends"}

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Resolve aliases."""
        return super().get_command(ctx, self.SHORT.get(cmd_name, cmd_name))


@click.group("config", cls=Aliases, context_settings={"help_option_names": ["-h", "--help"]})
def config() -> None:
    """Show the configuration that a gateway runs."""


@config.command("all")
@shared_options
def everything(resource: str | None, output: str, **options: Any) -> None:
    """Show the whole configuration.

    \b
    Examples:
      gwctl proxy config all --local -o yaml
      gwctl proxy config all --file dump.json
    """
    show(read_dump(resource, options), output)


@config.command("resources")
@click.option("-o", "--output", type=click.Choice(FORMS), default="short", show_default=True)
@click.option("--kind", default="", metavar="KIND", help="Of one kind only, such as llm.model.")
@click.option("--id", "name", default="", metavar="ID", help="Only the one with this id.")
@admin_port_option("--proxy-admin-port")
@local_option
@namespace_option
@click.argument("resource", required=False)
def resources(resource: str | None, output: str, kind: str, name: str, **options: Any) -> None:
    """Show the resources of the file and those that are stored in a database beside it.

    \b
    Examples:
      gwctl proxy config resources --local
      gwctl proxy config resources --local --kind llm.model --id gpt-4o -o yaml
    """
    if name and not kind:
        raise click.ClickException("--id needs --kind")
    with admin_port(resource, options["namespace"], options["local"], options["admin_port"], LOCAL) as port:
        path = "/".join(("/api/config/resources", *(quote(one, safe="") for one in (kind, name) if one)))
        found = parse(fetch(port, "GET", path), ANSWER)
    listed = [found] if name else found.get("resources", [])
    if output == "short":
        show_table(HEADS, resource_rows(listed), ("UPDATED",))
    else:
        show(found if name else listed, output)


@config.command("backends")
@click.option("--all", "unused", is_flag=True, help="Include endpoints without requests.")
@shared_options
def backends(resource: str | None, output: str, unused: bool, **options: Any) -> None:
    """Show the endpoints of all backends: health, requests, latency.

    \b
    Examples:
      gwctl proxy config backends --local --all
      curl -s localhost:15000/config_dump | gwctl proxy config backends -f - -o json
    """
    rows = backend_rows(read_dump(resource, options), unused=unused)
    if output == "short":
        show_table(COLUMNS, [row.cells() for row in rows], SPARE)
    else:
        show([row.document() for row in rows], output)
