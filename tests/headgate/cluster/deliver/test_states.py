"""Differences, versions, and what data planes say of them."""

from __future__ import annotations

import random

import effort
from envoy.service.discovery.v3.discovery_pb2 import DeltaDiscoveryResponse
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.cluster.deliver.states import GatewayStates, StreamState
from headgate.cluster.deliver.wire import TYPE_URL, part_of
from headgate.cluster.snapshot import ObjectKey
from headgate.cluster.translate.fragments import Fragment
from headgate.cluster.translate.gateway import Acknowledged

KEY, OTHER = ObjectKey("shop", "web"), ObjectKey("shop", "other")
LONG = ObjectKey("shop", "a" * 70)


def fragment(name: str, value: int = 0) -> Fragment:
    return Fragment(key=name, place="routes", value={"v": value})


class Plane:
    """A data plane of the protocol, without a network."""

    def __init__(self, states: GatewayStates, versions: dict[str, str] | None = None, key: ObjectKey = KEY) -> None:
        self.states = states
        state = states.serving(key)
        assert state is not None
        self.stream = StreamState(state, versions or {}, "peer")
        self.versions = dict(versions or {})
        self.woken = 0
        states.join(self.stream, self.wake)

    def wake(self) -> None:
        self.woken += 1

    def receive(self) -> DeltaDiscoveryResponse | None:
        encoded = self.stream.next()
        if encoded is None:
            return None
        response = DeltaDiscoveryResponse.FromString(encoded)
        for name in response.removed_resources:
            del self.versions[name]
        for one in response.resources:
            self.versions[one.name] = one.version
        self.nonce = response.nonce
        return response

    def answer(self, rejection: str = "") -> bool:
        return self.states.answered(self.stream, self.nonce, rejection)


def states_with(*fragments: Fragment, generation: int = 1) -> tuple[GatewayStates, list[int]]:
    calls: list[int] = []
    states = GatewayStates(lambda: calls.append(1))
    states.update({KEY: fragments}, {KEY: generation})
    return states, calls


def test_a_new_data_plane_gets_all_and_then_what_changes() -> None:
    states, _ = states_with(fragment("a"), fragment("b"))
    plane = Plane(states)
    first = plane.receive()
    assert first is not None
    assert first.type_url == TYPE_URL
    assert {one.name: part_of(one.resource.value).value for one in first.resources} == {"a": '{"v":0}', "b": '{"v":0}'}
    assert plane.receive() is None
    assert plane.answer()
    assert plane.receive() is None
    states.update({KEY: (fragment("a"), fragment("c"))}, {KEY: 2})
    second = plane.receive()
    assert second is not None
    assert [one.name for one in second.resources] == ["c"]
    assert list(second.removed_resources) == ["b"]


def test_a_data_plane_may_take_later_what_it_has_rejected() -> None:
    states, _ = states_with(fragment("a"), generation=3)
    plane = Plane(states)
    plane.receive()
    assert plane.answer("its port is taken")
    assert states.acknowledged() == {KEY: Acknowledged(-1, "its port is taken")}
    assert plane.answer("")
    assert states.acknowledged() == {KEY: Acknowledged(3)}
    assert plane.receive() is None
    # Not of a state before the one that was sent last.
    states.update({KEY: (fragment("b"),)}, {KEY: 4})
    old = plane.nonce
    plane.receive()
    plane.answer("no")
    plane.nonce = old
    assert not plane.answer("")
    assert states.acknowledged() == {KEY: Acknowledged(3, "no")}


def test_a_state_that_was_prepared_is_the_same() -> None:
    states, _ = states_with(fragment("a"), fragment("b"))
    plane = Plane(states)
    plane.receive()
    plane.answer()
    wanted = {KEY: (fragment("a"), fragment("b", 2)), OTHER: (fragment("c"),)}
    ready = states.prepared(wanted)
    assert plane.receive() is None
    states.update(wanted, {KEY: 2, OTHER: 1}, ready)
    found = plane.receive()
    assert found is not None
    assert [one.name for one in found.resources] == ["b"]
    assert Plane(states, key=OTHER).receive() is not None


