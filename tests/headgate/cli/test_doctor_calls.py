"""Calls of `gwctl doctor`: URLs that are none, and fields that cannot be sent."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from headgate.cli.doctor_calls import StepFailed, call, in_the_clear, is_form


@pytest.fixture
def port() -> Iterator[int]:
    """A port at which somebody takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.mark.parametrize("url", ["http://[::1", "http://", "ftp://host/", "http://host:x/", "http://host:99999/", "", "/mcp"])
def test_what_is_no_url(url: str) -> None:
    assert not is_form(url)


def test_where_others_may_read_what_is_sent() -> None:
    assert [in_the_clear(f"http://{host}/token") for host in ("issuer.test", "10.0.0.1:8080", "[fe80::1]", "localhost.test")] == [True] * 4
    private = ("http://127.0.0.1:1/", "http://[::1]/", "http://localhost/", "http://a.localhost/", "https://issuer.test/token")
    assert [in_the_clear(url) for url in private] == [False] * 5


def test_what_is_a_url() -> None:
    assert is_form("http://[::1]:8000/mcp")
    assert is_form("https://host")


@pytest.mark.parametrize("key", ["sk-secret\n", "sk-secret\r\nx: y", "sk-secret\u2026"], ids=ascii)
def test_a_credential_that_cannot_be_sent_is_not_shown(key: str, port: int) -> None:
    with pytest.raises(StepFailed) as caught:
        call("GET", f"http://127.0.0.1:{port}/models", fields={"authorization": f"Bearer {key}"})
    assert caught.value.why == f"the request to http://127.0.0.1:{port} cannot be written as HTTP"
    assert "secret" not in caught.value.change


def test_an_answer_that_is_none() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"SSH-2.0-server\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(StepFailed, match=r"gives no HTTP answer: SSH-2\.0-server"):
            call("GET", f"http://127.0.0.1:{listener.getsockname()[1]}/")
        thread.join()
