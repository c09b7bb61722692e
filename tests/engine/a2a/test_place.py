"""URLs of agents, as their clients reach them through the gateway."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_engine.a2a.place import AgentPlace

CARD = b"/.well-known/agent-card.json"
OLD = b"/.well-known/agent.json"


def place(client: bytes = b"", agent: bytes = b"", rewrite: tuple[bytes, bytes] | None = None, scheme: str = "https") -> AgentPlace:
    return AgentPlace(scheme, b"gate.test", client + CARD, agent + CARD, rewrite)


@pytest.mark.parametrize(("client", "agent", "rewrite", "url", "expected"), [
    # The agent is at the root of both.
    (b"", b"", None, "http://agent:9999", "https://gate.test"),
    (b"", b"", None, "http://agent:9999/", "https://gate.test/"),
    (b"", b"", None, "http://agent:9999/rpc", "https://gate.test/rpc"),
    (b"", b"", None, "http://agent:9999/rpc?a=b#part", "https://gate.test/rpc?a=b"),
    (b"", b"", None, "http://agent?a=b", "https://gate.test?a=b"),
    (b"", b"", None, "HTTP://agent/rpc", "https://gate.test/rpc"),
    (b"", b"", None, "/rpc", "https://gate.test/rpc"),
    # Below a path of the gateway, whose prefix is replaced.
    (b"/agents/echo", b"", (b"/agents/echo", b"/"), "http://agent/rpc", "https://gate.test/agents/echo/rpc"),
    (b"/agents/echo", b"/echo", (b"/agents", b""), "http://agent/echo/rpc", "https://gate.test/agents/echo/rpc"),
    (b"/agents/echo", b"/in/echo", (b"/agents", b"/in/"), "http://agent/in/other", "https://gate.test/agents/other"),
    (b"/agents/echo", b"/in/echo", (b"/agents", b"/in"), "http://agent/in", "https://gate.test/agents"),
    # The same path on both sides.
    (b"/weather", b"/weather", None, "http://agent/weather", "https://gate.test/weather"),
    (b"/weather", b"/weather", None, "http://agent/weather/rpc", "https://gate.test/weather/rpc"),
    # Segments count, not characters.
    (b"/weather", b"/weather", None, "http://agent/weather-v2/rpc", "https://gate.test/weather/weather-v2/rpc"),
    (b"/agents/a", b"/in/a", (b"/agents", b"/in"), "http://agent/inner/x", "https://gate.test/agents/a/inner/x"),
    # An agent that does not know where it is.
    (b"/weather", b"/weather", None, "http://agent/rpc", "https://gate.test/weather/rpc"),
    # An agent that knows its public URL.
    (b"/agents/echo", b"", (b"/agents/echo", b"/"), "https://gate.test/agents/echo/rpc", "https://gate.test/agents/echo/rpc"),
    (b"/agents/echo", b"", (b"/agents/echo", b"/"), "https://GATE.test:443/agents/echo", "https://GATE.test:443/agents/echo"),
    (b"/agents/echo", b"", (b"/agents/echo", b"/"), "https://gate.test/rpc", "https://gate.test/agents/echo/rpc"),
    (b"/agents/echo", b"", None, "http://gate.test/agents/echo", "https://gate.test/agents/echo/agents/echo"),
    # Endpoints of gRPC.
    (b"/agents", b"", None, "agent:50051", "gate.test:443"),
    (b"/agents", b"", None, "dns:///agent:50051", "gate.test:443"),
    # Whatever may stand in a path.
    (b"/a%20b/\xc3\xa9\"", b"", None, "http://agent/x", "https://gate.test/a%20b/%C3%A9%22/x"),
])  # fmt: skip
def test_urls(client: bytes, agent: bytes, rewrite: tuple[bytes, bytes] | None, url: str, expected: str) -> None:
    assert place(client, agent, rewrite).url_for(url) == expected


def test_the_url_of_the_agent_as_a_whole() -> None:
    for client, expected in ((b"", "https://gate.test"), (b"/agents/echo", "https://gate.test/agents/echo")):
        for url in ("http://agent", "http://agent/"):
            assert place(client).url_for(url, True) == expected
    assert place(b"/a").url_for("http://agent/rpc/", True) == "https://gate.test/a/rpc/"


def test_paths_of_cards() -> None:
    for client, expected in ((b"/a" + OLD, "/a/x"), (b"/card", "/card/x"), (b"/a/", "/a/x")):
        found = AgentPlace("http", b"gate.test:8080", client, CARD)
        assert found.url_for("http://agent/x") == f"http://gate.test:8080{expected}"
        assert found.url_for("agent:1") == "gate.test:8080"
    assert AgentPlace("http", b"[::1]", CARD, CARD).url_for("agent:1") == "[::1]:80"


def test_what_is_of_no_use() -> None:
    with pytest.raises(ValueError, match="scheme"):
        AgentPlace("ftp", b"a", CARD, CARD)
    with pytest.raises(TypeError):
        place().url_for(None)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        AgentPlace("http", b"a", CARD, CARD, ("a", "b"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unpack"):
        AgentPlace("http", b"a", CARD, CARD, ())  # type: ignore[arg-type]


@given(st.text(max_size=40), st.sampled_from([b"", b"/a", b"/a/b"]), st.sampled_from([b"", b"/b", b"/a"]))
def test_every_url_leads_to_the_gateway(url: str, client: bytes, agent: bytes) -> None:
    found = place(client, agent).url_for(url)
    assert found.startswith(("https://gate.test", "gate.test:443")) or found == url


@given(st.lists(st.sampled_from(["a", "b", "c"]), max_size=4), st.sampled_from([b"", b"/a", b"/a/b"]))
def test_what_the_client_calls_is_what_the_agent_said(segments: list[str], agent: bytes) -> None:
    """The gateway replaces the prefix of a route: what it makes of the client's path is the agent's own."""
    path = agent.decode() + "".join(f"/{one}" for one in segments)
    told = place(b"/route" + agent, agent, (b"/route", b"/")).url_for(f"http://agent{path}")
    assert told == f"https://gate.test/route{path}"