def test_a_gateway_without_a_change_is_not_looked_through() -> None:
    states, _ = states_with()
    same, other = (fragment("a"), fragment("b")), (fragment("c"),)
    states.update({KEY: same, OTHER: other}, {KEY: 1, OTHER: 1})
    state = states.serving(KEY)
    assert state is not None
    before = state.resources
    ready = states.prepared({KEY: same, OTHER: (fragment("d"),)})
    assert ready[KEY].resources is before
    assert (ready[KEY].changed, ready[OTHER].changed) == (False, True)
    states.update({KEY: same, OTHER: (fragment("d"),)}, {KEY: 2, OTHER: 1}, ready)
    assert (state.number, state.generation, state.resources) == (2, 2, before)
    # What is equal, and not the same, is no change either.
    assert not states.prepared({KEY: (fragment("a"), fragment("b")), OTHER: other})[KEY].changed
    states.update({KEY: (fragment("b"),), OTHER: other}, {KEY: 2, OTHER: 1})
    assert list(state.resources) == ["b"]


def test_one_that_has_everything_gets_an_empty_difference() -> None:
    states, _ = states_with(fragment("a"), fragment("b"))
    plane = Plane(states)
    plane.receive()
    # The versions of another replica, or of this one before its restart, are the same.
    again, _ = states_with(fragment("b"), fragment("a"))
    same = Plane(again, plane.versions).receive()
    assert same is not None
    assert not same.resources
    assert not same.removed_resources
    other = Plane(again, {"a": plane.versions["a"], "gone": "1", "b": "old"}).receive()
    assert other is not None
    assert [one.name for one in other.resources] == ["b"]
    assert list(other.removed_resources) == ["gone"]


def test_a_slow_data_plane_gets_the_newest_state_only() -> None:
    states, _ = states_with(fragment("a"))
    plane = Plane(states)
    plane.receive()
    for value in range(1, 50):
        states.update({KEY: (fragment("a", value),)}, {KEY: value})
        assert plane.receive() is None
    assert plane.answer()
    newest = plane.receive()
    assert newest is not None
    assert [part_of(one.resource.value).value for one in newest.resources] == ['{"v":49}']


def test_an_equal_state_is_sent_to_nobody() -> None:
    states, _ = states_with(fragment("a"))
    plane = Plane(states)
    plane.receive()
    plane.answer()
    woken = plane.woken
    states.update({KEY: (fragment("a"),)}, {KEY: 9})
    assert plane.woken == woken
    assert plane.receive() is None
    assert states.acknowledged() == {KEY: Acknowledged(9)}


def test_what_all_data_planes_have_taken_is_acknowledged() -> None:
    states, calls = states_with(fragment("a"), generation=3)
    assert states.acknowledged() == {KEY: Acknowledged(-1)}
    one, two = Plane(states), Plane(states)
    one.receive()
    one.answer()
    # The other one has answered nothing yet, and gets no traffic.
    assert states.acknowledged() == {KEY: Acknowledged(3)}
    two.receive()
    two.answer()
    states.update({KEY: (fragment("b"),)}, {KEY: 4})
    one.receive()
    one.answer()
    assert states.acknowledged() == {KEY: Acknowledged(3)}
    before = len(calls)
    two.receive()
    two.answer()
    assert states.acknowledged() == {KEY: Acknowledged(4)}
    assert len(calls) == before + 1
    states.leave(one.stream)
    states.leave(two.stream)
    # Either may only connect again; then what it has counts at once.
    assert states.acknowledged() == {KEY: Acknowledged(4)}
    states.update({KEY: (fragment("c"),)}, {KEY: 5})
    assert states.acknowledged() == {KEY: Acknowledged(4)}
    three = Plane(states)
    three.receive()
    three.answer()
    assert states.acknowledged() == {KEY: Acknowledged(5)}
    for plane in (one, two, three):
        states.leave(plane.stream)
        states.forget(plane.stream)
    assert states.acknowledged() == {KEY: Acknowledged(-1)}


