"""A small API server of Kubernetes for tests: lists in pages, watches with bookmarks, 410, 429, statuses, leases, conflicts.

It knows no schema, except of the tokens of service accounts, which it gives and reviews. What goes wrong is arranged by a test: `throttle`, `compact`, `drop_watches`, `hold_lists`, `refuse`.
"""

from __future__ import annotations

import asyncio
import copy
import json
import re
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

Json = dict[str, Any]
NAMESPACED = re.compile(r"(/api/v1|/apis/[^/]+/[^/]+)/namespaces/([^/]+)/([^/]+)(?:/([^/]+))?(/status)?")
TOKENS = re.compile(r"/api/v1/namespaces/([^/]+)/serviceaccounts/([^/]+)/token")
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
CLUSTERED = re.compile(r"(/api/v1|/apis/[^/]+/[^/]+)/([^/]+)(?:/([^/]+))?(/status)?")
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CORE = {
    "/api/v1": ("namespaces", "services", "secrets", "configmaps", "serviceaccounts", "events", "pods"), "/apis/discovery.k8s.io/v1": ("endpointslices",),
    "/apis/coordination.k8s.io/v1": ("leases",), "/apis/apiextensions.k8s.io/v1": ("customresourcedefinitions",),
    "/apis/apps/v1": ("deployments", "daemonsets"), "/apis/policy/v1": ("poddisruptionbudgets",),
    "/apis/autoscaling/v2": ("horizontalpodautoscalers",),
}  # fmt: skip
# Events that a watch can go back to.
HISTORY = 10_000


