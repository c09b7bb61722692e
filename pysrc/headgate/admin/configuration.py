"""The endpoints below `/api/config`: the file as it was written, and writing it.

The document (JSON) and the text (YAML with its comments) are two ways to the same file. What is shown has no secrets;
what comes back gets them from the file again (config/redaction).
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any, Final

from headgate.admin.answers import as_json
from headgate.admin.running import Running
from headgate.admin.web import Answer, Request, Row
from headgate.config.config_file import Changed, ConfigFile
from headgate.config.file_view import file_view
from headgate.config.load import FileSource, Source, TextSource
from headgate.errors import ConfigErrors

logger = logging.getLogger("headgate.admin")

WRITTEN: Final = {"status": "success", "message": "Configuration written successfully"}
NO_FILE: Final = "local config not setup"
UNREADABLE: Final = "the configuration file cannot be read"
READ_ONLY: Final = "the configuration is read-only"
CHANGED: Final = "the configuration file was changed in the meantime: read it again"


def store_mode(running: Running) -> str:
    """Return `configStoreMode`: `readOnly` also where there is no file to write to."""
    return "readOnly" if file_of(running.process.source) is None else running.gateway.process.storage_mode


def file_of(source: Source) -> ConfigFile | None:
    """Return the file that the configuration comes from; None for a text or a stream."""
    return ConfigFile(source.path) if isinstance(source, FileSource) and not source.is_stream else None


class _Refused(Exception):
    """The answer to a request that changes nothing."""

    def __init__(self, status: int, document: Any) -> None:
        super().__init__()
        self.answer = as_json(status, document)


class _Writer:
    """Writes the file, one change at a time."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._writing = asyncio.Lock()

    def _writable(self) -> ConfigFile:
        if self._running.gateway.process.storage_mode == "readOnly":
            raise _Refused(403, READ_ONLY)
        file = file_of(self._running.process.source)
        if file is None:
            raise _Refused(500, f"{NO_FILE}: the configuration does not come from a file")
        return file

    async def _change(self, file: ConfigFile, text: str, revision: str | None) -> Answer:
        async with self._writing:
            try:
                new = await asyncio.to_thread(file.change, text, revision)
            except Changed:
                raise _Refused(409, CHANGED) from None
            except OSError as error:
                raise _Refused(500, f"cannot write {file.path}: {error.strerror or error}") from None
            except UnicodeDecodeError:
                raise _Refused(500, UNREADABLE) from None
        logger.info("configuration written", extra={"file": file.path, "revision": new})
        return as_json(200, {**WRITTEN, "revision": new})

    async def document(self, request: Request) -> Answer:
        """Write a document: comments go, since JSON has none."""
        try:
            file = self._writable()
            document = _document(request.body)
            try:
                text = await asyncio.to_thread(file.text_of, document)
            except RecursionError:
                raise _Refused(500, "the document is nested too deeply") from None
            # `*`: whatever is there (RFC 9110 section 13.1.1), as without the field.
            wanted = request.headers.get("if-match", "*")
            return await self._change(file, text, None if wanted == "*" else wanted.strip('"'))
        except _Refused as refused:
            return refused.answer
        except ConfigErrors as error:
            return as_json(500, told(error))

    async def text(self, request: Request) -> Answer:
        """Write a text as it is."""
        try:
            file = self._writable()
            return await self._change(file, *_order(request.body))
        except _Refused as refused:
            return refused.answer
        except ConfigErrors as error:
            return as_json(422, {"errors": listed(error)})


def configuration_rows(running: Running) -> tuple[Row, ...]:
    """Return the rows of the admin server's table that are below `/api/config`."""
    writer = _Writer(running)

    async def view(_request: Request) -> Answer:
        return await asyncio.to_thread(config_view, running.process.source)

    async def text_view(_request: Request) -> Answer:
        return await asyncio.to_thread(_text_view, running)

    async def check(request: Request) -> Answer:
        file = file_of(running.process.source)
        if file is None:
            return as_json(500, NO_FILE)
        try:
            _, _, loaded = await asyncio.to_thread(file.check, _order(request.body)[0])
        except _Refused as refused:
            return refused.answer
        except ConfigErrors as error:
            return as_json(200, {"errors": listed(error), "warnings": []})
        except (OSError, UnicodeDecodeError):
            return as_json(500, UNREADABLE)
        return as_json(200, {"errors": [], "warnings": list(loaded.warnings)})

    return (
        Row("GET", "/api/config", view),
        Row("POST", "/api/config", writer.document, own=True),
        Row("GET", "/api/config/effective", view),
        Row("GET", "/api/config/text", text_view),
        Row("POST", "/api/config/text", writer.text, own=True),
        Row("POST", "/api/config/check", check, own=True),
    )


def _parsed(body: bytes) -> Any:
    found = json.loads(body)
    # Halves of surrogate pairs are JSON, and no text.
    json.dumps(found, ensure_ascii=False).encode()
    return found


def _document(body: bytes) -> dict[str, Any]:
    try:
        found = _parsed(body)
    except (ValueError, RecursionError):
        raise _Refused(500, "the body is no JSON") from None
    if not isinstance(found, dict):
        raise _Refused(500, "the configuration must be an object")
    return found


def _order(body: bytes) -> tuple[str, str | None]:
    """Return the text, and the revision that it was made from."""
    try:
        found = _parsed(body)
    except (ValueError, RecursionError):
        raise _Refused(400, "the body is no JSON") from None
    known = isinstance(found, dict) and found.keys() <= {"text", "revision"}
    if not known or not isinstance(found.get("text"), str) or not isinstance(found.get("revision", ""), str):
        raise _Refused(400, "expected an object with text and, for a text that was read before, its revision")
    return found["text"], found.get("revision")


def told(errors: ConfigErrors) -> str:
    """Return the faults of a document that has no lines, one below the other."""
    return "\n".join(f"{one.path}: {one.message}" if one.path else one.message for one in errors.errors)


def listed(errors: ConfigErrors) -> list[dict[str, Any]]:
    """Return the faults of a text with their places; 0: nowhere."""
    return [
        {"path": one.path, "problem": one.problem.value, "message": one.message.strip(), "line": one.line,
         "column": one.column}
        for one in errors.errors
    ]  # fmt: skip


def config_view(source: Source) -> Answer:
    """Return the configuration as it was written, without its secrets, as JSON. It is read anew: an edit that does not
    load shows here, and not in `/config_dump`.
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


def _text_view(running: Running) -> Answer:
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
