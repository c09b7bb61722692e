"""Client connections and access log."""

from __future__ import annotations

from collections.abc import Callable

from headgate.ir.frontend import AccessLog, Frontend
from headgate.ir.gateway import Gateway


def test_defaults_hold_without_a_section(loaded: Callable[..., Gateway]) -> None:
    assert loaded("").frontend == Frontend()
    assert loaded("frontendPolicies: {http: null, tls: {}}").frontend == Frontend()


def test_both_names_of_the_access_log_and_its_old_place_remove_keys(loaded: Callable[..., Gateway]) -> None:
    expected = AccessLog(remove=("a", "b"))
    for text in (
        "frontendPolicies: {accessLog: {remove: [a, b]}}",
        "frontendPolicies: {logging: {remove: [a, b]}}",
        "config: {logging: {fields: {remove: [a, b]}}}",
    ):
        assert loaded(text).frontend.access_log == expected


def test_the_old_and_the_new_place_exclude_each_other(faults: Callable[..., list[str]]) -> None:
    text = "config: {logging: {fields: {remove: [a]}}}\nfrontendPolicies: {accessLog: {remove: [b]}}"
    assert faults(text) == ["config.logging.fields: 'frontendPolicies.accessLog' is set as well (1)"]


def test_at_most_32_keys_can_be_removed(faults: Callable[..., list[str]]) -> None:
    keys = ", ".join(f"k{number}" for number in range(33))
    assert "33 entries" in faults(f"frontendPolicies: {{accessLog: {{remove: [{keys}]}}}}")[0]


def test_models_may_answer_more_than_other_bodies_may_have(loaded: Callable[..., Gateway]) -> None:
    for text, expected in (
        ("", 32 << 20),
        ("{maxBufferSize: 64Mi}", 64 << 20),
        ("{maxBufferSize: 64Mi, maxModelResponseSize: 3Mi}", 3 << 20),
    ):
        found = loaded(f"frontendPolicies: {{http: {text}}}" if text else "").frontend
        assert found.longest_model_response == expected


def at_port(port: int, body: str, name: str = "p") -> str:
    target = f"{{gateway: {{gatewayName: default, gatewayNamespace: default, port: {port}}}}}"
    return f"- {{name: {{name: {name}, namespace: n}}, target: {target}, frontend: {{{body}}}}}\n"


PORTS = "gateways: {a: {port: 1}, b: {port: 2}}\nroutes: [{gateways: [a, b], backends: [{host: 'x:1'}]}]\n"


def test_a_port_may_have_settings_of_its_own(loaded: Callable[..., Gateway]) -> None:
    """What it does not say is that of all ports."""
    text = PORTS + "frontendPolicies: {connect: {mode: tunnel}, tcp: {keepalives: {enabled: false}}}\npolicies:\n"
    text += at_port(1, "proxyProtocol: {version: v1}, connect: {mode: deny}") + at_port(1, "connect: {mode: tunnel}", "later")
    gateway = loaded(text)
    first, second = (one.frontend for one in gateway.binds)
    assert second is None
    assert first is not None
    assert first.proxy_protocol is not None
    assert (first.connect, first.keepalives.enabled, gateway.frontend.proxy_protocol) == ("deny", False, None)


def test_a_port_may_have_its_own_log_and_spans(loaded: Callable[..., Gateway]) -> None:
    """Older forms in `config` are those of the other ports; the request log is that of all."""
    older = "config: {tracing: {otlpEndpoint: 'http://old:4317'}, database: {url: 'sqlite:///x'}}\n"
    text = PORTS + older + "frontendPolicies: {accessLog: {add: {a: '1'}, database: {llm: full}}}\npolicies:\n"
    text += at_port(1, "logging: {filter: 'false'}, tracing: {host: new:4317, randomSampling: true}")
    gateway = loaded(text)
    own = gateway.binds[0].frontend
    assert gateway.binds[1].frontend is None
    assert gateway.frontend.access_log == AccessLog(add=(("a", "1"),), database_full=True)
    assert own is not None
    assert own.access_log == AccessLog(filter="false", database_full=True)
    assert own.tracing is not None
    assert gateway.frontend.tracing is not None
    assert own.tracing.target != gateway.frontend.tracing.target


def test_what_all_ports_have_together_is_not_said_of_one(faults: Callable[[str], list[str]]) -> None:
    kinds = ("accessLog: {database: {llm: full}}", "http: {maxBufferSize: 5}", "connect: {mode: route}")
    for body in kinds:
        assert any("for the whole gateway" in one for one in faults(PORTS + "policies:\n" + at_port(1, body)))
    assert "port 9, which is not open" in faults(PORTS + "policies:\n" + at_port(9, "networkAuthorization: {rules: ['true']}"))[0]


def test_no_time_at_all_is_refused_and_does_not_become_the_default(faults: Callable[..., list[str]]) -> None:
    assert faults("frontendPolicies: {http: {stallTimeout: 0s, http2KeepaliveTimeout: 0s}}") == [
        "frontendPolicies.http.stallTimeout: must be more than 0s; the default is 60s (1)",
        "frontendPolicies.http.http2KeepaliveTimeout: must be more than 0s; the default is 20s (1)",
    ]
