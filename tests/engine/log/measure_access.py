"""Prints nanoseconds per access-log line: python tests/engine/log/measure_access.py. Nothing is asserted."""

from __future__ import annotations

from typing import Any

from headgate_engine.log.access import AccessLogFormat

PLAIN: dict[str, Any] = {
    "gateway": ("default", "gw"),
    "listener": "http",
    "route": ("default", "web"),
    "endpoint": b"127.0.0.1:9000",
    "src.addr": "127.0.0.1:50000",
    "http.host": b"a.test:8080",
    "http.path": b"/api/v1/items?page=2",
    "http.status": 200,
    "protocol": "http",
    "duration": 12_000_000,
}
LLM: dict[str, Any] = {
    **PLAIN,
    "protocol": "llm",
    "gen_ai.provider.name": b"openai",
    "gen_ai.request.model": b"gpt-4o",
    "gen_ai.usage.input_tokens": 10,
    "gen_ai.usage.output_tokens": 20,
}
REQUESTS: dict[str, dict[str, Any]] = {
    "plain": PLAIN,
    "llm": LLM,
    "credential in the query": {**PLAIN, "http.path": b"/api?page=2&access_token=abc"},
    "hostile path": {**PLAIN, "http.path": b'/a\n"\xff' * 16},
    "three added fields": {**PLAIN, "fields": [("mcp.target", "a"), ("mcp.method.name", "b"), ("zone", "c")]},
}


def main() -> None:
    for name, request in REQUESTS.items():
        for form in ("text", "json"):
            log = AccessLogFormat(form)
            best = min(log.nanoseconds_per_line(request) for _ in range(5))
            print(f"{name:24} {form:5} {best:7.0f} ns")


if __name__ == "__main__":
    main()
