"""`gwctl completion`: scripts that complete commands and options in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    \b
    Examples:
      source <(gwctl completion bash)
      gwctl completion fish > ~/.config/fish/completions/gwctl.fish
    """
    script = get_completion_class(shell)
    assert script is not None
    click.echo(script(ctx.find_root().command, {}, "gwctl", "_GWCTL_COMPLETE").source())
