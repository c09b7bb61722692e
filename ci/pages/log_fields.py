"""Writes docs/log-fields.md: python ci/pages/log_fields.py > docs/log-fields.md

The keys and their order are those of the engine (headgate_engine.log.keys); what they mean is said here.
"""

from __future__ import annotations

import sys
from typing import Final

from headgate_engine.log.keys import FIELDS, ORDER

# By key: what it is, and in which lines it is.
MEANINGS: Final = {
    "connection.id": ("number of the client's connection", "TCP and TLS listeners"),
    "request.id": ("id of the request (`config.requestId`)", "if ids are generated or accepted"),
    "gateway": ("namespace and name of the gateway", "always"),
    "listener": ("the listener", "always"),
    "route_rule": ("the rule of the route", "if it has a name"),
    "route": ("namespace and name of the route", "if one matched"),
    "endpoint": ("address and port of the backend", "if one was called"),
    "src.addr": ("address and port of the client", "always"),
    "src.identity": ("identity in the client's certificate", "with mTLS"),
    "dst.addr": ("address that the client connected to", "TCP and TLS listeners"),
    "bytes.received": ("bytes of the request's body", "if there is one"),
    "bytes.sent": ("bytes of the response's body", "if there is one"),
    "http.method": ("method", "always"),
    "http.host": ("host without the port", "always"),
    "http.path": ("path and query, in which credentials are hidden", "always"),
    "http.version": ("version of HTTP", "always"),
    "http.status": ("status that the client got", "if it got one"),
    "user_agent.original": ("`user-agent`", "if the client sends it"),
    "grpc.status": ("status in the trailers", "gRPC calls"),
    "tls.sni": ("server name (SNI) in the handshake", "with TLS"),
    "trace.id": ("id of the trace", "with a `traceparent`, or if tracing is configured"),
    "span.id": ("id of the gateway's span", "with a `traceparent`, or if tracing is configured"),
    "jwt.sub": ("`sub` of the verified token", "with `jwtAuth`, `oidc` or `mcpAuthentication`"),
    "protocol": ("`http`, `grpc`, `llm`, `mcp`, `a2a`, `tcp` or `tls`", "always"),
    "a2a.method": ("method of the A2A call", "A2A"),
    "a2a.response.outcome": ("`result` or `error`", "A2A"),
    "a2a.response.error_code": ("code of the JSON-RPC error", "failed A2A calls"),
    "a2a.result.kind": ("`task` or `message`", "A2A"),
    "a2a.task.state": ("state of the task in the answer", "A2A"),
    "a2a.context.id": ("id of the conversation", "A2A"),
    "a2a.card.signatures_removed": ("number of signatures that were removed from the agent's card", "A2A cards"),
    "mcp.method.name": ("method of the MCP call", "MCP"),
    "mcp.target": ("the target that answered", "MCP"),
    "mcp.resource.type": ("`tool`, `prompt`, `resource` or `task`", "MCP calls for one"),
    "mcp.resource.uri": ("URI of the resource", "MCP calls for one"),
    "gen_ai.tool.name": ("name of the tool", "MCP calls of a tool"),
    "gen_ai.prompt.name": ("name of the prompt", "MCP calls for one"),
    "mcp.session.id": ("first characters of the session id", "MCP sessions"),
    "mcp.error.code": ("code of the JSON-RPC error", "failed MCP calls"),
    "mcp.error.message": ("why the call failed", "failed MCP calls"),
    "inferencepool.selected_endpoint": ("the endpoint that the picker chose", "with `inferenceRouting`"),
    "gen_ai.operation.name": ("`chat`, `embeddings`, ...", "models"),
    "gen_ai.provider.name": ("the provider", "models"),
    "gen_ai.request.model": ("the requested model", "models"),
    "gen_ai.response.model": ("the model that answered", "models, if the answer has it"),
    "gen_ai.usage.input_tokens": ("tokens of the prompt", "models, if they are counted"),
    "gen_ai.usage.cache_creation.input_tokens": (
        "tokens written to the provider's cache",
        "models, if they are counted",
    ),
    "gen_ai.usage.cache_read.input_tokens": (
        "tokens read from the provider's cache",
        "models, if they are counted",
    ),
    "gen_ai.usage.output_tokens": ("tokens of the answer", "models, if they are counted"),
    "gen_ai.usage.reasoning_tokens": (
        "reasoning tokens, part of the output tokens",
        "models, if they are counted",
    ),
    "gen_ai.usage.output_image_tokens": ("image tokens of the answer", "models, if they are counted"),
    "gen_ai.usage.input_audio_tokens": ("audio tokens of the prompt", "models, if they are counted"),
    "gen_ai.usage.output_audio_tokens": ("audio tokens of the answer", "models, if they are counted"),
    "gw.ai.time_to_first_token": ("seconds from the attempt to the first event", "streams of models"),
    "gw.ai.time_per_output_token": ("seconds per token after the first", "streams of models"),
    "gw.ai.usage.cost.total": ("cost in dollars", "models with a price"),
    "gen_ai.request.temperature": ("parameter of the request", "models, if it is set"),
    "gen_ai.embeddings.dimension.count": ("parameter of the request", "models, if it is set"),
    "gen_ai.request.encoding_formats": ("parameter of the request", "models, if it is set"),
    "gen_ai.request.top_p": ("parameter of the request", "models, if it is set"),
    "gen_ai.request.max_tokens": ("parameter of the request", "models, if it is set"),
    "gen_ai.request.frequency_penalty": ("parameter of the request", "models, if it is set"),
    "gen_ai.request.presence_penalty": ("parameter of the request", "models, if it is set"),
    "gen_ai.request.seed": ("parameter of the request", "models, if it is set"),
    "retry.attempt": ("number of the answered attempt, from 1", "if it was not the first"),
    "error": ("why the gateway responded itself, or why the response broke off", "failures"),
    "reason": ("what answered or failed ([values](errors.md#reasons))", "if it was not the backend"),
    "upstream.duration": ("time from the first attempt to the head of the response", "if a backend was called"),
    "duration": ("time from the head of the request to the end of the response", "always"),
}
# Keys of some policies, which are at the end of a line.
OTHERS: Final = {
    "api_key.name": ("name of the key", "if a key may not use the model"),
    "extauthz.error": ("why the call of the `extAuthz` service failed", "such failures"),
    "extproc.details": ("`details` of a response that the processor sent", "with `extProc`"),
    "extproc.error": ("why the processor failed", "such failures"),
    "gw.ai.guardrail": ("the guard that refused or changed something", "with `promptGuard`"),
    "gw.ai.usage.source": ("`estimate`: the provider sent no counts", "models whose tokens are estimated"),
    "gw.retry.refused": ("`budget`: the retry budget did not allow a retry", "with `retry`"),
    "inference.refused": ("why the picker's choice was not used", "with `inferenceRouting`"),
    "jwt.error": ("why a token is not valid", "with `jwtAuth` and `mcpAuthentication`, if one was refused"),
    "ratelimit.error": ("why the call of the `remoteRateLimit` service failed", "such failures"),
    "route.parents": ("the routes that delegated the request", "if a route delegates"),
    "transformation.failed": ("the field whose expression failed", "with `transformations`"),
}
EXAMPLE: Final = (
    "2027-01-31T04:33:57.554509Z\tinfo\trequest gateway=default/default listener=default route=internal/llm:request",
    "endpoint=127.0.0.1:36437 src.addr=127.0.0.1:41656 bytes.received=77 bytes.sent=310 http.method=POST",
    "http.host=localhost http.path=/v1/chat/completions http.version=HTTP/1.1 http.status=200",
    "user_agent.original=curl/7.88.1 protocol=llm gen_ai.operation.name=chat gen_ai.provider.name=openai",
    "gen_ai.request.model=sample gen_ai.response.model=sample gen_ai.usage.input_tokens=2",
    "gen_ai.usage.output_tokens=4 upstream.duration=1ms duration=1ms",
)
HEAD: Final = """# Fields of the access log

Each request has one line, at the end of its response. For example:

```text
@LINE@
```

- **JSON.** With `config.logging.format: json`, a line is an object that begins with `level`, `time` and `scope`.
  Durations are numbers of milliseconds: `duration_ms`, `upstream.duration_ms`.
- **OpenTelemetry.** Collectors get the same keys as attributes ([telemetry.md](telemetry.md)).
- **Other fields.** `frontendPolicies.accessLog` adds and removes fields
  ([policies.md](policies.md#access-log-and-metric-labels)).

This page is generated from the engine's table of keys (`make log-fields`).
"""


def rows(keys: dict[str, tuple[str, str]]) -> list[str]:
    """The lines of a table."""
    return [
        "| Field | Meaning | Lines that have it |",
        "|---|---|---|",
        *(f"| `{key}` | {what} | {when} |" for key, (what, when) in keys.items()),
    ]


def page() -> str:
    """Return the page. Raises KeyError for a key that has no meaning here."""
    ordered = {key: MEANINGS[key] for key in ORDER}
    strangers = sorted((set(FIELDS) | MEANINGS.keys()) - ordered.keys())
    if strangers:
        raise KeyError(f"not in the order of a line: {', '.join(strangers)}")
    lines = [
        HEAD.replace("@LINE@", " ".join(EXAMPLE)),
        "## Fields in the order of a line",
        "",
        *rows(ordered),
        "",
        "## Fields of some policies, at the end of a line",
        "",
        *rows(OTHERS),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(page())
