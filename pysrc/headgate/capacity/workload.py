"""What a run sends: requests by kind of traffic, and how their answers are checked."""

from __future__ import annotations

import json
import re
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from headgate.capacity.errors import BenchError

KINDS: Final = {
    "http": "requests to any HTTP server",
    "chat": "requests to a model, answered whole",
    "stream": "requests to a model, answered as a stream of tokens",
    "mcp": "calls of a tool of an MCP server (StreamableHTTP)",
}
# By format of an LLM API: where its requests go, below the base URL, and fields that it asks for.
FORMATS: Final[dict[str, tuple[str, tuple[tuple[str, str], ...]]]] = {
    "completions": ("/v1/chat/completions", ()),
    "messages": ("/v1/messages", (("anthropic-version", "2023-06-01"),)),
    "responses": ("/v1/responses", ()),
}
PROTOCOL: Final = "2025-06-18"
JSON: Final = ("content-type", "application/json")
RPC_ACCEPT: Final = ("accept", "application/json, text/event-stream")
# The number in the body of a call that each call has another one of.
_SERIAL: Final = 1_000_000_000
_PORTS: Final = {"http": 80, "https": 443}
_USER: Final = re.compile(r"^([^/?#]*//|)[^/?#]*@")
# In a URL that is refused: a password may have characters that end a host.
_ANY_USER: Final = re.compile(r"^([^/?#]*//|).*@", re.DOTALL)
_NO_TARGET: Final = re.compile(r"[^!-~]")
_EXPECTED: Final = "a URL such as http://127.0.0.1:3000/path is expected"
Fields = tuple[tuple[str, str], ...]


class TargetPlace(NamedTuple):
    """Where requests go: the parts of a URL."""

    secure: bool
    host: str
    port: int
    target: str

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS["https" if self.secure else "http"] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{'https' if self.secure else 'http'}://{self.authority}{self.target}"

    @property
    def shown(self) -> str:
        """The URL for reports and messages: with the names of the query's parameters, but not their values."""
        return without_secrets(self.url)


class RequestSpec(NamedTuple):
    """A request. number_at: where ten digits of the body begin that differ in each; -1: nowhere.

    judgement: what is read of its answer: status, stream (of the API `format`) or rpc.
    """

    method: str
    target: str
    fields: Fields
    body: bytes = b""
    number_at: int = -1
    judgement: str = "status"
    format: str | None = None


def without_secrets(url: str) -> str:
    """Return a URL without user and password, and with `***` for all values of its query, such as `?key=***`."""
    found = _USER.sub(r"\1***@", url.partition("#")[0])
    path, question, query = found.partition("?")
    if not query:
        return path
    pairs = (name + "=***" if equals else "***" for name, equals, _ in (one.partition("=") for one in query.split("&")))
    return path + question + "&".join(pairs)


def place_of(url: str) -> TargetPlace:
    """Return the parts of a URL. Raises BenchError if it is not an HTTP URL."""
    shown = without_secrets(_ANY_USER.sub(r"\1***@", url))
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:  # it has parts of the URL in its message
        raise BenchError(f"{shown}: {_EXPECTED}") from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise BenchError(f"{shown}: {_EXPECTED}")
    if parts.username is not None:
        words = "credentials belong into a header, such as -H 'authorization: Bearer KEY'"
        raise BenchError(f"{shown}: {words}")
    if _NO_TARGET.search(parts.path + parts.query):
        raise BenchError(f"{shown}: spaces and characters beyond ASCII are written as %XX")
    target = parts.path or "/"
    return TargetPlace(
        parts.scheme == "https",
        parts.hostname,
        port or _PORTS[parts.scheme],
        f"{target}?{parts.query}" if parts.query else target,
    )


def llm_place(place: TargetPlace, form: str) -> TargetPlace:
    """Return a place, with the path of the API if its URL has none."""
    return place._replace(target=FORMATS[form][0]) if place.target == "/" else place


def mcp_place(place: TargetPlace) -> TargetPlace:
    """Return a place, with the usual MCP path if its URL has none."""
    return place._replace(target="/mcp") if place.target == "/" else place


def http_request(place: TargetPlace, method: str, fields: Fields, body: bytes) -> RequestSpec:
    """Return a request of any kind."""
    return RequestSpec(method, place.target, fields, body)


def llm_body(form: str, model: str, prompt: str, stream: bool) -> bytes:
    """Return a request to a model as the API `form` has it."""
    if form == "responses":
        document: dict[str, Any] = {"model": model, "input": prompt}
    else:
        document = {"model": model, "messages": [{"role": "user", "content": prompt}]}
    if form == "messages":
        document["max_tokens"] = 1024
    if stream:
        document["stream"] = True
        if form == "completions":
            document["stream_options"] = {"include_usage": True}
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def llm_request(place: TargetPlace, form: str, fields: Fields, body: bytes, stream: bool) -> RequestSpec:
    """Return a request to a model; the answer to one for a stream is read event by event."""
    own = (*FORMATS[form][1], JSON)
    given = {name.lower() for name, _ in fields}
    whole = (*fields, *(field for field in own if field[0] not in given))
    return RequestSpec(
        "POST", place.target, whole, body, judgement="stream" if stream else "status", format=form if stream else None
    )


def tool_call(
    place: TargetPlace, fields: Fields, session: str | None, tool: str, arguments: dict[str, Any]
) -> RequestSpec:
    """Return a call of a tool; each has an id of its own."""
    document = {
        "jsonrpc": "2.0",
        "id": _SERIAL,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    }
    body = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    own: Fields = (JSON, RPC_ACCEPT, ("mcp-protocol-version", PROTOCOL))
    if session is not None:
        own += (("mcp-session-id", session),)
    return RequestSpec("POST", place.target, (*fields, *own), body, body.index(b"%d" % _SERIAL), "rpc")
