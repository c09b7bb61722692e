"""`gwctl proxy trace`: show every step of one request through a gateway."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

import click

from headgate.cli import trace_request
from headgate.cli.cluster_target import cluster_pods, is_here
from headgate.cli.target import FILE, admin_port_option, local_option, namespace_option
from headgate.cli.trace_source import Live, Saved, TraceSource

REQUEST = "headgate.request"


class WithRequest(click.Command):
    """A command whose arguments may be followed by `--` and a request."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Store the words after `--` unchanged, for `curl`."""
        if "--" in args:
            place = args.index("--")
            ctx.meta[REQUEST] = tuple(args[place + 1 :])
            args = args[:place]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Show the request in the usage line."""
        return [*super().collect_usage_pieces(ctx), "[-- URL [CURL ARGUMENTS]...]"]


def check(ctx: click.Context, resource: str | None, options: dict[str, Any]) -> tuple[str, ...]:
    """Return the words of the request. Raises ClickException for options that cannot be combined."""
    request: tuple[str, ...] = ctx.meta.get(REQUEST, ())
    file, local, port = options["file"], options["local"], options["port"]
    if file is not None and (local or options["expression"] or request):
        raise click.ClickException("--file excludes --local, --expression and a request URL")
    if resource is not None and (file is not None or local):
        raise click.ClickException(f"--{'file' if file is not None else 'local'} excludes a resource")
    if port is not None and not request:
        raise click.ClickException("--port requires a request URL after --")
    if request and port is None:
        raise click.ClickException("a request URL requires --port")
    return request


@click.command("trace", cls=WithRequest)
@click.argument("resource", required=False)
@namespace_option
@local_option
@admin_port_option("--proxy-admin-port")
@click.option("-f", "--file", type=FILE, help="Replay a trace saved with --raw; - is standard input.")
@click.option("--expression", metavar="CEL", help="Take the first request for which this is true.")
@click.option("--raw", is_flag=True, help="JSON Lines instead of the terminal UI.")
@click.option("--port", type=click.IntRange(1, 65535), metavar="PORT", help="Listener that gets the request after --.")
@click.pass_context
def trace(ctx: click.Context, /, resource: str | None, **options: Any) -> None:
    """Trace the next request of a gateway, or one that is sent for the purpose.

    \b
    Examples:
      gwctl proxy trace --local
      gwctl proxy trace --local --raw --expression 'request.path.startsWith("/v1")' > trace.jsonl
      gwctl proxy trace --local --port 8080 -- http://shop.example/cart -H 'x-user: me'
      gwctl proxy trace --file trace.jsonl
    """
    request = check(ctx, resource, options)
    with contextlib.ExitStack() as stack:
        source = opened(stack, resource, request, options)
        show(source, options["file"] or resource or "standalone", raw=options["raw"])


def opened(
    stack: contextlib.ExitStack, resource: str | None, request: tuple[str, ...], options: dict[str, Any]
) -> TraceSource:
    """Return the source of events; what leads to it is closed with the stack. Raises ClickException."""
    admin, listener, expression = options["admin_port"], options["port"], options["expression"]
    if options["file"] is not None:
        return Saved(options["file"])
    here = is_here(resource, options["local"])
    if not here:
        alternatives = "pass --local for a gateway on this machine, or --file for a saved trace"
        cluster = cluster_pods(resource, options["namespace"], alternatives)
        admin = stack.enter_context(cluster.port(cluster.pods[0], admin))
        if listener is not None:
            listener = stack.enter_context(cluster.port(cluster.pods[0], listener))
    return Live(admin, expression, trace_request.prepare(request, listener, here=here) if request else None)


def show(source: TraceSource, title: str, *, raw: bool) -> None:
    """Print the events, or show them in the terminal UI. Raises ClickException."""
    if raw:
        print_events(source)
        return
    if not sys.stdout.isatty():
        raise click.ClickException("the terminal UI needs a terminal; use --raw for JSON Lines")
    try:
        from headgate.cli.trace_ui import TraceApp
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("textual", "rich"):
            raise
        message = "the terminal UI needs the library textual: pip install 'headgate[tui]', or use --raw for JSON Lines"
        raise click.ClickException(message) from None
    TraceApp(source, title).run()


def print_events(source: TraceSource) -> None:
    """Print the JSON text of each event on a line of its own, unchanged, until the stream ends."""
    try:
        for event in source.events():
            print(event.replace("\n", " "), flush=True)
    finally:
        source.close()
