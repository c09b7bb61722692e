"""Calls of `gwctl doctor`: URLs that are none, and fields that cannot be sent."""

from __future__ import annotations

import datetime
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme
from tests.headgate.cli.doctor_rig import HTML, JSON, SSE, answering, message

from headgate.cli import doctor_calls
from headgate.cli.doctor_calls import Answered, StepFailed, call, in_the_clear, is_form


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


# -- TLS ------------------------------------------------------------------------------------------------------------------
AUTHORITY = trustme.CA()
NOW = datetime.datetime.now(datetime.UTC)
DAY = datetime.timedelta(days=1)


@pytest.fixture
def trusted(tmp_path: Path) -> str:
    AUTHORITY.cert_pem.write_to_path(tmp_path / "ca.pem")
    return str(tmp_path / "ca.pem")


def certificate(*names: str, begins: datetime.datetime | None = None, ends: datetime.datetime | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    AUTHORITY.issue_cert(*names, not_before=begins, not_after=ends).configure_cert(context)
    return context


def without_a_name() -> ssl.SSLContext:
    context = certificate("localhost")
    context.sni_callback = lambda *_: ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
    return context


@pytest.mark.parametrize(
    ("server", "why", "change"),
    [
        (lambda: certificate("other.example"), "is for another host: Hostname mismatch", "a host in the URL that its certificate names"),
        (lambda: certificate("localhost", begins=NOW - 9 * DAY, ends=NOW - DAY), "has expired", "renew it"),
        (lambda: certificate("localhost", begins=NOW + DAY), "is not valid yet", "set the clock of this machine"),
        (without_a_name, "does not know the name localhost", "SNI"),
    ],
)
def test_what_is_wrong_with_tls(server: Callable[[], ssl.SSLContext], why: str, change: str, trusted: str) -> None:
    with answering(message(200, JSON, "{}"), tls=server()) as port, pytest.raises(StepFailed) as caught:
        call("GET", f"https://localhost:{port}/", authority=trusted)
    assert why in caught.value.why
    assert change in caught.value.change


def test_certificates_that_are_not_trusted_or_no_file(trusted: str, tmp_path: Path) -> None:
    with answering(message(200, JSON, "{}"), tls=certificate("localhost")) as port:
        assert call("GET", f"https://localhost:{port}/", authority=trusted).status == 200
        with pytest.raises(StepFailed, match="is not trusted") as caught:
            call("GET", f"https://localhost:{port}/")
        assert "--ca FILE" in caught.value.change
        (tmp_path / "empty").write_text("none")
        for name, why in (("missing", "No such file"), ("empty", "no certificates in PEM form")):
            with pytest.raises(StepFailed, match=why):
                call("GET", f"https://localhost:{port}/", authority=str(tmp_path / name))
    with answering(message(200, JSON, "{}")) as port, pytest.raises(StepFailed, match="does not speak TLS") as caught:
        call("GET", f"https://localhost:{port}/")
    assert caught.value.change == "write http:// if it is a plain port"


# -- answers --------------------------------------------------------------------------------------------------------------
def test_a_server_that_hangs_or_says_nothing_for_ever(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_calls, "SECONDS", 0.3)
    with pytest.raises(StepFailed, match="takes the request, and has no whole answer within") as caught:
        call("GET", f"http://127.0.0.1:{port}/")
    assert "hangs" in caught.value.change

    def trickle(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        while True:
            connection.sendall(b": nothing yet\n\n")

    with answering(trickle) as other, pytest.raises(StepFailed, match="has no whole answer"):
        call("GET", f"http://127.0.0.1:{other}/")


def test_a_stream_is_read_up_to_the_answer() -> None:
    text = 'id: 1\ndata: \n\ndata: {"method": "notifications/message"}\n\ndata: {"result":\ndata: 1}\n\ndata: {"late": 1}\n\n'
    with answering(message(200, SSE, text)) as port:
        found = call("GET", f"http://127.0.0.1:{port}/", is_last=lambda one: isinstance(one, dict) and "result" in one)
    assert found.document == {"result": 1}


def test_an_answer_that_is_cut_off() -> None:
    with answering(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nshort") as port, pytest.raises(StepFailed, match="gives no HTTP answer"):
        call("GET", f"http://127.0.0.1:{port}/")


def test_a_web_page_is_told_by_its_title() -> None:
    page = Answered(403, {"content-type": f"{HTML}; charset=utf-8"}, b"<html><TITLE>Access\n Denied</TITLE><script>...")
    assert (page.quoted, page.shape) == ("a web page with the title 'Access Denied'", "a web page")
    assert Answered(403, {"content-type": HTML}, b"<p>no").quoted == "a web page"
    assert Answered(500, {}, b"").quoted == "without a text"
