"""`gwctl doctor`: walks through a gateway, an issuer, an MCP server or a provider, to the first step that fails."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import click

from headgate.cli.doctor_auth import PROVIDERS, AuthOptions, examine
from headgate.cli.doctor_calls import Examination
from headgate.cli.doctor_llm import BASES, FORMATS, LlmOptions, examine_llm
from headgate.cli.doctor_mcp import examine_mcp
from headgate.cli.target import FILE, admin_port_option
from headgate.cli.text_table import printable

MARKS = {"ok": "ok      ", "skipped": "skipped ", "failed": "FAILED  "}


def from_environment(name: str | None) -> str | None:
    """Return the value of a variable that an option names; raises ClickException where it is not set. Credentials on
    command lines would be seen by all users of the machine.
    """
    if name is None:
        return None
    value = os.environ.get(name)
    if not value:
        raise click.ClickException(f"the environment variable {name} is not set")
    if not (value.isascii() and value.isprintable()) or value != value.strip():
        # What refuses such a field would quote it.
        told = "begins or ends with a space or line break, or contains invalid characters: remove them"
        raise click.ClickException(f"the environment variable {name} {told}")
    return value


def show(found: Examination, output: str) -> None:
    """Print the steps, and end with status 1 if one has failed."""
    if output == "json":
        click.echo(json.dumps({"failed": found.failed, "steps": found.steps}, indent=2, ensure_ascii=False))
    else:
        for one in found.steps:
            click.echo(f"{MARKS[one['result']]}{one['step']}: {printable(one['found'])}")
            if "change" in one:
                click.echo(f"        {printable(one['change'])}")
    if found.failed:
        click.get_current_context().exit(1)


def _shared(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True),
        click.option("--ca", "authority", type=FILE, help="Certificates to trust instead of the system's (PEM)."),
    ):
        command = option(command)
    return command


def _client(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--client-id", metavar="ID", help="Client id to get a token with."),
        click.option("--client-secret-env", metavar="NAME", help="Environment variable with its secret."),
        click.option(
            "--token-env", metavar="NAME", help="Environment variable with a token, instead of asking for one."
        ),
        click.option("--scope", metavar="TEXT", help="Scope of the token."),
        click.option("--audience", metavar="TEXT", help="Audience that the token must have."),
        click.option(
            "--provider", type=click.Choice(PROVIDERS), help="Kind of the provider  [default: derived from its URL]."
        ),
        click.option("--register", is_flag=True, help="Try a registration, which creates a client at the provider."),
    ):
        command = option(command)
    return command


def _auth_options(options: dict[str, Any]) -> AuthOptions:
    return AuthOptions(
        client_id=options["client_id"],
        client_secret=from_environment(options["client_secret_env"]),
        scope=options["scope"],
        audience=options["audience"],
        token=from_environment(options["token_env"]),
        register=options["register"],
        provider=options["provider"],
        authority=options["authority"],
    )


@click.group("doctor", invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@admin_port_option("--proxy-admin-port")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_context
def doctor(ctx: click.Context, admin_port: int, output: str) -> None:
    """Find out what does not work, step by step, and what to change.

    \b
    Without a command: the gateway of this machine, and its MCP servers through it.
    Examples:
      gwctl doctor
      gwctl doctor auth https://tenant.eu.auth0.com/ --audience https://api.example
      gwctl doctor mcp https://tools.example/mcp
      gwctl doctor llm --base-url https://api.openai.com/v1 --key-env OPENAI_API_KEY --model gpt-4o
    """
    if ctx.invoked_subcommand is None:
        from headgate.cli.doctor_gateway import examine_gateway

        found = Examination()
        examine_gateway(admin_port, found)
        show(found, output)


@doctor.command("auth")
@click.argument("issuer")
@_client
@_shared
def auth(issuer: str, output: str, **options: Any) -> None:
    """Walk through an issuer of tokens: discovery, endpoints, keys, registration, token, claims.

    \b
    Examples:
      gwctl doctor auth https://login.microsoftonline.com/<tenant>/v2.0 --client-id <id> \\
        --client-secret-env SECRET --scope api://<id>/.default
      gwctl doctor auth https://id.example/realms/tools --register
    """
    found = Examination()
    examine(issuer, _auth_options(options), found)
    show(found, output)


@doctor.command("mcp")
@click.argument("url")
@_client
@_shared
def mcp(url: str, output: str, **options: Any) -> None:
    """Walk through an MCP server: initialize, OAuth where it wants that, the list of tools.

    \b
    Examples:
      gwctl doctor mcp http://localhost:3000/mcp
      gwctl doctor mcp https://tools.example/mcp --token-env TOKEN
    """
    found = Examination()
    examine_mcp(url, _auth_options(options), found)
    show(found, output)


@doctor.command("llm")
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default="openai", show_default=True, help="Format of its API."
)
@click.option("--base-url", metavar="URL", help="Base URL of the API  [default: that of the vendor].")
@click.option("--key-env", metavar="NAME", help="Environment variable with the key.")
@click.option("--model", metavar="NAME", help="Model to call  [default: the first one listed].")
@_shared
def llm(output: str, form: str, base_url: str | None, key_env: str | None, **options: Any) -> None:
    """Walk through a provider of models: its models, a first call, a stream. The calls cost a few tokens.

    \b
    Examples:
      gwctl doctor llm --key-env OPENAI_API_KEY
      gwctl doctor llm --format anthropic --key-env ANTHROPIC_API_KEY --model claude-sonnet-4-5
      gwctl doctor llm --base-url http://localhost:11434/v1 --model llama3
    """
    found = Examination()
    key = from_environment(key_env)
    examine_llm(LlmOptions(form, base_url or BASES[form], key, options["model"], options["authority"]), found)
    show(found, output)
