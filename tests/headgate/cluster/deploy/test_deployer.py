"""What the deployer asks of an API server; test_against_api_server.py asks a real one."""

from __future__ import annotations

import asyncio
import base64
import copy
import hashlib
from collections.abc import Awaitable, Callable

import pytest
from deploy_cases import SETTINGS, edge, parameters
from manifests import Json, gateway_class, made
from reconciler_rig import KEY, RunningDeployer
from recorded_calls import RecordedCalls

from headgate.cluster.calls import ApiError
from headgate.cluster.deploy import work_queue
from headgate.cluster.deploy.addresses import addresses_of
from headgate.cluster.deploy.deployer import Deployer
from headgate.cluster.deploy.outcome import Deployed
from headgate.cluster.snapshot import GATEWAY, HTTP_ROUTE, Snapshot
from headgate.cluster.translate.conditions import Unmet

BASE = "/api/v1/namespaces/edge"
SECRET, SERVICE, ACCOUNT = f"{BASE}/secrets/main-session-key", f"{BASE}/services/main", f"{BASE}/serviceaccounts/main"
DEPLOYMENT = "/apis/apps/v1/namespaces/edge/deployments/main"
DAEMON_SET = "/apis/apps/v1/namespaces/edge/daemonsets/main"
BUDGET = "/apis/policy/v1/namespaces/edge/poddisruptionbudgets/main"
WITH_BUDGET = parameters("edge/a", podDisruptionBudget={"spec": {"minAvailable": 1}})


def deployed(test: Callable[[RunningDeployer, RecordedCalls], Awaitable[None]]) -> Callable[[], None]:
    def run() -> None:
        async def whole() -> None:
            calls = RecordedCalls()
            async with RunningDeployer(lambda changed: Deployer(calls, SETTINGS, changed)) as running:
                await test(running, calls)

        asyncio.run(whole())

    run.__name__ = test.__name__  # type: ignore[attr-defined]
    return run


def want(running: RunningDeployer, *documents: Json) -> None:
    running.deployer.want(Snapshot.of([gateway_class(), *documents]))


@deployed
async def test_objects_are_applied_once(running: RunningDeployer, calls: RecordedCalls) -> None:
    want(running, edge())
    assert await running.result() == Deployed(({"type": "IPAddress", "value": "10.0.0.7"},), generation=1)
    first = calls.changes()
    assert first == [
        ("create", f"{BASE}/secrets"), ("apply", ACCOUNT), ("apply", f"{BASE}/configmaps/main"), ("apply", f"{BASE}/configmaps/main-xds-ca"),
        ("apply", SECRET), ("apply", DEPLOYMENT), ("apply", SERVICE),
    ]  # fmt: skip
    want(running, edge())
    await running.idle()
    assert calls.changes() == first
    want(running, edge(infrastructure={"labels": {"a": "b"}}))
    await running.idle()
    assert len(calls.changes()) == len(first) + 6
    assert calls.objects[SECRET]["data"] == calls.bodies[0]["data"]


@deployed
async def test_what_somebody_else_changed_is_applied_again(running: RunningDeployer, calls: RecordedCalls) -> None:
    want(running, edge())
    await running.result()
    known = [copy.deepcopy(one) for one in calls.objects.values()]
    want(running, edge(), *known)
    await running.idle()
    before = calls.changes()
    service = next(one for one in known if one["kind"] == "Service")
    service["spec"] = {**service["spec"], "ports": []}
    want(running, edge(), *known)
    await running.idle()
    assert calls.changes() == [*before, ("apply", SERVICE)]
    # One that was deleted comes back.
    want(running, edge(), *(one for one in known if one["kind"] != "ServiceAccount"), {**known[0], "kind": "ServiceAccount", "metadata": {"name": "x", "namespace": "x"}})
    await running.idle()
    assert ("apply", ACCOUNT) in calls.changes()[len(before) + 1 :]


@deployed
async def test_a_snapshot_may_have_some_fields_only(running: RunningDeployer, calls: RecordedCalls) -> None:
    want(running, edge(infrastructure={"annotations": {"a": "b"}}))
    await running.result()
    before = calls.changes()
    known = [copy.deepcopy(one) for one in calls.objects.values() if one["kind"] in ("Service", "ConfigMap", "Secret")]
    for one in known:
        del one["metadata"]["resourceVersion"], one["metadata"]["annotations"], one["metadata"]["ownerReferences"]
        one["metadata"]["labels"]["of"] = "another"
    want(running, edge(infrastructure={"annotations": {"a": "b"}}), *known)
    await running.idle()
    assert calls.changes() == before
    next(one for one in known if one["kind"] == "ConfigMap")["data"] = {}
    want(running, edge(infrastructure={"annotations": {"a": "b"}}), *copy.deepcopy(known))
    await running.idle()
    assert len(calls.changes()) == len(before) + 1


