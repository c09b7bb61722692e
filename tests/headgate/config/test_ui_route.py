"""The admin page behind listeners: where it attaches, what it claims, and who gets there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headgate.admin.mount_points import mount_url
from headgate.config.dump import Runtime, dump
from headgate.config.load import FileSource, TextSource, load
from headgate.config.source_reader import SourceReader
from headgate.ir.backend import UiBackend
from headgate.ir.gateway import Gateway
from headgate.ir.listener import Listener

Load = Callable[..., Gateway]
Faults = Callable[..., list[str]]
BASIC = "basicAuth: {htpasswd: 'ada:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g='}"
OPTIONAL = BASIC.replace("htpasswd", "mode: optional, htpasswd")
KEY = "apiKey: {keys: [{key: k}]}"
OIDC = (
    "oidc: {issuer: 'https://login.test', clientId: a, clientSecret: b, redirectURI: 'https://admin.test/after/login',"
    " authorizationEndpoint: 'https://login.test/a', tokenEndpoint: 'https://login.test/t', jwks: {url: 'https://login.test/k'}}"
)


def listeners(gateway: Gateway) -> dict[str, Listener]:
    return {one.name: one for bind in gateway.binds for one in bind.listeners}


def access(listener: Listener) -> list[str]:
    found = [choice.backend for route in listener.routes for choice in route.backends]
    return [one.access for one in found if isinstance(one, UiBackend)]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("gateways: {default: {port: 1}}", []),
        ("gateways: {default: {port: 1}}\nui: {}", ["default"]),
        ("gateways: {default: {port: 1}, a: {port: 2}, b: {port: 3}}\nui: {gateways: [a, b]}", ["a", "b"]),
        ("gateways: {a: {port: 1}}\nui: {}", []),
        ("gateways: {a: {port: 1, listeners: [{name: x, hostname: x.test}, {name: y}]}}\nui: {gateways: a/y}", ["y"]),
    ],
)
def test_it_attaches_as_other_sections_do(loaded: Load, text: str, where: list[str]) -> None:
    found = [one.name for bind in loaded(text).binds for one in bind.listeners if access(one)]
    assert found == where


def test_the_paths_it_claims(loaded: Load) -> None:
    found = listeners(loaded("gateways: {default: {port: 1}}\nui: {}"))["default"].routes[0]
    assert (found.namespace, found.name) == ("internal", "ui")
    assert [(one.path.kind, one.path.value) for one in found.matches] == [
        ("exact", "/"), ("prefix", "/ui"), ("prefix", "/api/runtime"), ("prefix", "/api/config"), ("prefix", "/api/cel"),
        ("prefix", "/api/logs"), ("prefix", "/api/costs"),
    ]  # fmt: skip


def test_a_login_brings_its_way_back(loaded: Load) -> None:
    text = f"gateways: {{default: {{port: 1}}}}\nui: {{policies: {{{OIDC}}}}}"
    found = listeners(loaded(text, {"OIDC_COOKIE_SECRET": "5a" * 32}))["default"]
    assert (found.routes[0].matches[-1].path.kind, found.routes[0].matches[-1].path.value) == ("exact", "/after/login")
    assert access(found) == ["login"]


@pytest.mark.parametrize(
    ("policies", "listener", "expected"),
    [
        ("{}", "", "open"),
        ("{}", "hostname: admin.test", "named"),
        ("{}", "hostname: '*.admin.test'", "named"),
        ("{}", "hostname: '*'", "open"),
        (f"{{{BASIC}}}", "", "login"),
        (f"{{{KEY}}}", "", "login"),
        (f"{{{OPTIONAL}}}", "", "open"),
        (f"{{{BASIC}}}", "hostname: admin.test", "login"),
        ("{}", BASIC, "login"),
        ("{}", OPTIONAL, "open"),
        ("{authorization: {rules: ['source.address == \"127.0.0.1\"']}, csrf: {}, cors: {}}", "", "open"),
    ],
)
def test_who_gets_there(loaded: Load, policies: str, listener: str, expected: str) -> None:
    text = f"gateways: {{default: {{port: 1, listeners: [{{name: x{', ' if listener else ''}{listener}}}]}}}}"
    assert access(listeners(loaded(f"{text}\nui: {{policies: {policies}}}"))["x"]) == [expected]


def test_a_certificate_fixes_the_name(loaded: Load, certificates: Any) -> None:
    files = f"cert: {certificates.folder}/a.crt, key: {certificates.folder}/a.key"
    text = f"gateways: {{default: {{port: 1, tls: {{{files}}}}}}}\nui: {{}}"
    assert access(listeners(loaded(text))["default"]) == ["named"]


def test_listeners_of_one_section_differ(loaded: Load) -> None:
    text = f"gateways: {{a: {{port: 1, {BASIC}}}, b: {{port: 2}}}}\nui: {{gateways: [a, b]}}"
    assert {one.name: access(one) for bind in loaded(text).binds for one in bind.listeners} == {
        "a": ["login"], "b": ["open"],
    }  # fmt: skip


def test_a_page_for_everybody_is_warned_of() -> None:
    text = f"gateways: {{a: {{port: 1, {BASIC}}}, b: {{port: 2}}}}\nui: {{gateways: [a, b]}}"
    assert load(TextSource(text, "c")).warnings == (
        "ui: the admin page at default/default.b asks for no credential: whoever reaches it reads what it shows",
    )


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("ui: {gateways: x}", "ui.gateways: unknown gateway reference x (1)"),
        ("gateways: {a: {port: 1}}\nui: {gateways: a/b}", "ui.gateways: unknown gateway reference a/b (2)"),
        (
            f"gateways: {{a: {{port: 1}}}}\nui: {{policies: {{{KEY}}}}}",
            "ui.policies: there is no gateway that they could hold at: set ui.gateways (2)",
        ),
        ("ui: {policies: {timeout: {}}}", "ui.policies: unknown field 'timeout' (1)"),
    ],
)
def test_what_is_refused(faults: Faults, text: str, fault: str) -> None:
    assert faults(text) == [fault]


def test_external_authorization_may_guard_it(loaded: Load) -> None:
    gateway = loaded("gateways: {default: {port: 1}}\nui: {policies: {extAuthz: {host: 'a:1'}}}")
    found = dump(gateway, Runtime(generation=1, workers=1))
    route = found["binds"][0]["listeners"]["default/default.default"]["routes"]["internal/ui"]
    assert [list(one) for one in route["inlinePolicies"]] == [["extAuthz"]]


def test_the_dump_shows_it(loaded: Load) -> None:
    gateway = loaded(f"gateways: {{default: {{port: 1}}}}\nui: {{policies: {{{KEY}}}}}")
    found = dump(gateway, Runtime(generation=1, workers=1))
    route = found["binds"][0]["listeners"]["default/default.default"]["routes"]["internal/ui"]
    assert route["backends"] == [{"weight": 1, "backend": "/internal/ui"}]
    assert [list(one) for one in route["inlinePolicies"]] == [["apiKey"]]
    assert {"backend": {"internal": {"name": "internal/ui", "namespace": "", "target": "admin"}}, "inlinePolicies": []} in found["backends"]


FORWARD = "gateways: {{default: {{port: 1{gateway}}}}}\nroutes: [{{name: a, policies: {policies}, backends: [{{{backend}}}]}}]\n{more}"


@pytest.mark.parametrize(
    ("policies", "gateway", "expected"),
    [("{}", "", "open"), (f"{{{KEY}}}", "", "login"), ("{}", f", {BASIC}", "login"), (f"{{{OPTIONAL}}}", "", "open")],
)
@pytest.mark.parametrize(
    ("backend", "more"),
    [
        ("internal: forward", ""),
        ("internal: /api/runtime", ""),
        ("backend: b", "backends: [{name: b, internal: forward}]"),
        ("routeGroup: g", "routeGroups: [{name: g, routes: [{backends: [{internal: forward}]}]}]"),
    ],
)
def test_who_gets_to_the_admin_api(
    loaded: Load, policies: str, gateway: str, expected: str, backend: str, more: str
) -> None:
    text = FORWARD.format(policies=policies, gateway=gateway, backend=backend, more=more)
    assert access(listeners(loaded(text))["default"]) == [expected]
    warned = [one for one in load(TextSource(text, "c")).warnings if "asks for no credential" in one]
    assert len(warned) == (expected == "open")


def test_one_choice_among_others_is_the_admin_api(loaded: Load) -> None:
    text = "gateways: {default: {port: 1}}\nroutes: [{backends: [{host: 'a:1', weight: 2}, {internal: /ui, weight: 3}]}]"
    [host, admin] = listeners(loaded(text))["default"].routes[0].backends
    assert (host.weight, admin.weight) == (2, 3)
    assert isinstance(admin.backend, UiBackend)
    assert not isinstance(host.backend, UiBackend)


def test_the_dump_shows_where_requests_go(loaded: Load) -> None:
    gateway = loaded("gateways: {default: {port: 1}}\nroutes: [{name: a, backends: [{internal: forward}, {internal: /ui}]}]")
    found = dump(gateway, Runtime(generation=1, workers=1))
    [route] = found["binds"][0]["listeners"]["default/default.default"]["routes"].values()
    assert [one["backend"] for one in route["backends"]] == ["/internal/admin", "/internal/admin/ui"]
    shown = [one["backend"]["internal"] for one in found["backends"]]
    assert [one["target"] for one in shown] == ["admin", "/ui"]


def test_a_page_of_the_section_has_a_url_and_an_api_has_none(loaded: Load) -> None:
    text = "gateways: {default: {port: 1}}\nroutes: [{name: a, backends: [{internal: forward}]}]\n"
    assert mount_url(loaded(text)) is None
    assert mount_url(loaded(text + "ui: {}")) == "http://localhost:1/ui"


def test_a_changed_route_to_the_api_is_read_by_itself(tmp_path: Path) -> None:
    """A reload that reads one route comes to what reading everything comes to, with its access and its warning."""
    path = tmp_path / "c.yaml"
    rest = "".join(f"- name: r{i}\n  matches: [{{path: {{exact: /{i}}}}}]\n  backends: [{{host: 'a:{i + 1}'}}]\n" for i in range(300))
    text = "gateways: {default: {port: 1}}\nroutes:\n- name: a\n  policies: {POLICY}\n  backends: [{internal: forward}]\n" + rest
    reader = SourceReader(FileSource(str(path)))
    for policies in ("{}", f"{{{KEY}}}", "{cors: {}}", "{}"):
        path.write_text(text.replace("{POLICY}", policies))
        found = reader.load()
        whole = load(FileSource(str(path)))
        assert found.gateway == whole.gateway
        assert found.warnings == whole.warnings
        assert access(listeners(found.gateway)["default"]) == ["login" if "apiKey" in policies else "open"]
    path.write_text(text.replace("{POLICY}", "{}").replace("'a:7'", "'a:77'"))
    assert reader.load().warnings == load(FileSource(str(path))).warnings != ()
    assert reader.whole == 1
