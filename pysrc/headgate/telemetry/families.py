"""Metric families: names (all with the prefix `gw_`), types, help texts and buckets."""

from __future__ import annotations

from typing import NamedTuple

# Upper bounds in seconds (for T: in tokens), by the letters that the rows below use.
BUCKETS: dict[str, tuple[float, ...]] = {
    "H": (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 80),
    "C": (0.0005, 0.0015, 0.0043, 0.0126, 0.0368, 0.108, 0.316, 0.924, 2.71, 8),
    "P": (0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25),
    "T": (
        1,
        4,
        16,
        64,
        256,
        1024,
        4096,
        16384,
        65536,
        262144,
        1048576,
        4194304,
        16777216,
        67108864,
    ),
    "D": (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92),
    "O": (0.001, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5),
    "F": (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10),
}


class Family(NamedTuple):
    """One family. `kind` is counter, gauge or histogram. `buckets` is a key of BUCKETS if it is a histogram."""

    name: str
    kind: str
    help: str
    buckets: str = ""


FAMILIES: tuple[Family, ...] = (
    Family("gw_build_info", "gauge", "Version of the gateway; always 1."),
    Family("gw_config_synchronized", "gauge", "1 when the newest configuration runs, 0 after a failed reload."),
    Family("gw_config_generation", "gauge", "Number of the running configuration."),
    Family("gw_workers", "gauge", "Worker processes that serve."),
    Family("gw_trace_watchers", "gauge", "Clients of /debug/trace that wait for a request."),
    Family("gw_worker_hangs_total", "counter", "Workers that did not answer and were killed."),
    Family("gw_worker_restarts_total", "counter", "Worker processes replaced after they died."),
    Family("gw_requests_total", "counter", "Requests, counted when their response ended."),
    Family("gw_request_duration_seconds", "histogram", "Time from a request's head to its response's end.", "H"),
    Family("gw_request_processing_seconds", "histogram", "Time from a request's head to its first call upstream.", "P"),
    Family("gw_response_processing_seconds", "histogram", "Time from a response's head until it is on its way.", "P"),
    Family("gw_response_bytes_total", "counter", "Bytes of response bodies."),
    Family("gw_retries_total", "counter", "Upstream attempts beyond the first."),
    Family("gw_retries_refused_total", "counter", "Retries that the budget did not allow: the failure was answered."),
    Family("gw_downstream_connections_total", "counter", "Client connections accepted."),
    Family("gw_downstream_refused_total", "counter", "Requests and connections refused before routing."),
    Family("gw_downstream_received_bytes_total", "counter", "Bytes of request bodies from clients."),
    Family("gw_downstream_sent_bytes_total", "counter", "Bytes of response bodies to clients."),
    Family("gw_tls_handshake_duration_seconds", "histogram", "Time of TLS handshakes with clients.", "C"),
    Family("gw_proxy_protocol_failures_total", "counter", "Connections without an acceptable PROXY protocol header."),
    Family("gw_tls_handshake_failures_total", "counter", "TLS handshakes with clients that failed, by reason."),
    Family("gw_upstream_connect_duration_seconds", "histogram", "Time to open a connection upstream.", "C"),
    Family("gw_upstream_refused_total", "counter", "Calls refused: too many waited, or no descriptor was left."),
    Family("gw_upstream_call_duration_seconds", "histogram", "Time of calls upstream, by what they are for.", "H"),
    Family("gw_gen_ai_client_token_usage", "histogram", "Tokens of an LLM call as the provider counted, by type.", "T"),
    Family("gw_gen_ai_client_cost_usd_total", "counter", "Cost of LLM calls by the cost catalog, in US dollars."),
    Family("gw_gen_ai_server_request_duration", "histogram", "Seconds of a call to an LLM provider.", "D"),
    Family("gw_gen_ai_server_time_to_first_token", "histogram", "Seconds to the first event of a stream.", "F"),
    Family("gw_gen_ai_server_time_per_output_token", "histogram", "Seconds for a token behind the first event.", "O"),
    Family(
        "gw_gen_ai_unsupported_parameters_total",
        "counter",
        "Parameters of LLM requests that the provider's format has no place for, by name.",
    ),
    Family("gw_cost_catalog_lookups_total", "counter", "Look-ups in the cost catalog, by what came of them."),
    Family("gw_mcp_requests_total", "counter", "MCP messages by method."),
    Family("gw_guardrail_checks_total", "counter", "Checks of guardrails, by phase and what came of them."),
    Family("gw_mcp_sessions", "gauge", "MCP sessions by backend, and by worker that knows them."),
    Family("gw_expression_failures_total", "counter", "Expressions that failed or had a value of a wrong type."),
    Family("gw_request_log_records_total", "counter", "Records for the request log: written, or dropped."),
    Family("gw_metric_series", "gauge", "Series of metrics in use."),
    Family("gw_metric_series_limit", "gauge", "Most series; beyond it the values of labels are replaced by `other`."),
    Family("gw_metric_series_overflow_total", "counter", "Times a series found no room and was counted as `other`."),
    Family("gw_process_resident_memory_bytes", "gauge", "Resident memory by process."),
)

# Labels of metrics that are counted per request.
REQUEST_LABELS = (
    "backend", "protocol", "method", "status", "reason", "bind", "gateway", "listener", "route", "route_rule",
)  # fmt: skip

BY_NAME = {family.name: family for family in FAMILIES}
