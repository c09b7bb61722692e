"""A stand-in for an API server: resources from a table, port-forwards by the `websockets` library to ports of this machine."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from websockets.datastructures import Headers
from websockets.http11 import Request, Response
from websockets.sync.server import Server, ServerConnection, serve
from websockets.typing import Subprotocol

from headgate.cluster.api import ApiServer
from headgate.cluster.kubeconfig import load_access

TOKEN = "a-token"
PROTOCOL = Subprotocol("v4.channel.k8s.io")


def pod(name: str, phase: str = "Running", namespace: str = "shop") -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, "status": {"phase": phase}}


class StandIn:
    """`objects`: what a path, query included, is answered with. `behave`: what a forward does instead of its work."""

    def __init__(self, folder: Path) -> None:
        self.objects: dict[str, Any] = {}
        self.requests: list[str] = []
        self.refuse: tuple[int, str] | None = None
        self.behave: Callable[[ServerConnection, int], None] | None = None
        self.ca = trustme.CA()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.ca.issue_cert("127.0.0.1").configure_cert(context)
        self._server: Server = serve(
            self._forward, "127.0.0.1", 0, ssl=context, subprotocols=[PROTOCOL], process_request=self._answer,
            compression=None, max_size=None,
        )  # fmt: skip
        self.port: int = self._server.socket.getsockname()[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.write_text(json.dumps(self.document()))

    def document(self, **user: Any) -> dict[str, Any]:
        """Return a kubeconfig document; JSON is YAML."""
        authority = base64.b64encode(self.ca.cert_pem.bytes()).decode()
        cluster = {"server": f"https://127.0.0.1:{self.port}", "certificate-authority-data": authority}
        return {
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "one", "user": "me", "namespace": "shop"}}],
            "clusters": [{"name": "one", "cluster": cluster}],
            "users": [{"name": "me", "user": user or {"token": TOKEN}}],
        }

    def api(self) -> ApiServer:
        return ApiServer(load_access(str(self.kubeconfig), {}, Path("/nowhere")))

    def close(self) -> None:
        self._server.shutdown()

    def _answer(self, connection: ServerConnection, request: Request) -> Response | None:
        self.requests.append(request.path)
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self._status(401, "Unauthorized")
        if "/portforward?" in request.path:
            return None if self.refuse is None else self._status(*self.refuse)
        found = self.objects.get(request.path)
        if found is None:
            return self._status(404, f"{request.path} not found")
        return self._response(200, found)

    def _status(self, code: int, message: str) -> Response:
        return self._response(code, {"kind": "Status", "status": "Failure", "message": message, "code": code})

    @staticmethod
    def _response(code: int, document: Any) -> Response:
        body = json.dumps(document).encode()
        headers = Headers({"Content-Type": "application/json", "Content-Length": str(len(body)), "Connection": "close"})
        return Response(code, "Status", headers, body)

    def _forward(self, connection: ServerConnection) -> None:
        assert connection.request is not None
        port = int(connection.request.path.rpartition("=")[2])
        for channel in (0, 1):
            connection.send(bytes([channel]) + port.to_bytes(2, "little"))
        if self.behave is not None:
            self.behave(connection, port)
            return
        try:
            peer = socket.create_connection(("127.0.0.1", port), 5)
        except OSError as error:
            connection.send(b"\x01" + f"connection refused: {error.strerror}".encode())
            return
        back = threading.Thread(target=self._back, args=(peer, connection), daemon=True)
        back.start()
        with peer:
            for message in connection:
                assert isinstance(message, bytes)
                assert message[0] == 0
                peer.sendall(message[1:])
            peer.shutdown(socket.SHUT_RDWR)
        back.join()

    @staticmethod
    def _back(peer: socket.socket, connection: ServerConnection) -> None:
        try:
            while data := peer.recv(65536):
                connection.send(b"\0" + data)
        except (OSError, ConnectionError):
            pass
        connection.close()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[StandIn]:
    made = StandIn(tmp_path)
    yield made
    made.close()
