"""Sockets that a service manager lends: which are taken, which are refused, and what is said."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest

from headgate.config.load import TextSource, load
from headgate.ir.gateway import Gateway
from headgate.net.sockets import LentSocket, ipv6_works
from headgate.server import activation
from headgate.server.activation import Lent, check_lent, find_lent, lent_servers, lent_sockets
from headgate.server.bound_sockets import BoundSockets
from headgate.server.failures import ReloadFailed


def gateway(*ports: int) -> Gateway:
    binds = ", ".join(f"{{port: {port}, listeners: [{{name: a}}]}}" for port in ports)
    servers = 'config: {adminAddr: "off", statsAddr: "off", readinessAddr: "off"}'
    return load(TextSource(f"{servers}\nbinds: [{binds or ''}]")).gateway


def environ(count: int | str = 1, names: str = "web") -> dict[str, str]:
    return {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": str(count), "LISTEN_FDNAMES": names, "PATH": "/bin"}


@pytest.fixture
def handed(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """A listening socket, as the first descriptor that a manager hands over."""
    with everywhere() as sock:
        monkeypatch.setattr(activation, "FIRST_DESCRIPTOR", sock.fileno())
        yield sock


def everywhere() -> socket.socket:
    """As systemd opens `ListenStream=` with a port alone."""
    if ipv6_works():
        return socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("0.0.0.0", 0))


def taken(variables: dict[str, str]) -> list[Lent]:
    """The sockets, which do not close the descriptors of the test."""
    found = lent_sockets(variables)
    for lent in found:
        lent.sock.detach()
    return found


def test_a_socket_is_matched_to_a_bind(handed: socket.socket) -> None:
    os.set_inheritable(handed.fileno(), True)
    variables = environ()
    port = handed.getsockname()[1]
    [lent] = lent_sockets(variables)
    assert variables == {"PATH": "/bin"}, "what the gateway starts gets none of it"
    assert not os.get_inheritable(handed.fileno())
    assert lent.port == port
    assert lent.name == "web"
    check_lent([lent], gateway(port))
    found = find_lent([lent], "::", port)
    assert isinstance(found, LentSocket)
    assert found.fileno() != handed.fileno(), "a copy: the port may come back in a later configuration"
    assert find_lent([lent], "::", port + 1) is None
    assert find_lent([lent], "127.0.0.1", port) is None
    found.close()
    lent.sock.detach()


def test_a_port_that_comes_back_gets_its_socket_again(handed: socket.socket) -> None:
    port = handed.getsockname()[1]
    sockets, lent = BoundSockets(), lent_sockets(environ())
    sockets.borrow(lent, gateway(port))
    for _ in range(2):
        opened = sockets.open(gateway(port))
        assert [type(sock) for sock in sockets.by_key.values()] == [LentSocket]
        sockets.close(opened)
        # Nobody accepts, but the manager's socket listens: who comes now is served later.
        socket.create_connection(("127.0.0.1", port)).close()
    lent[0].sock.detach()


def test_sockets_of_another_process_are_left_alone(handed: socket.socket) -> None:
    variables = {**environ(), "LISTEN_PID": "1"}
    assert lent_sockets(variables) == []
    assert variables == {"PATH": "/bin"}
    assert lent_sockets({}) == []
    assert lent_sockets({"LISTEN_FDS": "1"}) == []


def test_a_socket_where_nothing_listens_is_refused(handed: socket.socket) -> None:
    lent = taken(environ())
    port = handed.getsockname()[1]
    with pytest.raises(ReloadFailed, match=rf"{port} \(web\).*does not listen.*{port + 1}"):
        check_lent(lent, gateway(port + 1))
    with pytest.raises(ReloadFailed, match="nowhere"):
        check_lent(lent, gateway())


def test_a_server_of_the_operator_may_have_it(handed: socket.socket) -> None:
    lent = taken(environ())
    port = handed.getsockname()[1]
    settings = f'config: {{statsAddr: "[::]:{port}", adminAddr: "off", readinessAddr: "[::]:{port + 1}"}}'
    with_stats = load(TextSource(settings)).gateway
    check_lent(lent, with_stats)
    [(name, sock)] = lent_servers([lent[0]._replace(sock=handed)], with_stats.process)
    assert (name, sock.getsockname()) == ("stats", handed.getsockname())
    assert sock.fileno() != handed.fileno(), "a copy: the server closes it, and the manager's goes on"
    sock.close()
    with pytest.raises(ReloadFailed, match=rf"does not listen.*\[::\]:{port + 1}"):
        check_lent(lent, load(TextSource(settings.replace(f"{port}", f"{port + 1}", 1))).gateway)


def test_names_may_be_missing(handed: socket.socket) -> None:
    assert [lent.name for lent in taken(environ(names=""))] == ["unknown"]


def test_a_count_that_is_none(handed: socket.socket) -> None:
    with pytest.raises(ReloadFailed, match="LISTEN_FDS is not a number"):
        lent_sockets(environ("two"))


def test_a_descriptor_that_is_not_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activation, "FIRST_DESCRIPTOR", 1_000_000)
    with pytest.raises(ReloadFailed, match="descriptor 1000000 is not open"):
        lent_sockets(environ())


def test_a_file_is_no_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    monkeypatch.setattr(activation, "FIRST_DESCRIPTOR", reading)
    with pytest.raises(ReloadFailed, match=r"\(web\) is not a socket"):
        lent_sockets(environ())
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize("kind", ["datagram", "unix", "connected"])
def test_only_listening_tcp_sockets_are_taken(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    left, right = socket.socketpair()
    sock = {"datagram": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM), "unix": lambda: left,
            "connected": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM)}[kind]()  # fmt: skip
    monkeypatch.setattr(activation, "FIRST_DESCRIPTOR", sock.fileno())
    with pytest.raises(ReloadFailed, match="not a listening TCP socket"):
        lent_sockets(environ())
    sock.detach()  # closed with the object that was made of it
    right.close()


@pytest.mark.skipif(not ipv6_works(), reason="this machine has no IPv6")
def test_a_socket_for_ipv6_alone_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    narrow.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    narrow.bind(("::", 0))
    narrow.listen()
    monkeypatch.setattr(activation, "FIRST_DESCRIPTOR", narrow.fileno())
    with pytest.raises(ReloadFailed, match="BindIPv6Only=both"):
        lent_sockets(environ())
    narrow.detach()
