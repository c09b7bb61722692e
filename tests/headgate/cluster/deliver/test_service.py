"""The server of the delivery, asked by another implementation of gRPC's client."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from envoy.service.discovery.v3.discovery_pb2 import DeltaDiscoveryRequest, DeltaDiscoveryResponse
from tests.end_to_end.delivery_rig import KEY, LOCAL, TOKEN, Controller, route
from tests.end_to_end.running import PATIENCE

from headgate.cluster.deliver import service
from headgate.cluster.deliver.settings import ELSEWHERE
from headgate.cluster.deliver.wire import SERVICE, TYPE_URL
from headgate.cluster.snapshot import ObjectKey
from headgate.net.tasks import running

AUTHORIZED = (("authorization", f"Bearer {TOKEN}"),)


@pytest.fixture
def controller() -> Iterator[Controller]:
    found = Controller(LOCAL._replace(streams_per_s=0.0001))
    yield found
    found.close()


class Stream:
    """One call. Requests are sent as they come, responses are read one by one."""

    def __init__(self, controller: Controller, metadata: Any = AUTHORIZED, method: str = "DeltaAggregatedResources") -> None:
        self.channel = grpc.insecure_channel(f"127.0.0.1:{controller.settings.port}")
        self.requests: list[bytes] = []
        self.over = False
        call = self.channel.stream_stream(f"/{SERVICE}/{method}")
        self.call = call(self._sent(), metadata=metadata, timeout=PATIENCE)

    def _sent(self) -> Iterator[bytes]:
        while not self.over:
            while self.requests:
                yield self.requests.pop(0)
            time.sleep(0.005)

    def send(self, request: DeltaDiscoveryRequest) -> None:
        self.requests.append(request.SerializeToString())

    def begin(self, role: str = "shop~web", versions: dict[str, str] | None = None, **fields: Any) -> None:
        request = DeltaDiscoveryRequest(type_url=TYPE_URL, initial_resource_versions=versions or {})
        request.node.id = "headgate~1.2.3.4~web-0.shop~shop.svc.cluster.local"
        request.node.metadata.update({"role": role, "GATEWAY_NAME": "web"})
        for name, value in fields.items():
            setattr(request, name, value)
        self.send(request)

    def receive(self) -> DeltaDiscoveryResponse:
        return DeltaDiscoveryResponse.FromString(next(self.call))

    def failure(self) -> tuple[grpc.StatusCode, str]:
        with pytest.raises(grpc.RpcError) as caught:
            next(self.call)
        self.close()
        return caught.value.code(), caught.value.details()  # type: ignore[attr-defined]

    def close(self) -> None:
        self.over = True
        self.call.cancel()
        self.channel.close()


def test_only_the_leader_serves(controller: Controller) -> None:
    controller.update(route("a", "1"))
    stream = Stream(controller)
    stream.begin()
    first = stream.receive()
    stream.send(DeltaDiscoveryRequest(type_url=TYPE_URL, response_nonce=first.nonce))
    controller.wait(lambda it: it.generation == 1)
    controller.do(lambda: controller.service.lead(False))
    assert stream.failure() == (grpc.StatusCode.UNAVAILABLE, ELSEWHERE)
    refused = Stream(controller)
    refused.begin()
    assert refused.failure() == (grpc.StatusCode.UNAVAILABLE, ELSEWHERE)
    reviews = controller.api.reviews
    controller.update(route("a", "1"), route("b", "1"))
    controller.do(lambda: controller.service.lead(True))
    again = Stream(controller)
    again.begin(versions={one.name: one.version for one in first.resources})
    assert [one.name for one in again.receive().resources] == ["route/shop/b.00.http"]
    # Who is sent away costs the API server nothing.
    assert controller.api.reviews == reviews
    again.close()


def test_differences_go_to_another_client_too(controller: Controller) -> None:
    controller.update(route("a", "1"), route("b", "1"), generation=5)
    warnings: list[Any] = []
    controller.service.warned = lambda *found: warnings.append(found)
    stream = Stream(controller)
    stream.begin()
    first = stream.receive()
    assert [one.name for one in first.resources] == ["route/shop/a.00.http", "route/shop/b.00.http"]
    assert {one.resource.type_url for one in first.resources} == {TYPE_URL}
    stream.send(DeltaDiscoveryRequest(type_url=TYPE_URL, response_nonce=first.nonce))
    controller.wait(lambda it: it.generation == 5)
    controller.update(route("b", "2"), generation=6)
    second = stream.receive()
    assert [one.name for one in second.resources] == ["route/shop/b.00.http"]
    assert list(second.removed_resources) == ["route/shop/a.00.http"]
    refusal = DeltaDiscoveryRequest(type_url=TYPE_URL, response_nonce=second.nonce)
    refusal.error_detail.message = json.dumps([{"key": "route/shop/b.00.http", "error": "bad"}])
    stream.send(refusal)
    assert controller.wait(lambda it: it.rejection != "") == (5, "route/shop/b.00.http: bad")
    assert controller.service.counters["xds_rejects_total"] == 1
    assert warnings == [(KEY, "ConfigurationRejected", "rejected by a data plane: route/shop/b.00.http: bad")]
    versions = {one.name: one.version for one in second.resources}
    stream.close()
    # A role that is another object's name has nothing to do with it: names are compared as a whole.
    again = Stream(controller)
    again.begin(versions=versions)
    empty = again.receive()
    assert (list(empty.resources), list(empty.removed_resources)) == ([], [])
    again.close()


def test_the_whole_state_variant_is_not_served(controller: Controller) -> None:
    controller.update()
    code, details = Stream(controller, method="StreamAggregatedResources").failure()
    assert (code, details) == (grpc.StatusCode.UNIMPLEMENTED, "only DeltaAggregatedResources is served")


def test_nobody_is_served_before_everything_is_known(controller: Controller) -> None:
    assert Stream(controller).failure() == (grpc.StatusCode.UNAVAILABLE, "not synced yet")


@pytest.mark.parametrize(("role", "fields", "why"), [
    ("", {}, "node.metadata.role"),
    ("web", {}, "node.metadata.role"),
    ("shop~web", {"type_url": "type.googleapis.com/other"}, "type_url is not"),
])  # fmt: skip
def test_first_requests_that_say_too_little_are_refused(
    controller: Controller, role: str, fields: dict[str, Any], why: str
) -> None:
    controller.update()
    stream = Stream(controller)
    stream.begin(role, **fields)
    code, details = stream.failure()
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert why in details


def test_a_first_request_without_a_node_is_refused(controller: Controller) -> None:
    controller.update()
    stream = Stream(controller)
    stream.send(DeltaDiscoveryRequest(type_url=TYPE_URL))
    assert stream.failure() == (grpc.StatusCode.INVALID_ARGUMENT, "the first request has no node id")
    other = Stream(controller)
    other.requests.append(b"\xff\xff")
    assert other.failure()[0] is grpc.StatusCode.INVALID_ARGUMENT


def test_tokens_count_for_their_own_gateway_only(controller: Controller) -> None:
    controller.update()
    stream = Stream(controller)
    stream.begin("shop~other")
    assert stream.failure()[0] is grpc.StatusCode.PERMISSION_DENIED
    assert Stream(controller, metadata=()).failure()[0] is grpc.StatusCode.UNAUTHENTICATED
    controller.api.failing = True
    assert Stream(controller, metadata=(("authorization", "Bearer x"),)).failure()[0] is grpc.StatusCode.UNAVAILABLE
    assert controller.service.counters == {
        "xds_auth_rq_total": 3, "xds_auth_rq_success_total": 0, "xds_auth_rq_failure_total": 3, "xds_rejects_total": 0,
    }


def test_the_data_plane_of_a_gateway_with_a_long_name_is_known(controller: Controller) -> None:
    key = ObjectKey("shop", "a" * 64)
    controller.api.accounts["long"] = "system:serviceaccount:shop:" + "a" * 50 + "-ffe054fe7ae0"
    controller.update(route("a", "1"), key=key)
    for role in ("shop~" + "a" * 64, "shop~" + "a" * 50 + "-ffe054fe7ae0"):
        stream = Stream(controller, metadata=(("authorization", "Bearer long"),))
        stream.begin(role)
        assert len(stream.receive().resources) == 1
        stream.close()


def test_a_gateway_that_is_gone_ends_its_streams(
    controller: Controller, caplog: pytest.LogCaptureFixture
) -> None:
    controller.update(route("a", "1"))
    stream = Stream(controller)
    stream.begin()
    stream.receive()
    controller.do(lambda: controller.states.update({}, {}))
    assert stream.failure()[0] is grpc.StatusCode.NOT_FOUND
    again = Stream(controller)
    again.begin()
    assert again.failure()[0] is grpc.StatusCode.NOT_FOUND
    deadline = time.monotonic() + PATIENCE
    while "delivery answers" in controller.do(lambda: [task.get_name() for task in running()]):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    assert "task failed" not in caplog.text


def test_new_streams_are_limited(controller: Controller) -> None:
    controller.update()
    controller.do(lambda: setattr(controller.service, "_allowance", 1.0))
    assert Stream(controller, metadata=()).failure()[0] is grpc.StatusCode.UNAUTHENTICATED
    assert Stream(controller, metadata=()).failure()[0] is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_streams_need_no_token_where_that_is_switched_off() -> None:
    controller = Controller(LOCAL._replace(authenticate=False))
    try:
        controller.update(route("a", "1"))
        stream = Stream(controller, metadata=())
        stream.begin()
        assert len(stream.receive().resources) == 1
        assert controller.do(controller.service.streams) == 1
        stream.close()
        assert controller.api.reviews == 0
    finally:
        controller.close()


def test_rejections_are_told_as_people_read_them() -> None:
    assert service._rejection('[{"key": "a", "error": "x"}, {"key": "b", "warn": "y"}]') == "a: x; b: y"
    assert service._rejection("[1]") == "[1]"
    assert service._rejection("text") == "text"
    assert service._rejection("") == "rejected without a reason"
    assert len(service._rejection("x" * 9999)) == 1024
    assert ObjectKey("shop", "web") == KEY


def test_its_folder_is_gone_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as place:      # the path of a socket has 107 bytes
        monkeypatch.setenv("TMPDIR", place)
        controller = Controller(LOCAL)
        try:
            [name] = os.listdir(place)
            assert name.startswith("headgate-run-")
            assert sorted(os.listdir(f"{place}/{name}")) == ["plain", "secure"]
        finally:
            controller.close()
        assert os.listdir(place) == []
