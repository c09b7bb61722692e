"""The spellings of the file, where routes attach, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headgate.ir.gateway import Gateway

Load = Callable[..., Gateway]
Faults = Callable[..., list[str]]
ROUTE = "{name: r, backends: [{host: 'h:1'}]}"
MCP = "{name: a, stdio: {cmd: x}}"

REFUSED = [
    ("gateways: {g: {}}", "gateways.g.port is required (1)"),
    ("binds: [{listeners: []}]", "binds[0].port is required (1)"),
    (
        "gateways: {a: {port: 1}, b: {port: 1}}",
        "gateways.b.port: port 1 is configured by both gateways.a and gateways.b; binds, llm, and mcp must use "
        "unique ports (1)",
    ),
    (
        "gateways: {a: {port: 1}}\nbinds: [{port: 1, listeners: []}]",
        "binds[0].port: port 1 is configured by both gateways.a and binds[0]; binds, llm, and mcp must use unique "
        "ports (2)",
    ),
    (
        f"llm: {{port: 9, models: []}}\nmcp: {{port: 9, targets: [{MCP}]}}",
        "mcp.port: port 9 is configured by both llm and mcp; binds, llm, and mcp must use unique ports (2)",
    ),
    (
        f"binds: [{{port: 4000, listeners: []}}]\nllm: {{models: []}}\nmcp: {{port: 1, targets: [{MCP}]}}",
        "llm.port: port 4000 is configured by both binds[0] and llm; binds, llm, and mcp must use unique ports (2)",
    ),
    ("gateways: {a: {port: 1, protocol: HTTPS}}", "gateways.a.protocol: protocol HTTPS requires tls (1)"),
    (f"routes: [{ROUTE}]", "routes.r must set gateways (1)"),
    (f"gateways: {{a: {{port: 1}}}}\nroutes: [{ROUTE}]", "routes.r must set gateways (2)"),
    (
        "gateways: {a: {port: 1}}\nroutes: [{gateways: b}]",
        "routes[0].gateways: unknown gateway reference b (2)",
    ),
    (
        "gateways: {a: {port: 1}}\nroutes: [{gateways: [a/x]}]",
        "routes[0].gateways: unknown gateway reference a/x (2)",
    ),
    (
        "gateways: {a: {port: 1}}\nllm: {gateways: a, port: 2, models: []}",
        "llm.port: llm.gateways and llm.port are mutually exclusive (2)",
    ),
    (
        f"gateways: {{a: {{port: 1}}}}\nmcp: {{gateways: a, port: 2, targets: [{MCP}]}}",
        "mcp.port: mcp.gateways and mcp.port are mutually exclusive (2)",
    ),
    (
        "gateways: {a: {port: 1, protocol: HTTP, listeners: [{name: x}]}}",
        "gateways.a.protocol: set this on the listeners: the gateway has 'listeners' (1)",
    ),
    (
        "gateways: {a: {port: 1, listeners: [{name: x}, {name: x, hostname: b.test}]}}",
        "gateways.a.listeners[1].name: two listeners on port 1 are named 'x' (1)",
    ),
    (
        "gateways: {a: {port: 1, listeners: [{name: x}, {name: y}]}}",
        "gateways.a.listeners[1]: listeners x and y on port 1 both have the host * (1)",
    ),
    ("gateways: {a/b: {port: 1}}", "gateways['a/b']: a gateway name cannot be empty or contain '/' (1)"),
]


@pytest.mark.parametrize(("text", "fault"), REFUSED, ids=[case[1][:60] for case in REFUSED])
def test_contradictions_are_refused_with_their_place(text: str, fault: str, faults: Faults) -> None:
    found = faults(text)
    assert any(line == fault or line.replace(".hostname:", ":") == fault for line in found), found


def test_faults_of_meaning_are_told_together_with_what_is_not_supported_yet(faults: Faults) -> None:
    found = faults(
        "gateways: {a: {}}\nroutes: [{}]\nconfig:\n  localXdsPath: x\n  xdsAddress: x\n"
    )
    assert found == [
        "gateways.a.port is required (1)",
        "routes.route0 must set gateways (2)",
        "not supported yet: config.localXdsPath (4)",
        "not supported yet: config.xdsAddress (5)",
    ]


def attached(gateway: Gateway) -> dict[str, list[str]]:
    return {
        listener.key: [route.key for route in listener.routes]
        for bind in gateway.binds
        for listener in bind.listeners
    }


def test_routes_without_gateways_attach_to_the_default_gateway(loaded: Load) -> None:
    gateway = loaded(
        f"gateways: {{default: {{port: 1}}, b: {{port: 2}}}}\nroutes: [{ROUTE}, {{gateways: b}}]"
    )
    assert attached(gateway) == {
        "default/default.default": ["default/r"],
        "default/default.b": ["default/route1"],
    }


def test_a_route_can_name_several_gateways_and_single_listeners(loaded: Load) -> None:
    text = (
        "gateways: {a: {port: 1, listeners: [{name: x}, {name: y, hostname: y.test}]}, b: {port: 2}}\n"
        "routes: [{gateways: [a/y, b, b]}]"
    )
    assert attached(loaded(text)) == {
        "default/default.a/x": [],
        "default/default.a/y": ["default/route0"],
        "default/default.b": ["default/route0"],
    }


def test_a_shared_route_is_one_object(loaded: Load) -> None:
    gateway = loaded("gateways: {a: {port: 1}, b: {port: 2}}\nroutes: [{gateways: [a, b]}]")
    first, second = (bind.listeners[0].routes[0] for bind in gateway.binds)
    assert first is second


def test_llm_and_mcp_open_their_own_ports_or_join_the_default_gateway(loaded: Load) -> None:
    sections = f"llm: {{models: []}}\nmcp: {{targets: [{MCP}]}}\n"
    own = loaded(sections)
    assert [(bind.port, bind.listeners[0].name) for bind in own.binds] == [(3000, "mcp"), (4000, "llm")]
    assert [match.path.value for match in own.binds[0].listeners[0].routes[0].matches] == ["/"]
    shared = loaded("gateways: {default: {port: 8}}\n" + sections)
    assert [bind.port for bind in shared.binds] == [8]
    llm, mcp = shared.binds[0].listeners[0].routes
    assert [match.path.value for match in mcp.matches] == ["/mcp", "/sse", "/.well-known"]
    assert [match.path.value for match in llm.matches] == ["/"]


def test_a_port_keeps_a_section_off_the_default_gateway(loaded: Load) -> None:
    gateway = loaded("gateways: {default: {port: 8}}\nllm: {port: 9, models: []}")
    assert [(bind.port, len(bind.listeners[0].routes)) for bind in gateway.binds] == [(8, 0), (9, 1)]


def test_long_form_and_short_form_mean_the_same_route(loaded: Load) -> None:
    short = loaded(f"gateways: {{default: {{port: 1}}}}\nroutes: [{ROUTE}]").binds[0].listeners[0].routes[0]
    long = loaded(f"binds: [{{port: 1, listeners: [{{routes: [{ROUTE}]}}]}}]").binds[0].listeners[0].routes[0]
    assert (short.matches, short.backends, short.policies) == (long.matches, long.backends, long.policies)


def test_route_keys_are_unique_even_when_names_are_not(loaded: Load) -> None:
    gateway = loaded(f"gateways: {{default: {{port: 1}}}}\nroutes: [{ROUTE}, {ROUTE}, {ROUTE}]")
    keys = [route.key for route in gateway.binds[0].listeners[0].routes]
    assert len(set(keys)) == 3
    assert keys[0] == "default/r"


def test_routes_keep_the_order_of_the_file(loaded: Load) -> None:
    gateway = loaded("gateways: {default: {port: 1}}\nroutes: [{name: z}, {name: a}, {name: m}]")
    assert [route.name for route in gateway.binds[0].listeners[0].routes] == ["z", "a", "m"]


def test_without_ipv6_ports_open_on_ipv4(loaded: Load) -> None:
    text = "config: {enableIpv6: false}\ngateways: {default: {port: 1}}"
    assert loaded(text).binds[0].address == "0.0.0.0:1"
    assert loaded("gateways: {default: {port: 1}}").binds[0].address == "[::]:1"


def test_edits_of_prompts_are_not_for_the_mcp_section(faults: Callable[..., list[str]]) -> None:
    target = '{name: t, mcp: {host: "http://a:1/mcp"}}'
    found = faults(f"mcp: {{port: 1, policies: {{ai: {{defaults: {{a: 1}}}}}}, targets: [{target}]}}")
    assert found[0].startswith("mcp.policies.ai: ai is for AI backends")
