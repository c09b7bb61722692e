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
from headgate.cluster.deploy import applier, work_queue
from headgate.cluster.deploy.addresses import addresses_of
from headgate.cluster.deploy.deployer import Deployer
from headgate.cluster.deploy.outcome import Deployed
from headgate.cluster.snapshot import GATEWAY, HTTP_ROUTE, Snapshot, kind_of
from headgate.cluster.translate.conditions import Unmet
from headgate.cluster.watch.kinds import KINDS, OF_DEPLOYER, kept

BASE = "/api/v1/namespaces/edge"
SECRET, SERVICE, ACCOUNT = f"{BASE}/secrets/main-session-key", f"{BASE}/services/main", f"{BASE}/serviceaccounts/main"
DEPLOYMENT = "/apis/apps/v1/namespaces/edge/deployments/main"
DAEMON_SET = "/apis/apps/v1/namespaces/edge/daemonsets/main"
BUDGET = "/apis/policy/v1/namespaces/edge/poddisruptionbudgets/main"
BY_KIND = {one.kind: one for one in (*KINDS, *OF_DEPLOYER)}
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


def as_read(calls: RecordedCalls) -> dict[str, Json]:
    """Return what informers keep of the objects, by path."""
    return {path: kept(BY_KIND[kind_of(one)], one["apiVersion"], copy.deepcopy(one)).document for path, one in calls.objects.items()}


WITH_NOTE = edge(infrastructure={"annotations": {"a": "b"}})


@deployed
async def test_what_others_add_is_theirs(running: RunningDeployer, calls: RecordedCalls) -> None:
    calls.generations = True
    want(running, WITH_NOTE)
    await running.result()
    before = calls.changes()
    for one in calls.objects.values():
        one["metadata"]["labels"]["of"] = "another"
        one["metadata"].setdefault("annotations", {})["deployment.kubernetes.io/revision"] = "1"
        one["metadata"]["ownerReferences"].append({"kind": "Backup", "name": "x", "uid": "y"})
        one["status"] = {"replicas": 3}
    want(running, WITH_NOTE, *as_read(calls).values())
    await running.idle()
    assert calls.changes() == before
    assert not running.deployer._applier.unsettled(KEY)


@pytest.mark.parametrize(("path", "change"), [
    (ACCOUNT, lambda one: one.update(automountServiceAccountToken=True)),
    (ACCOUNT, lambda one: one["metadata"]["ownerReferences"].clear()),
    (f"{BASE}/configmaps/main", lambda one: one["data"].clear()),
    (SERVICE, lambda one: one["spec"].update(sessionAffinity="ClientIP")),
    (SERVICE, lambda one: one["metadata"]["annotations"].clear()),
    (SECRET, lambda one: one["data"].update(key="")),
    (DEPLOYMENT, lambda one: one["metadata"]["labels"].pop("app.kubernetes.io/name")),
    (DEPLOYMENT, lambda one: one["metadata"].update(generation=2)),
])  # fmt: skip
def test_what_others_change_is_changed_back(path: str, change: Callable[[Json], object]) -> None:
    @deployed
    async def test(running: RunningDeployer, calls: RecordedCalls) -> None:
        calls.generations = True
        want(running, WITH_NOTE)
        await running.result()
        known = as_read(calls)
        want(running, WITH_NOTE, *known.values())
        await running.idle()
        before = calls.changes()
        changed = copy.deepcopy(calls.objects[path])
        change(changed)
        found = kept(BY_KIND[kind_of(changed)], changed["apiVersion"], changed).document
        want(running, WITH_NOTE, *{**known, path: found}.values())
        await running.idle()
        assert calls.changes() == [*before, ("apply", path)]

    test()


@deployed
async def test_an_older_snapshot_is_no_change_of_somebody_else(running: RunningDeployer, calls: RecordedCalls) -> None:
    now, calls.generations = [0.0], True
    running.deployer._applier._clock = lambda: now[0]
    want(running, WITH_NOTE)
    await running.result()
    known, before = as_read(calls), calls.changes()
    some = {path: one for path, one in known.items() if path != ACCOUNT} | {"x": made("ServiceAccount", "x/x", {}, "v1")}
    want(running, WITH_NOTE, *some.values())
    await running.idle()
    assert calls.changes() == before
    assert running.deployer._applier.unsettled(KEY)
    assert KEY in running.deployer._queue._timers
    now[0] = applier.SETTLE_S
    running.deployer._queue.add(KEY)
    await running.idle()
    assert calls.changes() == [*before, ("apply", ACCOUNT)]


@deployed
async def test_who_fights_for_an_object_is_told_of(running: RunningDeployer, calls: RecordedCalls) -> None:
    now, calls.generations = [0.0], True
    warnings: list[tuple[str, str]] = []
    running.deployer._applier._clock = lambda: now[0]
    running.deployer.warned = lambda _key, reason, message: warnings.append((reason, message))
    want(running, WITH_NOTE)
    await running.result()
    message = "Service edge/main is changed by somebody else again and again"
    for turn in range(applier.MOST_REVERTS + 1):
        known = as_read(calls)
        want(running, WITH_NOTE, *known.values())
        await running.idle()
        theirs = kept(BY_KIND[kind_of(known[SERVICE])], "v1", {**calls.objects[SERVICE], "spec": {"type": f"{turn}"}}).document
        want(running, WITH_NOTE, *{**known, SERVICE: theirs}.values())
        await running.idle()
        assert warnings == ([("DeploymentFailed", message)] if turn == applier.MOST_REVERTS else [])
    assert (await running.result()).refusal == Unmet("DeploymentFailed", message)
    now[0] = applier.REVERTS_S
    running.deployer._queue.add(KEY)
    await running.idle()
    assert (await running.result()).refusal is None


@deployed
async def test_one_in_the_place_of_ours_is_left_alone(running: RunningDeployer, calls: RecordedCalls) -> None:
    want(running, WITH_NOTE)
    await running.result()
    known = as_read(calls)
    want(running, WITH_NOTE, *known.values())
    await running.idle()
    theirs = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "main", "namespace": "edge", "uid": "theirs"}, "spec": {}}
    calls.objects[SERVICE] = copy.deepcopy(theirs)
    want(running, WITH_NOTE, *{**known, SERVICE: theirs}.values())
    found = await running.result(lambda one: one.refusal is not None)
    assert found.refusal == Unmet("DeploymentFailed", "Service edge/main is there already and does not belong to this Gateway")
    assert calls.objects[SERVICE] == theirs


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
