"""Conversion of the operations of a document to MCP tools."""

from __future__ import annotations

import json
from typing import Any, Final
from urllib.parse import quote

from headgate.dialect.openapi.document import Json, OpenApiError, parse, resolved
from headgate.dialect.openapi.operations import (
    PLACEHOLDER,
    PLACES,
    Body,
    Parameter,
    body_of,
    parameters_of,
    prefix_of,
)
from headgate.dialect.openapi.schemas import SchemaBudget, Unfolding
from headgate.document.lazy_dataclass import dataclass

METHODS: Final = frozenset(("get", "put", "post", "delete", "options", "head", "patch", "trace"))
MAX_TOOLS: Final = 10_000
MAX_TITLE: Final = 64
# Characters that are not escaped in a path (RFC 3986 section 3.3), and `%`, so that existing escapes are kept.
PATH_SAFE: Final = "/:@!$&'()*+,;=-._~%"
NO_SCHEMA: Final = {"type": "string"}


@dataclass(frozen=True, slots=True)
class OperationTool:
    """An operation. `pieces` is its path as texts and parameters, `listed` its entry in `tools/list`."""

    name: str
    method: str
    pieces: tuple[str | Parameter, ...]
    parameters: tuple[Parameter, ...]
    body: Body | None
    listed: Json


@dataclass(frozen=True, slots=True)
class Api:
    """The tools of a document by name, in its order. `warnings` name the operations that cannot be used."""

    title: str
    version: str
    tools: dict[str, OperationTool]
    warnings: tuple[str, ...]


def read_tools(text: str, name: str = "OpenAPI document") -> Api:
    """Return the tools of a document (JSON or YAML). Raises OpenApiError. `name` is the document's name in errors."""
    document = parse(text, name)
    paths = document.get("paths")
    if not isinstance(paths, dict):
        raise OpenApiError("the document has no 'paths'")
    reader = _OperationReader(document)
    for path, written in paths.items():
        if str(path).startswith("x-"):
            continue
        where = f"paths[{str(path)[:200]}]"
        item = resolved(document, written, where)
        for key, operation in item.items():
            if key in METHODS:
                reader.add(str(path), key, item, resolved(document, operation, f"{where}.{key}"))
    raw = document.get("info")
    info = raw if isinstance(raw, dict) else {}
    return Api(
        title=str(info.get("title") or "OpenAPI"),
        version=str(info.get("version") or ""),
        tools=reader.tools,
        warnings=tuple(reader.warnings),
    )


class _OperationReader:
    """Converts the operations of a document to tools."""

    def __init__(self, document: Json) -> None:
        self._document = document
        self._budget = SchemaBudget()
        self.tools: dict[str, OperationTool] = {}
        self.warnings: list[str] = []

    def add(self, path: str, method: str, item: Json, operation: Json) -> None:
        """Add the tool for an operation. Raises OpenApiError."""
        where = f"paths[{path[:200]}].{method}"
        name = operation.get("operationId")
        if not isinstance(name, str) or not name:
            raise OpenApiError(f"{where}: there is no operationId, which would be the tool's name")
        if name in self.tools:
            raise OpenApiError(f"{where}: the operationId {name[:80]!r} is defined twice")
        if len(self.tools) >= MAX_TOOLS:
            raise OpenApiError(f"{where}: there are more than {MAX_TOOLS} operations")
        unfolding = Unfolding(self._document, self._budget)
        parameters = parameters_of(self._document, item, operation, unfolding, where)
        level = next((one for one in (operation, item, self._document) if one.get("servers")), self._document)
        prefix = prefix_of(level.get("servers"), where if level is not self._document else "servers")
        pieces, implied = _pieces(prefix, path, parameters, where)
        parameters += implied
        body, warning = body_of(self._document, operation, unfolding, where)
        if warning is not None:
            self.warnings.append(warning)
        listed = _listed(name, operation, parameters, body, unfolding.defs)
        try:
            json.dumps(listed, allow_nan=False).encode()
        except ValueError:
            raise OpenApiError(f"{where}: it contains a value that is not valid JSON") from None
        self.tools[name] = OperationTool(name, method.upper(), pieces, tuple(parameters), body, listed)


def _pieces(
    prefix: str, path: str, parameters: list[Parameter], where: str
) -> tuple[tuple[str | Parameter, ...], list[Parameter]]:
    """Return the pieces of a path, and implied parameters for placeholders that no parameter declares."""
    if not path.startswith("/") or "?" in path or "#" in path:
        raise OpenApiError(f"{where}: a path must begin with a slash and have no query")
    if any(segment in (".", "..") for segment in f"{prefix}{path}".split("/")):
        raise OpenApiError(f"{where}: a path cannot have dot segments")
    known = {one.name: one for one in parameters if one.place == "path"}
    implied: list[Parameter] = []
    pieces: list[str | Parameter] = [quote(prefix, safe=PATH_SAFE + "{}")]
    for number, piece in enumerate(PLACEHOLDER.split(path)):
        if number % 2 == 0:
            pieces.append(quote(piece, safe=PATH_SAFE))
            continue
        if piece not in known:
            known[piece] = Parameter(piece, "path", True, "simple", False, NO_SCHEMA)
            implied.append(known[piece])
        pieces.append(known[piece])
    return tuple(piece for piece in pieces if piece), implied


def _listed(name: str, operation: Json, parameters: list[Parameter], body: Body | None, defs: Json) -> Json:
    """Return the entry of a tool in `tools/list`. Its arguments are `path`, `query`, `header` and `body`."""
    properties: dict[str, Any] = {}
    required: list[str] = []
    for place in PLACES:
        here = [one for one in parameters if one.place == place]
        if not here:
            continue
        needed = [one.name for one in here if one.required]
        properties[place] = {
            "type": "object",
            "required": needed,
            "properties": {one.name: one.schema for one in here},
        }
        if needed:
            required.append(place)
    if body is not None:
        properties["body"] = body.schema
        if body.required:
            required.append("body")
    schema: Json = {"type": "object", "required": required, "properties": properties}
    if defs:
        schema["$defs"] = defs
    summary, description = operation.get("summary"), operation.get("description")
    texts = [one for one in (description, summary) if isinstance(one, str) and one]
    found: Json = {"name": name, "description": texts[0] if texts else name, "inputSchema": schema}
    if isinstance(summary, str) and summary:
        found["title"] = summary.encode("utf-8", "replace")[:MAX_TITLE].decode("utf-8", "ignore")
    return found
