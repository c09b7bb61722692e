"""The CRDs at a real API server: what it takes, which defaults it writes, and what it refuses with which words."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from cluster_lab import RunningCluster, kubernetes
from resource_cases import BASES, DEFAULTS, KINDS, Spec, Written, at, changed, document
from resource_refusals import REFUSALS, Refused

from headgate.cluster.resources import kinds

__all__ = ["kubernetes"]

PLURALS = {kind.name: kind.plural for kind in kinds.KINDS}


@pytest.fixture(scope="module")
def server(kubernetes: RunningCluster) -> Iterator[RunningCluster]:
    kubernetes.define([kinds.definition(kind) for kind in kinds.KINDS])
    return kubernetes


def sent(server: RunningCluster, base: str, spec: Spec) -> tuple[int, dict[str, Any]]:
    plural = PLURALS[KINDS[base.split("/")[0]]]
    path = f"/apis/headgate.dev/v1alpha1/namespaces/default/{plural}"
    return server.send("POST", path, document(base, spec), dryRun="All", fieldValidation="Strict")


@pytest.mark.parametrize("base", BASES)
def test_what_is_right_is_taken(server: RunningCluster, base: str) -> None:
    status, answer = sent(server, base, BASES[base])
    assert status == 201, answer["message"]


@pytest.mark.parametrize("case", DEFAULTS, ids=lambda case: f"{case.base} {case.path}")
def test_defaults_are_written(server: RunningCluster, case: Written) -> None:
    status, answer = sent(server, case.base, BASES[case.base])
    assert status == 201
    assert at(answer["spec"], case.path) == case.value


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: f"{case.base} {' '.join(case.changes)}")
def test_what_is_wrong_is_refused(server: RunningCluster, case: Refused) -> None:
    status, answer = sent(server, case.base, changed(BASES[case.base], case.changes))
    assert status == 422, answer
    assert case.message in answer["message"]


def test_a_misspelled_field_is_told(server: RunningCluster) -> None:
    status, answer = sent(server, "backend/static", {"static": {"host": "a", "port": 1, "prot": 2}})
    assert (status, 'unknown field "spec.static.prot"' in answer["message"]) == (400, True)


def ancestor(number: int, **more: Any) -> dict[str, Any]:
    condition = {
        "type": "Accepted", "status": "True", "reason": "Valid", "message": "Policy accepted", "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    return {
        "ancestorRef": {"name": f"g{number}"}, "controllerName": "headgate.dev/headgate", "conditions": [condition | more],
    }  # fmt: skip


def test_a_status_is_written_beside_the_spec(server: RunningCluster) -> None:
    path = "/apis/headgate.dev/v1alpha1/namespaces/default/gatewaypolicies"
    policy = document("policy/service", BASES["policy/service"])
    first = server.apply(policy, path)
    patched = {key: value for key, value in policy.items() if key != "spec"} | {"status": {"ancestors": [ancestor(1)]}}
    status, answer = server.send("PATCH", f"{path}/service/status", patched, fieldManager="status", force="true")
    assert status == 200, answer
    assert answer["spec"] == first["spec"]
    assert answer["metadata"]["generation"] == first["metadata"]["generation"] == 1
    assert answer["status"]["ancestors"][0]["ancestorRef"] == {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "g1"}
    for wrong, message in (
        ([ancestor(number) for number in range(17)], "must have at most 16 items"),
        ([ancestor(1) | {"conditions": []}], "should have at least 1 items"),
        ([ancestor(1, status="true")], "Unsupported value"),
        ([ancestor(1, reason="")], "should be at least 1 chars long"),
    ):
        patched["status"] = {"ancestors": wrong}
        status, answer = server.send("PATCH", f"{path}/service/status", patched, fieldManager="status", force="true")
        assert (status, message in answer["message"]) == (422, True), answer


def test_kubectl_shows_the_columns(server: RunningCluster) -> None:
    path = "/apis/headgate.dev/v1alpha1/namespaces/default/gatewaymodels"
    server.apply(document("model/weighted", BASES["model/weighted"]), path)
    command = ["kubectl", "get", "hgmodel", "weighted", "--namespace", "default"]
    shown = subprocess.run(command, env=server.environment, check=True, capture_output=True, text=True).stdout.split()
    assert shown[:5] == ["NAME", "MODEL", "MATCH", "AGE", "weighted"]
    assert shown[5] == "best"


def test_kubectl_explains_a_field(server: RunningCluster) -> None:
    command = ["kubectl", "explain", "gatewaypolicies.spec.traffic.retry.attempts"]
    shown = subprocess.run(command, env=server.environment, check=True, capture_output=True, text=True).stdout
    assert "Maximum number of retries." in shown
