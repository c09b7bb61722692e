"""Metric families: names (all with the prefix `gw_`), types, help texts and buckets."""

from __future__ import annotations

from typing import NamedTuple

# Upper bounds in seconds (for T: in tokens), by the letters that the rows below use.
BUCKETS: dict[str, tuple[float, ...]] = {
    "H": (0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 80),
    "C": (0.0005, 0.0015, 0.0043, 0.0126, 0.0368, 0.108, 0.316, 0.924, 2.71, 8),
    "P": (0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25),
    "T": (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864),
    "D": (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92),
    "O": (0.001, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5),
    "S": (1, 5, 15, 60, 300, 900, 3600, 7200, 14400, 28800, 86400, 604800),
    "R": (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
    "F": (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10),
}


# Labels of the place of a request in the configuration: `unknown` for what it has not reached.
PLACE = ("bind", "gateway", "listener", "route", "route_rule")
# Labels of metrics that are counted per request.
REQUEST_LABELS = ("backend", "protocol", "method", "status", "reason", *PLACE)
CONNECTION_LABELS = ("bind", "gateway", "listener", "protocol")
MODEL_LABELS = ("gen_ai_operation_name", "gen_ai_system", "gen_ai_request_model", "gen_ai_response_model", *PLACE)


class Family(NamedTuple):
    """One family.

    `kind` is counter, gauge or histogram. `buckets` is a key of BUCKETS if it is a histogram. `added`: its series have
    the labels of `config.metrics.fields.add` as well.
    """

    name: str
    kind: str
    help: str
    labels: tuple[str, ...] = ()
    buckets: str = ""
    added: bool = False


def _counter(name: str, text: str, *labels: str, added: bool = False) -> Family:
    return Family(f"gw_{name}_total", "counter", text, labels, added=added)


def _gauge(name: str, text: str, *labels: str) -> Family:
    return Family(f"gw_{name}", "gauge", text, labels)


def _histogram(name: str, text: str, buckets: str, *labels: str, added: bool = False) -> Family:
    return Family(f"gw_{name}", "histogram", text, labels, buckets, added)


FAMILIES: tuple[Family, ...] = (
    _gauge("build_info", "Version of the gateway; always 1.", "tag"),
    _gauge("config_synchronized", "1 if the newest configuration is in force, 0 after a failed reload."),
    _gauge("config_generation", "Number of the running configuration."),
    _gauge("config_resources", "Stored resources in the running configuration."),
    _gauge("config_database_up", "1 while the database of stored resources can be read, else 0."),
    _gauge("config_last_success_timestamp_seconds", "Time at which the running configuration came into force."),
    _counter("config_reloads", "Reloads that succeeded, or failed and kept the running configuration.", "result"),
    _histogram("config_reload_duration_seconds", "Time of successful reloads.", "R"),
    _gauge("delivery_connected", "1 while a stream to the controller is open."),
    _counter("delivery_connects", "Streams opened to the controller."),
    _counter("delivery_responses", "Changes that the controller sent: accepted, or rejected in part.", "result"),
    _gauge("delivery_resources", "Resources that the controller has sent."),
    _gauge("delivery_rejected_resources", "Resources of the newest state that were refused."),
    _gauge("workers", "Worker processes that serve."),
    _gauge("trace_watchers", "Clients of /debug/trace that are waiting for a request."),
    _counter("worker_hangs", "Workers that did not answer and were killed."),
    _counter("worker_restarts", "Worker processes replaced after they died."),
    _counter("requests", "Requests, counted when their response ended.", *REQUEST_LABELS, added=True),
    _histogram(
        "request_duration_seconds", "Time from a request's head to its response's end.", "H", *REQUEST_LABELS,
        added=True,
    ),
    _histogram(
        "request_processing_seconds", "Time from a request's head to its first call upstream.", "P", "backend", *PLACE,
        added=True,
    ),
    _histogram(
        "response_processing_seconds", "Time from a response's head until it is sent.", "P", "backend", *PLACE,
        added=True,
    ),
    _histogram(
        "stream_duration_seconds", "Time of streams that end when their client or backend leaves.", "S", "kind", *PLACE,
        added=True,
    ),
    _counter("response_bytes", "Bytes of response bodies.", *REQUEST_LABELS, added=True),
    _gauge("requests_in_flight", "Requests in flight, by worker.", "worker"),
    _counter("retries", "Upstream attempts beyond the first.", *REQUEST_LABELS, added=True),
    _counter("retries_refused", "Retries that the budget did not allow.", *PLACE, added=True),
    _counter(
        "limit_decisions",
        "Decisions of limits (on requests, on tokens, remote ones): allowed, limited, or failed.",
        "limit", "decision",
    ),
    _counter("shared_state_calls", "Calls to the store that replicas share.", "outcome"),
    _counter("downstream_connections", "Client connections accepted.", *CONNECTION_LABELS),
    _gauge("downstream_connections_open", "Client connections by worker and state: active or idle.", "worker", "state"),
    _counter("downstream_refused", "Requests and connections refused before routing.", *CONNECTION_LABELS),
    _counter("downstream_received_bytes", "Bytes of request bodies from clients.", *CONNECTION_LABELS),
    _counter("downstream_sent_bytes", "Bytes of response bodies to clients.", *CONNECTION_LABELS),
    _histogram("tls_handshake_duration_seconds", "Time of TLS handshakes with clients.", "C", *CONNECTION_LABELS),
    _counter("proxy_protocol_failures", "Connections without an acceptable PROXY protocol header.", "bind"),
    _counter("tls_handshake_failures", "TLS handshakes with clients that failed, by reason.", "bind", "reason"),
    _gauge(
        "certificate_expiry_timestamp_seconds", "When the certificate of a listener expires.", "bind", "gateway",
        "listener",
    ),
    _gauge("spiffe_svid_expiry_timestamp_seconds", "When the X.509-SVID expires; 0 while there is none."),
    _histogram("upstream_connect_duration_seconds", "Time to open a connection upstream.", "C", "transport"),
    _gauge(
        "upstream_connections_open", "Connections upstream, by address and state (active or idle).", "endpoint", "state"
    ),
    _gauge("upstream_calls_waiting", "Calls that are waiting for a connection, by address.", "endpoint"),
    _counter("upstream_refused", "Calls refused because too many were waiting, or no file descriptor was left."),
    _histogram(
        "upstream_call_duration_seconds", "Time of upstream calls, by purpose.", "H", "kind", "subtype"
    ),
    _counter("endpoint_ejections", "Number of ejections of an endpoint.", "backend", "endpoint"),
    _gauge("endpoint_ejected", "1 while an endpoint is ejected, else 0.", "backend", "endpoint"),
    _gauge("endpoint_health", "Health of an endpoint, 0 to 1.", "backend", "endpoint"),
    _histogram(
        "gen_ai_client_token_usage", "Tokens of an LLM call as counted by the provider, by type.", "T",
        "gen_ai_token_type", *MODEL_LABELS, added=True,
    ),
    _counter(
        "gen_ai_client_cost_usd", "Cost of LLM calls by the cost catalog, in US dollars.", *MODEL_LABELS, added=True
    ),
    _histogram(
        "gen_ai_server_request_duration", "Seconds of a call to an LLM provider.", "D", "error_type", *MODEL_LABELS,
        added=True,
    ),
    _histogram(
        "gen_ai_server_time_to_first_token", "Seconds to the first event of a stream.", "F", *MODEL_LABELS, added=True
    ),
    _histogram(
        "gen_ai_server_time_per_output_token", "Seconds per token after the first event.", "O", *MODEL_LABELS,
        added=True,
    ),
    _counter(
        "gen_ai_unsupported_parameters",
        "Parameters of LLM requests that the provider's format does not support, by name.",
        "parameter", "gen_ai_system", "client_format", "upstream_format", *PLACE, added=True,
    ),
    _counter("cost_catalog_lookups", "Look-ups in the cost catalog, by result.", "status"),
    _counter(
        "mcp_requests", "MCP messages by method.", "method", "resource_type", "server", "resource", *PLACE, added=True
    ),
    _histogram(
        "mcp_target_call_duration_seconds",
        "Time of requests to MCP targets, by outcome: a result (`ok`), an `error`, or no answer (`failed`).",
        "H", "outcome", "backend", "server",
    ),
    _counter(
        "guardrail_checks", "Checks of guardrails, by phase, result and kind; on MCP paths `guard` is `remote`.",
        "phase", "action", "guard",
    ),
    _gauge("mcp_sessions", "MCP sessions by backend and by worker.", "backend", "worker"),
    _counter("expression_failures", "Expressions that failed or returned a wrong type.", "phase"),
    _counter("request_log_records", "Records for the request log: written, or dropped.", "outcome"),
    _counter(
        "key_warnings", "Limits of virtual keys and teams that reached `warnAtPercent`, once per window.",
        "scope", "unit", "window",
    ),
    _counter("key_alerts", "Alerts of such limits: delivered, failed, or dropped.", "outcome"),
    _counter("otlp_exported", "Spans, log records and metrics that a collector accepted, by signal.", "signal"),
    _counter("otlp_dropped", "Spans, log records and metrics that no collector accepted, by signal.", "signal"),
    _gauge("metric_series", "Series of metrics in use."),
    _gauge("metric_series_limit", "Maximum number of series. Beyond it, label values are replaced by `other`."),
    _counter("metric_series_overflow", "Number of times that a series had no room and was counted as `other`."),
    _counter("process_cpu_seconds", "CPU time by process.", "process"),
    _gauge("process_resident_memory_bytes", "Resident memory by process.", "process"),
    _gauge("process_open_descriptors", "Open file descriptors by process.", "process"),
    _gauge("process_max_descriptors", "Maximum number of file descriptors of a process.", "process"),
    _gauge("process_start_time_seconds", "Time at which a process started, since 1970.", "process"),
)  # fmt: skip

BY_NAME = {family.name: family for family in FAMILIES}
