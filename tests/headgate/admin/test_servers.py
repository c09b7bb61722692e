"""Where the operator's servers are found."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from headgate.admin import web
from headgate.admin.servers import _bind, page_url
from headgate.admin.web import HEAD_SECONDS, WebServer
from headgate.ir.process import ListenAddress


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:15000/ui"),
        ("0.0.0.0", "http://localhost:15000/ui"),
        ("::", "http://localhost:15000/ui"),
        ("::1", "http://[::1]:15000/ui"),
        ("10.1.2.3", "http://10.1.2.3:15000/ui"),
    ],
)
def test_the_page_is_where_a_browser_reaches_it(host: str, url: str) -> None:
    assert page_url(ListenAddress(text=host, hosts=(host,), port=15000)) == url


def test_a_socket_left_over_is_replaced_and_a_file_is_not_touched(tmp_path: Path) -> None:
    async def main() -> None:
        path = tmp_path / "admin.sock"
        address = ListenAddress(text=f"unix:{path}", unix_path=str(path))
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(path))
        server = WebServer(tuple)
        [sock] = _bind(address, [])
        await server.serve_at(sock)
        reader, writer = await asyncio.open_unix_connection(str(path))
        writer.write(b"GET /none HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 404")
        writer.close()
        await server.close()
        path.unlink(missing_ok=True)
        path.write_text("somebody's")
        with pytest.raises(FileExistsError, match="is not a socket"):
            _bind(address, [])
        assert path.read_text() == "somebody's"

    asyncio.run(main())


def test_sockets_of_another_process_are_used_where_they_fit(tmp_path: Path) -> None:
    path = tmp_path / "admin.sock"
    with socket.socket(socket.AF_UNIX) as unix, socket.create_server(("127.0.0.1", 0)) as tcp:
        unix.bind(str(path))
        port = tcp.getsockname()[1]
        handed = [("admin", unix), ("admin", tcp)]
        assert _bind(ListenAddress(text="unix", unix_path=str(path)), handed) == [unix]
        assert _bind(ListenAddress(text="tcp", hosts=("127.0.0.1",), port=port), handed) == [tcp]
        with pytest.raises(OSError, match="in use"):
            _bind(ListenAddress(text="tcp", hosts=("0.0.0.0",), port=port), handed)
        inode = path.stat().st_ino
        [own] = _bind(ListenAddress(text="unix", unix_path=str(path)), [])
        assert path.stat().st_ino != inode, "one that nobody hands over is left over"
        own.close()


def test_a_head_must_come_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "HEAD_SECONDS", 0.05)

    async def main() -> None:
        server = WebServer(tuple)
        await server.listen(("127.0.0.1",), 0)
        reader, writer = await asyncio.open_connection(*server._servers[0].sockets[0].getsockname())
        writer.write(b"GET /none HTTP/1.1\r\nhost:")
        assert await reader.read() == b""
        writer.close()
        await server.close()

    asyncio.run(main())
    assert HEAD_SECONDS == 2.0
