"""Several replicas of the controller behind one port, as a Service puts them, and a data plane that is run by nobody else."""

from __future__ import annotations

import contextlib
import itertools
import signal
import socket
import threading
from pathlib import Path

from tests.end_to_end.acceptance_rig import SYSTEM, Lab
from tests.end_to_end.controller_rig import RunningController
from tests.end_to_end.delivery_rig import data_plane
from tests.end_to_end.running import PROGRAM, Gateway, free_port

from headgate.cluster.deliver.settings import AUDIENCE

LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases/headgate-headgate"


class Balancer:
    """Takes connections at one port and leads each to the next of several, whether or not that is any use."""

    def __init__(self) -> None:
        self.ports: list[int] = []
        self._turns = itertools.count()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                ports = self.ports[:]
                try:
                    server = socket.create_connection(("127.0.0.1", ports[next(self._turns) % len(ports)]))
                except (OSError, ZeroDivisionError):
                    client.close()
                    continue
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=_copied, args=pair, daemon=True).start()


def _copied(origin: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := origin.recv(65536):
            target.sendall(piece)
    for one in (origin, target):
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


class Replicas:
    """Replicas by name, the identity that they have in the lease."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.balancer = Balancer()
        self.running: dict[str, tuple[RunningController, int]] = {}

    def start(self, name: str) -> None:
        """Start a replica that deploys to the cluster, and wait until it is ready."""
        port = free_port()
        found = RunningController(
            self.lab.kubeconfig, self.lab.folder, HEADGATE_NAMESPACE=SYSTEM, HEADGATE_XDS_PORT=str(port), HEADGATE_IDENTITY=name
        )
        self.lab.controllers.append(found)
        found.wait_ready()
        self.running[name] = (found, port)
        self.balancer.ports = [one for _, one in self.running.values()]

    def end(self, name: str, number: int = signal.SIGKILL) -> None:
        found, _ = self.running.pop(name)
        self.balancer.ports = [one for _, one in self.running.values()]
        found.process.send_signal(number)
        found.process.wait()

    def leader(self) -> str:
        """Return the holder of the lease, which may be one that is no more; "" for none."""
        answer = self.lab.client.get(LEASE)
        return str(answer.json()["spec"].get("holderIdentity") or "") if answer.status_code == 200 else ""

    def lead(self) -> str:
        """Wait until one that runs leads, and return its name."""
        self.lab.until(lambda: self.leader() in self.running)
        return self.leader()

    def close(self) -> None:
        self.balancer.close()


def token_of(lab: Lab, namespace: str, account: str) -> str:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": [AUDIENCE]}}
    answer = lab.client.post(f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["status"]["token"])


def start_plane(lab: Lab, name: str, port: int, folder: Path, module: str = PROGRAM) -> Gateway:
    """Start the data plane of a Gateway that the deployer has made objects for. `port`: of the replicas; `module`: the program."""
    folder.mkdir(exist_ok=True)
    namespace, _, own = name.partition("/")
    (folder / "token").write_text(token_of(lab, namespace, own))
    authority = lab.get("ConfigMap", f"{name}-xds-ca")
    assert authority is not None
    (folder / "ca.crt").write_text(authority["data"]["ca.crt"])
    environment = {
        "XDS_ADDRESS": f"https://localhost:{port}", "XDS_TOKEN_FILE": str(folder / "token"), "XDS_ROOT_CA": str(folder / "ca.crt"),
        "GATEWAY": own, "NAMESPACE": namespace, "POD_NAME": f"{own}-0", "INSTANCE_IP": "127.0.0.1", "BIND_ADDRESS": "127.0.0.1",
        "STATE_DIRECTORY": str(folder),
    }  # fmt: skip
    return data_plane(folder, environment, lab.port, module=module)
