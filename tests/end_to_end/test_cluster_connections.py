"""TLSRoutes, TCPRoutes and ListenerSets, as the controller's translator writes them, served by a gateway."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Callable

import httpx
import pytest
import trustme
from manifests import (
    Json,
    endpoints,
    entries,
    gateway_class,
    http_route,
    listener,
    listener_set,
    made,
    of_set,
    passthrough,
    service,
    tcp_route,
    tls_route,
    to,
)
from manifests import gateway as gateway_manifest
from tests.end_to_end.running import Gateway, free_port
from tests.end_to_end.tcp_rig import TlsStream, ask, connect, named, reversed_at_the_end, tls_backend, whole
from tests.end_to_end.tls_rig import tls_upstream

from headgate.cluster.snapshot import ObjectKey, Snapshot
from headgate.cluster.translate.everything import everything
from headgate.cluster.translate.fragments import assembled
from headgate.document.write import write

pytestmark = pytest.mark.warm

# Stands for the port that a gateway is given.
PORT = 64_999


def configuration(*documents: Json) -> str:
    world = everything(Snapshot.of([gateway_class(), *documents]), {})
    return write(assembled(world.gateways[ObjectKey("edge", "main")])).replace(f"port: {PORT}", "port: {port}")


def pair(authority: trustme.CA, *names: str) -> Json:
    """Return a Secret with a certificate for names."""
    found = authority.issue_cert(*names)
    chain = b"".join(one.bytes() for one in found.cert_chain_pems)
    entries = {"tls.crt": chain, "tls.key": found.private_key_pem.bytes()}
    return {**made("Secret", "edge/tls", {}, "v1"), "data": {key: base64.b64encode(one).decode() for key, one in entries.items()}}


def served_by(name: str, port: int) -> list[Json]:
    return [service(f"shop/{name}"), endpoints(f"shop/{name}-1", name, ["127.0.0.1"], port)]


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


def said(port: int, context: ssl.SSLContext, name: str) -> bytes:
    """Send three bytes over TLS and return the answer."""
    with connect(port) as sock:
        stream = TlsStream(sock, context, name)
        stream.send(b"abc")
        stream.end_output()
        return stream.whole()


def turned_away(port: int, name: str) -> bool:
    """Tell whether a connection ends before a byte of TLS comes back."""
    into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    with connect(port) as sock:
        try:
            ssl.create_default_context().wrap_bio(into, out, server_hostname=name).do_handshake()
        except ssl.SSLWantReadError:
            sock.sendall(out.read())
        try:
            return whole(sock) == b""
        except ConnectionResetError:
            return True


def test_tls_is_passed_on_or_ended_on_one_port(gateway: Callable[..., Gateway], upstream: Callable[..., int]) -> None:
    authority, inside = trustme.CA(), trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    inside.issue_cert("a.pass.test", "b.pass.test").configure_cert(context)
    ends = {"tls": {"mode": "Terminate", "certificateRefs": [{"name": "tls"}]}}
    with tls_backend(context) as secure:
        running = gateway(
            configuration(
                pair(authority, "a.end.test", "b.end.test", "c.end.test"),
                gateway_manifest(passthrough(port=PORT, hostname="*.pass.test"), listener("end", PORT, "TLS", hostname="*.end.test", **ends)),
                *served_by("secure", secure), *served_by("one", upstream(reversed_at_the_end)), *served_by("other", upstream(named(b"other"))),
                tls_route("shop/passed", {"backendRefs": [to("secure")]}, hostnames=("a.pass.test",)),
                tls_route("shop/lost", {"backendRefs": [to("gone")]}, hostnames=("b.pass.test", "b.end.test")),
                tls_route("shop/ended", {"backendRefs": [to("one"), to("other", weight=0)]}, hostnames=("a.end.test",)),
                tls_route("shop/rest", {"backendRefs": [to("other")]}, hostnames=("*.end.test", "a.end.test"), creationTimestamp="2026-02-01T00:00:00Z"),
            )
        )  # fmt: skip
        assert said(running.port, trusting(inside), "a.pass.test") == b"cba"
        assert said(running.port, trusting(authority), "a.end.test") == b"cba"
        assert said(running.port, trusting(authority), "c.end.test") == b"other\nabc"
        # No route, and no backend.
        for name in ("c.pass.test", "b.pass.test"):
            assert turned_away(running.port, name), name
        with pytest.raises((ssl.SSLError, OSError)):
            said(running.port, trusting(authority), "b.end.test")


def test_a_port_that_only_passes_tls_on_speaks_none(gateway: Callable[..., Gateway]) -> None:
    route = tls_route("shop/passed", {"backendRefs": [to("gone")]}, hostnames=("a.pass.test",))
    running = gateway(configuration(gateway_manifest(passthrough(port=PORT, hostname="*.pass.test")), route))
    # No backend, no route and no listener.
    for name in ("a.pass.test", "b.pass.test", "pass.test", "other.test"):
        assert turned_away(running.port, name), name


def test_the_oldest_tcp_route_has_the_port(gateway: Callable[..., Gateway], upstream: Callable[..., int]) -> None:
    running = gateway(
        configuration(
            gateway_manifest(listener("raw", PORT, "TCP")), *served_by("one", upstream(reversed_at_the_end)), *served_by("other", upstream(named(b"other"))),
            tcp_route("shop/b", {"backendRefs": [to("one")]}), tcp_route("shop/a", {"backendRefs": [to("other")]}, creationTimestamp="2026-02-01T00:00:00Z"),
        )
    )  # fmt: skip
    assert ask(running.port, b"abc") == b"cba"


def test_a_set_adds_listeners_for_its_routes_alone(gateway: Callable[..., Gateway], echo: int) -> None:
    more = free_port()

    def path(value: str) -> Json:
        return {"matches": [{"path": {"value": value}}], "backendRefs": [to("one")]}

    running = gateway(
        configuration(
            gateway_manifest(listener("web", PORT, hostname="main.test"), sets="All"), *served_by("one", echo),
            listener_set("shop/more", listener("a", PORT, hostname="a.set.test"), listener("b", more), listener("lost", PORT, hostname="main.test")),
            http_route("shop/main", path("/main")), http_route("shop/set", path("/set"), parent=of_set()),
            http_route("shop/section", path("/section"), parent=of_set(sectionName="b")),
        )
    )  # fmt: skip

    def status(port: int, host: str, target: str) -> int:
        return httpx.get(f"http://127.0.0.1:{port}{target}", headers={"host": host}).status_code

    targets = ("/main", "/set", "/section")
    assert [status(running.port, "main.test", one) for one in targets] == [200, 404, 404]
    assert [status(running.port, "a.set.test", one) for one in targets] == [404, 200, 404]
    assert [status(more, "any.test", one) for one in targets] == [404, 200, 200]
    assert status(running.port, "other.test", "/main") == 404


def test_services_are_called_in_tls_and_only_believed_with_a_known_authority(gateway: Callable[..., Gateway]) -> None:
    authority = trustme.CA()
    secure = tls_upstream(authority, "a.inside.test")

    def policy(name: str, config_map: str = "ca", hostname: str = "a.inside.test", **more: object) -> Json:
        references = [{"group": "", "kind": "ConfigMap", "name": config_map}]
        spec = {
            "targetRefs": [{"group": "", "kind": "Service", "name": name}],
            "validation": {"caCertificateRefs": references, "hostname": hostname, **more},
        }
        return made("BackendTLSPolicy", f"shop/{name}", spec)

    names = {
        "good": policy("good"), "mismatch": policy("mismatch", hostname="b.inside.test"), "lost": policy("lost", "gone"),
        "alternative": policy("alternative", hostname="b.inside.test", subjectAltNames=[{"type": "Hostname", "hostname": "a.inside.test"}]),
        "other": policy("other", subjectAltNames=[{"type": "URI", "uri": "spiffe://a.test/x"}]),
    }  # fmt: skip
    rules = [{"matches": [{"path": {"value": f"/{name}"}}], "backendRefs": [to(name)]} for name in names]
    documents = [one for name in names for one in served_by(name, secure)]
    running = gateway(
        configuration(
            gateway_manifest(listener(port=PORT)), entries("ConfigMap", "shop/ca", **{"ca.crt": authority.cert_pem.bytes().decode()}),
            http_route("shop/all", *rules), *documents, *names.values(),
        )
    )  # fmt: skip
    found = {name: httpx.get(f"http://127.0.0.1:{running.port}/{name}").status_code for name in names}
    assert found == {"good": 200, "mismatch": 503, "lost": 503, "alternative": 200, "other": 503}


# By listener, with the host names of its route: those of the conformance suite's test of listener isolation.
ISOLATED = {"": "any.test", "*.a.test": "x.a.test", "*.b.a.test": "x.b.a.test", "c.b.a.test": "c.b.a.test"}


@pytest.mark.parametrize("said_twice", [False, True])
def test_a_host_name_belongs_to_the_listener_that_says_it_best(gateway: Callable[..., Gateway], echo: int, said_twice: bool) -> None:
    specs, routes = [], []
    for index, hostname in enumerate(ISOLATED):
        specs.append(listener(f"l{index}", PORT, **({"hostname": hostname} if hostname else {})))
        rule = {"matches": [{"path": {"value": f"/{index}"}}], "backendRefs": [to("one")]}
        parent = {"name": "main", "namespace": "edge", "sectionName": f"l{index}"}
        hostnames = (hostname or "any.test",) if said_twice else ()
        routes.append(http_route(f"shop/r{index}", rule, parent=parent, hostnames=hostnames))
    running = gateway(configuration(gateway_manifest(*specs), *served_by("one", echo), *routes))
    for place, host in enumerate(ISOLATED.values()):
        found = [httpx.get(f"http://127.0.0.1:{running.port}/{index}", headers={"host": host}).status_code for index in range(len(ISOLATED))]
        assert found == [200 if index == place else 404 for index in range(len(ISOLATED))], host
