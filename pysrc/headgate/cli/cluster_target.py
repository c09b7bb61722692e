"""Admin servers of the pods behind a resource, as ports of this machine."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from headgate.cluster.api import ApiServer
    from headgate.cluster.pods import Pod
    from headgate.cluster.port_forward import PortForward

# Of a user without one, as Debian names it: nothing is there.
_NOWHERE: Final = Path("/nonexistent")
# Begins the message of load_access() where nothing leads to a cluster.
_NO_ACCESS: Final = "no access to a cluster"


class ClusterPods:
    """The pods behind a resource, sorted by name, and the way to them."""

    def __init__(self, resource: str | None, namespace: str | None) -> None:
        """Find the pods; raises ClickException. resource: None for the single Gateway of the namespace."""
        # Only commands for a cluster load this.
        from headgate.cluster.api import ApiServer
        from headgate.cluster.errors import ClusterError
        from headgate.cluster.kubeconfig import load_access
        from headgate.cluster.pods import Resource, pods_of

        try:
            if resource is not None:
                Resource.parse(resource)
            kubeconfig = click.get_current_context().find_root().obj
            self._api: ApiServer = ApiServer(load_access(kubeconfig, os.environ, home()))
            self.pods: list[Pod] = pods_of(self._api, resource, namespace)
        except ClusterError as error:
            raise click.ClickException(str(error)) from None

    @contextlib.contextmanager
    def port(self, pod: Pod, port: int) -> Iterator[int]:
        """Yield a port of this machine that leads to one of a pod.

        Raises ClickException, with the failure of the forward if there was one.
        """
        from headgate.cluster.errors import ClusterError
        from headgate.cluster.port_forward import PortForward

        try:
            pod.check_running()
            forward: PortForward = PortForward(self._api, pod, port)
        except ClusterError as error:
            raise click.ClickException(str(error)) from None
        with forward:
            try:
                yield forward.port
            except click.ClickException:
                if forward.failure is not None:
                    raise click.ClickException(str(forward.failure)) from None
                raise


def home() -> Path:
    """Return the folder of the user, who may have none: an image may have neither HOME nor users."""
    try:
        return Path.home()
    except RuntimeError:
        return _NOWHERE


def is_here(resource: str | None, local: bool) -> bool:
    """Tell whether a command is about the gateway of this machine: `local` says so, or there is no resource and no
    cluster that one could be in. Raises ClickException for both a resource and `local`.
    """
    if local and resource is not None:
        raise click.ClickException("--local excludes a resource")
    # A kubeconfig that is named has to be there.
    if local or resource is not None or click.get_current_context().find_root().obj is not None:
        return local
    from headgate.cluster.errors import ClusterError
    from headgate.cluster.kubeconfig import load_access

    try:
        load_access(None, os.environ, home())
    except ClusterError as error:
        return str(error).startswith(_NO_ACCESS)
    return False


@contextlib.contextmanager
def admin_port(
    resource: str | None, namespace: str | None, local: bool, port: int, alternatives: str
) -> Iterator[int]:
    """Yield the local port of one admin server: this machine's, or that of the first pod of a resource.

    alternatives: what else the command takes, for the error of a machine without access to a cluster. Raises
    ClickException.
    """
    if is_here(resource, local):
        yield port
        return
    cluster = cluster_pods(resource, namespace, alternatives)
    with cluster.port(cluster.pods[0], port) as found:
        yield found


def cluster_pods(resource: str | None, namespace: str | None, alternatives: str) -> ClusterPods:
    """Return the pods of a resource; see admin_port()."""
    try:
        return ClusterPods(resource, namespace)
    except click.ClickException as error:
        if error.message.startswith(_NO_ACCESS):
            raise click.ClickException(f"{error.message}; {alternatives}") from None
        raise
