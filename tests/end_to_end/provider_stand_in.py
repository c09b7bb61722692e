"""An LLM provider that does what a test tells it to, and remembers what it was asked."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Asked:
    """One request; names of headers in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Answer = Callable[["StandIn", BaseHTTPRequestHandler], None]


class StandIn:
    """`answers`: what the next requests get, the last of them for ever. `seen`: what was asked."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.seen: list[Asked] = []
        self.gone = threading.Event()
        stand_in = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                self.asked = Asked(self.command, self.path, headers, body)
                stand_in.seen.append(self.asked)
                answer = stand_in.answers.pop(0) if len(stand_in.answers) > 1 else stand_in.answers[0]
                answer(stand_in, self)

            do_GET = do_POST = do_DELETE = handle_one

            def log_message(self, *_: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = int(self.server.server_address[1])
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def last(self) -> Asked:
        return self.seen[-1]

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def whole(body: Any, status: int = 200, **headers: str) -> Answer:
    """A JSON answer; headers with `_` for `-`."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()

    def answer(_: StandIn, handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.send_header("content-type", "application/json")
        handler.send_header("content-length", str(len(raw)))
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(raw)

    return answer


def stream(*pieces: bytes, end: str = "whole", pause: float = 0.0, kind: str = "text/event-stream") -> Answer:
    """An event stream in chunks. kind: its content type, "" for none. end: `whole`; `cut` breaks the connection, `stall` says no more."""

    def answer(stand_in: StandIn, handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        if kind:
            handler.send_header("content-type", kind)
        handler.send_header("transfer-encoding", "chunked")
        handler.end_headers()
        try:
            for piece in pieces:
                handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                handler.wfile.flush()
                time.sleep(pause)
        except ConnectionError:
            stand_in.gone.set()
            handler.close_connection = True
            return
        if end == "whole":
            handler.wfile.write(b"0\r\n\r\n")
        elif end == "cut":
            reset(stand_in, handler)
        elif end == "stall":
            handler.connection.settimeout(30)
            try:
                if handler.connection.recv(1) == b"":
                    stand_in.gone.set()
            except ConnectionResetError:
                stand_in.gone.set()
            handler.close_connection = True

    return answer


def reset(_: StandIn, handler: BaseHTTPRequestHandler) -> None:
    """The connection breaks."""
    handler.wfile.flush()
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.connection.close()
    handler.close_connection = True


def silence(stand_in: StandIn, handler: BaseHTTPRequestHandler) -> None:
    """No answer at all, until the gateway hangs up."""
    handler.connection.settimeout(30)
    try:
        handler.connection.recv(1)
    except OSError:
        pass
    stand_in.gone.set()
    handler.close_connection = True


def event(data: Any, name: str | None = None) -> bytes:
    """One event."""
    head = "" if name is None else f"event: {name}\n"
    return f"{head}data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()


def chat(text: str = "hello", model: str = "real") -> dict[str, Any]:
    """A chat completion."""
    return {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": model,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18,
                  "prompt_tokens_details": {"cached_tokens": 4}},
    }  # fmt: skip


def chunk(text: str | None = None, finish: str | None = None) -> bytes:
    """A piece of a chat completion."""
    delta = {} if text is None else {"content": text}
    return event({
        "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "real",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    })  # fmt: skip


DONE = b"data: [DONE]\n\n"


def message(text: str = "hello") -> dict[str, Any]:
    """An Anthropic message."""
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-real",
        "content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": 10, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 5,
                  "output_tokens": 7},
    }  # fmt: skip


def message_events(*texts: str) -> list[bytes]:
    """The events of an Anthropic stream."""
    start = message() | {"content": [], "stop_reason": None}
    start["usage"] = start["usage"] | {"output_tokens": 1}
    return [
        event({"type": "message_start", "message": start}, "message_start"),
        event({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
              "content_block_start"),
        event({"type": "ping"}, "ping"),
        *(event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
                "content_block_delta") for text in texts),
        event({"type": "content_block_stop", "index": 0}, "content_block_stop"),
        event({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
               "usage": {"output_tokens": 7}}, "message_delta"),
        event({"type": "message_stop"}, "message_stop"),
    ]  # fmt: skip


def response(text: str = "hello") -> dict[str, Any]:
    """An object of the Responses API."""
    return {
        "id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "real",
        "output": [{"type": "message", "id": "m", "role": "assistant", "status": "completed",
                    "content": [{"type": "output_text", "text": text, "annotations": []}]}],
        "usage": {"input_tokens": 3, "output_tokens": 5, "total_tokens": 8},
    }  # fmt: skip
