"""A real Kubernetes API server (ci/cluster-lab) for tests; they are skipped where its programs have not been built."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

ROOT = Path(__file__).parents[2]
LAB = ROOT / "ci" / "cluster-lab"
# Seconds: three programs start beside whatever else the machine does.
START_SECONDS = 240
WAIT_SECONDS = 240
# A server beside much other work takes minutes for a CRD with many CEL rules, and begins anew with each try.
REQUEST = f"{WAIT_SECONDS}s"


@dataclass
class RunningCluster:
    """`kubeconfig`: of an administrator. `client`: sends requests with the same rights."""

    kubeconfig: Path
    client: httpx.Client

    def send(self, method: str, path: str, body: Any = None, **query: str) -> tuple[int, dict[str, Any]]:
        """Return the status and the JSON object of the answer. A server that asks for patience, as one that has just begun
        does (429), or that had no time beside other work (504), is asked again."""
        content = None if body is None else json.dumps(body)
        kind = "application/apply-patch+yaml" if method == "PATCH" else "application/json"
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            answer = self.client.request(method, path, content=content, headers={"content-type": kind}, params=query)
            if answer.status_code not in (429, 504) or time.monotonic() > deadline:
                # A path that is not served yet has a page of text.
                told = answer.headers.get("content-type", "").startswith("application/json")
                return answer.status_code, answer.json() if told else {}
            time.sleep(0.1)

    def apply(self, document: dict[str, Any], path: str) -> dict[str, Any]:
        """Return the stored object; fails the test with the server's words where it refuses."""
        name = document["metadata"]["name"]
        status, answer = self.send("PATCH", f"{path}/{name}", document, fieldManager="tests", force="true", timeout=REQUEST)
        assert status in (200, 201), answer
        return answer

    def listed(self, path: str) -> list[dict[str, Any]]:
        """Return the objects of a list, each with its version and kind as a watch gives them."""
        status, answer = self.send("GET", path)
        assert status == 200, answer
        about = {"apiVersion": answer["apiVersion"], "kind": answer["kind"].removesuffix("List")}
        return [{**about, **one} for one in answer["items"]]

    def define(self, definitions: list[dict[str, Any]]) -> None:
        """Apply CRDs and wait until their kinds are served."""
        for one in definitions:
            self.apply(one, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
        for one in definitions:
            # `kubectl wait` fails where a definition has no condition yet.
            spec = one["spec"]
            path = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
            self.wait_for(path)

    def wait_for(self, path: str) -> None:
        """Wait until something is served."""
        deadline = time.monotonic() + WAIT_SECONDS
        while self.send("GET", path)[0] != 200:
            assert time.monotonic() < deadline, f"{path} is not served"
            time.sleep(0.05)

    @property
    def environment(self) -> dict[str, str]:
        programs = self.kubeconfig.parent / "programs"
        return {**os.environ, "KUBECONFIG": str(self.kubeconfig), "PATH": f"{programs}:{os.environ['PATH']}"}


def built() -> Path:
    """Return the folder of the programs; skips the test without them."""
    found = subprocess.run(
        [LAB / "recipe.sh"], env={**os.environ, "KUBETEST_BUILD": "0"}, capture_output=True, text=True, check=False
    )
    if found.returncode:
        pytest.skip("no Kubernetes API server: make cluster-lab builds one (KUBETEST_CACHE)")
    return Path(found.stdout.strip())


@pytest.fixture(scope="session")
def kubernetes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    """An API server with etcd and the CRDs of the Gateway API (experimental channel: TCPRoutes), without controllers."""
    programs = built()
    # A path of its own: sockets and pid files of runs side by side must not meet.
    folder = tmp_path_factory.mktemp("kubernetes")
    channel = {"KUBETEST_CHANNEL": "experimental", "KUBETEST_API_ARGS": f"--request-timeout={REQUEST}"}
    environment = {**os.environ, "KUBETEST_OUT": str(programs), "KUBETEST_KCM": "0", **channel}
    try:
        started = subprocess.run(
            [LAB / "up.sh", "up", folder], env=environment, capture_output=True, text=True, timeout=START_SECONDS, check=False
        )
        assert started.returncode == 0, started.stderr
        (folder / "programs").symlink_to(programs / "bin")
        variables = dict(
            word.split("=", 1) for line in (folder / "env").read_text().splitlines() for word in line.split()[1:]
        )
        context = ssl.create_default_context(cafile=variables["KUBETEST_CA"])
        context.load_cert_chain(folder / "pki" / "admin.crt", folder / "pki" / "admin.key")
        with httpx.Client(base_url=variables["KUBETEST_SERVER"], verify=context, timeout=WAIT_SECONDS) as client:
            yield RunningCluster(folder / "kubeconfig", client)
    finally:
        subprocess.run([LAB / "up.sh", "down", folder], env=environment, check=False, capture_output=True)
