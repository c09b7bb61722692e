"""Applies objects of Gateways to the API server, and deletes those that are not wanted any more."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from headgate.cluster.calls import ApiCalls, ApiError
from headgate.cluster.deploy import owned_kinds
from headgate.cluster.deploy.naming import is_ours, short_name
from headgate.cluster.deploy.objects import AUTHORITY_SUFFIX, SESSION_KEY_SUFFIX, new_session_key, session_key_secret
from headgate.cluster.deploy.owned_kinds import OWNED, PRUNED, OwnedKind, path_of
from headgate.cluster.deploy.pod import SESSION_KEY_FIELD
from headgate.cluster.deploy.settings import DeploySettings
from headgate.cluster.errors import ClusterError
from headgate.cluster.snapshot import ObjectKey, Snapshot, key_of

Json = dict[str, Any]
_SESSION_KEY: Final = re.compile(r"[0-9a-fA-F]{64}")


class NotOurs(ClusterError):
    """An object of the name that a Gateway needs is there and belongs to somebody else."""


class LeadLost(ClusterError):
    """Another replica leads: it goes on with the work."""


@dataclass(slots=True)
class _Known:
    """What was applied for a Gateway: by path a digest of it, and the mark of what the server made of it.
    `absent`: kinds of which it has no object. `foreign`: objects of others that are used as they are.
    `session_key` and `service`: as they were read last."""

    digests: dict[str, str] = field(default_factory=dict)
    marks: dict[str, Json] = field(default_factory=dict)
    absent: set[OwnedKind] = field(default_factory=set)
    foreign: set[str] = field(default_factory=set)
    session_key: str = ""
    service: Json | None = None


class Applier:
    """`may_write`: asked before every change, so that a replica that has lost the lead stops between two of them."""

    def __init__(self, calls: ApiCalls, settings: DeploySettings, may_write: Callable[[], bool]) -> None:
        self._calls = calls
        self._settings = settings
        self._may_write = may_write
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
        for one in documents:
            path, digest = path_of(one), _digest(one)
            if known.digests.get(path) == digest and _as_left(snapshot, one, known.marks[path]):
                continue
            if path in known.foreign or (path not in known.digests and not await self._claim(path, one, gateway)):
                known.foreign.add(path)
                continue
            self._check_lead()
            answer = await self._calls.apply(path, one, self._settings.controller)
            known.digests[path], known.marks[path] = digest, mark(answer)
            known.absent.discard(owned_kinds.kind_of(one))
            if one["kind"] == owned_kinds.SERVICE.kind:
                known.service = answer
        return known.service

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
    """Return what tells an object from what somebody else made of it; what its own controllers write is left out.

    It is the same for an object of which a snapshot has only some fields.
    """
    about = document["metadata"]
    return {
        "uid": about.get("uid"),
        "generation": about.get("generation"),
        "labels": about.get("labels") or {},
        "annotations": about.get("annotations") or {},
        "content": _content(document),
    }


def _content(document: Json) -> Json:
    """Return what a kind without generations is compared by."""
    spec = document.get("spec") or {}
    return {"data": document.get("data"), **{name: spec.get(name) for name in ("ports", "selector", "type")}}


def live(snapshot: Snapshot, namespace: str, name: str) -> list[tuple[str, Any]]:
    """Return what tells that one of a Gateway's objects has changed since. Costs a few us: nothing is hashed."""
    found: list[tuple[str, Any]] = []
    for kind, suffix in _PARTS:
        if (known := snapshot.kinds.get(kind)) is not None:
            one = known.get(ObjectKey(namespace, name + suffix))
            found.append((kind.kind + suffix, one and _version(one)))
    return found


_SUFFIXES: Final = {owned_kinds.SECRET: (SESSION_KEY_SUFFIX,), owned_kinds.CONFIG_MAP: ("", AUTHORITY_SUFFIX)}
_PARTS: Final = tuple((one.group_kind, suffix) for one in OWNED for suffix in _SUFFIXES.get(one, ("",)))


def _version(document: Json) -> tuple[Any, ...]:
    """Return the version of an object. A workload's status says nothing of what was applied, and changes often."""
    about = document["metadata"]
    version = about.get("generation") or (document.get("data"), document.get("spec"))
    return about.get("uid"), version, about.get("labels"), about.get("annotations")


def _as_left(snapshot: Snapshot, document: Json, left: Json) -> bool:
    """Tell whether an object is as it was after it had been applied; of a kind that is not read it is thought so."""
    known = snapshot.kinds.get(owned_kinds.kind_of(document).group_kind)
    if known is None:
        return True
    found = known.get(key_of(document))
    if found is None:
        return False
    now = mark(found)
    return (
        now["uid"] == left["uid"]
        and now["generation"] == left["generation"]
        and (now["generation"] is not None or now["content"] == left["content"])
        and left["labels"].items() <= now["labels"].items()
        and all(left["annotations"].get(name, text) == text for name, text in now["annotations"].items())
    )


def _digest(document: Json) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
