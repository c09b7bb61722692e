"""Backends that are internal ports: what is read, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headgate.ir.backend import InternalBackend, UiBackend
from headgate.ir.gateway import Gateway

TEXT = "binds:\n- {port: 1, listeners: [{routes: [{backends: [%s]}]}]}\n- {port: 80, mode: internal, listeners: [%s]}\n"


@pytest.mark.parametrize("written", ["80", "'80'"])
def test_a_port_is_a_number(written: str, loaded: Callable[..., Gateway]) -> None:
    gateway = loaded(TEXT % (f"{{internal: {written}}}", "{routes: []}"))
    [choice] = gateway.binds[0].listeners[0].routes[0].backends
    assert isinstance(choice.backend, InternalBackend)
    assert choice.backend.bind == gateway.binds[1].key
    assert choice.backend.endpoint.address == "internal:80"


def test_the_port_without_a_number(loaded: Callable[..., Gateway]) -> None:
    text = "binds: [{port: 1, listeners: [{routes: [{backends: [{internal: '*'}]}]}]}, {mode: internal, listeners: [{}]}]"
    gateway = loaded(text)
    routes = [route for bind in gateway.binds for listener in bind.listeners for route in listener.routes]
    [choice] = routes[0].backends
    assert isinstance(choice.backend, InternalBackend)
    assert choice.backend.bind == "bind/internal"


@pytest.mark.parametrize(
    ("backend", "listeners", "fault"),
    [
        ("{internal: 81}", "{routes: []}", "there is no bind of mode internal with the port 81"),
        ("{internal: 1}", "{routes: []}", "there is no bind of mode internal with the port 1"),
        ("{internal: x}", "{routes: []}", "'x' is neither the port"),
        ("{internal: /config_dump}", "{routes: []}", "'/config_dump' is not a path of the admin API: use / or a path below /ui, /api/runtime"),
        ("{internal: /ui/../quitquitquit}", "{routes: []}", "is not a path of the admin API"),
        ("{internal: /ui//x}", "{routes: []}", "is not a path of the admin API"),
        ("{internal: /ui/%2e%2e/x}", "{routes: []}", "is not a path of the admin API"),
        ("{internal: /uix}", "{routes: []}", "is not a path of the admin API"),
        ("{internal: '/api/runtime?a=b'}", "{routes: []}", "a path below"),
        ("{internal: forward, policies: {backendTLS: {}}}", "{routes: []}", "backendTLS applies to connections"),
        ("{internal: 80}", "{protocol: TCP}", "must have the protocol HTTP"),
        ("{internal: 80, policies: {backendTLS: {}}}", "{routes: []}", "backendTLS applies to connections"),
        ("{internal: 80, policies: {health: {}}}", "{routes: []}", "health applies to connections"),
        ("{internal: 80}", "{routes: [{backends: [{internal: 80}]}]}", "internal ports form a loop"),
    ],
)
def test_faults(backend: str, listeners: str, fault: str, faults: Callable[..., list[str]]) -> None:
    assert any(fault in told for told in faults(TEXT % (backend, listeners)))


def test_circles_through_groups_and_named_backends_are_seen(faults: Callable[..., list[str]]) -> None:
    text = TEXT % ("{internal: 80}", "{routes: [{backends: [{routeGroup: g}]}]}")
    text += "routeGroups: [{name: g, routes: [{backends: [{backend: b}]}]}]\nbackends: [{name: b, internal: 80}]\n"
    assert any("internal ports form a loop: bind/internal/80 > bind/internal/80" in told for told in faults(text))


@pytest.mark.parametrize(("written", "path"), [("forward", None), ("/", "/"), ("/ui", "/ui"), ("/api/logs/search", "/api/logs/search")])
def test_the_admin_api(written: str, path: str | None, loaded: Callable[..., Gateway]) -> None:
    text = f"binds: [{{port: 1, listeners: [{{routes: [{{backends: [{{internal: {written}}}, {{internal: 2}}]}}]}}]}}, {{port: 2, mode: internal, listeners: [{{}}]}}]"
    admin, port = (choice.backend for choice in loaded(text).binds[0].listeners[0].routes[0].backends)
    assert isinstance(admin, UiBackend)
    assert isinstance(port, InternalBackend)
    assert (admin.path, admin.name) == (path, f"internal/admin{path or ''}")
    named = "gateways: {default: {port: 1}}\nroutes: [{backends: [{backend: b}]}]\nbackends: [{name: b, internal: %s}]\n"
    gateway = loaded(named % written)
    assert [gateway.binds[0].listeners[0].routes[0].backends[0].backend.path] == [path]
    assert gateway.binds[0].listeners[0].routes[0].backends[0].backend.name == "/b"
