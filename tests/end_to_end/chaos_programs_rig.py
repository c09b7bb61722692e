"""The programs of an API server that may die in a test, and waiting for it: how long is said by the server, not by a clock."""

from __future__ import annotations

import base64
import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import httpx
from manifests import Json
from tests.end_to_end.processes import alive, kill
from tests.end_to_end.running import PATIENCE

# Answers of an API server that has just begun, is about to end, or has lost its store.
PASSING = (429, 500, 503, 504)
FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"
JAIL = "turned-away"
# A priority level without any room turns all requests away: https://kubernetes.io/docs/concepts/cluster-administration/flow-control/
LEVEL: Json = {
    "apiVersion": FLOW.removeprefix("/apis/"), "kind": "PriorityLevelConfiguration", "metadata": {"name": JAIL},
    "spec": {"type": "Limited", "limited": {
        "nominalConcurrencyShares": 0, "lendablePercent": 0, "borrowingLimitPercent": 0, "limitResponse": {"type": "Reject"},
    }},
}  # fmt: skip
# Seconds that something may take at an API server that is ready all the time.
MOST = PATIENCE * 8


class Program:
    """A program of ci/cluster-lab/up.sh, found by its file. Threads may use it at the same time."""

    def __init__(self, folder: Path, name: str) -> None:
        self._file, self._log = folder / f"{name}.pid", folder / "log" / f"{name}.log"
        self._command = Path(f"/proc/{self._file.read_text().strip()}/cmdline").read_bytes().split(b"\0")[:-1]
        self._child: subprocess.Popen[bytes] | None = None
        self._lock, self._down = threading.Lock(), False

    def kill(self) -> None:
        with self._lock:
            self._down = True
            kill(int(self._file.read_text()))
            if self._child is not None:
                self._child.wait()

    def start(self) -> None:
        with self._lock:
            self._down = False
            self._start()

    def hang(self, on: bool) -> None:
        """Stop it where it is, with its connections open, or let it go on."""
        with self._lock, contextlib.suppress(ProcessLookupError):
            os.kill(int(self._file.read_text()), signal.SIGSTOP if on else signal.SIGCONT)

    def revive(self) -> None:
        """Start it again if it has ended by itself: an API server does whose store is away when it begins."""
        with self._lock:
            ended = not alive(int(self._file.read_text())) if self._child is None else self._child.poll() is not None
            if ended and not self._down:
                self._start()

    def _start(self) -> None:
        with self._log.open("ab") as log:
            self._child = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        self._file.write_text(str(self._child.pid))


class Store:
    """The etcd of ci/cluster-lab/up.sh, asked through its JSON gateway: https://etcd.io/docs/v3.6/dev-guide/api_grpc_gateway/"""

    def __init__(self, folder: Path) -> None:
        words = (folder / "env").read_text().split()
        self._url = next(one.partition("=")[2] for one in words if one.startswith("KUBETEST_ETCD="))

    def compact(self) -> bool:
        """Forget all versions but the newest: who lists from an older one, or watches from before, gets 410. Return
        whether the store was there."""
        with contextlib.suppress(httpx.TransportError):
            asked = {"key": base64.b64encode(b"/registry/").decode(), "count_only": True}
            found = httpx.post(f"{self._url}/v3/kv/range", json=asked)
            if found.status_code == 200:
                revision = found.json()["header"]["revision"]
                return httpx.post(f"{self._url}/v3/kv/compaction", json={"revision": revision}).status_code == 200
        return False


def jailed(namespace: str, account: str) -> Json:
    """Return the rule that has the requests of a service account at that level."""
    subject = {"kind": "ServiceAccount", "serviceAccount": {"namespace": namespace, "name": account}}
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}
    return {
        "apiVersion": LEVEL["apiVersion"], "kind": "FlowSchema", "metadata": {"name": JAIL},
        "spec": {
            "priorityLevelConfiguration": {"name": JAIL}, "matchingPrecedence": 2,
            "rules": [{"subjects": [subject], "resourceRules": [everything]}],
        },
    }  # fmt: skip


class ApiServer:
    """An API server that comes and goes. `programs`: those that it consists of, none of the small one."""

    def __init__(self, client: httpx.Client, programs: Iterable[Program]) -> None:
        self._client, self._programs = client, list(programs)

    def revive(self) -> None:
        for one in self._programs:
            one.revive()

    def ready(self) -> bool:
        """Tell whether it says so itself, with its store."""
        self.revive()
        if not self._programs:
            return True
        with contextlib.suppress(httpx.TransportError):
            return self._client.get("/readyz").status_code == 200
        return False

    def answer(self, ask: Callable[[], httpx.Response]) -> httpx.Response:
        """Ask until it answers as one that is there."""
        found: list[httpx.Response] = []

        def answered() -> bool:
            with contextlib.suppress(httpx.TransportError):
                found[:] = [ask()]
                return found[0].status_code not in PASSING
            return False

        self.until(answered, lambda: f"no answer: {[one.text for one in found]}")
        return found[0]

    def send(self, method: str, path: str, document: Json | None = None) -> httpx.Response:
        """Apply (PATCH), delete or read something, however long the server is away."""
        query = {"fieldManager": "tests", "force": "true"} if method == "PATCH" else {}
        kind = {"content-type": "application/apply-patch+yaml"} if method == "PATCH" else {}
        answer = self.answer(lambda: self._client.request(method, path, json=document, headers=kind, params=query))
        assert answer.status_code in (200, 201, 202, 404), answer.text
        return answer

    def until(self, holds: Callable[[], object], told: Callable[[], object]) -> None:
        """Wait until something holds. The time begins anew whenever the server is not ready: nobody can do anything then."""
        ends, pause = time.monotonic() + MOST, 0.05
        while not holds():
            if not self.ready():
                ends = time.monotonic() + MOST
            assert time.monotonic() < ends, told()
            time.sleep(pause)
            pause = min(pause * 1.5, 1.0)
