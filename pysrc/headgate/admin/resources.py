"""The endpoints below `/api/config/resources`: configuration that is stored in the database beside the file.

What the file defines is listed as well, without a revision, and cannot be changed here. Every change is applied to the
running gateway before it is answered.
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from headgate.admin.answers import NO_STORE, as_json
from headgate.admin.configuration import NO_FILE, READ_ONLY, UNREADABLE, error_lines
from headgate.admin.running import RunningGateway
from headgate.admin.web import AdminRequest, AdminResponse, AdminRoute
from headgate.config.load import source_text
from headgate.errors import ConfigErrors

if TYPE_CHECKING:  # loaded by the first request
    from headgate.config.resources.stored import ResourcePut, StoredResource

logger = logging.getLogger("headgate.admin")

PATH: Final = "/api/config/resources"
WRITTEN: Final = {"status": "success", "message": "Configuration resource written successfully"}
DELETED: Final = {"status": "success", "message": "Configuration resource deleted successfully"}
FILE_MODE: Final = "config.storage.mode is file: change the file, or set the mode to hybrid"
# What an item of a request may have; what answers have besides is passed over, so that they can be sent back.
ITEM: Final = frozenset(("value", "id", "kind", "revision", "createdAt", "updatedAt"))


class _Refused(Exception):
    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.answer = as_json(status, reason)


def resource_rows(running: RunningGateway) -> tuple[AdminRoute, ...]:
    """Return the rows of the admin server's table that are below `/api/config/resources`."""
    endpoint = _Endpoint(running)

    async def view(request: AdminRequest) -> AdminResponse:
        return await answered(endpoint.view, request)

    async def put(request: AdminRequest) -> AdminResponse:
        return await answered(endpoint.put, request)

    async def delete(request: AdminRequest) -> AdminResponse:
        return await answered(endpoint.delete, request)

    return (
        AdminRoute("GET", PATH, view, tree=True, own=True),
        AdminRoute("PUT", PATH, put, tree=True, own=True),
        AdminRoute("DELETE", PATH, delete, tree=True, own=True),
    )


async def answered(call: Any, request: AdminRequest) -> AdminResponse:
    """Return what a call answers, or the status of what it raises."""
    from headgate.config.resources.kinds import InvalidResource
    from headgate.config.resources.stored import CandidateRefused, ResourceConflict, ResourceMissing, StorageFailure

    try:
        answer: AdminResponse = await call(request)
        return answer
    except _Refused as refused:
        return refused.answer
    except InvalidResource as error:
        return as_json(400, str(error))
    except ResourceMissing:
        return as_json(404, "there is no such resource")
    except ResourceConflict as error:
        return as_json(409, str(error))
    except ConfigErrors as error:
        return as_json(422, candidate_lines(error))
    except CandidateRefused as error:
        return as_json(422, str(error))
    except StorageFailure as error:
        return as_json(500, f"the database of stored resources: {error}")


def candidate_lines(errors: ConfigErrors) -> str:
    """Return the errors of a candidate, one per line: those of a resource by its name, those of the file by line."""
    if any(one.line or one.file.startswith("resource ") for one in errors.errors):
        return "\n".join(str(one) for one in errors.errors)
    return error_lines(errors)


class _Endpoint:
    def __init__(self, running: RunningGateway) -> None:
        self._running = running

    async def view(self, request: AdminRequest) -> AdminResponse:
        kind, name = _place(request.path)
        return await asyncio.to_thread(self._view, kind, name)

    def _view(self, kind: str | None, name: str | None) -> AdminResponse:
        found = self._listed(kind)
        if name is None:
            return as_json(200, {"resources": found})
        one = next((one for one in found if one["id"] == name), None)
        if one is None:
            raise _Refused(404, "there is no such resource")
        return _tagged(as_json(200, one), one.get("revision"))

    def _listed(self, wanted: str | None) -> list[dict[str, Any]]:
        from headgate.config.resources import database
        from headgate.config.resources.kinds import KINDS
        from headgate.config.resources.views import file_entries, stored_entry

        settings = self._running.gateway.process
        text, name = _text(self._running)
        try:
            files = {
                kind.name: file_entries(kind, text, name)
                for kind in KINDS.values()
                if wanted in (None, kind.name)
            }
        except ConfigErrors as error:
            raise _Refused(500, str(error)) from None
        stored: list[dict[str, Any]] = []
        if settings.stores_resources and settings.request_log is not None:
            resources = database.read_or_known(settings.request_log).resources
            stored = [stored_entry(KINDS[one.kind], one) for one in resources if one.kind in files]
        return [entry for kind in files for entry in (*files[kind], *(one for one in stored if one["kind"] == kind))]

    def _writable(self) -> None:
        mode = self._running.gateway.process.storage_mode
        if mode == "readOnly":
            raise _Refused(403, READ_ONLY)
        if mode != "hybrid":
            raise _Refused(409, FILE_MODE)

    async def put(self, request: AdminRequest) -> AdminResponse:
        from headgate.config.resources.stored import ResourceChange

        self._writable()
        kind, name = _place(request.path)
        if kind is None:
            raise _Refused(405, f"PUT {PATH}/<kind>, or {PATH}/<kind>/<id>")
        # A body of 1 MiB takes longer to read than the loop may be held.
        change = ResourceChange(kind, await asyncio.to_thread(_puts, request, name))
        written = await self._running.process.change_resources(change)
        logger.info(
            "resources written", extra={"resources": ",".join(one.label for one in written.puts[:20]),
                                        "count": len(written.puts), "version": written.after.version},
        )  # fmt: skip
        answer = await asyncio.to_thread(_written_answer, written.puts)
        return answer if name is None else _tagged(answer, written.puts[0].revision)

    async def delete(self, request: AdminRequest) -> AdminResponse:
        from headgate.config.resources.stored import ResourceChange

        self._writable()
        kind, name = _place(request.path)
        if kind is None or name is None:
            raise _Refused(405, f"DELETE {PATH}/<kind>/<id>")
        revision, _ = _condition(request)
        written = await self._running.process.change_resources(ResourceChange(kind, delete=name, revision=revision))
        logger.info(
            "resource deleted", extra={"resources": f"{kind}/{name}", "count": 1, "version": written.after.version}
        )
        return as_json(200, DELETED)


