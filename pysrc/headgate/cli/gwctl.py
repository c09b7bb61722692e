"""`gwctl`: the operator's tool.

It speaks HTTP to the admin server of a gateway and imports no server code. Every command is a module of its own that
is imported only when it runs, so that the tool starts quickly.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

FAILED = 1
INTERRUPTED = 130
SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Commands(click.Group):
    """A group that imports its commands from a table on first use."""

    def __init__(self, *args: Any, table: dict[str, str], aliases: dict[str, str] | None = None, **kwargs: Any) -> None:
        """`table` maps a command to `module:attribute`; `aliases` maps another name to the command."""
        super().__init__(*args, **kwargs)
        self._table = table
        self._aliases = aliases or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names for the help text; aliases are not listed."""
        return [*self._table]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command with this name or alias."""
        name = self._aliases.get(cmd_name, cmd_name)
        if name not in self._table:
            return None
        module, _, attribute = self._table[name].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve the command as click does, but show the full name of an alias in messages."""
        _, command, rest = super().resolve_command(ctx, args)
        return command.name if command is not None else None, command, rest


proxy = Commands(
    "proxy",
    help="Inspect and control running gateways.",
    context_settings=SETTINGS,
    table={
        "config": "headgate.cli.proxy_config:config",
        "log": "headgate.cli.proxy_log:log",
        "profile": "headgate.cli.profile:profile",
        "trace": "headgate.cli.proxy_trace:trace",
        "upgrade": "headgate.cli.proxy_upgrade:upgrade",
    },
    aliases={"c": "config", "cfg": "config"},
)
controller = Commands(
    "controller",
    help="Inspect and control the control plane.",
    context_settings=SETTINGS,
    table={"log": "headgate.cli.controller_log:log"},
)


catalog = Commands(
    "catalog",
    help="Create cost catalogs.",
    context_settings=SETTINGS,
    table={"import": "headgate.cli.catalog_import:import_"},
)


class Root(Commands):
    """The root group. It also accepts the subcommands of `proxy` directly, as older scripts call them."""

    OLD = ("config", "trace", "profile")

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command from the table; `config`, `trace` and `profile` are those of `proxy`, with a hint."""
        if cmd_name not in self.OLD:
            return super().get_command(ctx, cmd_name)
        if not ctx.resilient_parsing:
            click.echo(f"gwctl {cmd_name} is deprecated: use gwctl proxy {cmd_name}", err=True)
        return proxy.get_command(ctx, cmd_name)


@click.group(
    "gwctl",
    cls=Root,
    context_settings=SETTINGS,
    table={
        "get": "headgate.cli.get:get",
        "top": "headgate.cli.top:top",
        "doctor": "headgate.cli.doctor:doctor",
        "requests": "headgate.cli.requests:requests",
        "routes": "headgate.cli.traffic:routes",
        "models": "headgate.cli.traffic:models",
        "mcp": "headgate.cli.traffic:mcp",
        "proxy": "headgate.cli.gwctl:proxy",
        "controller": "headgate.cli.gwctl:controller",
        "catalog": "headgate.cli.gwctl:catalog",
        "keys": "headgate.cli.keys:keys",
        "migrate": "headgate.cli.migrate:migrate",
        "completion": "headgate.cli.completion:completion",
        "version": "headgate.cli.version:version",
    },
    aliases={"costs": "catalog"},
    epilog="Examples: gwctl proxy config all --local · gwctl proxy trace --local · gwctl completion bash",
)
@click.option("-k", "--kubeconfig", envvar="KUBECONFIG", metavar="FILE", help="Cluster access  [default: $KUBECONFIG].")
@click.pass_context
def root(ctx: click.Context, kubeconfig: str | None) -> None:
    """Look at and steer gateways: configuration, traces, log levels, profiles."""
    ctx.obj = kubeconfig


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. Return 0, 1 after printing `Error: ...` to standard error, or 130 after an interrupt."""
    try:
        result = root.main(None if arguments is None else list(arguments), "gwctl", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message())
        return 0
    except click.ClickException as error:
        print(f"Error: {error.format_message()}", file=sys.stderr)
        return FAILED
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except OSError as error:
        # Input errors are ClickExceptions, so this is an output error. click itself handles a reader that has gone.
        print(f"Error: cannot write the output: {error.strerror or error}", file=sys.stderr)
        with contextlib.suppress(OSError):      # flushing the remaining output at exit would fail again
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return FAILED
    return result if isinstance(result, int) else 0


if __name__ == "__main__":
    sys.exit(main())