@deployed
async def test_what_is_not_wanted_any_more_is_deleted(running: RunningDeployer, calls: RecordedCalls) -> None:
    want(running, edge(refers="a"), WITH_BUDGET)
    await running.result()
    assert BUDGET in calls.objects
    want(running, edge(refers="a"), parameters("edge/a", workload={"kind": "DaemonSet"}))
    await running.idle()
    assert {BUDGET, DEPLOYMENT} & calls.objects.keys() == set()
    assert DAEMON_SET in calls.objects
    assert [one for one in calls.calls if one[0] == "delete"] == [("delete", DEPLOYMENT), ("delete", BUDGET)]


@deployed
async def test_what_belongs_to_somebody_else_is_left_alone(running: RunningDeployer, calls: RecordedCalls) -> None:
    other = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "main", "namespace": "edge", "labels": {"app": "shop"}}, "spec": {}}
    daemons = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "main", "namespace": "edge"}, "spec": {}}
    calls.objects |= {SERVICE: copy.deepcopy(other), DAEMON_SET: daemons}
    want(running, edge())
    found = await running.result()
    message = "Service edge/main is there already and does not belong to this Gateway"
    assert (found.refusal, found.condition) == (Unmet("DeploymentFailed", message), "Programmed")
    assert calls.objects[SERVICE] == other
    assert DAEMON_SET in calls.objects


@deployed
async def test_a_refusal_changes_nothing(running: RunningDeployer, calls: RecordedCalls) -> None:
    want(running, edge(refers="gone"))
    found = await running.result()
    assert found == Deployed((), Unmet("InvalidParameters", "infrastructure.parametersRef: GatewayParameters edge/gone not found"), "Accepted", 1)
    assert calls.calls == []
    want(running, edge(refers="gone"), parameters("edge/gone"))
    assert (await running.result(lambda one: one.refusal is None)).addresses


@deployed
async def test_a_failure_is_told_and_tried_again(running: RunningDeployer, calls: RecordedCalls) -> None:
    calls.fail["apply"] = ApiError(500, "InternalError", "no quorum")
    want(running, edge())
    found = await running.result()
    assert (found.refusal, found.condition) == (Unmet("DeploymentFailed", "no quorum"), "Programmed")
    del calls.fail["apply"]
    assert (await running.result(lambda one: one.refusal is None)).addresses


@deployed
async def test_the_session_key_stays(running: RunningDeployer, calls: RecordedCalls) -> None:
    want(running, edge())
    await running.result()
    first = calls.objects[SECRET]["data"]["key"]
    want(running, edge(refers="a"), WITH_BUDGET)
    await running.idle()
    assert calls.objects[SECRET]["data"]["key"] == first
    # It comes back as it was: sessions of clients are not lost.
    del calls.objects[SECRET]
    want(running, edge(refers="a"), parameters("edge/a", logging={"level": "warn"}))
    await running.idle()
    assert calls.objects[SECRET]["data"]["key"] == first


@deployed
async def test_a_session_key_that_is_none_is_an_error(running: RunningDeployer, calls: RecordedCalls) -> None:
    about = {"name": "main-session-key", "namespace": "edge"}
    calls.objects[SECRET] = {"apiVersion": "v1", "kind": "Secret", "metadata": about, "data": {"key": "c2VjcmV0"}}
    want(running, edge())
    found = await running.result()
    assert found.refusal == Unmet("DeploymentFailed", "Secret edge/main-session-key: key must have 64 hexadecimal digits; delete it to get a new one")
    assert calls.changes() == []


@deployed
async def test_a_session_key_of_somebody_else_is_used_as_it_is(running: RunningDeployer, calls: RecordedCalls) -> None:
    data = {"key": base64.b64encode(b"a" * 64).decode()}
    theirs = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "main-session-key", "namespace": "edge", "uid": "theirs"}, "data": data}
    calls.objects[SECRET] = copy.deepcopy(theirs)
    want(running, edge())
    assert (await running.result()).refusal is None
    want(running, edge(infrastructure={"labels": {"a": "b"}}))
    await running.idle()
    assert calls.objects[SECRET] == theirs
    sums = calls.objects[DEPLOYMENT]["spec"]["template"]["metadata"]["annotations"]
    assert sums["checksum/session-key"] == hashlib.sha256(b"a" * 64).hexdigest()


@deployed
async def test_a_gateway_on_its_way_out_gets_nothing_new(running: RunningDeployer, calls: RecordedCalls) -> None:
    leaving = edge()
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    want(running, leaving)
    await running.idle()
    assert (calls.calls, running.deployer.results()) == ([], {})


