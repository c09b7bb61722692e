"""TLS on listeners, host names, mixing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headgate.ir.gateway import Gateway
from headgate.ir.hbone import Hbone


def tls(certificates: Any, name: str) -> str:
    folder = certificates.folder
    return f"{{cert: {folder}/{name}.crt, key: {folder}/{name}.key}}"


def test_listeners_of_one_port_choose_certificates_by_name(
    loaded: Callable[..., Gateway], certificates: Any
) -> None:
    a, b = tls(certificates, "a"), tls(certificates, "b")
    text = f"gateways: {{g: {{port: 1, listeners: [{{hostname: A.test, tls: {a}}}, {{hostname: b.test, tls: {b}}}]}}}}"
    bind = loaded(text).binds[0]
    assert bind.tls
    assert [listener.hostname for listener in bind.listeners] == ["a.test", "b.test"]
    first, second = (listener.tls for listener in bind.listeners)
    assert first is not None
    assert second is not None
    assert first.key != second.key
    assert first.cert_pem.startswith(b"-----BEGIN")
    assert loaded(text).binds[0].listeners[0].tls == first


def test_tls_and_plaintext_cannot_share_a_port(faults: Callable[..., list[str]], certificates: Any) -> None:
    a = tls(certificates, "a")
    for order in (f"{{hostname: a.test, tls: {a}}}, {{}}", f"{{}}, {{hostname: a.test, tls: {a}}}"):
        found = faults(f"gateways: {{g: {{port: 1, listeners: [{order}]}}}}")
        assert "gateway listeners on port 1 cannot mix TLS and plaintext protocols" in found[0]


def test_protocol_http_cannot_set_tls(faults: Callable[..., list[str]], certificates: Any) -> None:
    found = faults(f"gateways: {{g: {{port: 1, protocol: HTTP, tls: {tls(certificates, 'a')}}}}}")
    assert found == ["gateways.g.tls: protocol HTTP cannot set tls (1)"]


def test_a_star_hostname_takes_every_host(loaded: Callable[..., Gateway]) -> None:
    gateway = loaded("gateways: {g: {port: 1, listeners: [{hostname: '*'}]}}")
    assert gateway.binds[0].listeners[0].hostname is None


def test_listener_names_default_to_their_number(loaded: Callable[..., Gateway]) -> None:
    gateway = loaded("gateways: {g: {port: 1, listeners: [{hostname: a.test}, {}]}}")
    assert [listener.name for listener in gateway.binds[0].listeners] == ["listener0", "listener1"]


def test_a_port_of_the_mesh(loaded: Callable[..., Gateway], certificates: Any) -> None:
    mutual = tls(certificates, "a")[:-1] + f", root: {certificates.folder}/a.crt}}"
    listener = f"{{name: mesh, protocol: HBONE, tls: {mutual}}}"
    text = f"binds: [{{port: 15008, tunnelProtocol: hboneGateway, listeners: [{listener}]}}]"
    bind = loaded(text).binds[0]
    assert (bind.tls, bind.tunnels, bind.hbone) == (True, True, Hbone())
    found = bind.listeners[0]
    assert (found.protocol, found.carries_http, found.begins_with_tls) == ("HBONE", True, True)
    assert found.tls is not None
    assert found.tls.alpn == (b"h2",)
    sized = loaded(f"config: {{hbone: {{windowSize: 1, frameSize: 16384}}}}\n{text}").binds[0].hbone
    assert sized == Hbone(window=1, frame=16_384)


def test_a_listener_of_the_mesh_has_nothing_else(faults: Callable[..., list[str]], certificates: Any) -> None:
    plain = tls(certificates, "a")
    mutual = plain[:-1] + f", root: {certificates.folder}/a.crt}}"
    for tunnel, listener, message in (
        ("hboneGateway", "protocol: HBONE", "requires tls with cert, key and root"),
        ("hboneGateway", f"protocol: HBONE, tls: {plain}", "requires tls with cert, key and root"),
        ("direct", f"protocol: HBONE, tls: {mutual}", "is only for binds with tunnelProtocol hboneGateway"),
        ("hboneGateway", f"protocol: HBONE, tls: {mutual}, routes: [{{}}]", "cannot have routes"),
        ("hboneGateway", f"protocol: HBONE, tls: {mutual}, policies: {{authorization: {{rules: ['true']}}}}", "cannot have policies"),
        ("hboneGateway", "protocol: HTTP", "needs listeners of protocol HBONE"),
        ("hboneWaypoint", "protocol: HTTP", "not supported yet"),
    ):
        found = faults(f"binds: [{{port: 1, tunnelProtocol: {tunnel}, listeners: [{{{listener}}}]}}]")
        assert message in found[0]
