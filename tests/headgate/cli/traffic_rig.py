"""What a gateway tells of its traffic, as tests of commands have it."""

from __future__ import annotations

from typing import Any

BOUNDS = [0.01, 0.1, 1.0]
ROUTE = {"namespace": "default", "matches": [{"path": {"pathPrefix": "/"}}], "backends": []}
DUMP: dict[str, Any] = {
    "binds": [
        {
            "address": "[::]:80",
            "listeners": {
                "a": {
                    "listenerName": "web",
                    "routes": {
                        "default/quiet": {**ROUTE, "name": "quiet"},
                        "default/busy": {
                            **ROUTE,
                            "name": "busy",
                            "matches": [
                                {"path": {"exact": "/a"}, "method": "POST", "headers": [{"name": "x-team"}]},
                                {"path": {"regex": "/b.*"}},
                            ],
                            "backends": [{"weight": 1, "inlineBackend": "a.test:80"}],
                        },
                    },
                }
            },
        }
    ],
    "backends": [
        {"backend": {"ai": {"name": "own", "target": {"providers": [{"active": {"one": {"endpoint": {
            "provider": {"name": "openai", "host": "a.test:443"}, "policies": {"model": "small"}}}}, "rejected": {}}]}}}},
        {"backend": {"ai": {"name": "key-1", "target": {"providers": [{"active": {}, "rejected": {"x": {"endpoint": {
            "provider": {"name": "anthropic", "host": "b.test:443"}}}}}]}}}},
        {"backend": {"mcp": {"name": "tools", "target": {"targets": [
            {"name": "far", "mcp": {"host": "c.test", "port": 443, "path": "/mcp"}}, {"name": "near", "stdio": {"cmd": "uvx"}}]}}}},
    ],
    "models": [{"name": "claude-*", "kind": {"concrete": {"backend": {"backend": "/key-1"}}}}],
}  # fmt: skip
STATE: dict[str, Any] = {
    "bounds": BOUNDS,
    "routes": [
        {
            "name": "default/busy",
            "requests": 10,
            "clientErrors": 2,
            "serverErrors": 1,
            "latency": {"counts": [5, 5, 0, 0]},
        },
        {"name": "", "requests": 3, "clientErrors": 3, "serverErrors": 0, "latency": {"counts": [3, 0, 0, 0]}},
    ],
    "models": [
        {"provider": "openai", "model": "small", "requests": 4, "inputTokens": 40, "outputTokens": 8, "costUsd": 0.5},
        {
            "provider": "anthropic",
            "model": "claude-x",
            "requests": 9,
            "inputTokens": 1,
            "outputTokens": 2,
            "costUsd": None,
        },
    ],
    "sessions": [{"backend": "tools", "count": 2}],
}
# As /api/mcp has it.
TARGETS: list[dict[str, Any]] = [
    {"backend": "tools", "target": "far", "kind": "HTTP", "address": "c.test:443/mcp", "state": "up", "name": "shop", "version": "1.2",
     "protocol": "2025-11-25", "opened": 1, "answered": 2, "failed": None, "error": None, "erred": None, "calls": 6, "errors": 1,
     "failures": 1, "p50Ms": 1.5, "p95Ms": 250.0},
    {"backend": "tools", "target": "near", "kind": "process", "address": "uvx", "state": "down", "name": None, "version": None,
     "protocol": None, "opened": None, "answered": None, "failed": 3, "error": "cannot be started", "erred": 3, "calls": 1, "errors": 0,
     "failures": 1, "p50Ms": None, "p95Ms": None},
]  # fmt: skip
