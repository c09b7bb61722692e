"""Calls to a real API server with httpx, for parts of the controller that are tested by themselves."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from headgate.cluster.api import ApiServer
from headgate.cluster.calls import ApiError
from headgate.cluster.kubeconfig import load_access

Json = dict[str, Any]


class HttpCalls:
    """`ApiCalls` of an administrator, or of whom a token belongs to. `calls`: verb and path of each."""

    def __init__(self, kubeconfig: Path, token: str = "") -> None:
        access = load_access(str(kubeconfig), {}, Path("/nowhere"))
        headers = {"authorization": f"Bearer {token}"} if token else dict(access.headers)
        if token:
            assert access.authority is not None
            context = ssl.create_default_context(cadata=access.authority.decode())
        else:
            found = ApiServer(access)._tls
            assert found is not None
            context = found
        self._client = httpx.AsyncClient(base_url=access.server, headers=headers, verify=context, timeout=60)
        self.calls: list[tuple[str, str]] = []

    def changes(self) -> list[tuple[str, str]]:
        return [one for one in self.calls if one[0] != "get"]

    async def close(self) -> None:
        await self._client.aclose()

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        return await self._send("get", path, query=query)

    async def create(self, path: str, document: Json) -> Json:
        return await self._send("create", path, document)

    async def apply(self, path: str, document: Json, manager: str) -> Json:
        return await self._send("apply", path, document, {"fieldManager": manager, "force": "true", "fieldValidation": "Strict"})

    async def merge(self, path: str, document: Json) -> Json:
        return await self._send("merge", path, document)

    async def delete(self, path: str) -> Json:
        return await self._send("delete", path)

    async def _send(self, verb: str, path: str, document: Json | None = None, query: Mapping[str, str] | None = None) -> Json:
        self.calls.append((verb, path))
        kinds = {"apply": "application/apply-patch+yaml", "merge": "application/merge-patch+json"}
        method = {"get": "GET", "create": "POST", "delete": "DELETE"}.get(verb, "PATCH")
        content = None if document is None else json.dumps(document)
        headers = {"content-type": kinds.get(verb, "application/json")}
        answer = await self._client.request(method, path, content=content, headers=headers, params=dict(query or {}))
        found: Json = answer.json()
        if answer.status_code >= 300:
            raise ApiError(answer.status_code, found.get("reason", ""), found.get("message", ""))
        return found
