"""Authorization services for tests: one that speaks Envoy's protocol over gRPC, one that is asked over HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import grpc
from envoy.service.auth.v3.external_auth_pb2 import CheckRequest, CheckResponse
from google.protobuf.json_format import MessageToDict, ParseDict

React = Callable[[dict[str, Any]], dict[str, Any]]


class GrpcAuthorizer:
    """`react` gets a CheckRequest as JSON and returns a CheckResponse as JSON. `seen`: what it was asked. `credentials`: it speaks TLS."""

    def __init__(self, credentials: grpc.ServerCredentials | None = None) -> None:
        self.react: React = lambda question: {}
        self.seen: list[dict[str, Any]] = []
        self.fields: list[dict[str, Any]] = []
        self.server = grpc.server(ThreadPoolExecutor(16))
        handler = grpc.unary_unary_rpc_method_handler(self._check)
        service = grpc.method_handlers_generic_handler("envoy.service.auth.v3.Authorization", {"Check": handler})
        self.server.add_generic_rpc_handlers((service,))
        place = "127.0.0.1:0"
        plain = credentials is None
        self.port = self.server.add_insecure_port(place) if plain else self.server.add_secure_port(place, credentials)
        self.server.start()

    def _check(self, text: bytes, context: Any) -> bytes:
        question = MessageToDict(CheckRequest.FromString(text), preserving_proto_field_name=True)
        self.seen.append(question)
        self.fields.append(dict(context.invocation_metadata()))
        found = self.react(question)
        return found if isinstance(found, bytes) else ParseDict(found, CheckResponse()).SerializeToString()

    def stop(self) -> None:
        self.server.stop(None).wait()


class Asked(NamedTuple):
    """A request as it reached the HTTP service."""

    method: str
    target: str
    fields: dict[str, str]
    body: str


class HttpAuthorizer:
    """`status`, `fields` and `body` are the answer; `seen`: what it was asked."""

    def __init__(self) -> None:
        self.status = 200
        self.fields: list[tuple[str, str]] = []
        self.body = b""
        self.seen: list[Asked] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
                fields = {name.lower(): value for name, value in self.headers.items()}
                outer.seen.append(Asked(self.command, self.path, fields, body))
                self.send_response(outer.status)
                for name, value in outer.fields:
                    self.send_header(name, value)
                self.send_header("content-length", str(len(outer.body)))
                self.end_headers()
                self.wfile.write(outer.body)

            do_GET = do_POST = do_PUT = handle_any

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@contextmanager
def serving_authorizer() -> Iterator[HttpAuthorizer]:
    """An HTTP service for the time of the block."""
    service = HttpAuthorizer()
    try:
        yield service
    finally:
        service.stop()


def shown(value: object) -> str:
    """JSON as part of a configuration: YAML reads it."""
    return json.dumps(value)
