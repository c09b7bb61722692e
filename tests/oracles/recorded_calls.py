"""A small API server in memory, for what calls it through `ApiCalls`: stores what is applied, and keeps a list of the calls."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping
from typing import Any

from headgate.cluster.calls import ApiError
from headgate.cluster.deploy.owned_kinds import path_of
from headgate.cluster.snapshot import Json


class RecordedCalls:
    """`objects` by path; `calls`: verb and path. `fail`: raised by calls of a verb, as long as it is there. `generations`: workloads have them."""

    def __init__(self) -> None:
        self.objects: dict[str, Json] = {}
        self.calls: list[tuple[str, str]] = []
        self.fail: dict[str, ApiError] = {}
        self.bodies: list[Json] = []
        self.generations = False
        self._numbers = itertools.count(1)

    def changes(self) -> list[tuple[str, str]]:
        return [one for one in self.calls if one[0] != "get"]

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        self._note("get", path)
        if path not in self.objects:
            raise ApiError(404, "NotFound", f"{path} not found")
        return copy.deepcopy(self.objects[path])

    async def create(self, path: str, document: Json) -> Json:
        self._note("create", path, document)
        if path.endswith("/token"):
            return {**document, "status": {"token": f"token-{next(self._numbers)}"}}
        place = path_of(document)
        assert place.startswith(f"{path}/")
        if place in self.objects:
            raise ApiError(409, "AlreadyExists", f"{place} is there already")
        return self._stored(place, document)

    async def apply(self, path: str, document: Json, manager: str) -> Json:
        assert manager == "headgate.dev/headgate"
        assert path == path_of(document)
        self._note("apply", path, document)
        return self._stored(path, document)

    async def merge(self, path: str, document: Json) -> Json:
        raise AssertionError("nothing is merged here")

    async def delete(self, path: str) -> Json:
        self._note("delete", path)
        if self.objects.pop(path, None) is None:
            raise ApiError(404, "NotFound", f"{path} not found")
        return {}

    def _note(self, verb: str, path: str, document: Json | None = None) -> None:
        self.calls.append((verb, path))
        if document is not None:
            self.bodies.append(document)
        if verb in self.fail:
            raise self.fail[verb]

    def _stored(self, path: str, document: Json) -> Json:
        before = self.objects.get(path)
        stored: dict[str, Any] = copy.deepcopy(document)
        uid = before["metadata"]["uid"] if before else f"uid-{next(self._numbers)}"
        stored["metadata"] |= {"uid": uid, "resourceVersion": str(next(self._numbers))}
        if self.generations and stored["kind"] in ("Deployment", "DaemonSet"):
            stored["metadata"]["generation"] = 1
        if stored["kind"] == "Service":
            stored["spec"]["clusterIP"] = "10.0.0.7"
        self.objects[path] = stored
        return copy.deepcopy(stored)
