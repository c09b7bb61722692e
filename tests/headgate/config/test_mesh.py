"""Workloads of a mesh: where their tunnels are, and what they must show."""

from __future__ import annotations

from headgate.config.load import Loaded, TextSource, load
from headgate.ir.backend import ServiceBackend
from headgate.ir.endpoint import Endpoint
from headgate.ir.hbone import Hbone

TEXT = """
config: {spiffe: {endpoint: 'unix:///a.sock'}, hbone: HBONE}
gateways: {default: {port: 1}}
routes:
- backends: [{service: {name: n/s.test, port: 80}}]
- backends: [{service: {name: n/s.test, port: 81}}]
- backends: [{service: {name: n/s.test, port: 80}, policies: {tcp: {keepalives: {}, connectTimeout: 1s}}}]
services: [{name: s, namespace: n, hostname: s.test, ports: {"80": 8080, "81": 8081}}]
workloads:
- {uid: a, name: a, namespace: n, workloadIps: ["ADDRESS"], serviceAccount: web, protocol: HBONE, services: {n/s.test: {}}}
- {uid: b, name: b, namespace: n, workloadIps: [10.0.0.2], services: {n/s.test: {}}}
"""


def read(hbone: str = "{}", address: str = "10.0.0.1") -> Loaded:
    return load(TextSource(TEXT.replace("HBONE}\n", f"{hbone}}}\n", 1).replace("ADDRESS", address)))


def endpoints(loaded: Loaded) -> list[tuple[Endpoint, ...]]:
    found = []
    for route in loaded.gateway.binds[0].listeners[0].routes:
        [choice] = route.backends
        assert isinstance(choice.backend, ServiceBackend)
        found.append(tuple(one.endpoint for one in choice.backend.endpoints))
    return found


def test_tunnels_of_a_workload_are_in_one_place() -> None:
    loaded = read("{windowSize: 70000, poolMaxStreamsPerConn: 3, poolUnusedReleaseTimeout: 7s}")
    (first, plain), (second, _), (slow, _) = endpoints(loaded)
    assert plain.mesh is None
    assert (first.address, second.address) == ("10.0.0.1:8080", "10.0.0.1:8081")
    assert first.mesh is not None
    assert first.mesh == second.mesh
    assert first.key != second.key
    assert (first.mesh.address, first.mesh.http2) == ("10.0.0.1:15008", True)
    assert first.mesh.hbone == Hbone(window=70000, streams=3, unused_ms=7000)
    tls = first.mesh.tls
    assert tls is not None
    assert (tls.spiffe, tls.alpn, tls.subject_alt_names) == (True, ("h2",), ("spiffe://cluster.local/ns/n/sa/web",))
    # What holds for connections holds for those of the tunnels.
    assert slow.mesh is not None
    assert slow.mesh.connect_timeout_ms == 1000
    assert slow.mesh.key != first.mesh.key
    assert loaded.gateway.spiffe


def test_settings_and_addresses_are_part_of_the_key() -> None:
    def key(**options: str) -> str:
        mesh = endpoints(read(**options))[0][0].mesh
        assert mesh is not None
        return mesh.key

    keys = [key(), key(hbone="{poolMaxStreamsPerConn: 1}"), key(address="fd00::1")]
    assert len(set(keys)) == 3
    assert keys[0] == key()
    assert keys[2].startswith("hbone://[fd00::1]:15008#")
