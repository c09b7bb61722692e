"""`config.sharedState`: where replicas share counters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headgate.config import extras
from headgate.config.shared_state import dump
from headgate.ir.gateway import Gateway
from headgate.ir.shared_state import SharedState, SharedTls

PLACES = {
    "redis://r.test": "r.test:6379",
    "redis://user:hidden@r.test:7000/3": "r.test:7000",
    "rediss://:hidden@[::1]:7000": "[::1]:7000",
    "unix:///run/redis.sock": "unix:/run/redis.sock",
}


def found(loaded: Callable[..., Gateway], redis: str) -> SharedState:
    state = loaded(f"config: {{sharedState: {{redis: {redis}}}}}").process.shared_state
    assert state is not None
    return state


@pytest.mark.parametrize("url", PLACES)
def test_addresses(url: str, loaded: Callable[..., Gateway]) -> None:
    state = found(loaded, f"{{url: '{url}'}}")
    assert (state.place, state.url.reveal()) == (PLACES[url], url)
    assert "hidden" not in repr(state) + str(dump(state))
    assert (state.tls is None) == (not url.startswith("rediss"))


def test_defaults_and_settings(loaded: Callable[..., Gateway], tmp_path: Path) -> None:
    assert loaded("config: {}").process.shared_state is None
    state = found(loaded, "{url: 'redis://h'}")
    assert (state.mode, state.failure, state.timeout_ms, state.local_share, state.replicas) == ("share", "local", 250, 10, 1)
    (tmp_path / "ca.pem").write_text("")
    state = found(
        loaded,
        "{url: 'rediss://h', mode: exact, failureMode: deny, timeout: 1s, localShare: 5, replicas: 3, keyPrefix: 'a:', maxConnections: 2, "
        f"tls: {{root: {tmp_path / 'ca.pem'}, insecure: true}}}}",
    )
    assert dump(state) == {
        "redis": {
            "url": "<redacted>", "address": "h:6379", "mode": "exact", "failureMode": "deny", "timeout": "1s",
            "localShare": 5, "replicas": 3, "keyPrefix": "a:", "maxConnections": 2,
            "tls": {"root": str(tmp_path / "ca.pem"), "insecure": True},
        },
    }  # fmt: skip
    assert state.tls == SharedTls(root=str(tmp_path / "ca.pem"), insecure=True)


FORM = "not redis://host:port/number (login before the host), rediss:// the same, or unix:///path"
REFUSED = {
    **dict.fromkeys(
        ("{url: 'http://u:hidden@h'}", "{url: 'redis://'}", "{url: 'redis://h:x'}", "{url: 'redis://h/name'}",
         "{url: 'redis://h?db=1'}", "{url: 'unix://h/run'}", "{url: 'redis://h/0 '}"),
        f"config.sharedState.redis.url: {FORM} (1)",
    ),
    "{}": "config.sharedState.redis: missing field 'url' (1)",
    "{url: 'redis://h', localShare: 0}": "config.sharedState.redis.localShare: out of range 1..100: 0 (1)",
    "{url: 'redis://h', timeout: 0s}": "config.sharedState.redis.timeout: the time must be longer than 0 (1)",
    "{url: 'redis://h', tls: {}}": "config.sharedState.redis.tls: only a URL with rediss:// has TLS (1)",
    "{url: 'rediss://h', tls: {root: /no/where}}": "config.sharedState.redis.tls.root: no such file (1)",
    "{url: 'rediss://h', tls: {cert: /dev/null}}":
        "config.sharedState.redis.tls.cert: no such file (1)\n"
        "config.sharedState.redis.tls.cert: a certificate and its key belong together (1)",
}  # fmt: skip


@pytest.mark.parametrize("redis", REFUSED)
def test_what_is_refused(redis: str, faults: Callable[..., list[str]]) -> None:
    told = faults(f"config: {{sharedState: {{redis: {redis}}}}}")
    assert told == REFUSED[redis].splitlines()


def test_the_client_may_be_missing(monkeypatch: pytest.MonkeyPatch, faults: Callable[..., list[str]]) -> None:
    monkeypatch.setattr(extras, "installed", lambda name: name != "redis")
    [told] = faults("config: {sharedState: {redis: {url: 'redis://h'}}}")
    assert "pip install 'headgate[redis]'" in told
