"""Parameters and request bodies of operations (https://spec.openapis.org/oas/v3.1.0#operation-object)."""

from __future__ import annotations

import re
from typing import Any, Final

from headgate.dialect.openapi.document import Json, OpenApiError, resolved
from headgate.dialect.openapi.schemas import Unfolding
from headgate.document.lazy_dataclass import dataclass
from headgate_engine.context.field_names import PROXY_AUTHORIZATION, REQUEST_FRAMING

PLACES: Final = ("path", "query", "header")
# Supported styles by location ("Style Values" in OpenAPI 3.1 section 4.8.12). The first one is the default.
STYLES: Final = {
    "path": ("simple",),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
}
# Headers that arguments cannot set, because the gateway or the connection sets them. OpenAPI 3.1 section 4.8.12 also
# excludes parameters named `accept`, `content-type` and `authorization`.
PROTECTED: Final = REQUEST_FRAMING | {
    "accept", "content-type", "authorization", "content-encoding", "cookie", "expect", PROXY_AUTHORIZATION,
}  # fmt: skip
FIELD_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")
JSON, BYTES, TEXT = "application/json", "application/octet-stream", "text/plain"
JSON_LIKE: Final = re.compile(r"application/[a-z0-9.+-]+\+json")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter. `place` is its location: path, query or header. `schema` is the JSON Schema of its value."""

    name: str
    place: str
    required: bool
    style: str
    explode: bool
    schema: Any


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a request. `media` is its content type.

    `form` is the encoding of the argument: `json`, `base64` (which is decoded for the request), or `text`.
    """

    media: str
    form: str
    required: bool
    schema: Any


def parameters_of(document: Json, item: Json, operation: Json, unfolding: Unfolding, where: str) -> list[Parameter]:
    """Return the parameters of an operation. Raises OpenApiError.

    Parameters of the operation replace those of its path with the same name and location.
    """
    found: dict[tuple[str, str], Parameter] = {}
    for level, own in ((item, False), (operation, True)):
        listed = level.get("parameters") or []
        if not isinstance(listed, list):
            raise OpenApiError(f"{where}: 'parameters' is not a list")
        for number, written in enumerate(listed):
            place = f"{where}.parameters[{number}]" if own else f"parameters[{number}] of the path of {where}"
            parameter = _parameter(resolved(document, written, place), unfolding, place, own)
            if parameter is not None:
                name = parameter.name.lower() if parameter.place == "header" else parameter.name
                found[name, parameter.place] = parameter
    return list(found.values())


def _parameter(written: Json, unfolding: Unfolding, where: str, own: bool) -> Parameter | None:
    name, place = written.get("name"), written.get("in")
    if not isinstance(name, str) or not name or place not in (*PLACES, "cookie"):
        raise OpenApiError(f"{where}: a parameter needs a name, and 'in' with path, query, header or cookie")
    if place == "cookie":
        if own:
            raise OpenApiError(f"{where}: cookie parameters are not supported")
        return None
    if place == "header":
        if name.lower() in PROTECTED:
            return None
        if not FIELD_NAME.fullmatch(name):
            raise OpenApiError(f"{where}: {name[:80]!r} is not a header name")
    if "content" in written:
        raise OpenApiError(f"{where}: parameters with 'content' are not supported, only those with 'schema'")
    style = written.get("style") or STYLES[place][0]
    if style not in STYLES[place]:
        raise OpenApiError(f"{where}: style {str(style)[:40]!r} is not supported in the {place}")
    explode = written.get("explode")
    schema = unfolding.schema(written.get("schema", {}), where)
    if isinstance(schema, dict) and isinstance(written.get("description"), str):
        schema = {**schema, "description": written["description"]}
    return Parameter(
        name=name,
        place=place,
        required=place == "path" or written.get("required") is True,
        style=style,
        explode=explode if isinstance(explode, bool) else style == "form",
        schema=schema,
    )


def body_of(document: Json, operation: Json, unfolding: Unfolding, where: str) -> tuple[Body | None, str | None]:
    """Return the body of an operation, None if it has none, and a warning if a required body is not supported.

    Raises OpenApiError.
    """
    if operation.get("requestBody") is None:
        return None, None
    written = resolved(document, operation["requestBody"], f"{where}.requestBody")
    content = written.get("content")
    content = content if isinstance(content, dict) else {}
    required = written.get("required") is True
    chosen = _chosen(content)
    if chosen is None:
        kinds = ", ".join(sorted(str(key)[:80] for key in content)) or "none"
        return None, f"{where}: a body of type {kinds} cannot be sent" if required else None
    key, media, form = chosen
    if form == "json":
        entry = content[key]
        schema = unfolding.schema(entry.get("schema", {}) if isinstance(entry, dict) else {}, f"{where}.requestBody")
    else:
        schema = {"type": "string", "format": "byte"} if form == "base64" else {"type": "string"}
    if isinstance(schema, dict) and isinstance(written.get("description"), str):
        schema = {"description": written["description"], **schema}
    return Body(media=media, form=form, required=required, schema=schema), None


def _chosen(content: Json) -> tuple[str, str, str] | None:
    """Return the key, content type and form of the media type to use: JSON first, then binary, then text."""
    named = {str(key).partition(";")[0].strip().lower(): str(key) for key in content}
    if JSON in named:
        return named[JSON], JSON, "json"
    alike = next((media for media in named if JSON_LIKE.fullmatch(media)), None)
    if alike is not None:
        return named[alike], alike, "json"
    if "*/*" in named or "application/*" in named:
        return named.get("*/*") or named["application/*"], JSON, "json"
    if BYTES in named:
        return named[BYTES], BYTES, "base64"
    return (named[TEXT], TEXT, "text") if TEXT in named else None


def prefix_of(servers: object, where: str) -> str:
    """Return the base path of the operations: the path of the only server, without a trailing slash.

    Scheme, host and query are ignored, because the target is configured. Variables are replaced by their defaults; a
    variable without a default is kept. Raises OpenApiError.
    """
    if not servers:
        return ""
    if not isinstance(servers, list) or not all(isinstance(one, dict) for one in servers):
        raise OpenApiError(f"{where}: 'servers' is not a list of maps")
    if len(servers) > 1:
        raise OpenApiError(f"{where}: there are several servers; only one is allowed")
    url = servers[0].get("url")
    if not isinstance(url, str):
        raise OpenApiError(f"{where}: a server needs a 'url'")
    variables = servers[0].get("variables")
    known = variables if isinstance(variables, dict) else {}

    def default(found: re.Match[str]) -> str:
        variable = known.get(found[1])
        value = variable.get("default") if isinstance(variable, dict) else None
        return value if isinstance(value, str) else found[0]

    url = PLACEHOLDER.sub(default, url).partition("#")[0].partition("?")[0]
    if "//" in url and (url.startswith("//") or "://" in url):
        _, slash, rest = url.partition("//")[2].partition("/")
        url = slash + rest
    path = url.rstrip("/")
    return path if not path or path.startswith("/") else f"/{path}"
