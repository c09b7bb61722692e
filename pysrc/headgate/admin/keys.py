"""The endpoints below `/api/keys` and `/api/teams`: virtual keys and their teams, changed at run time.

They are stored resources (kinds `virtualKeys.key` and `virtualKeys.team`): every change is in force in all workers when
it is answered, and other replicas are told of it. A key itself is in one answer, that to its making or rotation; what
is stored is its SHA-256 digest.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from headgate.admin.answers import as_json
from headgate.admin.resources import answered
from headgate.admin.running import RunningGateway
from headgate.admin.web import AdminRequest, AdminResponse, AdminRoute

if TYPE_CHECKING:  # loaded by the first request
    from headgate.config.resources.stored import ResourceChange, StoredResource

logger = logging.getLogger("headgate.admin")

KEYS: Final = "/api/keys"
TEAMS: Final = "/api/teams"
KEY_KIND: Final = "virtualKeys.key"
TEAM_KIND: Final = "virtualKeys.team"
# What a key may be called that is made here: a part of a path.
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,127}")
# Says what a text is, to people and to scanners for secrets.
PREFIX: Final = "hg-"
RANDOM_BYTES: Final = 32
# Fields that only the gateway sets.
OWN_FIELDS: Final = frozenset(("keyHash", "revoked"))
NO_DATABASE: Final = "keys are stored in a database: set config.storage.mode to hybrid, and config.database"
ACTIONS: Final = ("rotate", "revoke")


class KeyRefused(Exception):
    """A request cannot be done; `answer` says why."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.answer = as_json(status, reason)


def new_key() -> tuple[str, str]:
    """Return a new key and its hash as it is stored.

    The key is 256 random bits. One SHA-256 keeps it: a slow hash protects what can be guessed, which this cannot.
    """
    key = PREFIX + secrets.token_urlsafe(RANDOM_BYTES)
    return key, f"sha256:{hashlib.sha256(key.encode()).hexdigest()}"


def key_rows(running: RunningGateway) -> tuple[AdminRoute, ...]:
    """Return the rows of the admin server's table that are below `/api/keys` and `/api/teams`."""
    endpoint = _KeyEndpoint(running)

    def row(method: str, path: str, call: Callable[[AdminRequest], Awaitable[AdminResponse]]) -> AdminRoute:
        async def handler(request: AdminRequest) -> AdminResponse:
            try:
                return await answered(call, request)
            except KeyRefused as refused:
                return refused.answer

        return AdminRoute(method, path, handler, own=True, tree=True)

    return (
        row("GET", KEYS, endpoint.view),
        row("POST", KEYS, endpoint.post),
        row("PUT", KEYS, endpoint.put),
        row("DELETE", KEYS, endpoint.delete),
        row("GET", TEAMS, endpoint.view_teams),
        row("PUT", TEAMS, endpoint.put_team),
        row("DELETE", TEAMS, endpoint.delete_team),
    )


