"""Access to an API server as kubeconfig files describe it.

https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from headgate.cluster.credentials import exec_credential, read_text
from headgate.cluster.errors import ClusterError
from headgate.document.lazy_dataclass import replace

ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
# Fields that change who is asked, and that are not read: a request must not go another way than the file says.
REFUSED: Final = {"cluster": ("proxy-url",), "user": ("auth-provider",)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAccess:
    """An API server and the credentials for it.

    `server`: base URL. `authority`: PEM certificates of the CAs to trust; None: those of the system. `certificate`,
    `key`: PEM of the client certificate. `verified`: False if the server's certificate is not checked. `server_name`:
    the name that the certificate must have if it is not the host of `server`. `headers`: credentials as header fields.
    `token_file`: where a bearer token is renewed while a process runs.
    """

    server: str
    namespace: str = "default"
    authority: bytes | None = None
    certificate: bytes | None = None
    key: bytes | None = None
    verified: bool = True
    server_name: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    token_file: Path | None = None


class _Section:
    """One object of a kubeconfig file, with the folder that its relative paths start from."""

    def __init__(self, where: str, content: object, folder: Path) -> None:
        if not isinstance(content, dict):
            raise ClusterError(f"{where}: expected an object")
        self.where = where
        self.content: dict[str, Any] = content
        self._folder = folder

    def text(self, name: str) -> str:
        """Return a field, "" if it is missing; raises ClusterError if it is no string."""
        value = self.content.get(name) or ""
        if not isinstance(value, str):
            raise ClusterError(f"{self.where}: {name}: a string is expected")
        return value

    def material(self, name: str) -> bytes | None:
        """Return the bytes of `<name>-data` or of the file `<name>`; None if neither is there. Raises ClusterError."""
        data = self.text(f"{name}-data")
        if data:
            try:
                return base64.b64decode(data, validate=True)
            except (binascii.Error, ValueError):
                raise ClusterError(f"{self.where}: {name}-data: base64 is expected") from None
        file = self.text(name)
        return read_text(self._folder / file, f"{self.where}: {name}").encode() if file else None

    def path(self, name: str) -> Path:
        return self._folder / self.text(name)


@dataclass
class _Merged:
    """Several files read as one: the first entry of a name counts, and the first `current-context`."""

    files: str
    current: str = ""
    entries: dict[tuple[str, str], _Section] = field(default_factory=dict)

    def add(self, file: Path) -> None:
        try:
            document = yaml.safe_load(read_text(file, "kubeconfig"))
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            raise ClusterError(f"{file}{f':{mark.line + 1}' if mark else ''}: not YAML") from None
        top = _Section(str(file), {} if document is None else document, file.parent)
        self.current = self.current or top.text("current-context")
        for kind in ("cluster", "user", "context"):
            for number, one in enumerate(top.content.get(f"{kind}s") or ()):
                entry = _Section(f"{file}: {kind}s[{number}]", one, file.parent)
                named = _Section(f"{entry.where}.{kind}", one.get(kind) or {}, file.parent)
                self.entries.setdefault((kind, entry.text("name")), named)

    def entry(self, kind: str, name: str, wanted_by: str) -> _Section:
        found = self.entries.get((kind, name))
        if found is None:
            raise ClusterError(f'{wanted_by} names the {kind} "{name}", which {self.files} does not have')
        for refused in REFUSED.get(kind, ()):
            if found.content.get(refused):
                raise ClusterError(f"{found.where}: {refused} is not supported")
        return found


def load_access(
    kubeconfig: str | None, environ: Mapping[str, str], home: Path, account: Path = ACCOUNT
) -> ClusterAccess:
    """Return the access that the current context gives.

    kubeconfig: file names with the separator of `PATH` between them; None or "": `~/.kube/config` if there is one, else
    the service account of the pod that this process runs in. Runs a credential plugin if the user has one. Raises
    ClusterError.
    """
    files = [Path(name) for name in (kubeconfig or "").split(os.pathsep) if name] or [home / ".kube" / "config"]
    known = [file for file in files if file.exists()]
    if not known:
        if kubeconfig:
            raise ClusterError(f"kubeconfig: no such file: {', '.join(map(str, files))}")
        return _own_account(environ, account, files[0])
    merged = _Merged(" or ".join(map(str, known)))
    for file in known:
        merged.add(file)
    if not merged.current:
        raise ClusterError(f"{merged.files} has no current-context")
    context = merged.entry("context", merged.current, "current-context")
    cluster = merged.entry("cluster", context.text("cluster"), context.where)
    user = merged.entry("user", context.text("user"), context.where) if context.text("user") else None
    server = cluster.text("server")
    if not server.startswith(("https://", "http://")):
        raise ClusterError(f"{cluster.where}: server: an http or https URL is expected")
    access = ClusterAccess(
        server=server.rstrip("/"),
        namespace=context.text("namespace") or "default",
        authority=cluster.material("certificate-authority"),
        verified=not cluster.content.get("insecure-skip-tls-verify"),
        server_name=cluster.text("tls-server-name") or None,
    )
    return access if user is None else replace(access, **_credentials(user, environ))


def _credentials(user: _Section, environ: Mapping[str, str]) -> dict[str, Any]:
    certificate, key = user.material("client-certificate"), user.material("client-key")
    token, token_file = user.text("token"), None
    if user.text("tokenFile"):
        token_file = user.path("tokenFile")
        token = read_text(user.path("tokenFile"), f"{user.where}: tokenFile").strip()
    if not token and certificate is None and user.content.get("exec"):
        plugin = _Section(f"{user.where}.exec", user.content["exec"], user.path(""))
        found = exec_credential(plugin.content, plugin.where, environ, user.path(""))
        token, certificate, key = found.token, found.certificate, found.key
    headers = {}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    elif user.text("username"):
        pair = f"{user.text('username')}:{user.text('password')}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    if user.text("as"):
        headers["Impersonate-User"] = user.text("as")
    if certificate is not None and key is None:
        raise ClusterError(f"{user.where}: client-certificate needs client-key")
    return {"certificate": certificate, "key": key, "headers": headers, "token_file": token_file}


def _own_account(environ: Mapping[str, str], account: Path, looked_for: Path) -> ClusterAccess:
    """Return the access of a process in a pod (https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/)."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port or not (account / "token").exists():
        raise ClusterError(f"no access to a cluster: there is no {looked_for}, and this is not a pod")
    token = read_text(account / "token", "service account").strip()
    return ClusterAccess(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        namespace=read_text(account / "namespace", "service account").strip() or "default",
        authority=read_text(account / "ca.crt", "service account").encode(),
        headers={"Authorization": f"Bearer {token}"},
        token_file=account / "token",
    )
