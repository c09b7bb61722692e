"""Keys of access-log lines."""

# Keys that the engine itself writes, in this order.
FIELDS = (
    "request.id", "gateway", "listener", "route_rule", "route", "endpoint", "src.addr", "src.identity",
    "bytes.received", "bytes.sent", "http.method", "http.host", "http.path", "http.version", "http.status",
    "user_agent.original", "tls.sni", "trace.id", "span.id", "protocol", "gen_ai.operation.name",
    "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.usage.input_tokens",
    "gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.usage.reasoning_tokens",
    "retry.attempt", "error", "reason", "upstream.duration", "duration",
)

# All known keys in the order of a line, for fields that steps and handlers add. Other keys come last.
ORDER = (
    "connection.id", "request.id", "gateway", "listener", "route_rule", "route", "endpoint", "src.addr",
    "src.identity", "dst.addr", "bytes.received", "bytes.sent", "http.method", "http.host", "http.path",
    "http.version", "http.status", "user_agent.original", "grpc.status", "tls.sni", "trace.id", "span.id",
    "jwt.sub", "protocol", "a2a.method", "a2a.response.outcome", "a2a.response.error_code", "a2a.result.kind",
    "a2a.task.state", "a2a.context.id", "a2a.card.signatures_removed", "mcp.method.name", "mcp.target",
    "mcp.resource.type", "mcp.resource.uri", "gen_ai.tool.name", "gen_ai.prompt.name", "mcp.session.id",
    "mcp.error.code", "mcp.error.message", "inferencepool.selected_endpoint", "gen_ai.operation.name",
    "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.response.model", "gen_ai.usage.input_tokens",
    "gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.output_tokens", "gen_ai.usage.reasoning_tokens", "gw.ai.time_to_first_token",
    "gw.ai.time_per_output_token", "gw.ai.usage.cost.total", "gen_ai.usage.output_image_tokens",
    "gen_ai.usage.input_audio_tokens", "gen_ai.usage.output_audio_tokens", "gen_ai.request.temperature",
    "gen_ai.embeddings.dimension.count", "gen_ai.request.encoding_formats", "gen_ai.request.top_p",
    "gen_ai.request.max_tokens", "gen_ai.request.frequency_penalty", "gen_ai.request.presence_penalty",
    "gen_ai.request.seed", "retry.attempt", "error", "reason", "upstream.duration", "duration",
)
