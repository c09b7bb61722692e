"""Configurations on their way into workers."""

from __future__ import annotations

import os

import pytest

from headgate.config.load import TextSource
from headgate.config.load import load as load_source
from headgate.ir.gateway import Gateway
from headgate.ir.route import Route
from headgate.pipeline.slices import at_once
from headgate.server.transfer import Incomplete, KnownParts, load, route_digests, store


def gateway_of(text: str) -> Gateway:
    return load_source(TextSource(text)).gateway


def received(gateway: Gateway, before: Gateway | None = None, known: KnownParts | None = None) -> tuple[Gateway, KnownParts]:
    """The configuration as a worker has it that runs `before`, and what it holds of that."""
    return at_once(load(store(gateway, before), known or KnownParts()))


def routes_of(gateway: Gateway) -> list[Route]:
    return [route for bind in gateway.binds for listener in bind.listeners for route in listener.routes]


def text_of(*names: str) -> str:
    lines = [f"- {{name: {name}, backends: [{{host: 'a.test:80'}}]}}" for name in names]
    return "\n".join(["gateways: {default: {port: 3000}}", "routes:", *lines])


def test_a_configuration_with_secrets_crosses_and_several_can_read_it() -> None:
    text = """
gateways: {default: {port: 3000}}
routes: [{name: a, backends: [{host: "a.test:80", policies: {backendAuth: {key: hidden}}}]}]
"""
    gateway = gateway_of(text)
    descriptor = store(gateway)
    copies = [at_once(load(os.dup(descriptor), KnownParts()))[0] for _ in range(2)]
    os.close(descriptor)
    assert [copy.digest for copy in copies] == [gateway.digest] * 2
    auth = copies[0].binds[0].listeners[0].routes[0].backends[0].policies.auth
    assert auth is not None
    assert auth.fixed_header is not None
    assert auth.fixed_header.key.secret.reveal() == "hidden"


def test_all_of_a_configuration_arrives() -> None:
    gateway = gateway_of(text_of("a", "b") + "\nbackends: [{name: n, host: 'b.test:80'}]")
    assert received(gateway)[0] == gateway
    assert gateway.backends


def test_routes_that_are_known_are_taken_from_there_and_not_sent() -> None:
    first, second = gateway_of(text_of("a", "b", "c")), gateway_of(text_of("c", "x", "a"))
    _, held = received(first)
    whole, rest = store(second), store(second, first)
    assert os.fstat(rest).st_size < os.fstat(whole).st_size
    os.close(whole)
    got, after = at_once(load(rest, held))
    assert [route.name for route in routes_of(got)] == ["c", "x", "a"]
    assert [held.routes.get(route.digest) is route for route in routes_of(got)] == [True, False, True]
    assert after.routes.keys() == route_digests(second)


def expression_text(*rules: str, functions: str = "") -> str:
    own = f"config: {{customFunctions: '{functions}'}}\n" if functions else ""
    lines = [f"- {{name: r{n}, policies: {{authorization: {{rules: ['{rule}']}}}}}}" for n, rule in enumerate(rules)]
    return "\n".join([own + "gateways: {default: {port: 3000}}", "routes:", *lines])


def test_expressions_arrive_compiled_and_are_dropped_when_nobody_has_them() -> None:
    one, other = 'request.path == "/a"', 'request.path.startsWith("/b")'
    first, second = gateway_of(expression_text(one, other)), gateway_of(expression_text(other, 'request.method == "GET"'))
    _, held = received(first)
    assert held.programs.keys() == {(one, "route"), (other, "route")}
    _, after = received(second, first, held)
    assert after.programs.keys() == {(other, "route"), ('request.method == "GET"', "route")}
    assert after.programs[other, "route"] is held.programs[other, "route"]
    assert after.programs['request.method == "GET"', "route"].text == 'request.method == "GET"'


def test_other_functions_compile_every_expression_again() -> None:
    rule = "twice(1) == 2"
    first = gateway_of(expression_text(rule, functions="twice(x) { x + x }"))
    second = gateway_of(expression_text(rule, functions="twice(x) { x * 3 }"))
    _, held = received(first)
    _, after = received(second, first, held)
    values = [one.programs[rule, "route"].evaluate_with({}) for one in (held, after)]
    assert values == [True, False]


def test_a_route_keeps_its_digest_where_only_its_place_changes() -> None:
    first, second = gateway_of(text_of("a", "b")), gateway_of(text_of("b", "a"))
    assert route_digests(first) == route_digests(second)
    assert first.digest != second.digest


def test_values_of_one_shipment_are_shared() -> None:
    text = "gateways: {default: {port: 3000}}\nbackends: [{name: n, host: 'b.test:80'}]\nroutes:\n"
    text += "".join(f"- {{name: r{i}, backends: [{{backend: n}}]}}\n" for i in range(2))
    one, other = routes_of(received(gateway_of(text))[0])
    assert one.backends[0].backend is other.backends[0].backend


def test_a_route_that_is_neither_known_nor_sent_is_a_fault() -> None:
    gateway = gateway_of(text_of("a"))
    with pytest.raises(Incomplete):
        received(gateway, gateway, KnownParts())
