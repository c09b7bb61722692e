"""Configurations on their way into workers."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.config.load import TextSource
from headgate.config.load import load as load_source
from headgate.ir.gateway import Gateway
from headgate.ir.route import Route
from headgate.pipeline.slices import at_once
from headgate.server import transfer
from headgate.server.transfer import Incomplete, KnownParts, Received, load, store


def gateway_of(text: str) -> Gateway:
    return load_source(TextSource(text)).gateway


def received(gateway: Gateway, before: Gateway | None = None, known: KnownParts | None = None) -> Received:
    """The configuration as it arrives at a worker that runs `before`, and has these parts of it."""
    return at_once(load(store(gateway, before), known or KnownParts()))


def running(gateway: Gateway, before: Gateway | None = None, known: KnownParts | None = None) -> KnownParts:
    """What a worker has once it runs the configuration."""
    known = known or KnownParts()
    received(gateway, before, known).take()
    return known


def digests_of(gateway: Gateway) -> list[str]:
    return [route.digest for route in routes_of(gateway)]


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
    copies = [at_once(load(os.dup(descriptor), KnownParts())).gateway for _ in range(2)]
    os.close(descriptor)
    assert [copy.digest for copy in copies] == [gateway.digest] * 2
    auth = copies[0].binds[0].listeners[0].routes[0].backends[0].policies.auth
    assert auth is not None
    assert auth.fixed_header is not None
    assert auth.fixed_header.key.secret.reveal() == "hidden"


def test_all_of_a_configuration_arrives() -> None:
    gateway = gateway_of(text_of("a", "b") + "\nbackends: [{name: n, host: 'b.test:80'}]")
    assert received(gateway).gateway == gateway
    assert gateway.backends


def test_routes_that_are_known_are_taken_from_there_and_not_sent() -> None:
    first, second = gateway_of(text_of("a", "b", "c")), gateway_of(text_of("c", "x", "a"))
    known = running(first)
    assert known.gateway is not None
    before = {route.digest: route for route in routes_of(known.gateway)}
    whole, rest = store(second), store(second, first)
    assert os.fstat(rest).st_size < os.fstat(whole).st_size
    os.close(whole)
    got = at_once(load(rest, known)).gateway
    assert [route.name for route in routes_of(got)] == ["c", "x", "a"]
    assert [before.get(route.digest) is route for route in routes_of(got)] == [True, False, True]


def with_routes(gateway: Gateway, routes: list[Route]) -> Gateway:
    """The configuration with other routes, as a reader gives it that has read only these again."""
    [bind] = gateway.binds
    [listener] = bind.listeners
    return replace(gateway, binds=(replace(bind, listeners=(replace(listener, routes=tuple(routes)),)),))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 11), max_size=12, unique=True), st.lists(st.integers(0, 11), max_size=12, unique=True))
def test_any_change_of_routes_arrives(before: list[int], after: list[int]) -> None:
    every = routes_of(gateway_of(text_of(*(f"r{number}" for number in range(12)))))
    plain = gateway_of(text_of("r"))
    first, second = (with_routes(plain, [every[number] for number in numbers]) for numbers in (before, after))
    known = running(first)
    assert known.gateway is not None
    held = {route.digest: route for route in routes_of(known.gateway)}
    got = received(second, first, known).gateway
    assert digests_of(got) == digests_of(second)
    assert got == second
    assert all(held.get(route.digest, route) is route for route in routes_of(got))


def test_long_lists_that_stay_are_not_sent_again() -> None:
    many = "\n".join(f"- {{name: n{number}, host: 'b.test:80'}}" for number in range(100))
    first = gateway_of(text_of("a", "b") + f"\nbackends:\n{many}")
    second = with_routes(first, routes_of(first)[:1])
    known = running(first)
    assert known.gateway is not None
    descriptor = store(second, first)
    assert os.fstat(descriptor).st_size < 10_000
    got = at_once(load(descriptor, known)).gateway
    assert got.backends is known.gateway.backends
    assert got == second


def test_services_stay_behind_and_what_routes_take_from_them_arrives() -> None:
    text = """
