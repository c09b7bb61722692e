"""`config` and the environment variables above it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headgate.config.process_settings import listen_address, log_level, metric_family, worker_count
from headgate.ir.gateway import Gateway
from headgate.ir.process import ListenAddress, ProcessSettings, WorkerCount

ADDRESSES = [
    ("127.0.0.1:15000", True, ("127.0.0.1",), 15000, None),
    ("[::]:15020", True, ("::",), 15020, None),
    ("[::]:15020", False, ("0.0.0.0",), 15020, None),
    ("[::1]:1", False, ("127.0.0.1",), 1, None),
    ("localhost:1", True, ("127.0.0.1", "::1"), 1, None),
    ("localhost:1", False, ("127.0.0.1",), 1, None),
    ("0.0.0.0:0", True, ("0.0.0.0",), 0, None),
    ("unix:/run/a", True, (), 0, "/run/a"),
    ("off", True, (), 0, None),
    ("OFF", True, (), 0, None),
]


@pytest.mark.parametrize(("text", "ipv6", "hosts", "port", "unix"), ADDRESSES)
def test_addresses_of_servers(
    text: str, ipv6: bool, hosts: tuple[str, ...], port: int, unix: str | None
) -> None:
    found = listen_address(text, ipv6=ipv6)
    assert (found.hosts, found.port, found.unix_path) == (hosts, port, unix)
    assert found.off is (text.lower() == "off")


@pytest.mark.parametrize(
    "text", ["", "1", ":1", "h:1", "127.0.0.1", "127.0.0.1:65536", "127.0.0.1:-1", "unix:a"]
)
def test_other_addresses_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        listen_address(text, ipv6=True)


@pytest.mark.parametrize(
    ("value", "count"),
    [(1, WorkerCount(count=1)), ("8", WorkerCount(count=8)), ("50%", WorkerCount(percent=50))],
)
def test_worker_counts(value: str | int, count: WorkerCount) -> None:
    assert worker_count(value) == count


@pytest.mark.parametrize("value", [0, -1, "0%", "auto", "", "1.5", "5%%", 5000])
def test_other_worker_counts_are_refused(value: str | int) -> None:
    with pytest.raises(ValueError):
        worker_count(value)


def test_log_levels_are_directives() -> None:
    assert log_level("warn, headgate.mcp=debug") == "warn,headgate.mcp=debug"
    for bad in ("", "loud", "a:debug", "a=", "=info"):
        with pytest.raises(ValueError):
            log_level(bad)


def test_metric_names_are_compared_without_prefix_and_suffix() -> None:
    assert metric_family("gw_requests_total") == metric_family("requests") == "requests"
    assert metric_family("request_duration_seconds") == "request_duration"


def settings(loaded: Callable[..., Gateway], text: str = "", **environ: str) -> ProcessSettings:
    return loaded(f"config: {{{text}}}", environ).process


def test_defaults(loaded: Callable[..., Gateway]) -> None:
    found = settings(loaded)
    assert found.admin == ListenAddress(text="127.0.0.1:15000", hosts=("127.0.0.1",), port=15000)
    assert (found.stats.hosts, found.stats.port, found.readiness.port) == (("::",), 15020, 15021)
    assert (found.max_termination_ms, found.min_termination_ms) == (5_000, 0)
    assert found.workers.resolve(6) == 6
    assert found.upstream.keepalives.retries == 9
    assert (found.mcp_session_ttl_ms, found.mcp_max_sessions) == (1_800_000, 10_000)
    assert (found.mcp_max_processes, found.mcp_max_uninitialized, found.mcp_initialize_timeout_ms) == (256, 32, 60_000)
    assert found.mcp_session_max_age_ms == 7 * 86_400_000
    assert found.worker_heartbeat_timeout_ms == 30_000
    assert found.session_key is None
    assert not found.forwarding.x_forwarded


ENVIRONMENT = [
    ("ADMIN_ADDR", "127.0.0.1:1", lambda found: found.admin.port, 1),
    ("STATS_ADDR", "off", lambda found: found.stats.off, True),
    ("READINESS_ADDR", "unix:/r", lambda found: found.readiness.unix_path, "/r"),
    ("WORKER_THREADS", "3", lambda found: found.workers.count, 3),
    ("CPU_LIMIT", "1.5", lambda found: found.workers.count, 2),
    ("CONNECTION_TERMINATION_DEADLINE", "9s", lambda found: found.max_termination_ms, 9_000),
    ("CONNECTION_MIN_TERMINATION_DEADLINE", "2s", lambda found: found.min_termination_ms, 2_000),
    ("TERMINATION_GRACE_PERIOD_SECONDS", "30", lambda found: found.max_termination_ms, 25_000),
    ("TERMINATION_GRACE_PERIOD_SECONDS", "4", lambda found: found.max_termination_ms, 3_000),
    ("TERMINATION_GRACE_PERIOD_SECONDS", "1", lambda found: found.max_termination_ms, 1_000),
    ("SESSION_KEY", "cd" * 32, lambda found: found.session_key.secret.reveal(), "cd" * 32),
    ("LOG_FORMAT", "json", lambda found: found.log_format, "json"),
    ("RUST_LOG", "debug", lambda found: found.log_level, "debug"),
    ("IPV6_ENABLED", "false", lambda found: found.stats.hosts, ("0.0.0.0",)),
]


@pytest.mark.parametrize(
    ("name", "value", "take", "expected"), ENVIRONMENT, ids=[f"{c[0]}={c[1][:8]}" for c in ENVIRONMENT]
)
def test_environment_variables_win_over_the_file(
    name: str,
    value: str,
    take: Callable[[ProcessSettings], object],
    expected: object,
    loaded: Callable[..., Gateway],
) -> None:
    text = (
        "adminAddr: '127.0.0.1:9', session: {key: '" + "ab" * 32 + "'}, logging: {level: warn, format: text}"
    )
    assert take(settings(loaded, text, **{name: value})) == expected


@pytest.mark.parametrize("name", sorted({case[0] for case in ENVIRONMENT} - {"RUST_LOG"}))
def test_bad_environment_variables_are_faults_that_do_not_show_their_value(
    name: str, faults: Callable[..., list[str]]
) -> None:
    (found,) = faults("config: {}", {name: "canary!"})
    assert found.startswith(f"environment variable {name}: ")
    assert "canary" not in found.replace("CANARY", "")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("adminAddr: nowhere", "config.adminAddr: not ip:port"),
        ("workerThreads: 0", "config.workerThreads: not a number"),
        ("logging: {level: loud}", "config.logging.level: not a list"),
        ("session: {key: abc}", "config.session.key: a session key has 64 hexadecimal digits"),
        ("workerHeartbeatTimeout: 1s", "config.workerHeartbeatTimeout: 0s (never) or at least 2s"),
        ("mcp: {initializeTimeout: 0s}", "config.mcp.initializeTimeout: too short: clients could not continue in time"),
        ("mcp: {sessionMaxAge: 0s}", "config.mcp.sessionMaxAge: too short: no session id would be valid"),
    ],
)
def test_bad_settings_point_to_their_place(text: str, fault: str, faults: Callable[..., list[str]]) -> None:
    assert faults(f"config: {{{text}}}")[0].startswith(fault)


def test_settings_of_mcp_sessions(loaded: Callable[..., Gateway]) -> None:
    text = "mcp: {sessionTtl: 1m, maxSessions: 5, maxProcesses: 4, maxUninitialized: 3, initializeTimeout: 2s}"
    found = settings(loaded, text)
    assert (found.mcp_session_ttl_ms, found.mcp_max_sessions, found.mcp_max_processes) == (60_000, 5, 4)
    assert (found.mcp_max_uninitialized, found.mcp_initialize_timeout_ms) == (3, 2_000)
    assert settings(loaded, "mcp: {sessionMaxAge: 24h}").mcp_session_max_age_ms == 86_400_000
    assert settings(loaded, "mcp: {maxSessions: null}").mcp_max_sessions == 10_000


@pytest.mark.parametrize(("text", "milliseconds"), [("0s", 0), ("2s", 2_000), ("1m", 60_000)])
def test_how_long_a_worker_may_stand_still(text: str, milliseconds: int, loaded: Callable[..., Gateway]) -> None:
    assert settings(loaded, f"workerHeartbeatTimeout: {text}").worker_heartbeat_timeout_ms == milliseconds
