"""`gwctl proxy profile`: fetch CPU and heap profiles in the format of pprof."""

from __future__ import annotations

import contextlib
import http.client
import os
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from headgate.cli import cluster_target
from headgate.cli.admin_client import QUOTED_BYTES, connect, target, unreachable
from headgate.cli.target import FILE, admin_port_option, local_option, namespace_option

if TYPE_CHECKING:  # for what reads a profile
    from headgate.cli.pprof_reader import ReadProfile

ALTERNATIVES = "pass --local for a gateway on this machine"
PREFIX = "headgate"
PAGE = ".html"
# What a flame graph shows of a profile.
VALUES = {"cpu": "cpu", "heap": "inuse_space"}
EMPTY = {
    "cpu": "the profile has no samples: the gateway was idle",
    "heap": "the profile has no samples: allocations are not sampled, or nothing is left of those that were. "
    "HEAP_PROFILE_RATE=524288 samples them from the start, "
    "POST /debug/pprof/heap?rate=524288 of the admin server from now on",
}
CPU_SECONDS = 30
CPU_MARGIN_SECONDS = 10.0
HEAP_SECONDS = 30.0


def default_name(kind: str) -> str:
    """Return the default file name of a profile: in the current folder, with the local time."""
    return f"{PREFIX}-{kind}-{time.strftime('%Y%m%d-%H%M%S')}.pb.gz"


def save(kind: str, admin_port: int, path: str, output: str | None, flame: bool, seconds: float) -> None:
    """Download a profile into a file; a partly written file is removed. Raises ClickException."""
    name = output or default_name(kind)
    if name.endswith(PAGE):
        raise click.ClickException(f"-o names the profile; --flame writes a flame graph beside it, as {PAGE}")
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
    if flame:
        page = page_name(name)
        write(page, render(content, kind, name))
        click.echo(f"Wrote flame graph to {page}")
    elif kind == "heap":
        tell_empty(content, kind)


def page_name(name: str) -> str:
    """Return the name of the flame graph of a profile."""
    for ending in (".pb.gz", ".pb", ".gz"):
        name = name.removesuffix(ending)
    return name + PAGE


def render(content: bytes, kind: str, name: str) -> bytes:
    """Return the flame graph of a profile; raises ClickException."""
    from headgate.cli.flame_graph import flame_graph

    tell_empty(content, kind)
    return flame_graph(_read(content), VALUES[kind], f"{kind} profile {os.path.basename(name)}").encode()


def _read(content: bytes) -> ReadProfile:
    from headgate.cli.pprof_reader import read_profile

    try:
        return read_profile(content)
    except ValueError as error:
        raise click.ClickException(str(error)) from None


def tell_empty(content: bytes, kind: str) -> None:
    """Say on standard error that a profile has no samples, and why."""
    from headgate.cli.flame_graph import has_samples

    if not has_samples(_read(content), VALUES[kind]):
        click.echo(EMPTY[kind], err=True)


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


flame_option = click.option("--flame", is_flag=True, help="Also write a flame graph next to it, as an HTML page.")


@click.group("profile", context_settings={"help_option_names": ["-h", "--help"]})
def profile() -> None:
    """Fetch profiles of a running gateway, for `go tool pprof` and its kin."""


@profile.command("cpu")
@click.argument("resource", required=False)
@namespace_option
@local_option
@admin_port_option("--proxy-admin-port", "--port")
@click.option("-o", "--output", type=FILE, help=f"Default: {PREFIX}-cpu-<time>.pb.gz in the current folder.")
@flame_option
@click.option("--seconds", type=click.IntRange(1, 300), default=CPU_SECONDS, show_default=True, metavar="N")
def cpu(resource: str | None, output: str | None, flame: bool, seconds: int, **options: Any) -> None:
    """Sample where the processes of a gateway spend their time. It takes traffic to see something.

    \b
    Examples:
      gwctl proxy profile cpu --local --seconds 10
      gwctl proxy profile cpu --local --flame
      go tool pprof -http : headgate-cpu-*.pb.gz
    """
    with _port(resource, options) as port:
        if sys.stderr.isatty():
            click.echo(f"capturing for {seconds} s ...", err=True)
        path = target("/debug/pprof/profile", {"seconds": str(seconds)})
        save("cpu", port, path, output, flame, seconds + CPU_MARGIN_SECONDS)


@profile.command("heap")
@click.argument("resource", required=False)
@namespace_option
@local_option
@admin_port_option("--proxy-admin-port", "--port")
@click.option("-o", "--output", type=FILE, help=f"Default: {PREFIX}-heap-<time>.pb.gz in the current folder.")
@flame_option
def heap(resource: str | None, output: str | None, flame: bool, **options: Any) -> None:
    """Show which calls hold the memory of a gateway.

    \b
    Examples:
      gwctl proxy profile heap --local -o heap.pb.gz
      gwctl proxy profile heap --local --flame
    """
    with _port(resource, options) as port:
        save("heap", port, "/debug/pprof/heap", output, flame, HEAP_SECONDS)


@profile.command("flame")
@click.argument("file", type=FILE)
@click.option("-o", "--output", type=FILE, help="Default: the name of the profile with .html.")
def flame_page(file: str, output: str | None) -> None:
    """Make a flame graph of a saved profile: one page of HTML that needs nothing else.

    \b
    Examples:
      gwctl proxy profile flame headgate-cpu-20270131-120000.pb.gz
    """
    try:
        with open(file, "rb") as source:
            content = source.read()
    except OSError as error:
        raise click.ClickException(f"cannot read {file}: {error.strerror}") from None
    kind = "heap" if any(name == VALUES["heap"] for name, _ in _read(content).types) else "cpu"
    page = output or page_name(file)
    write(page, render(content, kind, file))
    click.echo(f"Wrote flame graph to {page}")


def _port(resource: str | None, options: dict[str, Any]) -> contextlib.AbstractContextManager[int]:
    return cluster_target.admin_port(
        resource, options["namespace"], options["local"], options["admin_port"], ALTERNATIVES
    )
