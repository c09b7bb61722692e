"""A provider that fails as a request says, and what its answers cost."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler

from tests.end_to_end.provider_stand_in import DONE, StandIn, chunk, event, reset, whole

USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
# Picodollars of a token in and of one out.
IN, OUT = 2 * 10**6, 8 * 10**6
WORDS = 5
# A stream to its end; one that breaks off after some words; one whose client leaves then; a connection that is reset at once; a refusal.
KINDS = ("whole", "cut", "left", "reset", "refused")


class Failing:
    """Answers as the request's `user` says. `told`: how many streams said their usage."""

    def __init__(self) -> None:
        self.told = 0
        self.over = threading.Event()
        self._lock = threading.Lock()

    def __call__(self, stand_in: StandIn, handler: BaseHTTPRequestHandler) -> None:
        kind = handler.asked.json["user"]  # type: ignore[attr-defined]
        if kind == "reset":
            reset(stand_in, handler)
            return
        if kind == "refused":
            whole({"error": {"message": "no"}}, 500)(stand_in, handler)
            return
        handler.close_connection = True
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.send_header("transfer-encoding", "chunked")
        handler.end_headers()
        pieces = [chunk(" word")] * WORDS
        if kind == "whole":
            pieces += [chunk("", "stop"), event({"choices": [], "model": "real", "usage": USAGE}), DONE]
        for piece in pieces:
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        if kind == "whole":
            with self._lock:
                self.told += 1
            handler.wfile.write(b"0\r\n\r\n")
        handler.wfile.flush()
        if kind == "left":
            assert self.over.wait(120)
