"""`headgate controller`: run the gateways of a cluster from its resources."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from headgate.cluster.errors import ClusterError

# Flags by the variable that they stand for; the prefix of both is left out.
FLAGS: Final = {
    "NAMESPACE": "namespace of the controller, of its lease and its Secrets",
    "LOG_LEVEL": "level of all components: off, error, warn, info, debug or trace",
    "LOG_FORMAT": "json or text",
    "GATEWAY_CLASS_NAME": "the GatewayClass that the controller creates",
    "BIND_ADDRESS": "address of the health and metrics servers",
    "HEALTH_PORT": "port of /healthz and /readyz; 0: none",
    "METRICS_PORT": "port of /metrics; 0: none",
    "ADMIN_PORT": "port of the admin server, on loopback; 0: none",
    "XDS_PORT": "port where gateways get their configuration",
    "XDS_MODE": "tls, either (the first byte of a connection decides) or plaintext",
}
# Seconds: a thread that translates may keep the lock of the interpreter so long while the loop waits for it.
_SWITCH: Final = 0.001


def parser() -> argparse.ArgumentParser:
    """Return the argument parser of `headgate controller`."""
    found = argparse.ArgumentParser(
        prog="headgate controller",
        description="Run the gateways of a cluster from its resources.",
        epilog="Each flag has an environment variable, such as HEADGATE_LOG_LEVEL for --log-level.",
    )
    found.add_argument(
        "--kubeconfig", metavar="PATH", help="default: $KUBECONFIG, ~/.kube/config, or the account of the pod"
    )
    found.add_argument(
        "--local-gateways",
        metavar="RANGE",
        help="run each Gateway as a process of this machine, with an address of this range, such as 127.1.0.0/16",
    )
    found.add_argument(
        "--local-folder", metavar="PATH", type=Path,
        help="folder that keeps the files of local gateways; default: a temporary one",
    )
    for name, text in FLAGS.items():
        found.add_argument(f"--{name.lower().replace('_', '-')}", metavar="VALUE", help=text)
    return found


def run(words: Sequence[str], environ: Mapping[str, str] = os.environ) -> int:
    """Run the controller until SIGTERM or SIGINT, and return the exit status."""
    options = vars(parser().parse_args(words))
    given = {f"HEADGATE_{name}": options[name.lower()] for name in FLAGS if options[name.lower()] is not None}
    gc.disable()  # until everything is read; Controller.run enables it
    sys.setswitchinterval(_SWITCH)
    try:
        return _run(options, {**environ, **given})
    except ClusterError as error:
        print(f"headgate controller: {error}", file=sys.stderr)
    except OSError as error:
        print(f"headgate controller: {error.strerror or error}", file=sys.stderr)
    return 1


def _run(options: Mapping[str, Any], environ: Mapping[str, str]) -> int:
    """Raises ClusterError or OSError."""
    try:
        import aiohttp  # noqa: F401
        import envoy.service.discovery.v3.discovery_pb2  # noqa: F401
        import grpc  # noqa: F401
    except ImportError as error:
        from headgate.config.extras import lacking

        raise ClusterError(lacking(error.name or "grpc", "controller")) from None
    import uvloop

    from headgate.cluster.client import KubernetesClient
    from headgate.cluster.controller.assembly import LocalGateways, parts_of
    from headgate.cluster.controller.components import ComponentLevels, log_to_stderr
    from headgate.cluster.controller.process import Controller
    from headgate.cluster.controller.settings import settings_of
    from headgate.cluster.kubeconfig import load_access

    kubeconfig = options["kubeconfig"] or environ.get("KUBECONFIG")
    access = load_access(kubeconfig, environ, Path(environ.get("HOME") or "/"))
    in_pod = access.token_file is not None
    if options["local_gateways"]:
        # Gateways end with the replica that runs them: another one could not take them over.
        environ = {"HEADGATE_DISABLE_LEADER_ELECTION": "true", **environ}
    settings = settings_of(environ, access.namespace if in_pod else "")
    log_to_stderr(settings.log_format)
    levels = ComponentLevels(settings.log_level)
    local = None
    if options["local_gateways"]:
        local = LocalGateways(options["local_gateways"], options["local_folder"])
    parts = parts_of(environ, settings, local)

    async def until_stopped() -> None:
        client = KubernetesClient(access)
        controller = Controller(client, settings, levels, parts)
        loop = asyncio.get_running_loop()
        task: asyncio.Task[Any] | None = asyncio.current_task()
        assert task is not None
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, task.cancel)
        try:
            with contextlib.suppress(asyncio.CancelledError):
                await controller.run()
        finally:
            await client.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(until_stopped())
    return 0
