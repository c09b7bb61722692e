"""The endpoints below `/api/config`: read and write the configuration file.

The document (JSON) and the text (YAML with comments) are two views of the same file. Both views hide secrets; when a
view is written back, its secrets are restored from the file (config/redaction).
"""

from __future__ import annotations

import asyncio
import json
import logging
from functools import cache
from typing import Any, Final

from headgate.admin.answers import NO_STORE, as_json
from headgate.admin.running import RunningGateway
from headgate.admin.web import AdminRequest, AdminResponse, AdminRoute
from headgate.config.config_file import Changed, ConfigFile, DropsEverything
from headgate.config.file_view import file_view
from headgate.config.load import FileSource, Source, TextSource, source_text
from headgate.errors import ConfigErrors
from headgate.ir.request_log import RequestLogStore

logger = logging.getLogger("headgate.admin")

WRITTEN: Final = {"status": "success", "message": "Configuration written successfully"}
NO_FILE: Final = "local config not setup"
UNREADABLE: Final = "the configuration file cannot be read"
READ_ONLY: Final = "the configuration is read-only"
# Nobody means to end all service by an empty document that a program sent by mistake.
DROPS: Final = (
    "this configuration serves nothing, but the file's does: nothing was written. "
    "Send it again with ?confirm=empty to drop all routes"
)
CHANGED: Final = "the configuration file was changed in the meantime: read it again"


def store_mode(running: RunningGateway) -> str:
    """Return `configStoreMode`, which is also `readOnly` if neither a file nor a database can be written."""
    mode = running.gateway.process.storage_mode
    return "readOnly" if mode == "file" and file_of(running.process.source) is None else mode


def file_of(source: Source) -> ConfigFile | None:
    """Return the file of the configuration; None if it comes from a text or a stream."""
    return ConfigFile(source.path) if isinstance(source, FileSource) and not source.is_stream else None


class _ConfigurationRefused(Exception):
    """The response to a request that is refused."""

    def __init__(self, status: int, document: Any) -> None:
        super().__init__()
        self.answer = as_json(status, document)


class _Writer:
    """Writes the file; changes are serialised."""

    def __init__(self, running: RunningGateway) -> None:
        self._running = running
        self._writing = asyncio.Lock()

    def _writable(self) -> ConfigFile:
        if self._running.gateway.process.storage_mode == "readOnly":
            raise _ConfigurationRefused(403, READ_ONLY)
        file = file_of(self._running.process.source)
        if file is None:
            raise _ConfigurationRefused(500, f"{NO_FILE}: the configuration does not come from a file")
        return file

    async def _change(
        self, request: AdminRequest, file: ConfigFile, text: str, revision: str | None
    ) -> AdminResponse:
        may_drop = request.query.get("confirm") == "empty"
        async with self._writing:
            try:
                new = await asyncio.to_thread(file.change, text, revision, may_drop=may_drop)
            except Changed:
                raise _ConfigurationRefused(409, CHANGED) from None
            except DropsEverything:
                raise _ConfigurationRefused(428, DROPS) from None
            except OSError as error:
                raise _ConfigurationRefused(500, f"cannot write {file.path}: {error.strerror or error}") from None
            except UnicodeDecodeError:
                raise _ConfigurationRefused(500, UNREADABLE) from None
        logger.info("configuration written", extra={"file": file.path, "revision": new})
        return as_json(200, {**WRITTEN, "revision": new})

    async def document(self, request: AdminRequest) -> AdminResponse:
        """Write a JSON document; the comments of the file are lost, because JSON has none."""
        try:
            file = self._writable()
            document = _document(request.body)
            try:
                text = await asyncio.to_thread(file.text_of, document)
            except RecursionError:
                raise _ConfigurationRefused(400, "the document is nested too deeply") from None
            # `*` matches any revision (RFC 9110 section 13.1.1), as does a missing field.
            wanted = request.headers.get("if-match", "*")
            return await self._change(request, file, text, None if wanted == "*" else wanted.strip('"'))
        except _ConfigurationRefused as refused:
            return refused.answer
        except ConfigErrors as error:
            return as_json(500, error_lines(error))

    async def text(self, request: AdminRequest) -> AdminResponse:
        """Write a YAML text unchanged."""
        try:
            file = self._writable()
            return await self._change(request, file, *_order(request.body))
        except _ConfigurationRefused as refused:
            return refused.answer
        except ConfigErrors as error:
            return as_json(422, {"errors": listed(error)})


