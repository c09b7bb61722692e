"""Warnings about Gateways as Events."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import pytest
from manifests import gateway
from waiting import until

from headgate.cluster.calls import ApiError
from headgate.cluster.controller import events
from headgate.cluster.controller.events import BURST, MAX_KNOWN, MAX_MESSAGE, REFILL_S, REPEAT_S, GatewayWarnings
from headgate.cluster.snapshot import Json, ObjectKey
from headgate.net.tasks import spawn

KEY = ObjectKey("edge", "main")


class Calls:
    """`objects` by path. `fails`: how many requests are refused."""

    def __init__(self) -> None:
        self.objects: dict[str, Json] = {}
        self.calls: list[str] = []
        self.fails = 0

    def _note(self, verb: str) -> None:
        self.calls.append(verb)
        if self.fails:
            self.fails -= 1
            raise ApiError(500, "InternalError", "no quorum")

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        self._note("get")
        if path not in self.objects:
            raise ApiError(404, "NotFound", "gone")
        return self.objects[path]

    async def create(self, path: str, document: Json) -> Json:
        self._note("create")
        place = f"{path}/{document['metadata']['name']}"
        if place in self.objects:
            raise ApiError(409, "AlreadyExists", "there is one")
        self.objects[place] = document
        return document

    async def apply(self, path: str, document: Json, manager: str) -> Json:
        raise AssertionError

    async def merge(self, path: str, document: Json) -> Json:
        self._note("merge")
        self.objects[path].update(document)
        return self.objects[path]

    async def delete(self, path: str) -> Json:
        raise AssertionError


class Warned:
    def __init__(self, calls: Calls) -> None:
        self.calls, self.now = calls, 1000.0
        self.warnings = GatewayWarnings(calls, "one", self.find, lambda: self.now)
        self.gone = False

    def find(self, key: ObjectKey) -> Json | None:
        found = gateway(name=str(key))
        return None if self.gone else {**found, "metadata": {**found["metadata"], "uid": f"uid of {key}"}}

    async def idle(self) -> None:
        await until(lambda: self.warnings._waiting.empty() and not any(one.waits for one in self.warnings._known.values()))
        for _ in range(10):
            await asyncio.sleep(0)

    def counts(self) -> list[int]:
        return [one["count"] for one in self.calls.objects.values()]


def warned(test: Callable[[Warned, Calls], Awaitable[None]]) -> Callable[[], None]:
    def run() -> None:
        async def whole() -> None:
            calls = Calls()
            found = Warned(calls)
            task = spawn("events", found.warnings.run())
            await test(found, calls)
            task.cancel()

        asyncio.run(whole())

    run.__name__ = test.__name__  # type: ignore[attr-defined]
    return run


@warned
async def test_an_event_is_about_its_gateway(it: Warned, calls: Calls) -> None:
    it.warnings.warn(KEY, "DeploymentFailed", "no quorum" + "x" * 2000)
    await it.idle()
    [(path, event)] = calls.objects.items()
    assert path == f"/api/v1/namespaces/edge/events/{event['metadata']['name']}"
    assert event["metadata"]["name"].startswith("main.")
    assert event["involvedObject"] == {
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "namespace": "edge", "name": "main", "uid": "uid of edge/main",
    }  # fmt: skip
    assert (event["type"], event["reason"], event["count"]) == ("Warning", "DeploymentFailed", 1)
    assert len(event["message"]) == MAX_MESSAGE
    assert (event["reportingComponent"], event["reportingInstance"]) == ("headgate.dev/headgate", "one")
    assert event["firstTimestamp"] == event["lastTimestamp"]
    it.gone = True
    it.warnings.warn(KEY, "DeploymentFailed", "of a Gateway that is gone")
    await it.idle()
    assert len(calls.objects) == 1


@warned
async def test_equal_warnings_are_one_that_is_counted_up_now_and_then(it: Warned, calls: Calls) -> None:
    for _ in range(100):
        it.warnings.warn(KEY, "DeploymentFailed", "no quorum")
        await it.idle()
    assert calls.calls == ["create"]
    it.now += REPEAT_S
    it.warnings.warn(KEY, "DeploymentFailed", "no quorum")
    await it.idle()
    assert calls.calls == ["create", "get", "merge"]
    assert it.counts() == [101]
    # The API server forgets it after an hour.
    calls.objects.clear()
    it.now += 3600
    it.warnings.warn(KEY, "DeploymentFailed", "no quorum")
    await it.idle()
    assert it.counts() == [1]


@warned
async def test_the_next_leader_counts_on(it: Warned, calls: Calls) -> None:
    it.warnings.warn(KEY, "DeploymentFailed", "no quorum")
    await it.idle()
    other = Warned(calls)
    task = spawn("events", other.warnings.run())
    other.warnings.warn(KEY, "DeploymentFailed", "no quorum")
    await other.idle()
    await until(lambda: it.counts() == [2])
    task.cancel()


@warned
async def test_a_gateway_has_so_many_different_ones_at_a_time(it: Warned, calls: Calls) -> None:
    for number in range(BURST + 5):
        it.warnings.warn(KEY, "ConfigurationRejected", f"number {number}")
    it.warnings.warn(ObjectKey("edge", "other"), "ConfigurationRejected", "number 0")
    await it.idle()
    assert (len(calls.objects), it.warnings.dropped) == (BURST + 1, 5)
    it.now += REFILL_S
    for number in range(2):
        it.warnings.warn(KEY, "ConfigurationRejected", f"later {number}")
    await it.idle()
    assert (len(calls.objects), it.warnings.dropped) == (BURST + 2, 6)


@warned
async def test_what_is_known_has_a_bound(it: Warned, calls: Calls) -> None:
    for number in range(MAX_KNOWN + 50):
        it.warnings.warn(ObjectKey("edge", f"g{number}"), "ConfigurationRejected", "no")
    assert len(it.warnings._known) == len(it.warnings._allowances) == MAX_KNOWN
    await it.idle()
    # More than may wait.
    assert len(calls.objects) + it.warnings.dropped == MAX_KNOWN + 50
    assert it.warnings.dropped


@pytest.mark.parametrize("fails", [events.TRIES - 1, events.TRIES])
def test_a_failure_is_tried_again_but_not_for_ever(fails: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "RETRY_S", 0.0)

    @warned
    async def test(it: Warned, calls: Calls) -> None:
        calls.fails = fails
        it.warnings.warn(KEY, "DeploymentFailed", "no quorum")
        await until(lambda: calls.objects or it.warnings.dropped)
        assert it.counts() == ([1] if fails < events.TRIES else [])

    test()