def _puts(request: AdminRequest, name: str | None) -> tuple[ResourcePut, ...]:
    document = _document(request.body)
    if name is not None:
        revision, fresh = _condition(request)
        item = _item(document, name)
        return (item._replace(revision=item.revision if revision is None else revision, fresh=fresh),)
    entries = document.get("resources")
    if document.keys() != {"resources"} or not isinstance(entries, list) or not entries:
        raise _Refused(400, "expected an object with resources, a list of objects with a value")
    return tuple(_item(entry, None) for entry in entries)


def _written_answer(written: tuple[StoredResource, ...]) -> AdminResponse:
    from headgate.config.resources.kinds import KINDS
    from headgate.config.resources.views import stored_entry

    return as_json(200, {**WRITTEN, "resources": [stored_entry(KINDS[one.kind], one) for one in written]})


def _text(running: RunningGateway) -> tuple[str, str]:
    try:
        found = source_text(running.process.source)
    except (OSError, UnicodeDecodeError):
        raise _Refused(500, UNREADABLE) from None
    if found is None:
        raise _Refused(500, NO_FILE)
    return found


def _place(path: str) -> tuple[str | None, str | None]:
    """Return the kind and the id that a path names. Raises _Refused for an unknown kind."""
    from headgate.config.resources.kinds import KINDS

    rest = path.removeprefix(PATH).removeprefix("/")
    if not rest:
        return None, None
    kind, mark, name = rest.partition("/")
    if kind not in KINDS:
        raise _Refused(404, f"there is no such kind; kinds are {', '.join(KINDS)}")
    try:
        return kind, unquote(name, errors="strict") if mark and name else None
    except UnicodeDecodeError:
        raise _Refused(400, "the id is not UTF-8") from None


def _document(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body, parse_constant=_no_number)
        # Lone surrogates are valid in JSON but cannot be encoded as UTF-8.
        json.dumps(found, ensure_ascii=False).encode()
    except RecursionError:
        raise _Refused(400, "the body is nested too deeply") from None
    except ValueError:
        raise _Refused(400, "the body is not JSON") from None
    if not isinstance(found, dict):
        raise _Refused(400, "the body must be an object")
    return found


def _no_number(_word: str) -> None:
    raise ValueError("not a number in JSON")


def _item(entry: Any, name: str | None) -> ResourcePut:
    """Return one resource of a request as a ResourcePut."""
    from headgate.config.resources.stored import MAX_DEPTH, ResourcePut

    if not isinstance(entry, dict) or "value" not in entry or not entry.keys() <= ITEM:
        raise _Refused(400, "a resource must be an object with a value, and optionally an id and a revision")
    said, revision = entry.get("id", name), entry.get("revision")
    if not isinstance(said, str | None) or (name is not None and said != name):
        raise _Refused(400, "the id must be a string, and that of the path if the path has one")
    if isinstance(revision, bool) or not isinstance(revision, int | None):
        raise _Refused(400, "a revision must be an integer")
    if _depth(entry["value"]) > MAX_DEPTH:
        raise _Refused(400, f"a value can have at most {MAX_DEPTH} levels")
    return ResourcePut(said, entry["value"], revision)


def _depth(value: Any) -> int:
    deepest, waiting = 0, [(value, 1)]
    while waiting:
        one, level = waiting.pop()
        deepest = max(deepest, level)
        inner = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        waiting.extend((part, level + 1) for part in inner)
    return deepest


def _condition(request: AdminRequest) -> tuple[int | None, bool]:
    """Return the revision of `if-match`, and whether `if-none-match: *` says that there must be none yet."""
    wanted = request.headers.get("if-match", "*").strip()
    fresh = request.headers.get("if-none-match", "").strip() == "*"
    if wanted == "*":
        return None, fresh
    text = wanted.strip('"')
    # A tag that is none of ours fits nothing.
    return (int(text) if text.isascii() and text.isdigit() and len(text) < 19 else -1), fresh


def _tagged(answer: AdminResponse, revision: int | None) -> AdminResponse:
    if revision is None:
        return answer
    return answer._replace(headers=(*NO_STORE, ("etag", f'"{revision}"')))
