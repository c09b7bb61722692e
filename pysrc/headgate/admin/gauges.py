"""Samples that are read when metrics are asked for: of processes, connections, pools and endpoints."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from headgate.admin import memory
from headgate.ir.gateway import Gateway
from headgate.telemetry.metrics import label_text
from headgate_engine.shared.histogram import Sample

# Most addresses and endpoints that have series; those with most connections come first.
MAX_ROWS: Final = 1000
# Fields of /proc/<pid>/stat behind the name of the process (proc_pid_stat(5)): state is the first of them.
USER_TICKS, SYSTEM_TICKS, START_TICKS = 11, 12, 19
TICKS: Final = os.sysconf("SC_CLK_TCK")


class ProcessTimes(NamedTuple):
    """CPU time in s, and the time of the start in s since 1970."""

    cpu_s: float
    started_s: float


def process_samples(processes: Iterable[tuple[str, int]]) -> Iterator[Sample]:
    """Yield what the system knows of each process (role, pid). One that has ended has no samples."""
    booted = _boot_time()
    for role, pid in processes:
        labels = label_text({"process": role})
        size, times, descriptors = memory.resident(pid), process_times(pid, booted), open_descriptors(pid)
        if size is not None:
            yield Sample("gw_process_resident_memory_bytes", labels, "gauge", size)
        if times is not None:
            yield Sample("gw_process_cpu_seconds_total", labels, "counter", times.cpu_s)
            yield Sample("gw_process_start_time_seconds", labels, "gauge", times.started_s)
        if descriptors is not None:
            yield Sample("gw_process_open_descriptors", labels, "gauge", descriptors)
            yield Sample("gw_process_max_descriptors", labels, "gauge", most_descriptors(pid))


def process_times(pid: int, booted: float) -> ProcessTimes | None:
    """Return the times of a process; booted: the boot of the system in s since 1970. None if it has ended."""
    try:
        # The name of the process, in parentheses, may contain anything.
        values = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks = int(values[USER_TICKS]) + int(values[SYSTEM_TICKS])
        return ProcessTimes(ticks / TICKS, round(booted + int(values[START_TICKS]) / TICKS, 2))
    except (OSError, IndexError, ValueError):
        return None


def _boot_time() -> float:
    try:
        lines = Path("/proc/stat").read_text().splitlines()
        return float(next(line.split()[1] for line in lines if line.startswith("btime ")))
    except (OSError, StopIteration, ValueError):
        return 0.0


def open_descriptors(pid: int) -> int | None:
    """Return the number of open descriptors of a process, None if it is not readable."""
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return None


def most_descriptors(pid: int) -> int:
    """Return how many descriptors a process may open; that of this process if the other is not readable."""
    try:
        return resource.prlimit(pid, resource.RLIMIT_NOFILE)[0]
    except OSError:
        return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def worker_samples(workers: Iterable[Mapping[str, Any]]) -> Iterator[Sample]:
    """Yield the connections and requests of each worker, and the pools of all. A silent worker has an empty entry."""
    pools: dict[str, list[int]] = {}
    for index, numbers in enumerate(workers):
        if not numbers:
            continue
        worker = {"worker": str(index)}
        yield Sample("gw_requests_in_flight", label_text(worker), "gauge", numbers["in_flight"])
        yield from _states("gw_downstream_connections_open", worker, numbers["connections"], numbers["idle"])
        for address, pool in (numbers.get("pools") or {}).items():
            row = pools.setdefault(address, [0, 0, 0])
            for place, name in enumerate(("open", "idle", "waiting")):
                row[place] += pool[name]
    busiest = sorted(pools.items(), key=lambda item: (-item[1][0], item[0]))[:MAX_ROWS]
    for address, (opened, idle, waiting) in busiest:
        endpoint = {"endpoint": address}
        yield from _states("gw_upstream_connections_open", endpoint, opened, idle)
        yield Sample("gw_upstream_calls_waiting", label_text(endpoint), "gauge", waiting)


def _states(family: str, labels: dict[str, str], opened: int, idle: int) -> Iterator[Sample]:
    for state, number in (("active", opened - idle), ("idle", idle)):
        yield Sample(family, label_text({**labels, "state": state}), "gauge", number)


def endpoint_samples(rows: Iterable[Mapping[str, Any]]) -> Iterator[Sample]:
    """Yield the health of endpoints, by rows of headgate.admin.meters.endpoint_rows()."""
    for row in rows:
        if "backend" not in row:
            continue
        labels = label_text({"backend": row["backend"], "endpoint": row["endpoint"]})
        yield Sample("gw_endpoint_ejections_total", labels, "counter", row["ejected"])
        yield Sample("gw_endpoint_ejected", labels, "gauge", int((row["left"] or 0) > 0))
        yield Sample("gw_endpoint_health", labels, "gauge", row["health"])


def certificate_samples(gateway: Gateway) -> Iterator[Sample]:
    """Yield when the certificate of each listener expires, or that of its authority."""
    for bind in gateway.binds:
        for listener in bind.listeners:
            if listener.tls is None or not listener.tls.cert_pem:
                continue
            place = {
                "bind": bind.key,
                "gateway": f"{listener.gateway_namespace}/{listener.gateway_name}",
                "listener": listener.name,
            }
            # Of several the one that is the first to expire.
            chains = (listener.tls.cert_pem, *(one.cert_pem for one in listener.tls.others))
            expires = min(map(_expiry, chains))
            yield Sample("gw_certificate_expiry_timestamp_seconds", label_text(place), "gauge", expires)


@lru_cache(maxsize=1024)
def _expiry(chain: bytes) -> int:
    """Return when the first certificate of a chain expires, in s since 1970."""
    from cryptography import x509  # only where a listener has TLS

    return int(x509.load_pem_x509_certificates(chain)[0].not_valid_after_utc.timestamp())
