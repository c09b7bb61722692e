"""The target of a command: a gateway on this machine, or a resource of a cluster."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import click

from headgate.cli.admin_client import ADMIN_PORT

# Resource kinds that own pods or are pods, with their short forms.
KINDS: dict[str, tuple[str, ...]] = {
    "gateway": ("gateway", "gateways", "gtw"),
    "service": ("service", "services", "svc"),
    "deployment": ("deployment", "deployments", "deploy"),
    "replicaset": ("replicaset", "replicasets", "rs"),
    "statefulset": ("statefulset", "statefulsets", "sts"),
    "daemonset": ("daemonset", "daemonsets", "ds"),
    "pod": ("pod", "pods", "po"),
}
NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[-a-z0-9.]+)?\Z")

# A file name that need not exist yet, or `-`; shells complete it.
FILE: Final = click.Path()
FILE.name = "file"


def check_resource(resource: str) -> None:
    """Raise ClickException unless `resource` is `<pod>` or `<kind>/<name>`."""
    kind, slash, name = resource.partition("/")
    if not slash:
        kind, name = "pod", kind
    known = {word for words in KINDS.values() for word in words}
    if kind not in known or not NAME.match(name):
        raise click.ClickException(f'"{resource}" does not refer to a supported pod resource')


def cluster_refused(resource: str | None, alternatives: str) -> click.ClickException:
    """Return the error of a command that would need access to a cluster."""
    if resource is not None:
        check_resource(resource)
    return click.ClickException(f"clusters are not supported by this version of gwctl; {alternatives}")


def namespace_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `-n/--namespace`."""
    return click.option("-n", "--namespace", metavar="NAME", help="Namespace of the resource.")(command)


def local_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--local`."""
    return click.option("--local", is_flag=True, help="A gateway on this machine.")(command)


def admin_port_option(*other_names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add `-p` and these long names as the parameter `admin_port`."""
    return click.option(
        "-p",
        *other_names,
        "admin_port",
        type=click.IntRange(1, 65535),
        default=ADMIN_PORT,
        show_default=True,
        metavar="PORT",
        help="Port of the admin server.",
    )
