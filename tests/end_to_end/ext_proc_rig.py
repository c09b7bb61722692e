"""A processor for tests that speaks Envoy's protocol, and a backend that reads and writes bodies of any kind."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import grpc
from envoy.service.ext_proc.v3.external_processor_pb2 import ProcessingRequest, ProcessingResponse
from google.protobuf.json_format import MessageToDict, ParseDict

DESTINATION = "x-gateway-destination-endpoint"
LIMITS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
# A message of the gateway, as JSON, and which part it is; gives answers as JSON or as bytes.
React = Callable[[str, dict[str, Any]], Iterator[Any]]


def fields_of(message: dict[str, Any]) -> dict[str, str]:
    """The headers of a message: values are sent as bytes, which JSON shows in base64."""
    (part,) = [message[name] for name in message if name.endswith(("_headers", "_trailers"))]
    headers = part.get("headers") or part.get("trailers") or {}
    return {one["key"]: base64.b64decode(one["raw_value"]).decode() for one in headers.get("headers", [])}


def put(*pairs: tuple[str, str], **more: Any) -> dict[str, Any]:
    """A HeaderMutation that sets fields."""
    options = [
        {"header": {"key": key, "rawValue": base64.b64encode(value.encode()).decode()}, **more} for key, value in pairs
    ]
    return {"setHeaders": options}


def content(body: bytes) -> str:
    return base64.b64encode(body).decode()


def unchanged(part: str, message: dict[str, Any]) -> Iterator[Any]:
    """Let everything pass as it is."""
    if part.endswith("_headers"):
        yield {part: {}}
    elif part.endswith("_body"):
        body = base64.b64decode(message[part].get("body", ""))
        streamed = {"body": content(body), "endOfStream": message[part].get("end_of_stream", False)}
        yield {part: {"response": {"bodyMutation": {"streamedResponse": streamed}}}}
    else:
        yield {part: {}}


def picking(*places: str, metadata: bool = False) -> Any:
    """A picker as those of model servers: it reads the whole body before it answers the headers, and gives it back."""

    def react(part: str, message: dict[str, Any]) -> Iterator[Any]:
        if part == "request_headers" and not message[part].get("end_of_stream"):
            return
        if part == "request_body" and not message[part].get("end_of_stream"):
            bodies.append(base64.b64decode(message[part]["body"]))
            return
        if part in ("request_headers", "request_body"):
            told = {"response": {"headerMutation": put((DESTINATION, ",".join(places)))}}
            if metadata:
                found = {"envoy.lb": {DESTINATION: ",".join(places)}}
                yield {"request_headers": {}, "dynamicMetadata": found}
            else:
                yield {"request_headers": told}
            if part == "request_body":
                model = json.loads(b"".join(bodies))["model"]
                bodies.clear()
                body = {"body": content(json.dumps({"model": f"{model}-lora"}).encode()), "endOfStream": True}
                yield {part: {"response": {"bodyMutation": {"streamedResponse": body}}}}
        else:
            yield from unchanged(part, message)

    bodies: list[bytes] = []
    return react


class ProcessorPeer:
    """`react` gets each message of each stream. `seen`: the streams, each with its messages. `ended`: streams that are over.
    `credentials`: it speaks TLS."""

    def __init__(
        self, port: int = 0, credentials: grpc.ServerCredentials | None = None, host: str = "127.0.0.1"
    ) -> None:
        self.react: React = unchanged
        self.seen: list[list[dict[str, Any]]] = []
        self.fields: list[dict[str, Any]] = []
        self.ended = 0
        self.server = grpc.server(ThreadPoolExecutor(32), options=LIMITS)
        handler = grpc.stream_stream_rpc_method_handler(self._process)
        service = grpc.method_handlers_generic_handler("envoy.service.ext_proc.v3.ExternalProcessor", {"Process": handler})
        self.server.add_generic_rpc_handlers((service,))
        place = f"{host}:{port}"
        plain = credentials is None
        self.port = self.server.add_insecure_port(place) if plain else self.server.add_secure_port(place, credentials)
        self.server.start()

    def _process(self, messages: Iterator[bytes], context: Any) -> Iterator[bytes]:
        seen: list[dict[str, Any]] = []
        self.seen.append(seen)
        self.fields.append(dict(context.invocation_metadata()))
        try:
            for text in messages:
                message = MessageToDict(ProcessingRequest.FromString(text), preserving_proto_field_name=True)
                seen.append(message)
                (part,) = [name for name in message if name.startswith(("request_", "response_"))]
                for answer in self.react(part, message):
                    if answer is None:
                        return
                    yield answer if isinstance(answer, bytes) else ParseDict(
                        answer, ProcessingResponse()
                    ).SerializeToString()
        finally:
            self.ended += 1

    @property
    def parts(self) -> list[str]:
        """The kinds of the messages of the last stream, those that repeat once."""
        found: list[str] = []
        for message in self.seen[-1]:
            (part,) = [name for name in message if name.startswith(("request_", "response_"))]
            if not found or found[-1] != part:
                found.append(part)
        return found

    def stop(self) -> None:
        self.server.stop(None).wait()


class Seen(NamedTuple):
    """A request as it reached the backend."""

    method: str
    target: str
    fields: dict[str, str]
    body: bytes
    trailers: dict[str, str]


class BodyBackend:
    """`chunks` is the body of its answers, sent in chunks if there are several or trailers; `seen`: what it was asked."""

    def __init__(self) -> None:
        self.status = 200
        self.fields: list[tuple[str, str]] = [("x-kind", "backend")]
        self.chunks: Callable[[], Iterable[bytes]] = lambda: [b"from the backend"]
        self.trailers: list[tuple[str, str]] = []
        self.seen: list[Seen] = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def _handler_of(owner: BodyBackend) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def body(self) -> tuple[bytes, dict[str, str]]:
            if self.headers.get("transfer-encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("content-length") or 0)), {}
            found = b""
            while size := int(self.rfile.readline(), 16):
                found += self.rfile.read(size)
                self.rfile.readline()
            trailers = {}
            while line := self.rfile.readline().strip():
                name, _, value = line.decode().partition(":")
                trailers[name.lower()] = value.strip()
            return found, trailers

        def handle_any(self) -> None:
            try:
                body, trailers = self.body()
            except ValueError:      # the request was broken off
                self.close_connection = True
                return
            # Lines of one name are joined: it is the same to a reader (RFC 9110 section 5.2).
            fields = {name.lower(): ",".join(self.headers.get_all(name) or ()) for name in self.headers}
            owner.seen.append(Seen(self.command, self.path, fields, body, trailers))
            chunks = owner.chunks()      # which may set the status
            self.send_response(owner.status)
            for name, value in owner.fields:
                self.send_header(name, value)
            if isinstance(chunks, list) and len(chunks) < 2 and not owner.trailers:
                self.send_header("content-length", str(len(b"".join(chunks))))
                self.end_headers()
                self.wfile.write(b"".join(chunks))
                return
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for chunk in chunks:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            self.wfile.write(b"0\r\n")
            for name, value in owner.trailers:
                self.wfile.write(f"{name}: {value}\r\n".encode())
            self.wfile.write(b"\r\n")

        do_GET = do_POST = do_PUT = do_HEAD = handle_any

        def log_message(self, *args: object) -> None:
            pass

    return Handler
