"""Applies objects of Gateways to the API server, and deletes those that are not wanted any more."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from headgate.cluster.calls import ApiCalls, ApiError
from headgate.cluster.deploy import owned_kinds
from headgate.cluster.deploy.naming import is_ours, short_name
from headgate.cluster.deploy.objects import AUTHORITY_SUFFIX, SESSION_KEY_SUFFIX, new_session_key, session_key_secret
from headgate.cluster.deploy.owned_kinds import OWNED, PRUNED, OwnedKind, content_digest, path_of
from headgate.cluster.deploy.pod import SESSION_KEY_FIELD
from headgate.cluster.deploy.settings import DeploySettings
from headgate.cluster.errors import ClusterError
from headgate.cluster.snapshot import ObjectKey, Snapshot, key_of

Json = dict[str, Any]
# How often what somebody else has changed is changed back at once, in how many seconds; then the queue makes pauses.
MOST_REVERTS: Final = 5
REVERTS_S: Final = 60.0
# Seconds in which what was applied comes back from the watch.
SETTLE_S: Final = 5.0
_SESSION_KEY: Final = re.compile(r"[0-9a-fA-F]{64}")


class NotOurs(ClusterError):
    """An object of the name that a Gateway needs is there and belongs to somebody else."""


class Contested(ClusterError):
    """Somebody else keeps changing an object of a Gateway."""


class LeadLost(ClusterError):
    """Another replica leads: it goes on with the work."""


@dataclass(slots=True)
class _Left:
    """An object as the server had it after it was applied, and `when`. `seen`: a snapshot has shown it so since."""

    mark: Json
    when: float
    seen: bool = False


@dataclass(slots=True)
class _Known:
    """What was applied for a Gateway: by path a digest of it, and what the server made of it. `unsettled`: see Applier.
    `absent`: kinds of which it has no object. `foreign`: objects of others that are used as they are.
    `reverts`: when changes of others were undone.
    `session_key` and `service`: as they were read last."""

    digests: dict[str, str] = field(default_factory=dict)
    left: dict[str, _Left] = field(default_factory=dict)
    absent: set[OwnedKind] = field(default_factory=set)
    foreign: set[str] = field(default_factory=set)
    reverts: deque[float] = field(default_factory=lambda: deque(maxlen=MOST_REVERTS))
    unsettled: bool = False
    session_key: str = ""
    service: Json | None = None


class Applier:
    """`may_write`: asked before every change, so that a replica that has lost the lead stops between two of them.
    `clock`: seconds."""

    def __init__(
        self, calls: ApiCalls, settings: DeploySettings, may_write: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._calls = calls
        self._settings = settings
        self._may_write = may_write
        self._clock = clock
        self._known: dict[ObjectKey, _Known] = {}

    def forget(self, key: ObjectKey) -> None:
        self._known.pop(key, None)

    def forget_all(self) -> None:
        self._known.clear()

    async def apply(self, snapshot: Snapshot, gateway: Json, documents: Iterable[Json]) -> Json | None:
        """Apply what differs from what is there; return the Service as far as it is known.

        Raises ApiError and ClusterError.
        """
        key = key_of(gateway)
        known = self._known.setdefault(key, _Known())
        read = snapshot.find(owned_kinds.SERVICE.group_kind, key.namespace, short_name(key.name))
        known.service = read or known.service
        known.unsettled = False
        for one in documents:
            path, digest = path_of(one), _digest(one)
            changed = path in known.left and self._changed(snapshot, one, known)
            if known.digests.get(path) == digest and not changed:
                continue
            if changed:
                self._revert(known, one)
            # One that is another object now may be somebody else's.
            is_new = path not in known.digests or changed
            if path in known.foreign or (is_new and not await self._claim(path, one, gateway)):
                known.foreign.add(path)
                continue
            self._check_lead()
            answer = await self._calls.apply(path, one, self._settings.controller)
            known.digests[path], known.left[path] = digest, _Left(mark(answer), self._clock())
            known.absent.discard(owned_kinds.kind_of(one))
            if one["kind"] == owned_kinds.SERVICE.kind:
                known.service = answer
        return known.service

    def unsettled(self, key: ObjectKey) -> bool:
        """Tell whether the last snapshot may have been older than what was applied: then SETTLE_S later it is looked
        at again."""
        known = self._known.get(key)
        return known is not None and known.unsettled

    def _changed(self, snapshot: Snapshot, document: Json, known: _Known) -> bool:
        """Tell whether somebody else has changed an object since it was applied, as far as a snapshot shows."""
        there = snapshot.kinds.get(owned_kinds.kind_of(document).group_kind)
        if there is None:
            return False  # this kind is not read
        left = known.left[path_of(document)]
        found = there.get(key_of(document))
        if found is not None and _as_left(found, document, left.mark):
            left.seen = True
            return False
        if left.seen or self._clock() - left.when >= SETTLE_S:
            return True
        known.unsettled = True
        return False

    def _revert(self, known: _Known, document: Json) -> None:
        """Note that a change is undone. Raises Contested if that has happened too often."""
        now = self._clock()
        if len(known.reverts) == MOST_REVERTS and now - known.reverts[0] < REVERTS_S:
            raise Contested(f"{document['kind']} {key_of(document)} is changed by somebody else again and again")
        known.reverts.append(now)

    async def prune(self, gateway: Json, documents: Iterable[Json]) -> None:
        """Delete workloads, budgets and autoscalers of a Gateway that are not among its objects. Raises ApiError."""
        key = key_of(gateway)
        known = self._known.setdefault(key, _Known())
        wanted = {owned_kinds.kind_of(one) for one in documents}
        for kind in PRUNED:
            if kind in wanted or kind in known.absent:
                continue
            path = kind.path(key.namespace, short_name(key.name))
            found = await self._found(path)
            if found is not None and is_ours(found, gateway):
                self._check_lead()
                await self._deleted(path)
            known.absent.add(kind)
            known.digests.pop(path, None)

    async def session_key(self, gateway: Json) -> str:
        """Return the session key of a Gateway, which is made if there is none.

        Raises ApiError, and ClusterError if there is something else in its place.
        """
        key = key_of(gateway)
        known = self._known.setdefault(key, _Known())
        name = short_name(key.name) + SESSION_KEY_SUFFIX
        path = owned_kinds.SECRET.path(key.namespace, name)
        found = await self._found(path)
        if found is None:
            self._check_lead()
            try:
                secret = session_key_secret(gateway, self._settings, known.session_key or new_session_key())
                found = await self._calls.create(owned_kinds.SECRET.folder(key.namespace), secret)
            except ApiError as error:
                if error.reason != "AlreadyExists":
                    raise
                found = await self._calls.get(path)
        known.session_key = _read_key(found, f"Secret {key.namespace}/{name}")
        return known.session_key

    async def _claim(self, path: str, document: Json, gateway: Json) -> bool:
        """Tell whether an object is ours to make. A Secret of somebody else, whose key has been read, is used as it is;
        raises NotOurs for all else that somebody else has by this name."""
        found = await self._found(path)
        if found is not None and not is_ours(found, gateway):
            if document["kind"] == owned_kinds.SECRET.kind:
                return False
            about = key_of(document)
            raise NotOurs(f"{document['kind']} {about} is there already and does not belong to this Gateway")
        return True

    async def _found(self, path: str) -> Json | None:
        try:
            return await self._calls.get(path)
        except ApiError as error:
            if error.status != 404:
                raise
        return None

    async def _deleted(self, path: str) -> None:
        try:
            await self._calls.delete(path)
        except ApiError as error:
            if error.status != 404:
                raise

    def _check_lead(self) -> None:
        if not self._may_write():
            raise LeadLost("this replica does not lead any more")


def _read_key(secret: Json, where: str) -> str:
    text = (secret.get("data") or {}).get(SESSION_KEY_FIELD) or ""
    try:
        key = base64.b64decode(text, validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        key = ""
    if not _SESSION_KEY.fullmatch(key):
        # What is there may be a secret: it is not shown.
        raise ClusterError(f"{where}: {SESSION_KEY_FIELD} must have 64 hexadecimal digits; delete it to get a new one")
    return key


def mark(document: Json) -> Json:
    """Return what tells an object from what somebody else made of it, beside its metadata. It is the same for what is
    kept of an object (watch/kinds)."""
    about = document["metadata"]
    number = about.get("generation")
    content = None if number is not None else about.get("content") or content_digest(document)
    return {"uid": about.get("uid"), "generation": number, "content": content}


def live(snapshot: Snapshot, namespace: str, name: str) -> list[tuple[str, Any]]:
    """Return what tells that one of a Gateway's objects has changed since. Costs a few us: nothing is hashed."""
    found: list[tuple[str, Any]] = []
    for kind, suffix in _PARTS:
        if (known := snapshot.kinds.get(kind)) is not None:
            one = known.get(ObjectKey(namespace, name + suffix))
            found.append((kind.kind + suffix, one and _version(one)))
    return found