gateways: {default: {port: 3000}}
services: [{name: s, namespace: n, hostname: s.test, ports: {'80': 8080}}]
workloads: [{uid: w, name: w, namespace: n, workloadIps: [10.0.0.1], services: {n/s.test: {'80': 8080}}}]
routes: [{name: a, backends: [{service: {name: n/s.test, port: 80}}]}]
"""
    gateway = gateway_of(text)
    got = received(gateway).gateway
    assert (gateway.services and gateway.workloads, got.services, got.workloads) == (gateway.workloads, (), ())
    assert routes_of(got) == routes_of(gateway)


def expression_text(*rules: str, functions: str = "") -> str:
    own = f"config: {{customFunctions: '{functions}'}}\n" if functions else ""
    lines = [f"- {{name: r{n}, policies: {{authorization: {{rules: ['{rule}']}}}}}}" for n, rule in enumerate(rules)]
    return "\n".join([own + "gateways: {default: {port: 3000}}", "routes:", *lines])


def test_expressions_arrive_compiled_and_are_dropped_when_nobody_has_them() -> None:
    one, other = 'request.path == "/a"', 'request.path.startsWith("/b")'
    first, second = gateway_of(expression_text(one, other)), gateway_of(expression_text(other, 'request.method == "GET"'))
    known = running(first)
    assert known.programs.keys() == {(one, "route"), (other, "route")}
    kept = known.programs[other, "route"]
    got = received(second, first, known)
    assert got.programs[other, "route"] is kept
    assert got.programs['request.method == "GET"', "route"].text == 'request.method == "GET"'
    got.take()
    assert known.programs.keys() == {(other, "route"), ('request.method == "GET"', "route")}


def test_other_functions_compile_every_expression_again() -> None:
    rule = "twice(1) == 2"
    first = gateway_of(expression_text(rule, functions="twice(x) { x + x }"))
    second = gateway_of(expression_text(rule, functions="twice(x) { x * 3 }"))
    known = running(first)
    before = known.programs[rule, "route"]
    got = received(second, first, known)
    values = [one.evaluate_with({}) for one in (before, got.programs[rule, "route"])]
    assert values == [True, False]
    assert got.take() == [{(rule, "route"): before}]
    assert known.programs.keys() == {(rule, "route")}


def test_a_route_keeps_its_digest_where_only_its_place_changes() -> None:
    first, second = gateway_of(text_of("a", "b")), gateway_of(text_of("b", "a"))
    assert set(digests_of(first)) == set(digests_of(second))
    assert first.digest != second.digest


def test_values_of_one_shipment_are_shared() -> None:
    text = "gateways: {default: {port: 3000}}\nbackends: [{name: n, host: 'b.test:80'}]\nroutes:\n"
    text += "".join(f"- {{name: r{i}, backends: [{{backend: n}}]}}\n" for i in range(2))
    one, other = routes_of(received(gateway_of(text)).gateway)
    assert one.backends[0].backend is other.backends[0].backend


def test_a_route_that_is_neither_known_nor_sent_is_a_fault() -> None:
    first, second = gateway_of(text_of("a", "b")), gateway_of(text_of("b", "a"))
    with pytest.raises(Incomplete):
        received(second, first, KnownParts())


def test_a_row_longer_than_a_batch_arrives_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pickles of one batch share a memo; what a batch ends with must not be looked for in the next one."""
    monkeypatch.setattr(transfer, "BATCH", 3)
    names = [f"r{number}" for number in range(11)]
    gateway = gateway_of(text_of(*names))
    found = received(gateway).gateway
    assert found == gateway
    assert digests_of(found) == digests_of(gateway)
    changed = gateway_of(text_of(*names[:4], *(f"s{number}" for number in range(7))))
    assert received(changed, gateway, running(gateway)).gateway == changed
