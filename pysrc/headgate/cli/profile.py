"""`gwctl proxy profile`: fetch CPU and heap profiles in the format of pprof."""

from __future__ import annotations

import contextlib
import http.client
import os
import sys
import time

import click

from headgate.cli import cluster_target
from headgate.cli.admin_client import QUOTED_BYTES, connect, target, unreachable
from headgate.cli.target import FILE, admin_port_option, local_option, namespace_option

ALTERNATIVES = "pass --local for a gateway on this machine"
PREFIX = "headgate"
CPU_SECONDS = 30
CPU_MARGIN_SECONDS = 10.0
HEAP_SECONDS = 30.0


def default_name(kind: str) -> str:
    """Return the default file name of a profile: in the current folder, with the local time."""
    return f"{PREFIX}-{kind}-{time.strftime('%Y%m%d-%H%M%S')}.pb.gz"


def save(kind: str, admin_port: int, path: str, output: str | None, seconds: float) -> None:
    """Download a profile into a file; a partly written file is removed. Raises ClickException."""
    name = output or default_name(kind)
    connection = connect(admin_port, seconds)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        if answer.status != 200:
            detail = answer.read(QUOTED_BYTES).decode(errors="replace").strip()
            status = f"{answer.status} {http.client.responses.get(answer.status, '')}".rstrip()
            raise click.ClickException(f"{kind} profile returned {status}: {detail}")
        content = answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise unreachable(admin_port, error) from None
    finally:
        connection.close()
    write(name, content)
    click.echo(f"Wrote {kind} profile to {name}")


def write(name: str, content: bytes) -> None:
    """Write a file completely or not at all; raises ClickException."""
    try:
        with open(name, "wb") as file:
            file.write(content)
    except OSError as error:
        if error.filename is None:  # the file was opened, but writing failed
            with contextlib.suppress(OSError):
                os.unlink(name)
        raise click.ClickException(f"cannot write {name}: {error.strerror}") from None


@click.group("profile", context_settings={"help_option_names": ["-h", "--help"]})
def profile() -> None:
    """Fetch profiles of a running gateway, for `go tool pprof` and its kin."""


@profile.command("cpu")
@click.argument("resource", required=False)
@namespace_option
@local_option
@admin_port_option("--proxy-admin-port", "--port")
@click.option("-o", "--output", type=FILE, help=f"Default: {PREFIX}-cpu-<time>.pb.gz in the current folder.")
@click.option("--seconds", type=click.IntRange(1, 300), default=CPU_SECONDS, show_default=True, metavar="N")
def cpu(
    resource: str | None, namespace: str | None, local: bool, admin_port: int, output: str | None, seconds: int
) -> None:
    """Sample where the processes of a gateway spend their time. It takes traffic to see something.

    \b
    Examples:
      gwctl proxy profile cpu --local --seconds 10
      go tool pprof -http : headgate-cpu-*.pb.gz
    """
    with cluster_target.admin_port(resource, namespace, local, admin_port, ALTERNATIVES) as port:
        if sys.stderr.isatty():
            click.echo(f"capturing for {seconds} s ...", err=True)
        path = target("/debug/pprof/profile", {"seconds": str(seconds)})
        save("cpu", port, path, output, seconds + CPU_MARGIN_SECONDS)


@profile.command("heap")
@click.argument("resource", required=False)
@namespace_option
@local_option
@admin_port_option("--proxy-admin-port", "--port")
@click.option("-o", "--output", type=FILE, help=f"Default: {PREFIX}-heap-<time>.pb.gz in the current folder.")
def heap(resource: str | None, namespace: str | None, local: bool, admin_port: int, output: str | None) -> None:
    """Show which calls hold the memory of a gateway.

    \b
    Examples:
      gwctl proxy profile heap --local -o heap.pb.gz
    """
    with cluster_target.admin_port(resource, namespace, local, admin_port, ALTERNATIVES) as port:
        save("heap", port, "/debug/pprof/heap", output, HEAP_SECONDS)