@deployed
async def test_only_the_leader_changes_anything(running: RunningDeployer, calls: RecordedCalls) -> None:
    running.deployer.lead(False)
    want(running, edge())
    for _ in range(20):
        await asyncio.sleep(0)
    assert calls.calls == []
    running.deployer.lead(True)
    await running.result()
    count = len(calls.changes())
    running.deployer.lead(False)
    running.deployer.lead(True)
    await running.idle()
    # Who leads anew does not know what another has made of it.
    assert len(calls.changes()) == 2 * count - 1


def test_it_can_be_run_again() -> None:
    async def whole() -> None:
        calls = RecordedCalls()
        running = RunningDeployer(lambda changed: Deployer(calls, SETTINGS, changed))
        async with running:
            want(running, edge())
            await running.result()
        count = len(calls.changes())
        del calls.objects[SERVICE]
        async with running:
            await running.idle()
            # Tasks begin in the next turn of the loop.
            await asyncio.sleep(0)
            await running.idle()
        assert SERVICE in calls.objects
        assert len(calls.changes()) == 2 * count - 1

    asyncio.run(whole())


@deployed
async def test_who_loses_the_lead_stops_between_two_changes(running: RunningDeployer, calls: RecordedCalls) -> None:
    apply = calls.apply

    async def last(path: str, document: Json, manager: str) -> Json:
        running.deployer.lead(False)
        return await apply(path, document, manager)

    calls.apply = last  # type: ignore[method-assign]
    want(running, edge())
    await running.idle()
    assert [verb for verb, _ in calls.changes()] == ["create", "apply"]
    assert running.deployer.results() == {}


@deployed
async def test_a_gateway_that_is_gone_has_no_result(running: RunningDeployer, calls: RecordedCalls) -> None:
    want(running, edge())
    await running.result()
    want(running)
    await running.idle()
    assert KEY not in running.deployer.results()
    assert [one for one in calls.calls if one[0] == "delete"] == []


@pytest.mark.parametrize(
    ("service", "addresses"),
    [
        ({"spec": {"type": "LoadBalancer", "clusterIPs": ["10.0.0.7"]}, "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1", "hostname": "a.test"}, {"ip": "192.0.2.2"}]}}},
         [("Hostname", "a.test"), ("IPAddress", "192.0.2.2")]),
        ({"spec": {"type": "LoadBalancer", "clusterIPs": ["10.0.0.7", "fd00::7"]}}, [("IPAddress", "10.0.0.7"), ("IPAddress", "fd00::7")]),
        ({"spec": {"type": "ClusterIP", "clusterIPs": ["10.0.0.7"]}}, [("IPAddress", "10.0.0.7"), ("IPAddress", "192.0.2.9")]),
        ({"spec": {"type": "ClusterIP", "clusterIPs": ["None"]}}, [("IPAddress", "192.0.2.9")]),
    ],
)  # fmt: skip
def test_addresses_of_a_service(service: Json, addresses: list[tuple[str, str]]) -> None:
    asked = edge(addresses=[{"value": "192.0.2.9"}])
    assert [(one["type"], one["value"]) for one in addresses_of(asked, service)] == addresses


def test_delays_grow_and_differ() -> None:
    assert [work_queue.delay_after(failures, lambda: 1.0) for failures in (1, 2, 3, 7, 50)] == [1, 2, 4, 60, 60]
    assert work_queue.delay_after(3, lambda: 0.0) == 2


@deployed
async def test_ports_of_a_new_listener_set_are_opened(running: RunningDeployer, calls: RecordedCalls) -> None:
    allowing = edge(allowedListeners={"namespaces": {"from": "All"}})
    want(running, allowing)
    await running.result()
    spec = {"parentRef": {"name": "main", "namespace": "edge"}, "listeners": [{"name": "x", "port": 81, "protocol": "HTTP"}]}
    want(running, allowing, made("ListenerSet", "shop/more", spec))
    await running.idle()
    assert [one["port"] for one in calls.objects[SERVICE]["spec"]["ports"]] == [80, 443, 81]


@deployed
async def test_a_snapshot_with_other_routes_alone_queues_nothing(running: RunningDeployer, calls: RecordedCalls) -> None:
    first = Snapshot.of([gateway_class(), edge()])
    running.deployer.want(first)
    await running.result()
    count = len(calls.calls)
    running.deployer.want(Snapshot({**first.kinds, HTTP_ROUTE: {}}))
    await running.idle()
    assert len(calls.calls) == count
    running.deployer.want(Snapshot({kind: one for kind, one in first.kinds.items() if kind != GATEWAY}))
    await running.idle()
    assert running.deployer.results() == {}