def test_a_rejection_stands_until_a_later_state_is_taken() -> None:
    states, _ = states_with(fragment("a"), generation=1)
    plane = Plane(states)
    plane.receive()
    plane.answer()
    states.update({KEY: (fragment("a", 2),)}, {KEY: 2})
    plane.receive()
    plane.answer("a: bad" + "x" * 5000)
    [found] = states.acknowledged().values()
    assert found.generation == 1
    assert found.rejection.startswith("a: badxxx")
    assert len(found.rejection) == 1024
    assert plane.receive() is None
    states.update({KEY: (fragment("a", 3),)}, {KEY: 3})
    plane.receive()
    plane.answer()
    assert states.acknowledged() == {KEY: Acknowledged(3)}


def test_answers_to_anything_but_the_last_state_do_not_count() -> None:
    states, _ = states_with(fragment("a"))
    plane = Plane(states)
    plane.receive()
    assert not states.answered(plane.stream, "77", "")
    assert plane.answer()
    assert not plane.answer("late")
    assert states.acknowledged() == {KEY: Acknowledged(1)}


def test_each_gateway_has_a_state_of_its_own() -> None:
    states = GatewayStates(lambda: None)
    assert not states.synced
    states.update({KEY: (fragment("a"),), OTHER: (fragment("b"),), LONG: ()}, {})
    assert states.synced
    first = Plane(states, key=OTHER).receive()
    assert first is not None
    assert [one.name for one in first.resources] == ["b"]
    long = states.serving(LONG)
    assert long is not None
    assert states.serving(ObjectKey("shop", "a" * 50 + "-6cd5b6e51936")) is None
    from headgate.cluster.deliver.roles import account_name

    assert states.serving(ObjectKey("shop", account_name(LONG.name))) is long
    assert states.serving(ObjectKey("other", account_name(LONG.name))) is None


def test_the_data_planes_of_a_gateway_that_is_gone_are_woken() -> None:
    states, _ = states_with(fragment("a"))
    plane = Plane(states)
    states.update({}, {})
    assert plane.woken == 1
    assert not states.is_current(plane.stream.gateway)
    assert states.connected == 1
    states.leave(plane.stream)
    assert states.connected == 0


def test_operators_see_states_and_data_planes() -> None:
    states, _ = states_with(fragment("a"))
    plane = Plane(states)
    plane.receive()
    plane.answer("no")
    [found] = states.shown()
    assert found["gateway"] == "shop/web"
    assert found["dataPlanes"] == [{"peer": "peer", "sent": 1, "taken": -1, "rejection": "no"}]


@settings(max_examples=effort.examples(200), deadline=None)
@given(st.integers(0, 2**32))
def test_any_sequence_of_updates_answers_and_losses_leads_to_the_newest_state(seed: int) -> None:
    chance = random.Random(seed)
    wanted: dict[str, int] = {}
    states = GatewayStates(lambda: None)
    states.update({KEY: ()}, {KEY: 0})
    planes = [Plane(states) for _ in range(3)]
    for _ in range(60):
        number = chance.randrange(3)
        match chance.randrange(6):
            case 0 | 1:
                wanted[f"r{chance.randrange(6)}"] = chance.randrange(4)
                if chance.random() < 0.3:
                    wanted.pop(f"r{chance.randrange(6)}", None)
                states.update({KEY: tuple(fragment(*one) for one in wanted.items())}, {KEY: chance.randrange(9)})
            case 2:
                planes[number].receive()
            case 3:
                if planes[number].stream.waits_for_answer:
                    planes[number].answer("" if chance.random() < 0.7 else "no")
            case 4:  # the connection breaks, maybe with a response on its way that is lost
                versions = planes[number].versions.copy()
                if chance.random() < 0.5:
                    planes[number].stream.next()
                states.leave(planes[number].stream)
                planes[number] = Plane(states, versions)
            case 5:  # another replica of the controller
                states = GatewayStates(lambda: None)
                states.update({KEY: tuple(fragment(*one) for one in wanted.items())}, {KEY: 1})
                planes = [Plane(states, one.versions) for one in planes]
    whole = Plane(states)
    whole.receive()
    for plane in planes:
        if plane.stream.waits_for_answer:
            plane.answer()
        while plane.receive() is not None:
            plane.answer()
        assert plane.versions == whole.versions