class Place:
    """All objects of one kind: the path of its list, of all namespaces."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], Json] = {}
        self.history: deque[tuple[int, str, Json]] = deque(maxlen=HISTORY)


class FakeApiServer:
    """`requests`: method and path with query of all that came."""

    def __init__(self) -> None:
        self.version = 100
        self.requests: list[str] = []
        self.watches = 0
        self.page = 0  # most objects of a page, whatever the client asks for; 0: as it asks
        self.lists = asyncio.Event()
        self.lists.set()
        self._places: dict[str, Place] = {f"{group}/{plural}": Place() for group, found in CORE.items() for plural in found}
        self._tokens: dict[str, tuple[str, list[str]]] = {}
        self._oldest = 0
        self._throttled = 0
        self._refused: dict[str, tuple[int, str]] = {}
        self._changed = asyncio.Event()
        self._epoch = 0
        self._runner: web.AppRunner | None = None
        self.url = ""

    # What tests arrange.

    def define(self, group: str, version: str, *plurals: str) -> None:
        """Serve kinds, as CRDs do."""
        for plural in plurals:
            self._places[f"/apis/{group}/{version}/{plural}"] = Place()
            definition = {"metadata": {"name": f"{plural}.{group}"}, "spec": {"schema": "x" * 100}}
            self.put(DEFINITIONS, definition)

    def undefine(self, group: str, version: str, plural: str) -> None:
        self._places.pop(f"/apis/{group}/{version}/{plural}")
        self.remove(DEFINITIONS, f"{plural}.{group}")
        self.drop_watches()

    def put(self, path: str, document: Json) -> Json:
        """Create or replace an object as kubectl would. `path`: of the list of all namespaces."""
        place = self._places[path]
        metadata = document["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        before = place.objects.get(key)
        return self._store(place, key, document, before)

    def remove(self, path: str, name: str) -> None:
        place = self._places[path]
        namespace, _, own = name.rpartition("/")
        found = place.objects.pop((namespace, own))
        self._tell(place, "DELETED", found)

    def get(self, path: str, name: str) -> Json:
        namespace, _, own = name.rpartition("/")
        return copy.deepcopy(self._places[path].objects[namespace, own])

    def throttle(self, count: int) -> None:
        """Answer the next requests with 429 and `retry-after: 1`."""
        self._throttled = count

    def refuse(self, beginning: str, status: int, reason: str) -> None:
        """Answer requests whose method and path begin so with an error, until the status is 0."""
        self._refused[beginning] = (status, reason)

    def compact(self) -> None:
        """Forget what has happened: who watches from before gets 410."""
        self._oldest = self.version
        self.drop_watches()

    def drop_watches(self) -> None:
        """Cut all watches off in the middle."""
        self._epoch += 1
        self._wake()

    def bookmark(self) -> None:
        """Tell all watches the version that they have reached."""
        for place in self._places.values():
            self.version += 1
            place.history.append((self.version, "BOOKMARK", {"metadata": {"resourceVersion": str(self.version)}}))
        self._wake()

    # The server.

    @asynccontextmanager
    async def running(self) -> AsyncIterator[FakeApiServer]:
        application = web.Application(client_max_size=1 << 24)
        application.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        try:
            yield self
        finally:
            self.drop_watches()
            await self._runner.cleanup()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _store(self, place: Place, key: tuple[str, str], document: Json, before: Json | None) -> Json:
        self.version += 1
        kept = copy.deepcopy(document)
        metadata = kept["metadata"]
        metadata["resourceVersion"] = str(self.version)
        metadata.setdefault("uid", f"uid-{self.version}" if before is None else before["metadata"]["uid"])
        metadata.setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
        old = 0 if before is None else before["metadata"].get("generation", 0)
        same = before is not None and before.get("spec") == kept.get("spec")
        metadata["generation"] = old if same else old + 1
        place.objects[key] = kept
        self._tell(place, "ADDED" if before is None else "MODIFIED", kept)
        return kept

    def _tell(self, place: Place, what: str, document: Json) -> None:
        if what == "DELETED":
            self.version += 1
            document = {**document, "metadata": {**document["metadata"], "resourceVersion": str(self.version)}}
        place.history.append((self.version, what, document))
        self._wake()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(f"{request.method} {request.path_qs}")
        if self._throttled:
            self._throttled -= 1
            return self._status(429, "TooManyRequests", {"retry-after": "1"})
        for beginning, (status, reason) in self._refused.items():
            if status and f"{request.method} {request.path}".startswith(beginning):
                return self._status(status, reason)
        if request.path == REVIEWS or (TOKENS.fullmatch(request.path) and request.method == "POST"):
            return web.json_response(self._token(request.path, await request.json()), status=201)
        found = NAMESPACED.fullmatch(request.path)
        if found is not None:
            group, namespace, plural, name, status_part = found.groups()
        else:
            found = CLUSTERED.fullmatch(request.path)
            if found is None:
                return self._status(404, "NotFound")
            (group, plural, name, status_part), namespace = found.groups(), ""
        place = self._places.get(f"{group}/{plural}")
        if place is None:
            return self._status(404, "NotFound")
        if name is None and request.method == "POST":
            document = await request.json()
            document["metadata"].setdefault("namespace", namespace)
            key = (namespace, document["metadata"]["name"])
            if key in place.objects:
                return self._status(409, "AlreadyExists")
            return web.json_response(self._store(place, key, document, None), status=201)
        if name is None:
            if request.query.get("watch"):
                return await self._watch(request, place)
            return await self._list(request, place)
        return await self._one(request, place, (namespace, name), bool(status_part))

    def _token(self, path: str, document: Json) -> Json:
        """Give a token of a service account, or say whose a token is."""
        spec = document["spec"]
        if account := TOKENS.fullmatch(path):
            token = f"token-{len(self._tokens)}"
            self._tokens[token] = (":".join(account.groups()), spec["audiences"])
            return {**document, "status": {"token": token}}
        name, audiences = self._tokens.get(spec["token"], ("", []))
        if not name or not set(audiences) & set(spec["audiences"]):
            return {**document, "status": {"authenticated": False}}
        user = {"username": f"system:serviceaccount:{name}"}
        return {**document, "status": {"authenticated": True, "user": user, "audiences": audiences}}

    async def _list(self, request: web.Request, place: Place) -> web.StreamResponse:
        await self.lists.wait()
        start, version = 0, self.version
        if more := request.query.get("continue"):
            start, version = map(int, more.split("@"))
            if version < self._oldest:
                return self._status(410, "Expired")
        objects = [one for _, one in sorted(place.objects.items()) if selected(request, one)]
        limit = self.page or int(request.query.get("limit", "0")) or len(objects) or 1
        metadata: Json = {"resourceVersion": str(version)}
        if start + limit < len(objects):
            metadata["continue"] = f"{start + limit}@{version}"
        items = objects[start : start + limit]
        if "PartialObjectMetadata" in request.headers.get("accept", ""):
            items = [{"metadata": one["metadata"]} for one in items]
        return web.json_response({"kind": "List", "metadata": metadata, "items": items})

    async def _watch(self, request: web.Request, place: Place) -> web.StreamResponse:
        version, epoch = int(request.query["resourceVersion"]), self._epoch
        response = web.StreamResponse()
        response.content_type = "application/json"
        await response.prepare(request)
        self.watches += 1
        try:
            if version < self._oldest:
                error = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
                await response.write(json.dumps({"type": "ERROR", "object": error}).encode() + b"\n")
                return response
            while True:
                changed = self._changed
                for number, what, document in list(place.history):
                    if number > version:
                        version = number
                        told = what if what == "BOOKMARK" or selected(request, document) else "DELETED"
                        await response.write(json.dumps({"type": told, "object": document}).encode() + b"\n")
                if self._epoch != epoch:
                    if request.transport is not None:
                        request.transport.abort()
                    return response
                await changed.wait()
        except ConnectionError:
            return response
        finally:
            self.watches -= 1

    async def _one(self, request: web.Request, place: Place, key: tuple[str, str], status: bool) -> web.StreamResponse:
        before = place.objects.get(key)
        if request.method == "PATCH" and "apply" in request.headers["content-type"]:
            document = await request.json()
            base = copy.deepcopy(before) if before is not None else {}
            return web.json_response(self._store(place, key, merge(base, document), before))
        if before is None:
            return self._status(404, "NotFound")
        if request.method == "DELETE":
            del place.objects[key]
            self._tell(place, "DELETED", before)
            return web.json_response({"kind": "Status", "status": "Success"})
        if request.method == "PATCH":
            patch = await request.json()
            version = (patch.get("metadata") or {}).get("resourceVersion")
            if version is not None and version != before["metadata"]["resourceVersion"]:
                return self._status(409, "Conflict")
            patch = {"status": patch["status"]} if status else {name: one for name, one in patch.items() if name != "status"}
            return web.json_response(self._store(place, key, merge(copy.deepcopy(before), patch), before))
        return web.json_response(before)

    def _status(self, code: int, reason: str, headers: dict[str, str] | None = None) -> web.Response:
        document = {"kind": "Status", "code": code, "reason": reason, "message": f"the fake says {reason}"}
        return web.json_response(document, status=code, headers=headers)


def selected(request: web.Request, document: Json) -> bool:
    """Tell whether an object has the label that a list or a watch asks for; one that loses it is gone for a watch."""
    name, equals, value = request.query.get("labelSelector", "").partition("=")
    return not equals or (document["metadata"].get("labels") or {}).get(name) == value


def merge(value: Json, patch: Json) -> Json:
    """RFC 7396."""
    for name, one in patch.items():
        if one is None:
            value.pop(name, None)
        elif isinstance(one, dict):
            value[name] = merge(dict(value.get(name) or {}), one)
        else:
            value[name] = one
    return value
