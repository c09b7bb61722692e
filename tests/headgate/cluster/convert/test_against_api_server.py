"""What `headgate convert` writes, at a real API server: which objects of all examples it takes (a dry run: nothing is stored)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from cluster_lab import RunningCluster, kubernetes
from example_files import ENVIRON, lay_out
from manifests import Json

from headgate.cluster.convert.file import to_resources
from headgate.cluster.convert.gateway import GatewayNames
from headgate.cluster.resources import kinds
from headgate.cluster.snapshot import key_of
from headgate.cluster.watch.kinds import KINDS

__all__ = ["kubernetes"]
ROOT = Path(__file__).parents[4]
FILES = sorted([*(ROOT / "examples").glob("*.yaml"), *(ROOT / "tests" / "golden" / "config").glob("*.yaml")])
VARIABLES = {**ENVIRON, "KEY": "canary"}
PATHS = {one.kind.kind: one for one in KINDS}
# Of ReferenceGrants both versions are served; what is written is the older one.
DRY = {"fieldManager": "tests", "force": "true", "dryRun": "All"}


@pytest.fixture(scope="module")
def cluster(kubernetes: RunningCluster) -> RunningCluster:
    kubernetes.define([kinds.definition(kind) for kind in kinds.KINDS])
    return kubernetes


def converted(folder: Path) -> list[tuple[str, Json]]:
    """Return the objects of all files, each with the name of its file."""
    shutil.copytree(ROOT / "examples", folder)
    lay_out(folder)
    found = []
    for path in FILES:
        copy = folder / path.name
        shutil.copy(path, copy)
        found += [(path.name, one) for one in to_resources(str(copy), GatewayNames(), VARIABLES).documents]
    return found


def test_an_api_server_takes_what_is_written(cluster: RunningCluster, tmp_path: Path) -> None:
    documents = converted(tmp_path / "files")
    for space in sorted({key_of(one).namespace for _, one in documents} - {""}):
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}}, "/api/v1/namespaces")
    refused: dict[str, str] = {}
    for file, one in documents:
        watched = PATHS[one["kind"]]
        versions = [f"{watched.kind.group}/{version}".lstrip("/") for version in watched.versions]
        path = watched.path_of(key_of(one), versions.index(one["apiVersion"]))
        status, answer = cluster.send("PATCH", path, one, **DRY)
        if status not in (200, 201):
            refused[f"{file}: {one['kind']} {key_of(one)}"] = answer.get("message", "")
    assert refused == {}
    made = {one["kind"] for _, one in documents}
    assert made >= {"Gateway", "HTTPRoute", "GatewayBackend", "GatewayPolicy", "GatewayModel", "Secret"}
