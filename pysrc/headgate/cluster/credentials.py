"""Credential plugins of kubeconfig users.

https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from headgate.cluster.errors import ClusterError

VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
# Seconds: a plugin may open a browser and wait for a login.
PLUGIN_SECONDS: Final = 300.0


class ExecCredential(NamedTuple):
    """What a plugin gives: a bearer token ("" without one), or the PEM of a client certificate and its key."""

    token: str
    certificate: bytes | None
    key: bytes | None


def read_text(file: Path, where: str) -> str:
    """Return the text of a file; raises ClusterError, which begins with `where`."""
    try:
        return file.read_text("utf-8")
    except OSError as error:
        raise ClusterError(f"{where}: cannot read {file}: {error.strerror}") from None
    except ValueError:
        raise ClusterError(f"{where}: {file} is not text") from None


def exec_credential(
    plugin: Mapping[str, Any], where: str, environ: Mapping[str, str], folder: Path
) -> ExecCredential:
    """Run a credential plugin and return its credential; raises ClusterError.

    plugin: the `exec` object of a user. A command with a slash is relative to `folder`.
    """
    version, command = plugin.get("apiVersion"), plugin.get("command")
    if version not in VERSIONS:
        raise ClusterError(f"{where}: apiVersion: one of {', '.join(VERSIONS)} is expected")
    if not isinstance(command, str) or not command:
        raise ClusterError(f"{where}: command is missing")
    words = [str(folder / command) if "/" in command else command, *map(str, plugin.get("args") or ())]
    information = {"kind": "ExecCredential", "apiVersion": version, "spec": {"interactive": False}}
    variables = [one for one in plugin.get("env") or () if isinstance(one, dict)]
    added = {str(one.get("name")): str(one.get("value", "")) for one in variables}
    environment = {**environ, **added, "KUBERNETES_EXEC_INFO": json.dumps(information)}
    try:
        done = subprocess.run(
            words, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=PLUGIN_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise ClusterError(f"{where}: {command} did not end within {PLUGIN_SECONDS:.0f} s") from None
    except OSError as error:
        hint = plugin.get("installHint")
        raise ClusterError(f"{where}: cannot run {command}: {error.strerror}{f'; {hint}' if hint else ''}") from None
    if done.returncode != 0:
        detail = done.stderr.decode(errors="replace").strip()
        raise ClusterError(f"{where}: {command} failed with {done.returncode}{f': {detail}' if detail else ''}")
    return _credential(done.stdout, where, command)


def _credential(output: bytes, where: str, command: str) -> ExecCredential:
    try:
        status = json.loads(output)["status"]
        token = status.get("token") or ""
        certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
        found = ExecCredential(token, certificate and certificate.encode(), key and key.encode())
    except (ValueError, KeyError, TypeError, AttributeError):
        # The output may hold a credential: it is not shown.
        raise ClusterError(f"{where}: {command} did not print an ExecCredential with a status") from None
    if not found.token and (found.certificate is None or found.key is None):
        raise ClusterError(f"{where}: {command} gave neither a token nor a client certificate with its key")
    return found