class _KeyEndpoint:
    def __init__(self, running: RunningGateway) -> None:
        self._running = running

    # -- keys ----------------------------------------------------------------------------------------------------------
    async def view(self, request: AdminRequest) -> AdminResponse:
        name, action = _place(request.path, KEYS)
        if action:
            raise KeyRefused(405, f"POST {KEYS}/<name>/{action}")
        found = await asyncio.to_thread(self._listed, KEY_KIND)
        return self._chosen(found, name, "key")

    async def post(self, request: AdminRequest) -> AdminResponse:
        name, action = _place(request.path, KEYS)
        if name is None:
            return await self._make(request)
        if action == "rotate":
            key, hashed = new_key()
            entry = await self._changed(name, lambda value: {**value, "keyHash": hashed})
            logger.info("key rotated", extra={"key": name})
            return as_json(200, {**entry, "key": key})
        if action == "revoke":
            entry = await self._changed(name, lambda value: {**value, "revoked": True})
            logger.info("key revoked", extra={"key": name})
            return as_json(200, entry)
        raise KeyRefused(405, f"POST {KEYS}, or {KEYS}/<name>/rotate, or {KEYS}/<name>/revoke")

    async def _make(self, request: AdminRequest) -> AdminResponse:
        from headgate.config.resources.stored import ResourceChange, ResourcePut

        wanted = _document(request.body)
        name = wanted.get("name")
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise KeyRefused(400, "a key needs a name of up to 128 letters, digits and . _ @ -")
        key, hashed = new_key()
        put = ResourcePut(name, {**wanted, "keyHash": hashed}, fresh=True)
        [stored] = await self._write(ResourceChange(KEY_KIND, (put,)))
        logger.info("key made", extra={"key": name})
        return as_json(201, {**_shown(stored), "key": key})

    async def put(self, request: AdminRequest) -> AdminResponse:
        """Replace the fields of a key. The key itself stays, and so does a revocation."""
        name, action = _place(request.path, KEYS)
        if name is None or action:
            raise KeyRefused(405, f"PUT {KEYS}/<name>")
        wanted = _document(request.body)
        if wanted.setdefault("name", name) != name:
            raise KeyRefused(400, "the name must be that of the path: a key keeps its name")
        entry = await self._changed(
            name, lambda value: wanted | {field: value[field] for field in OWN_FIELDS if field in value}
        )
        logger.info("key changed", extra={"key": name})
        return as_json(200, entry)

    async def delete(self, request: AdminRequest) -> AdminResponse:
        name, action = _place(request.path, KEYS)
        if name is None or action:
            raise KeyRefused(405, f"DELETE {KEYS}/<name>")
        return await self._delete(KEY_KIND, name)

    # -- teams ---------------------------------------------------------------------------------------------------------
    async def view_teams(self, request: AdminRequest) -> AdminResponse:
        name, _ = _place(request.path, TEAMS)
        return self._chosen(await asyncio.to_thread(self._listed, TEAM_KIND), name, "team")

    async def put_team(self, request: AdminRequest) -> AdminResponse:
        from headgate.config.resources.stored import ResourceChange, ResourcePut

        name, _ = _place(request.path, TEAMS)
        if name is None or not NAME.fullmatch(name):
            raise KeyRefused(400, f"PUT {TEAMS}/<name>, with a name of letters, digits and . _ @ -")
        wanted = _document(request.body)
        if wanted.setdefault("name", name) != name:
            raise KeyRefused(400, "the name must be that of the path")
        [stored] = await self._write(ResourceChange(TEAM_KIND, (ResourcePut(name, wanted),)))
        logger.info("team written", extra={"team": name})
        return as_json(200, _shown(stored))

    async def delete_team(self, request: AdminRequest) -> AdminResponse:
        name, _ = _place(request.path, TEAMS)
        if name is None:
            raise KeyRefused(405, f"DELETE {TEAMS}/<name>")
        return await self._delete(TEAM_KIND, name)

    # -- of both -------------------------------------------------------------------------------------------------------
    def _listed(self, kind: str) -> list[dict[str, Any]]:
        """Return what there is in the running configuration: what the file defines first."""
        from headgate.config import virtual_keys
        from headgate.config.resources import database

        settings, running = self._running.gateway.process, self._running.gateway.virtual_keys
        stored: dict[str, StoredResource] = {}
        if settings.stores_resources and settings.request_log is not None:
            snapshot = database.read_or_known(settings.request_log)
            stored = {one.id: one for one in snapshot.resources if one.kind == kind}
        inforce = {} if running is None else virtual_keys.dump(running)
        of_file = [one for one in inforce.get("keys" if kind == KEY_KIND else "teams", ()) if one["name"] not in stored]
        for one in of_file:
            one.pop("keyHash", None)
        return [{**one, "owned": "file"} for one in of_file] + [_shown(one) for one in stored.values()]

    def _chosen(self, found: list[dict[str, Any]], name: str | None, scope: str) -> AdminResponse:
        """Return all of them, or the one with a name, together with what it has used."""
        if name is None:
            return as_json(200, {f"{scope}s": found})
        one = next((one for one in found if one["name"] == name), None)
        if one is None:
            raise KeyRefused(404, f"there is no such {scope}")
        from headgate_engine.limit.account import UsageAccount

        # Amounts of dollars are picodollars.
        used = UsageAccount(self._running.process.segment, scope, name).state(int(time.time()))
        return as_json(200, {**one, "usage": used})

    def _writable(self) -> None:
        settings = self._running.gateway.process
        if settings.storage_mode != "hybrid" or not settings.stores_resources:
            raise KeyRefused(409, NO_DATABASE)

    async def _write(self, change: ResourceChange) -> tuple[StoredResource, ...]:
        self._writable()
        return (await self._running.process.change_resources(change)).puts

    async def _changed(self, name: str, edit: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
        """Store an edit of a key that is stored, and return the key as answers have it."""
        from headgate.config.resources import database
        from headgate.config.resources.stored import ResourceChange, ResourcePut

        self._writable()
        store = self._running.gateway.process.request_log
        assert store is not None
        snapshot = await asyncio.to_thread(database.read, store)
        found = next((one for one in snapshot.resources if one.key == (KEY_KIND, name)), None)
        if found is None:
            keys = self._running.gateway.virtual_keys
            if keys is not None and any(one.name == name for one in keys.keys):
                raise KeyRefused(409, "the key is owned by the file")
            raise KeyRefused(404, "there is no such key")
        # Based on what was read: of two changes at a time the second is refused, and nothing is lost.
        put = ResourcePut(name, edit(found.value()), revision=found.revision)
        [stored] = await self._write(ResourceChange(KEY_KIND, (put,)))
        return _shown(stored)

    async def _delete(self, kind: str, name: str) -> AdminResponse:
        from headgate.config.resources.stored import ResourceChange

        self._writable()
        await self._running.process.change_resources(ResourceChange(kind, delete=name))
        logger.info("deleted", extra={"resource": f"{kind}/{name}"})
        return as_json(200, {"status": "success"})


def _shown(stored: StoredResource) -> dict[str, Any]:
    from headgate.config.resources.stored import timestamp

    value = {name: one for name, one in stored.value().items() if name != "keyHash"}
    return {**value, "createdAt": timestamp(stored.created_us), "updatedAt": timestamp(stored.updated_us)}


def _place(path: str, root: str) -> tuple[str | None, str]:
    """Return the name and the action that a path says. Raises KeyRefused."""
    name, _, action = path.removeprefix(root).strip("/").partition("/")
    if action not in ("", *ACTIONS):
        raise KeyRefused(404, f"there is {root}/<name>, and for keys {' and '.join(ACTIONS)} below it")
    try:
        return unquote(name, errors="strict") or None, action
    except UnicodeDecodeError:
        raise KeyRefused(400, "the name is not UTF-8") from None


def _document(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
        json.dumps(found, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        raise KeyRefused(400, "the body is not JSON") from None
    if not isinstance(found, dict):
        raise KeyRefused(400, "the body must be an object")
    for name in OWN_FIELDS & found.keys():
        raise KeyRefused(400, f"{name} is set by the gateway")
    return found
