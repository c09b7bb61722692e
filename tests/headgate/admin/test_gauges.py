"""Samples that are read when metrics are asked for."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from types import SimpleNamespace

import trustme

from headgate.admin.gauges import (
    MAX_ROWS,
    certificate_samples,
    endpoint_samples,
    process_samples,
    worker_samples,
)
from headgate_engine.shared.histogram import Sample


def by_name(samples: list[Sample]) -> dict[tuple[str, str], object]:
    return {(sample.family, sample.labels): sample.value for sample in samples}


def test_a_process_tells_its_times_memory_and_descriptors() -> None:
    read, write = os.pipe()
    found = by_name(list(process_samples([("supervisor", os.getpid())])))
    os.close(read)
    os.close(write)
    label = 'process="supervisor"'
    usage = os.times()
    assert 0 < found["gw_process_cpu_seconds_total", label] <= usage.user + usage.system + 0.1  # type: ignore[operator]
    assert time.time() - 36_000 < found["gw_process_start_time_seconds", label] <= time.time() + 1  # type: ignore[operator]
    assert 5 <= found["gw_process_open_descriptors", label] <= found["gw_process_max_descriptors", label]  # type: ignore[operator]
    assert found["gw_process_resident_memory_bytes", label] > 1_000_000  # type: ignore[operator]


def test_a_process_that_has_ended_has_no_samples() -> None:
    pid = os.spawnlp(os.P_NOWAIT, "true", "true")
    os.waitpid(pid, 0)
    assert list(process_samples([("worker-0", pid)])) == []


def test_pools_of_all_workers_are_added_up() -> None:
    pool = {"open": 3, "idle": 1, "waiting": 2, "failed": 0, "refused": 0}
    workers = [{"in_flight": 4, "connections": 5, "idle": 2, "pools": {"a:1": pool}}, {},
               {"in_flight": 0, "connections": 1, "idle": 1, "pools": {"a:1": pool, "b:2": {**pool, "waiting": 0}}}]  # fmt: skip
    found = by_name(list(worker_samples(workers)))
    assert found["gw_requests_in_flight", 'worker="0"'] == 4
    assert ("gw_requests_in_flight", 'worker="1"') not in found
    assert found["gw_downstream_connections_open", 'worker="0",state="active"'] == 3
    assert found["gw_upstream_connections_open", 'endpoint="a:1",state="active"'] == 4
    assert found["gw_upstream_connections_open", 'endpoint="a:1",state="idle"'] == 2
    assert found["gw_upstream_calls_waiting", 'endpoint="a:1"'] == 4
    assert found["gw_upstream_calls_waiting", 'endpoint="b:2"'] == 0


def test_the_busiest_addresses_have_series() -> None:
    pools = {f"h:{number}": {"open": number, "idle": 0, "waiting": 0} for number in range(MAX_ROWS + 5)}
    found = by_name(list(worker_samples([{"in_flight": 0, "connections": 0, "idle": 0, "pools": pools}])))
    assert ("gw_upstream_calls_waiting", 'endpoint="h:4"') not in found
    assert ("gw_upstream_calls_waiting", 'endpoint="h:5"') in found


def test_endpoints_tell_their_ejections() -> None:
    row = {"backend": "default/b", "endpoint": "a:1", "ejected": 3, "left": 1.5, "health": 0.25}
    found = by_name(list(endpoint_samples([row, {"address": "a:1", "open": 1}])))
    labels = 'backend="default/b",endpoint="a:1"'
    assert found == {
        ("gw_endpoint_ejections_total", labels): 3, ("gw_endpoint_ejected", labels): 1, ("gw_endpoint_health", labels): 0.25,
    }  # fmt: skip


def test_listeners_with_tls_tell_when_their_certificate_expires() -> None:
    end = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
    chain = trustme.CA().issue_cert("a.test", not_after=end).cert_chain_pems[0].bytes()
    names = {"gateway_name": "g", "gateway_namespace": "default"}
    listeners = [
        SimpleNamespace(name="secure", tls=SimpleNamespace(cert_pem=chain, others=()), **names),
        SimpleNamespace(name="plain", tls=None, **names),
        SimpleNamespace(name="spiffe", tls=SimpleNamespace(cert_pem=b"", others=()), **names),
    ]
    gateway = SimpleNamespace(binds=[SimpleNamespace(key="bind/443", listeners=listeners)])
    labels = 'bind="bind/443",gateway="default/g",listener="secure"'
    assert by_name(list(certificate_samples(gateway))) == {  # type: ignore[arg-type]
        ("gw_certificate_expiry_timestamp_seconds", labels): int(end.timestamp()),
    }  # fmt: skip