def configuration_rows(running: RunningGateway) -> tuple[AdminRoute, ...]:
    """Return the rows of the admin server's table that are below `/api/config`."""
    writer = _Writer(running)

    async def view(_request: AdminRequest) -> AdminResponse:
        return await asyncio.to_thread(config_view, running.process.source)

    async def effective(request: AdminRequest) -> AdminResponse:
        settings = running.gateway.process
        if not settings.stores_resources or settings.request_log is None:
            return await view(request)
        return await asyncio.to_thread(_effective_view, running.process.source, settings.request_log)

    async def text_view(_request: AdminRequest) -> AdminResponse:
        return await asyncio.to_thread(_text_view, running)

    async def check(request: AdminRequest) -> AdminResponse:
        file = file_of(running.process.source)
        if file is None:
            return as_json(500, NO_FILE)
        try:
            _, _, loaded = await asyncio.to_thread(file.check, _order(request.body)[0])
        except _ConfigurationRefused as refused:
            return refused.answer
        except ConfigErrors as error:
            return as_json(200, {"errors": listed(error), "warnings": []})
        except (OSError, UnicodeDecodeError):
            return as_json(500, UNREADABLE)
        return as_json(200, {"errors": [], "warnings": list(loaded.warnings)})

    async def schema(_request: AdminRequest) -> AdminResponse:
        return AdminResponse(200, await asyncio.to_thread(_schema_text), "application/json", NO_STORE)

    return (
        AdminRoute("GET", "/api/config", view),
        AdminRoute("GET", "/api/config/schema", schema),
        AdminRoute("POST", "/api/config", writer.document, own=True),
        AdminRoute("GET", "/api/config/effective", effective),
        AdminRoute("GET", "/api/config/text", text_view),
        AdminRoute("POST", "/api/config/text", writer.text, own=True),
        AdminRoute("POST", "/api/config/check", check, own=True),
    )


@cache
def _schema_text() -> bytes:
    # Imported late: nobody needs it before the first look at the editor.
    from headgate.config.schema import schema

    return json.dumps(schema(), separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def _parsed(body: bytes) -> Any:
    found = json.loads(body)
    # Lone surrogates are valid in JSON but cannot be encoded as UTF-8.
    json.dumps(found, ensure_ascii=False).encode()
    return found


def _document(body: bytes) -> dict[str, Any]:
    try:
        found = _parsed(body)
    except RecursionError:
        raise _ConfigurationRefused(400, "the body is nested too deeply") from None
    except ValueError:
        raise _ConfigurationRefused(500, "the body is not JSON") from None
    if not isinstance(found, dict):
        raise _ConfigurationRefused(500, "the configuration must be an object")
    return found


def _order(body: bytes) -> tuple[str, str | None]:
    """Return the text, and the revision that it is based on."""
    try:
        found = _parsed(body)
    except RecursionError:
        raise _ConfigurationRefused(400, "the body is nested too deeply") from None
    except ValueError:
        raise _ConfigurationRefused(400, "the body is not JSON") from None
    known = isinstance(found, dict) and found.keys() <= {"text", "revision"}
    if not known or not isinstance(found.get("text"), str) or not isinstance(found.get("revision", ""), str):
        raise _ConfigurationRefused(
            400, "expected an object with text, and with the revision of a text that was read before"
        )
    return found["text"], found.get("revision")


def error_lines(errors: ConfigErrors) -> str:
    """Return the errors of a document, one per line. A document has no line numbers."""
    return "\n".join(f"{one.path}: {one.message}" if one.path else one.message for one in errors.errors)


def listed(errors: ConfigErrors) -> list[dict[str, Any]]:
    """Return the errors of a text with their positions; line and column 0 mean that the position is unknown."""
    return [
        {"path": one.path, "problem": one.problem.value, "message": one.message.strip(), "line": one.line,
         "column": one.column}
        for one in errors.errors
    ]  # fmt: skip


def config_view(source: Source) -> AdminResponse:
    """Return the configuration file as JSON without its secrets.

    The file is read again for each request: an edit that does not load appears here, but not in `/config_dump`.
    """
    file = file_of(source)
    try:
        if isinstance(source, TextSource):
            return as_json(200, file_view(source.text, source.name))
        if file is None:
            return as_json(500, NO_FILE)
        held = file.read()
        answer = as_json(200, file_view(held.text, file.path))
        return answer._replace(headers=(*answer.headers, ("etag", f'"{held.revision}"')))
    except (OSError, UnicodeDecodeError):
        return as_json(500, UNREADABLE)
    except ConfigErrors as error:
        return as_json(500, str(error))


def _effective_view(source: Source, store: RequestLogStore) -> AdminResponse:
    from headgate.config.resources import database
    from headgate.config.resources.stored import StorageFailure
    from headgate.config.resources.views import effective

    try:
        found = source_text(source)
        if found is None:
            return as_json(500, NO_FILE)
        return as_json(200, effective(*found, database.read_or_known(store)))
    except (OSError, UnicodeDecodeError):
        return as_json(500, UNREADABLE)
    except (ConfigErrors, StorageFailure) as error:
        return as_json(500, str(error))


def _text_view(running: RunningGateway) -> AdminResponse:
    file = file_of(running.process.source)
    if file is None:
        return as_json(500, NO_FILE)
    try:
        held = file.shown()
    except (OSError, UnicodeDecodeError):
        return as_json(500, UNREADABLE)
    except ConfigErrors as error:
        return as_json(500, str(error))
    return as_json(200, {"file": file.path, "mode": store_mode(running), "text": held.text, "revision": held.revision})
