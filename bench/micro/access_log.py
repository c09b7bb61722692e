"""headgate_engine.log.access against formatting in Python."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from bench.micro.timing import Row, compare_times, nanoseconds, same, show
from headgate_drivers.log import access_line, nanoseconds_per_line
from headgate_engine.log.access import AccessLogFormat

WALL_NS = 1_700_000_000_123_456_000
PLAIN: dict[str, Any] = {
    "gateway": ("default", "gw"),
    "listener": "http",
    "route": ("default", "web"),
    "endpoint": b"127.0.0.1:9000",
    "src.addr": "127.0.0.1:50000",
    "http.method": b"GET",
    "http.host": b"a.test",
    "http.path": b"/api/v1/items?page=2",
    "http.version": 1,
    "http.status": 200,
    "protocol": "http",
    "duration": 12_000_000,
}
LLM: dict[str, Any] = {
    **{key: value for key, value in PLAIN.items() if key != "duration"},
    "protocol": "llm",
    "gen_ai.provider.name": b"openai",
    "gen_ai.request.model": b"gpt-4o",
    "gen_ai.usage.input_tokens": 10,
    "gen_ai.usage.output_tokens": 20,
    "duration": 12_000_000,
}


def shown(request: dict[str, Any]) -> dict[str, Any]:
    """The fields as a reader of the log sees them."""
    found: dict[str, Any] = {}
    for key, value in request.items():
        match key:
            case "gateway" | "route":
                found[key] = "/".join(value)
            case "http.version":
                found[key] = f"HTTP/1.{value}"
            case "duration":
                found[key] = f"{value // 1_000_000}ms"
            case _:
                found[key] = value.decode() if isinstance(value, bytes) else value
        if key == "protocol" and value == "llm":
            found["gen_ai.operation.name"] = "chat"
    return found


def stamp(wall_ns: int) -> str:
    return datetime.fromtimestamp(wall_ns // 1000 / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def quoted(value: object) -> str:
    text = str(value)
    return text if text.isprintable() and not set(' "\\').intersection(text) else json.dumps(text)


def text_line(request: dict[str, Any]) -> bytes:
    fields = " ".join(f"{key}={quoted(value)}" for key, value in shown(request).items())
    return f"{stamp(WALL_NS)}\tinfo\trequest {fields}\n".encode()


def json_line(request: dict[str, Any]) -> bytes:
    head = {"level": "info", "time": stamp(WALL_NS), "scope": "request"}
    return json.dumps({**head, **shown(request)}, separators=(",", ":")).encode() + b"\n"


FORMS: dict[str, Callable[[dict[str, Any]], bytes]] = {"text": text_line, "json": json_line}


def rows() -> Iterator[Row]:
    for form, oracle in FORMS.items():
        log = AccessLogFormat(form)
        for name, request in (("plain", PLAIN), ("LLM", LLM)):
            same(access_line(log, WALL_NS, request), oracle(request))
            yield compare_times(
                f"access log: {name} request as {form}",
                lambda g=log, r=request: nanoseconds_per_line(g, r),  # type: ignore[misc]
                lambda o=oracle, r=request: nanoseconds(lambda: o(r)),  # type: ignore[misc]
                against="f-strings" if form == "text" else "json.dumps",
            )


if __name__ == "__main__":
    show(rows())
