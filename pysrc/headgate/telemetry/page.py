"""The page of metrics, made from the table of families: `python -m headgate.telemetry.page > docs/metrics.md`."""

from __future__ import annotations

from typing import Final, NamedTuple

from headgate.telemetry.families import (
    BUCKETS,
    CONNECTION_LABELS,
    FAMILIES,
    MODEL_LABELS,
    PLACE,
    REQUEST_LABELS,
    Family,
)


class Section(NamedTuple):
    """A part of the page: the families whose names begin with one of `prefixes`, behind an introduction."""

    title: str
    prefixes: tuple[str, ...]
    text: str


SECTIONS: Final = (
    Section("Requests", (
        "gw_requests", "gw_request_d", "gw_request_p", "gw_response", "gw_retries", "gw_limit", "gw_shared",
        "gw_stream",
    ), """\
A request counts when its response has ended, whoever gave the answer; `reason` says who
([errors](errors.md#reasons)). Its duration goes from its head to the end of its response, the time of processing from
its head to the first call upstream (with the body where a policy or the backend reads it first), and from the head of
the backend's response until the first of it is on its way to the client. Streams that last as long as their client
wants them have no duration of a request, only one of their own, by `kind`: `upgrade` (WebSocket and others), `tunnel`
(CONNECT) and `events` (a GET that is answered with server-sent events, and subscriptions of MCP)."""),
    Section("Clients", ("gw_downstream", "gw_tls", "gw_proxy_protocol", "gw_spiffe", "gw_cert"), """\
The listener of a connection is that of its port, where the port has one without a host name, else that of the server
name in the TLS handshake; `unknown` on plain connections to several. `protocol` is `http`, `https`, `tcp` or `tls`.
Bytes of bodies count for the listener of their request. A handshake fails by `alert` (the client refused, mostly our
certificate), `alpn`, `certificate` (the client's is missing or not accepted), `cipher` (no common suite, group or
signature), `closed`, `identity` (the gateway has no certificate: none from SPIFFE, or none may be made for the name),
`name` (no listener has it), `plain` (no TLS), `protocol`, `timeout` or `version`; each failure is also a line of the
log."""),
    Section("Backends", ("gw_upstream", "gw_endpoint"), """\
A call goes from its start to its head or its failure; every attempt is one, and so is each of several calls for one
answer. `kind` is `Primary`, `Policy` or `Mirror`, `subtype` what it is for (`Http`, `Llm`, `Mcp`, `Guardrail`, `Oidc`
and others). Endpoints are those of named backends with `health` or session affinity and of services. At most 1,000
addresses have series of connections, the busiest first."""),
    Section("Models", ("gw_gen_ai", "gw_cost", "gw_key"), """\
Names follow OpenTelemetry's conventions for generative AI. Each call to a provider counts; tokens and times per token
are those that the provider told. `error_type` is empty without an error, else the provider's status, or `failed` (no
connection, or none that held), `timeout`, `broken` (in the middle of its answer) or `cancelled` (its client left); a
model has 16 values, and `_OTHER` for further ones. Realtime sessions have no duration of a call."""),
    Section("MCP and guards", ("gw_mcp", "gw_guardrail"), ""),
    Section("The gateway itself", ("gw_",), """\
Times are in seconds, timestamps in seconds since 1970. A worker that does not answer a scrape in time has no series
for it."""),
)  # fmt: skip
INTRODUCTION: Final = """\
# Metrics

`curl -s http://127.0.0.1:15020/metrics` gives them as text, OpenMetrics or protobuf, whichever the `Accept` header
prefers ([operation](operate.md#readiness-and-metrics)):

```
gw_requests_total{backend="web",protocol="http",method="GET",status="200",reason="Upstream",bind="bind/8080",...} 5
```

This page is made from the table of families. `config.metrics.remove` leaves families out; names there may lack `gw_`,
`_total` and the unit. A label that does not apply is `unknown`. `+` behind labels: the labels of
`config.metrics.fields.add` follow. There are at most `gw_metric_series_limit` series: what a label made from requests
would add beyond that is counted in one series per family whose label values are `other`, and
`gw_metric_series_overflow_total` grows.

OpenMetrics and protobuf carry *exemplars*: of the durations of requests and of calls to models, each bucket names the
last sampled trace that it counted ([traces](telemetry.md)). Those of a series count as one more series; there are none
once three quarters of `gw_metric_series_limit` are in use, and no worker keeps those of more than 1,024 series.
"""
# Groups of labels that many families have, by the name that the tables use.
GROUPS: Final = (
    ("request", REQUEST_LABELS), ("model", MODEL_LABELS), ("connection", CONNECTION_LABELS), ("place", PLACE),
)  # fmt: skip


def page() -> str:
    """Return docs/metrics.md."""
    lines = [INTRODUCTION, "| labels | |", "|---|---|"]
    lines += [f"| *{name}* | {_codes(labels)} |" for name, labels in GROUPS]
    left = list(FAMILIES)
    for section in SECTIONS:
        found = [family for family in left if family.name.startswith(section.prefixes)]
        left = [family for family in left if family not in found]
        lines += ["", f"## {section.title}", ""]
        if section.text:
            lines += [section.text, ""]
        lines += ["| name | type | labels | |", "|---|---|---|---|"]
        lines += [f"| `{one.name}` | {_kind(one)} | {_labels(one)} | {one.help} |" for one in found]
    lines += ["", "## Buckets", "", "Upper bounds, in seconds (T: tokens). `config.histograms` adds exponential ones."]
    lines += ["", "| | |", "|---|---|"]
    lines += [f"| {letter} | {', '.join(f'{bound:.10g}' for bound in bounds)} |" for letter, bounds in BUCKETS.items()]
    return "\n".join(lines) + "\n"


def _kind(family: Family) -> str:
    return f"{family.kind} {family.buckets}".strip()


def _labels(family: Family) -> str:
    labels = family.labels
    parts: list[str] = []
    for name, group in GROUPS:
        if labels[-len(group) :] == group:
            own = labels[: -len(group)]
            parts = [_codes(own)] if own else []
            parts.append(f"*{name}*")
            break
    else:
        parts = [_codes(labels)] if labels else []
    return ", ".join(parts) + (" +" if family.added else "")


def _codes(labels: tuple[str, ...]) -> str:
    return ", ".join(f"`{label}`" for label in labels)


if __name__ == "__main__":
    print(page(), end="")
