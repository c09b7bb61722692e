"""A cluster with `headgate controller` and the gateways that it starts on this machine: at the small API server, or at a real
one, where the controller has the role of `deploy/manifests` and nothing more."""

from __future__ import annotations

import base64
import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import yaml
from cluster_lab import ROOT, RunningCluster
from manifests import Json, endpoints, made, service
from tests.end_to_end.controller_rig import InThread, RunningController, kubeconfig_of
from tests.end_to_end.running import PATIENCE, free_port

from headgate.cluster.resources import kinds
from headgate.cluster.watch.kinds import KINDS

GROUP = "gateway.networking.k8s.io"
PLURALS = {one.kind.kind: (f"/{'apis/' if one.kind.group else 'api/'}{one.api_version()}", one.plural) for one in KINDS} | {
    "ReferenceGrant": (f"/apis/{GROUP}/v1beta1", "referencegrants"),
    # The only version that the CRDs of the experimental channel have.
    "TCPRoute": (f"/apis/{GROUP}/v1alpha2", "tcproutes"),
    "ServiceAccount": ("/api/v1", "serviceaccounts"),
    "Event": ("/api/v1", "events"),
    "Deployment": ("/apis/apps/v1", "deployments"),
    "PodDisruptionBudget": ("/apis/policy/v1", "poddisruptionbudgets"),
    **{kind: ("/apis/rbac.authorization.k8s.io/v1", f"{kind.lower()}s") for kind in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")},
}  # fmt: skip
SYSTEM = "headgate-system"
# What only who runs gateways on this machine needs: pods get their tokens from the kubelet.
TOKENS = {"apiGroups": [""], "resources": ["serviceaccounts/token"], "verbs": ["create"]}


def own_address() -> str:
    """Return an address of this machine that endpoints may have: the API server refuses those of loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
        probe.connect(("192.0.2.254", 9))
        return str(probe.getsockname()[0])
    return "127.0.0.1"


class Answering(BaseHTTPRequestHandler):
    """Answers with the path and the headers that it got."""

    def do_GET(self) -> None:
        body = f"{self.path}\n{self.headers}".encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: Any) -> None:
        pass


class Lab:
    """`kubeconfig`: what the controller has. `strict`: whether the server knows roles and schemas."""

    def __init__(self, client: httpx.Client, kubeconfig: Path, folder: Path, *, strict: bool) -> None:
        self.client, self.kubeconfig, self.folder, self.strict = client, kubeconfig, folder, strict
        self.xds, self.port = free_port(), free_port()
        self.controllers: list[RunningController] = []
        self.peer = ThreadingHTTPServer(("0.0.0.0", 0), Answering)
        threading.Thread(target=self.peer.serve_forever, daemon=True).start()
        self.address = own_address()

    # -- resources -----------------------------------------------------------------------------------------------------
    def _path(self, kind: str, name: str) -> str:
        prefix, plural = PLURALS[kind]
        namespace, _, own = name.rpartition("/")
        return f"{prefix}/namespaces/{namespace}/{plural}/{own}" if namespace else f"{prefix}/{plural}/{own}"

    def apply(self, *documents: Json) -> None:
        for one in documents:
            about = one["metadata"]
            kept = {"creationTimestamp", "generation", "uid"}
            document = {**one, "metadata": {name: value for name, value in about.items() if name not in kept}}
            if document.get("spec") == {}:
                del document["spec"]
            name = "/".join(filter(None, (about.get("namespace"), about["name"])))
            answer = self._asked("PATCH", self._path(one["kind"], name), document)
            assert answer.status_code in (200, 201), answer.text

    def _asked(self, method: str, path: str, document: Json | None = None) -> httpx.Response:
        """A server that asks for patience is asked again."""
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self.client.request(
                method, path, json=document, headers={"content-type": "application/apply-patch+yaml"} if method == "PATCH" else {},
                params={"fieldManager": "tests", "force": "true"} if method == "PATCH" else {},
            )  # fmt: skip
            if answer.status_code not in (429, 504) or time.monotonic() > deadline:
                return answer
            time.sleep(0.1)

    def get(self, kind: str, name: str) -> Json | None:
        answer = self._asked("GET", self._path(kind, name))
        assert answer.status_code in (200, 404), answer.text
        found: Json = answer.json()
        return found if answer.status_code == 200 else None

    def delete(self, kind: str, name: str) -> None:
        answer = self._asked("DELETE", self._path(kind, name))
        assert answer.status_code in (200, 202, 404), answer.text

    def status(self, kind: str, name: str) -> Json:
        found = self.get(kind, name) or {}
        said: Json = found.get("status") or {}
        return said

    def conditions(self, kind: str, name: str) -> dict[str, tuple[str, str]]:
        return judged(self.status(kind, name).get("conditions"))

    def parents(self, kind: str, name: str) -> list[dict[str, tuple[str, str]]]:
        return [judged(one["conditions"]) for one in self.status(kind, name).get("parents") or ()]

    def ancestors(self, name: str) -> dict[str, dict[str, tuple[str, str]]]:
        found = self.status("GatewayPolicy", name).get("ancestors") or ()
        return {one["ancestorRef"]["name"]: judged(one["conditions"]) for one in found}

    def served(self, name: str) -> None:
        """Apply a Service whose endpoint is the peer."""
        port = self.peer.server_address[1]
        self.apply(
            service(name, {"port": 8080, "targetPort": port}),
            endpoints(f"{name}-1", name.rpartition("/")[2], [self.address], port, addressType="IPv4"),
        )

    # -- processes -----------------------------------------------------------------------------------------------------
    def start(self, *words: str, **variables: str) -> RunningController:
        """Start a controller, and wait until it is ready."""
        found = RunningController(self.kubeconfig, self.folder, *words, HEADGATE_XDS_PORT=str(self.xds), **variables)
        self.controllers.append(found)
        found.wait_ready()
        return found

    def start_local(self, **variables: str) -> RunningController:
        """Start one that runs gateways on this machine, which outlive it if it is killed."""
        folder = self.folder / "gateways"
        # The address of a Gateway follows from its name: runs side by side have ranges of their own.
        addresses = f"127.{100 + self.xds % 100}.{self.xds // 100 % 250}.0/24"
        return self.start("--local-gateways", addresses, "--local-folder", str(folder), HEADGATE_NAMESPACE=SYSTEM, **variables)

    def close(self) -> None:
        for one in self.controllers:
            if one.process.poll() is None:
                one.stop()
        self.peer.shutdown()
        self.peer.server_close()

    # -- traffic -------------------------------------------------------------------------------------------------------
    def address_of(self, name: str) -> str:
        self.until(lambda: self.conditions("Gateway", name).get("Programmed", ("", ""))[0] == "True")
        return str(self.status("Gateway", name)["addresses"][0]["value"])

    def answer(self, name: str, host: str, path: str = "/", port: int | None = None) -> httpx.Response | None:
        """Return what a Gateway answers; None if it cannot be reached."""
        address = self.status("Gateway", name).get("addresses") or [{}]
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"http://{address[0].get('value')}:{port or self.port}{path}", headers={"host": host}, timeout=PATIENCE)
        return None

    def answers(self, name: str, host: str, status: int, path: str = "/", port: int | None = None) -> httpx.Response:
        """Wait until a Gateway answers so."""
        last: list[httpx.Response | None] = []

        def asked() -> bool:
            last[:] = [self.answer(name, host, path, port)]
            return last[0] is not None and last[0].status_code == status

        self.until(asked, last)
        assert last[0] is not None
        return last[0]

    def until(self, holds: Callable[[], object], told: object = "") -> None:
        deadline = time.monotonic() + PATIENCE
        while not holds():
            logs = "\n".join(one.log.read_text()[-3000:] for one in self.controllers)
            assert time.monotonic() < deadline, f"{told}\n{logs}"
            time.sleep(0.02)


def judged(conditions: list[Json] | None) -> dict[str, tuple[str, str]]:
    return {one["type"]: (one["status"], one["reason"]) for one in conditions or ()}


@contextlib.contextmanager
def small_lab(folder: Path) -> Iterator[Lab]:
    """A lab at the small API server."""
    found = InThread()
    server = found.server
    for group in {one.kind.group for one in KINDS if one.optional}:
        by_version: dict[str, list[str]] = {}
        for one in KINDS:
            if one.kind.group == group and one.optional:
                version = PLURALS[one.kind.kind][0].rpartition("/")[2]
                by_version.setdefault(version, []).append(one.plural)
        for version, plurals in by_version.items():
            found.do(server.define, group, version, *plurals)
    with httpx.Client(base_url=server.url, timeout=PATIENCE) as client:
        lab = Lab(client, kubeconfig_of(folder, server.url), folder, strict=False)
        try:
            yield lab
        finally:
            lab.close()
            found.close()


@contextlib.contextmanager
def real_lab(cluster: RunningCluster, folder: Path) -> Iterator[Lab]:
    """A lab at a real API server, where the controller has an account with the role of the manifests."""
    cluster.define([kinds.definition(kind) for kind in kinds.KINDS])
    user = yaml.safe_load(cluster.kubeconfig.read_text())
    about = user["clusters"][0]["cluster"]
    authority = about.get("certificate-authority")
    if authority is None:
        authority = str(folder / "ca.crt")
        Path(authority).write_text(_decoded(about["certificate-authority-data"]))
    lab = Lab(cluster.client, folder / "kubeconfig", folder, strict=True)
    documents = [one for one in yaml.safe_load_all((ROOT / "deploy/manifests/headgate.yaml").read_text()) if one["kind"] in PLURALS]
    lab.apply(*[one for one in documents if one["kind"] not in ("Service", "Deployment")])
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "local-gateways"}}
    subject = {"kind": "ServiceAccount", "name": "headgate", "namespace": SYSTEM}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "local-gateways"}
    lab.apply({**role, "rules": [TOKENS]})
    lab.apply({**role, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": [subject]})
    status, answer = cluster.send(
        "POST", f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/headgate/token",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 7200}},
    )  # fmt: skip
    assert status == 201, answer
    kubeconfig_of(folder, about["server"], answer["status"]["token"], authority)
    try:
        yield lab
    finally:
        lab.close()


def _decoded(text: str) -> str:
    return base64.b64decode(text).decode()


def namespaces(*names: str) -> list[Json]:
    return [made("Namespace", name, {}, "v1") for name in names]
