"""What each Gateway is to have, what its data planes were sent, and what they said of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from envoy.service.discovery.v3.discovery_pb2 import DeltaDiscoveryResponse

from headgate.cluster.deliver.roles import LONGEST_NAME, account_name
from headgate.cluster.deliver.wire import TYPE_URL, SentFragment, resource_of
from headgate.cluster.snapshot import ObjectKey
from headgate.cluster.translate.fragments import Fragment
from headgate.cluster.translate.gateway import Acknowledged

MAX_REJECTION: Final = 1024
# Differences that are kept in their encoded form, for all data planes that need the same.
MAX_KEPT: Final = 4
Resources = Mapping[str, SentFragment]


class PreparedState(NamedTuple):
    """A state that may become the newest one. `whole`: what it was made of; `changed`: whether its resources differ
    from those before."""

    whole: tuple[Fragment, ...]
    fragments: dict[str, Fragment]
    resources: Resources
    changed: bool


class GatewayState:
    """The newest state of one Gateway. `number` counts states; `generation` is that of the Gateway's object."""

    def __init__(self, key: ObjectKey) -> None:
        self.key = key
        self.number = 0
        self.generation = -1
        self.resources: Resources = {}
        self.streams: set[StreamState] = set()
        self._whole: tuple[Fragment, ...] = ()
        self._fragments: dict[str, Fragment] = {}
        # By the number that a data plane has.
        self._kept: dict[int, bytes] = {}

    def prepared(self, fragments: tuple[Fragment, ...]) -> PreparedState:
        """Return another state, encoded where it differs from the newest one. Changes nothing."""
        if fragments is self._whole:
            # As of most Gateways when one of them has changed.
            return PreparedState(fragments, self._fragments, self.resources, False)
        before, known = self.resources, self._fragments
        found: dict[str, SentFragment] = {}
        changed = False
        for one in fragments:
            old = before.get(one.key)
            if old is not None and (known[one.key] is one or known[one.key] == one):
                found[one.key] = old
                continue
            new = resource_of(one)
            changed = changed or new != old
            found[one.key] = new
        changed = changed or len(found) != len(before)
        return PreparedState(fragments, {one.key: one for one in fragments}, found, changed)

    def update(self, state: PreparedState, generation: int) -> bool:
        """Take another state; tell whether resources differ."""
        self._whole, self._fragments = state.whole, state.fragments
        self.generation = generation
        if not state.changed and self.number:
            return False
        self.resources = state.resources
        self.number += 1
        self._kept.clear()
        return True

    def response(self, stream: StreamState) -> bytes:
        """Return what brings a data plane to the newest state, encoded. Its nonce is the number of the state."""
        shared = stream.held is stream.sent
        kept = self._kept.get(stream.number) if shared else None
        if kept is None:
            kept = difference(stream.held, self.resources, self.number)
            if shared:
                while len(self._kept) >= MAX_KEPT:
                    del self._kept[next(iter(self._kept))]
                self._kept[stream.number] = kept
        return kept

    def acknowledged(self) -> Acknowledged:
        """Return what all data planes have taken. One that has answered nothing yet does not count: it is not ready,
        and gets no traffic. Without any, those count that have just left, and may only connect again.
        """
        known = [one for one in self.streams if one.answered]
        answered = [one for one in known if not one.left] or known
        if not answered:
            return Acknowledged()
        generation = min(self.generation if one.taken == self.number else one.generation for one in answered)
        return Acknowledged(generation, next((one.rejection for one in answered if one.rejection), ""))


class StreamState:
    """One data plane. `held`: the resources that it has, by name; `number`: of the state that it was sent last."""

    def __init__(self, gateway: GatewayState, versions: Mapping[str, str], peer: str) -> None:
        self.gateway = gateway
        self.peer = peer
        self.held: Resources = {name: SentFragment(version, b"") for name, version in versions.items()}
        # The state that it was sent last as a whole: shared with other streams, unlike what it had at its beginning.
        self.sent: Resources | None = None if versions else self.held
        self.number = 0
        self.waits_for_answer = False
        self.answered = self.left = False
        self.taken = -1
        self.generation = -1
        self.rejection = ""
        self._generation_sent = -1

    def next(self) -> bytes | None:
        """Return the next message, None while there is none to send. Nothing is queued: until a data plane has
        answered, states that come are left out but for the newest.
        """
        state = self.gateway
        if self.waits_for_answer or self.number == state.number:
            return None
        message = state.response(self)
        self.held = self.sent = state.resources
        self.number, self._generation_sent = state.number, state.generation
        self.waits_for_answer = True
        return message

    def answer(self, nonce: str, rejection: str) -> bool:
        """Take what a data plane says of a state: nothing against it, or why it has not taken all of it, and then
        again when it has taken more. Tell whether it was about the one that was sent last.
        """
        if nonce != str(self.number) or not (self.waits_for_answer or self.rejection):
            return False
        self.waits_for_answer, self.answered = False, True
        self.rejection = rejection[:MAX_REJECTION]
        if not rejection:
            self.taken, self.generation = self.number, self._generation_sent
        return True


