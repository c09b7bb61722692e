"""What tests of admin page attacks and others share."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler


class Evil(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>evil</title><body>")

    def log_message(self, *_: object) -> None:
        return
