"""Plans of listeners that carry no HTTP."""

from __future__ import annotations

import pytest

from headgate.ir.backend import HostBackend, RouteBackend, ServiceBackend, ServiceEndpoint
from headgate.ir.bind import Bind
from headgate.ir.endpoint import Endpoint
from headgate.ir.listener import Listener, Protocol
from headgate.ir.tcp_route import TcpRoute
from headgate.pipeline.tcp import protocol_of, protocol_with, tcp_table
from headgate_engine.link.backend import HOST
from headgate_engine.plan.plans import BackendPlan


def listener(protocol: Protocol, *routes: TcpRoute) -> Listener:
    return Listener(
        key="l", gateway_name="g", gateway_namespace="n", name="l", protocol=protocol, tcp_routes=routes
    )


@pytest.mark.parametrize(
    ("kinds", "protocol"),
    [
        (("HTTP",), "http/1.1"), (("HTTPS", "HTTPS"), "http/1.1"), ((), "http/1.1"), (("TCP",), "tcp"),
        (("TLS", "TLS"), "tcp"), (("HTTPS", "TLS"), "mixed"),
    ],
)  # fmt: skip
def test_what_a_port_speaks(kinds: tuple[Protocol, ...], protocol: str) -> None:
    bind = Bind(key="bind/1", host="::", port=1, listeners=tuple(map(listener, kinds)))
    assert protocol_of(bind) == protocol


def test_routes_are_found_by_name() -> None:
    host = HostBackend(key="h", name="h", endpoint=Endpoint(key="h", host="h", port=1, tcp=True))
    routes = (
        TcpRoute(key="a", name="a", namespace="n", rule_name=None, hostnames=("a.test", "*.b.test"),
                 backends=(RouteBackend(backend=host, weight=3),)),
        TcpRoute(key="b", name="b", namespace="n", rule_name="r"),
    )  # fmt: skip
    table = tcp_table(listener("TLS", *routes), lambda _: BackendPlan("h", "tcp", HOST))
    names = {name: table.get(name).name for name in ("a.test", "x.y.b.test", "b.test", "")}
    assert names == {"a.test": "a", "x.y.b.test": "a", "b.test": "b", "": "b"}
    assert table.get("a.test").pick().protocol == "tcp"
    assert table.get("b.test").pick() is None


def test_what_is_spoken_with_a_backend() -> None:
    tcp = Endpoint(key="h", host="h", port=1, tcp=True)
    service = ServiceBackend(
        key="s", name="s", owner="s", hostname="s", port=1, endpoints=(ServiceEndpoint(key="w", endpoint=tcp),)
    )
    assert protocol_with(HostBackend(key="h", name="h", endpoint=tcp)) == "tcp"
    assert protocol_with(HostBackend(key="h", name="h", endpoint=Endpoint(key="h", host="h", port=1))) == "http"
    assert protocol_with(service) == "tcp"