def difference(held: Resources, wanted: Resources, number: int) -> bytes:
    """Return the response that leads from what a data plane has to what it should have."""
    response = DeltaDiscoveryResponse(type_url=TYPE_URL, nonce=str(number), system_version_info=str(number))
    for name, resource in wanted.items():
        old = held.get(name)
        if old is None or old.version != resource.version:
            one = response.resources.add(name=name, version=resource.version)
            one.resource.type_url = TYPE_URL
            one.resource.value = resource.payload
    response.removed_resources.extend(name for name in held if name not in wanted)
    encoded: bytes = response.SerializeToString()
    return encoded


class GatewayStates:
    """The states of all Gateways. `changed` is called when acknowledged() may say something else."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._states: dict[ObjectKey, GatewayState] = {}
        self._wakers: dict[StreamState, Callable[[], None]] = {}
        self._said: dict[ObjectKey, Acknowledged] = {}
        # Whether there was an update, so that what is missing is known to be gone.
        self.synced = False

    def prepared(self, gateways: Mapping[ObjectKey, tuple[Fragment, ...]]) -> dict[ObjectKey, PreparedState]:
        """Return the newest state of all Gateways for update(). It encodes fragments that are new objects or unequal to
        those before: 10,000 new ones take 40 ms, so it may be called in a thread, as long as nobody updates meanwhile.
        """
        states = self._states
        return {key: (states.get(key) or GatewayState(key)).prepared(found) for key, found in gateways.items()}

    def update(
        self,
        gateways: Mapping[ObjectKey, tuple[Fragment, ...]],
        generations: Mapping[ObjectKey, int],
        prepared: Mapping[ObjectKey, PreparedState] | None = None,
    ) -> None:
        """Take the newest state of all Gateways, and send the differences. `prepared`: what prepared() has returned."""
        ready = self.prepared(gateways) if prepared is None else prepared
        self.synced = True
        for key in self._states.keys() - gateways.keys():
            state = self._states.pop(key)
            self._wake(state)
        for key in gateways:
            state = self._states.setdefault(key, GatewayState(key))
            if state.update(ready[key], generations.get(key, -1)):
                self._wake(state)
        self._tell()

    def acknowledged(self) -> dict[ObjectKey, Acknowledged]:
        """Return what the data planes of each Gateway have said."""
        return {key: state.acknowledged() for key, state in self._states.items()}

    @property
    def connected(self) -> int:
        """The number of data planes."""
        return len(self._wakers)

    def serving(self, role: ObjectKey) -> GatewayState | None:
        """Return the state for a role, whose name is that of a Gateway or of the objects that run it."""
        found = self._states.get(role)
        if found is not None or len(role.name) > LONGEST_NAME:
            return found
        names = (key for key in self._states if key.namespace == role.namespace and len(key.name) > LONGEST_NAME)
        return next((self._states[key] for key in names if account_name(key.name) == role.name), None)

    def is_current(self, state: GatewayState) -> bool:
        """Tell whether the Gateway of a state is still there."""
        return any(state is one for one in self._states.values())

    def join(self, stream: StreamState, wake: Callable[[], None]) -> None:
        """Add a data plane. `wake` is called when it may have to be sent something, or its Gateway is gone."""
        self._wakers[stream] = wake
        stream.gateway.streams.add(stream)

    def wake_all(self) -> None:
        """Wake all data planes: something has changed for all of them."""
        for wake in self._wakers.values():
            wake()

    def leave(self, stream: StreamState) -> None:
        """Note that a data plane has left. What it has taken may count until forget()."""
        self._wakers.pop(stream, None)
        stream.left = True
        same = {one for one in stream.gateway.streams if one.left and one.peer == stream.peer and one is not stream}
        stream.gateway.streams -= same
        self._tell()

    def forget(self, stream: StreamState) -> None:
        """Forget a data plane that has left."""
        stream.gateway.streams.discard(stream)
        self._tell()

    def answered(self, stream: StreamState, nonce: str, rejection: str) -> bool:
        """Take the answer of a data plane; tell whether it was about the last state that it was sent."""
        found = stream.answer(nonce, rejection)
        if found:
            self._wakers[stream]()
            self._tell()
        return found

    def shown(self) -> list[dict[str, object]]:
        """Return all Gateways with their data planes, for a snapshot that operators read."""
        return [
            {
                "gateway": str(key),
                "state": state.number,
                "generation": state.generation,
                "resources": {name: one.version for name, one in state.resources.items()},
                "dataPlanes": [
                    {"peer": one.peer, "sent": one.number, "taken": one.taken, "rejection": one.rejection}
                    for one in state.streams
                ],
            }
            for key, state in self._states.items()
        ]

    def _wake(self, state: GatewayState) -> None:
        for stream in state.streams:
            if not stream.left:
                self._wakers[stream]()

    def _tell(self) -> None:
        said = self.acknowledged()
        if said != self._said:
            self._said = said
            self._changed()
