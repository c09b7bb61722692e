"""Writes docs/log-fields.md: python ci/pages/log_fields.py > docs/log-fields.md

The keys and their order are those of the engine (headgate_engine.log.keys); what they mean is said here.
"""

from __future__ import annotations

import sys
from typing import Final

from headgate_engine.log.keys import FIELDS, ORDER

# By key: what it is, and in which lines it is.
MEANINGS: Final = {
    "connection.id": ("number of the client's connection", "of TCP and TLS listeners"),
    "request.id": ("id of the request (`config.requestId`)", "where ids are made or taken"),
    "gateway": ("namespace and name of the gateway", "always"),
    "listener": ("the listener", "always"),
    "route_rule": ("the rule of the route", "where it has a name"),
    "route": ("namespace and name of the route", "where one matched"),
    "endpoint": ("address and port of the backend", "where one was asked"),
    "src.addr": ("address and port of the client", "always"),
    "src.identity": ("identity in the client's certificate", "with mTLS"),
    "dst.addr": ("address that the client connected to", "of TCP and TLS listeners"),
    "bytes.received": ("bytes of the request's body", "where there is one"),
    "bytes.sent": ("bytes of the response's body", "where there is one"),
    "http.method": ("method", "always"),
    "http.host": ("host without the port", "always"),
    "http.path": ("path and query, in which credentials are hidden", "always"),
    "http.version": ("version of HTTP", "always"),
    "http.status": ("status that the client got", "where it got one"),
    "user_agent.original": ("`user-agent`", "where the client says it"),
    "grpc.status": ("status in the trailers", "of gRPC calls"),
    "tls.sni": ("name that the client asked for in the handshake", "with TLS"),
    "trace.id": ("id of the trace", "with a `traceparent`, or where tracing is configured"),
    "span.id": ("id of the gateway's span", "with a `traceparent`, or where tracing is configured"),
    "jwt.sub": ("`sub` of the verified token", "with `jwtAuth`, `oidc` and their kin"),
    "protocol": ("`http`, `grpc`, `llm`, `mcp`, `a2a`, `tcp` or `tls`", "always"),
    "a2a.method": ("method of the A2A call", "of A2A"),
    "a2a.response.outcome": ("`result` or `error`", "of A2A"),
    "a2a.response.error_code": ("code of the JSON-RPC error", "of A2A calls that fail"),
    "a2a.result.kind": ("`task` or `message`", "of A2A"),
    "a2a.task.state": ("state of the task in the answer", "of A2A"),
    "a2a.context.id": ("id of the conversation", "of A2A"),
    "a2a.card.signatures_removed": ("signatures of the agent's card that an edit made void", "of A2A cards"),
    "mcp.method.name": ("method of the MCP call", "of MCP"),
    "mcp.target": ("the target that answered", "of MCP"),
    "mcp.resource.type": ("`tool`, `prompt`, `resource` or `task`", "of MCP calls about one"),
    "mcp.resource.uri": ("URI of the resource", "of MCP calls about one"),
    "gen_ai.tool.name": ("name of the tool", "of MCP calls of one"),
    "gen_ai.prompt.name": ("name of the prompt", "of MCP calls about one"),
    "mcp.session.id": ("the first letters of the session's id", "of MCP sessions"),
    "mcp.error.code": ("code of the JSON-RPC error", "of MCP calls that fail"),
    "mcp.error.message": ("why the call failed", "of MCP calls that fail"),
    "inferencepool.selected_endpoint": ("the endpoint that the picker chose", "with `inferenceRouting`"),
    "gen_ai.operation.name": ("`chat`, `embeddings`, ...", "of models"),
    "gen_ai.provider.name": ("the provider", "of models"),
    "gen_ai.request.model": ("the model that was asked for", "of models"),
    "gen_ai.response.model": ("the model that answered", "of models, where the answer says it"),
    "gen_ai.usage.input_tokens": ("tokens of the prompt", "of models, where they are counted"),
    "gen_ai.usage.cache_creation.input_tokens": (
        "tokens written to the provider's cache",
        "of models, where they are counted",
    ),
    "gen_ai.usage.cache_read.input_tokens": (
        "tokens read from the provider's cache",
        "of models, where they are counted",
    ),
    "gen_ai.usage.output_tokens": ("tokens of the answer", "of models, where they are counted"),
    "gen_ai.usage.reasoning_tokens": (
        "tokens of thinking, a part of the answer's",
        "of models, where they are counted",
    ),
    "gen_ai.usage.output_image_tokens": ("tokens of pictures in the answer", "of models, where they are counted"),
    "gen_ai.usage.input_audio_tokens": ("tokens of sound in the prompt", "of models, where they are counted"),
    "gen_ai.usage.output_audio_tokens": ("tokens of sound in the answer", "of models, where they are counted"),
    "gw.ai.time_to_first_token": ("seconds from the attempt to the first event", "of streams of models"),
    "gw.ai.time_per_output_token": ("seconds for each further token", "of streams of models"),
    "gw.ai.usage.cost.total": ("cost in dollars", "of models with a price"),
    "gen_ai.request.temperature": ("parameter of the request", "of models, where it is said"),
    "gen_ai.embeddings.dimension.count": ("parameter of the request", "of models, where it is said"),
    "gen_ai.request.encoding_formats": ("parameter of the request", "of models, where it is said"),
    "gen_ai.request.top_p": ("parameter of the request", "of models, where it is said"),
    "gen_ai.request.max_tokens": ("parameter of the request", "of models, where it is said"),
    "gen_ai.request.frequency_penalty": ("parameter of the request", "of models, where it is said"),
    "gen_ai.request.presence_penalty": ("parameter of the request", "of models, where it is said"),
    "gen_ai.request.seed": ("parameter of the request", "of models, where it is said"),
    "retry.attempt": ("number of the attempt that was answered, from 1", "where it was not the first"),
    "error": ("why the gateway answered by itself, or why the response broke off", "of failures"),
    "reason": ("who answered or failed, as `gw_requests_total` counts it", "where it was not the backend"),
    "upstream.duration": ("from the first attempt to the head of the answer", "where a backend was asked"),
    "duration": ("from the head of the request to the end of the response", "always"),
}
# Keys of some policies, which are at the end of a line.
OTHERS: Final = {
    "api_key.name": ("the key that may not use the model", "where a key is refused a model"),
    "extauthz.error": ("why the call of the `extAuthz` service failed", "of such failures"),
    "extproc.details": ("`details` of an answer that the processor sent itself", "with `extProc`"),
    "extproc.error": ("why the processor failed", "of such failures"),
    "gw.ai.guardrail": ("the guard that refused or changed something", "with `promptGuard`"),
    "gw.ai.usage.source": ("`estimate`: the provider did not count", "of models whose tokens are estimated"),
    "gw.retry.refused": ("`budget`: a retry was due and the budget did not allow it", "with `retry`"),
    "inference.refused": ("why the picker's choice was not used", "with `inferenceRouting`"),
    "jwt.error": ("why a token is not valid", "with `jwtAuth` and `mcpAuthentication`, where one was refused"),
    "ratelimit.error": ("why the call of the `remoteRateLimit` service failed", "of such failures"),
    "route.parents": ("the routes that delegated the request", "where a route delegates"),
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

Made from the engine's table of keys: `make log-fields`. One line a request, at the end of its response:

```text
@LINE@
```

With `config.logging.format: json` a line is an object with `level`, `time` and `scope` in front, and lengths of time
are numbers of milliseconds: `duration_ms`, `upstream.duration_ms`. Collectors get the same keys as attributes
([telemetry.md](telemetry.md)). `frontendPolicies.accessLog` adds and removes fields
([policies.md](policies.md#access-log-and-metric-labels)).
"""


def rows(keys: dict[str, tuple[str, str]]) -> list[str]:
    """The lines of a table."""
    return [
        "| field | what it is | in which lines |",
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
        "## In the order of a line",
        "",
        *rows(ordered),
        "",
        "## Of some policies, at the end",
        "",
        *rows(OTHERS),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(page())
