"""The data plane's end, without a network."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from unittest.mock import Mock

import pytest
from envoy.service.discovery.v3.discovery_pb2 import DeltaDiscoveryRequest, DeltaDiscoveryResponse
from waiting import until

from headgate.cluster.deliver import data_plane
from headgate.cluster.deliver.data_plane import DeliveryClient, DeliveryEnvironment, answer, decoded
from headgate.cluster.deliver.states import difference
from headgate.cluster.deliver.wire import TYPE_URL, resource_of
from headgate.cluster.translate.fragments import Fragment
from headgate.config.delivered import DeliveredParts
from headgate.net.tasks import spawn
from headgate.server.failures import ReloadFailed

ENVIRONMENT = {"XDS_ADDRESS": "https://xds.test", "GATEWAY": "web", "NAMESPACE": "shop"}


def test_the_environment_has_defaults() -> None:
    found = DeliveryEnvironment.read(ENVIRONMENT)
    assert (found.host, found.port, found.secure, found.role) == ("xds.test", 9978, True, "shop~web")
    assert found.token_file == "/var/run/secrets/xds-tokens/xds-token"
    assert found.state_folder == ""


def test_the_environment_may_say_more() -> None:
    found = DeliveryEnvironment.read({**ENVIRONMENT, "XDS_ADDRESS": "http://[::1]:99/", "STATE_DIRECTORY": "/a:/b"})
    assert (found.host, found.port, found.secure, found.state_folder) == ("::1", 99, False, "/a")


@pytest.mark.parametrize("name_and_value", [
    ("XDS_ADDRESS", "xds.test:1"), ("XDS_ADDRESS", "http://"), ("XDS_ADDRESS", "http://a/b"), ("XDS_ADDRESS", "http://a:b"),
    ("GATEWAY", ""), ("NAMESPACE", ""), ("BIND_ADDRESS", "localhost"),
])  # fmt: skip
def test_what_is_wrong_is_told_with_its_name(name_and_value: tuple[str, str]) -> None:
    name, value = name_and_value
    with pytest.raises(ValueError, match=name if value != "http://a:b" else "Port"):
        DeliveryEnvironment.read({**ENVIRONMENT, name: value})


def test_a_response_is_read_with_what_is_bad_in_it() -> None:
    good = resource_of(Fragment(key="a", place="routes", value={"x": 1}))
    response = DeltaDiscoveryResponse.FromString(difference({"gone": good}, {"a": good}, 7))
    other = response.resources.add(name="b", version="2")
    other.resource.type_url = "type.googleapis.com/other"
    third = response.resources.add(name="c", version="3")
    third.resource.type_url, third.resource.value = TYPE_URL, b"\xff"
    found = decoded(response.SerializeToString())
    assert found.nonce == "7"
    assert list(found.changed) == ["a"]
    assert found.removed == ["gone"]
    assert found.versions == {"a": good.version, "b": "2", "c": "3"}
    assert found.bad["b"] == "its type is type.googleapis.com/other"
    assert found.bad["c"].startswith("not a fragment")
    with pytest.raises(ValueError, match="no response"):
        decoded(b"\xff\xff")


def test_an_answer_accepts_or_says_what_is_refused() -> None:
    accepted = DeltaDiscoveryRequest.FromString(answer("7", {}))
    assert (accepted.response_nonce, accepted.HasField("error_detail")) == ("7", False)
    refused = DeltaDiscoveryRequest.FromString(answer("8", {f"k{number}": "no" for number in range(1000)}))
    assert refused.error_detail.code == 3
    entries = json.loads(refused.error_detail.message)
    assert entries[0] == {"key": "k0", "error": "no"}
    assert len(entries) == 100


def test_pauses_grow_but_little_where_another_replica_leads() -> None:
    client = DeliveryClient(DeliveryEnvironment.read(ENVIRONMENT), lambda: 0.5)
    assert [client._next_pause(False) for _ in range(12)][-2:] == [10.24, 15.0]
    assert [client._next_pause(True) for _ in range(2)] == [1.0, 1.0]
    fresh = DeliveryClient(DeliveryEnvironment.read(ENVIRONMENT), lambda: 0.5)
    assert [fresh._next_pause(True) for _ in range(9)][-3:] == [0.64, 1.0, 1.0]


class SilentStream:
    """A stream whose other end says nothing."""

    def __aiter__(self) -> SilentStream:
        return self

    async def __anext__(self) -> bytes:
        await asyncio.get_running_loop().create_future()
        raise AssertionError


def test_a_stream_without_a_first_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_plane, "FIRST_ANSWER_S", 0.01)
    client = DeliveryClient(DeliveryEnvironment.read(ENVIRONMENT))
    nothing: Any = None
    with pytest.raises(ValueError, match="the controller sent nothing"):
        asyncio.run(client._followed(SilentStream(), nothing, nothing, nothing))  # type: ignore[arg-type]


class OneChange:
    """A stream that brings one change, and then says nothing."""

    def __init__(self, message: bytes) -> None:
        self._left = [message]
        self.sent: list[bytes] = []

    def __aiter__(self) -> OneChange:
        return self

    async def __anext__(self) -> bytes:
        if not self._left:
            await asyncio.get_running_loop().create_future()
        return self._left.pop()

    async def send(self, message: bytes) -> None:
        self.sent.append(message)


def test_a_change_that_was_not_taken_at_all_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_plane, "LEAST_RETRY_S", 0.001)
    failures = [ReloadFailed("the change could not be applied")] * 3

    async def take(_changed: Any, _removed: Any) -> dict[str, str]:
        if failures:
            raise failures.pop()
        return {}

    async def run() -> None:
        client = DeliveryClient(DeliveryEnvironment.read(ENVIRONMENT), lambda: 0.5)
        stream = OneChange(DeltaDiscoveryResponse(type_url=TYPE_URL, nonce="1").SerializeToString())
        meter: Any = Mock()
        follows = spawn("stream", client._followed(stream, DeliveredParts(), take, meter))  # type: ignore[arg-type]
        await until(lambda: len(stream.sent) == 2)
        assert stream.sent == [answer("1", {"": "the change could not be applied"}), answer("1", {})]
        follows.cancel()
        await asyncio.gather(follows, return_exceptions=True)

    asyncio.run(run())
