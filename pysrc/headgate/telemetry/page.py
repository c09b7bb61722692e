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
A request is counted when its response has ended, whether the backend or the gateway responded; `reason` says which
([errors](errors.md#reasons)). Its duration is the time from its head to the end of its response. Request processing
time ends with the first call upstream, and includes the body if a policy or the backend reads it first. Response
processing time is the time from the backend's response head until the client's response begins. Streams that last as
long as the client wants have only their own duration, by `kind`: `upgrade` (WebSocket and others), `tunnel` (CONNECT)
and `events` (a GET that is answered with server-sent events, and MCP subscriptions)."""),
    Section("Clients", ("gw_downstream", "gw_tls", "gw_proxy_protocol", "gw_spiffe", "gw_cert"), """\
The listener of a connection is that of its port if the port has only one without a host name, otherwise that of the
server name in the TLS handshake. It is `unknown` for plain connections to several listeners. `protocol` is `http`,
`https`, `tcp` or `tls`. Bytes of bodies count for the listener of their request.

A handshake fails with one of these reasons, which is also logged: `alert` (the client refused, usually the
certificate), `alpn`, `certificate` (that of the client is missing or not accepted), `cipher` (no common suite, group
or signature), `closed`, `identity` (the gateway has no certificate: none from SPIFFE, or none may be issued for the
name), `name` (no listener has it), `plain` (no TLS), `protocol`, `timeout` or `version`."""),
    Section("Backends", ("gw_upstream", "gw_endpoint"), """\
A call lasts from its start to its response head or its failure. Every attempt is a call, and so is each of several
calls for one answer. `kind` is `Primary`, `Policy` or `Mirror`; `subtype` is the purpose (`Http`, `Llm`, `Mcp`,
`Guardrail`, `Oidc` and others). Endpoints are those of services, and of named backends with `health` or session
affinity. At most 1,000 addresses have series of connections, the busiest first."""),
    Section("Models", ("gw_gen_ai", "gw_cost", "gw_key"), """\
Names follow OpenTelemetry's conventions for generative AI. Each call to a provider is counted. Tokens and times per
token are those that the provider reported. `error_type` is empty without an error, otherwise the provider's status or
one of `failed` (no connection, or a broken one), `timeout`, `broken` (in the middle of the answer) and `cancelled`
(the client disconnected). A model has 16 values, and `_OTHER` for the rest. Realtime sessions have no duration of a
call."""),
    Section("MCP and guards", ("gw_mcp", "gw_guardrail"), ""),
    Section("The gateway itself", ("gw_",), """\
Times are in seconds, and timestamps in seconds since 1970. A worker that does not answer a scrape in time has no
series in it."""),
)  # fmt: skip
INTRODUCTION: Final = """\
# Metrics

`curl -s http://127.0.0.1:15020/metrics` returns the metrics as text, OpenMetrics or protobuf, as the `Accept` header
prefers ([operation](operate.md#readiness-and-metrics)):

```
gw_requests_total{backend="web",protocol="http",method="GET",status="200",reason="Upstream",bind="bind/8080",...} 5
```

- **Selection.** `config.metrics.remove` removes families. Their names there may omit `gw_`, `_total` and the unit.
- **Labels.** A label that does not apply is `unknown`. `+` means that those of `config.metrics.fields.add` follow.
- **Limit.** There are at most `gw_metric_series_limit` series. Beyond that, new label values are counted in
  one series per family, whose label values are `other`, and `gw_metric_series_overflow_total` increases.
- **Exemplars.** OpenMetrics and protobuf contain exemplars for the durations of requests and of calls to models: each
  bucket names the last sampled trace that it counted ([traces](telemetry.md)). The exemplars of a series count as
  another series. There are none when three quarters of `gw_metric_series_limit` are in use. A worker keeps those
  of 1,024 series at most.

This page is generated from the table of families.
"""
# Groups of labels that many families have, by the name that the tables use.
GROUPS: Final = (
    ("request", REQUEST_LABELS), ("model", MODEL_LABELS), ("connection", CONNECTION_LABELS), ("place", PLACE),
)  # fmt: skip


def page() -> str:
    """Return docs/metrics.md."""
    lines = [INTRODUCTION, "| Group of labels | Labels |", "|---|---|"]
    lines += [f"| *{name}* | {_codes(labels)} |" for name, labels in GROUPS]
    left = list(FAMILIES)
    for section in SECTIONS:
        found = [family for family in left if family.name.startswith(section.prefixes)]
        left = [family for family in left if family not in found]
        lines += ["", f"## {section.title}", ""]
        if section.text:
            lines += [section.text, ""]
        lines += ["| Name | Type | Labels | Meaning |", "|---|---|---|---|"]
        lines += [f"| `{one.name}` | {_kind(one)} | {_labels(one)} | {one.help} |" for one in found]
    lines += ["", "## Buckets", ""]
    lines.append("Upper bounds in seconds (T: in tokens). `config.histograms` adds exponential buckets.")
    lines += ["", "| Type | Bounds |", "|---|---|"]
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