def object_keys(gateway: ObjectKey) -> list[ObjectKey]:
    """Return what the objects of a Gateway are called, of whatever kind: what live() looks at."""
    name = short_name(gateway.name)
    return [ObjectKey(gateway.namespace, name + suffix) for suffix in dict.fromkeys(suffix for _, suffix in _PARTS)]


_SUFFIXES: Final = {owned_kinds.SECRET: (SESSION_KEY_SUFFIX,), owned_kinds.CONFIG_MAP: ("", AUTHORITY_SUFFIX)}
_PARTS: Final = tuple((one.group_kind, suffix) for one in OWNED for suffix in _SUFFIXES.get(one, ("",)))


def _version(document: Json) -> tuple[Any, ...]:
    """Return the version of an object. A workload's status says nothing of what was applied, and changes often."""
    about = document["metadata"]
    version = about.get("generation") or about.get("content") or (document.get("data"), document.get("spec"))
    return about.get("uid"), version, about.get("labels"), about.get("annotations"), about.get("ownerReferences")


def _as_left(found: Json, document: Json, left: Json) -> bool:
    """Tell whether an object is as it was left after it had been applied. What others have added to its metadata, such
    as the annotations of their own controllers, is theirs."""
    about, wanted = found["metadata"], document["metadata"]
    owners = [one["uid"] for one in about.get("ownerReferences") or ()]
    return (
        mark(found) == left
        and (wanted.get("labels") or {}).items() <= (about.get("labels") or {}).items()
        and (wanted.get("annotations") or {}).items() <= (about.get("annotations") or {}).items()
        and all(one["uid"] in owners for one in wanted.get("ownerReferences") or ())
    )


def _digest(document: Json) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
