"""A provider that keeps what its clients give it: files, batches, responses, vector stores, jobs, realtime calls."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.end_to_end.provider_stand_in import Asked, event

Told = tuple[int, Any]
# Collections of objects by the last segment of their path: the prefix of ids.
KINDS = {
    "files": "file-", "batches": "batch_", "vector_stores": "vs_", "jobs": "ftjob-", "uploads": "upload_", "conversations": "conv_",
    "containers": "cntr_", "responses": "resp_",
}  # fmt: skip


class Account:
    """An account at a provider like OpenAI. `name` is in its ids; it knows only those."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.kept: dict[str, dict[str, Any]] = {}
        self.seen: list[Asked] = []
        self.uploaded = 0
        self.lock = threading.Lock()
        account = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_any(self) -> None:
                body = self.read_body()
                headers = {name.lower(): value for name, value in self.headers.items()}
                asked = Asked(self.command, self.path, headers, body)
                with account.lock:
                    account.seen.append(asked)
                    status, told = account.answer(asked)
                if isinstance(told, Iterator):
                    self.stream(told)
                    return
                raw = told if isinstance(told, bytes) else json.dumps(told, indent=2).encode()
                self.send_response(status)
                if asked.path.endswith("/realtime/calls"):
                    self.send_header("location", f"/v1/realtime/calls/rtc_{account.name}1")
                    self.send_header("content-type", "application/sdp")
                else:
                    self.send_header("content-type", "application/octet-stream" if isinstance(told, bytes) else "application/json")
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def read_body(self) -> bytes:
                if self.headers.get("transfer-encoding") != "chunked":
                    return self.rfile.read(int(self.headers.get("content-length") or 0))
                found = b""
                while size := int(self.rfile.readline(), 16):
                    found += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
                return found

            def stream(self, events: Iterator[bytes]) -> None:
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("transfer-encoding", "chunked")
                self.end_headers()
                for one in events:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(one), one))
                self.wfile.write(b"0\r\n\r\n")

            do_GET = do_POST = do_DELETE = do_any

            def log_message(self, *_: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = int(self.server.server_address[1])
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    # -- answers -------------------------------------------------------------------------------------------------------
    def missing(self, ident: str) -> Told:
        return 404, {"error": {"message": f"{self.name} has no {ident!r}", "type": "invalid_request_error", "code": None, "param": None}}

    def answer(self, asked: Asked) -> Told:
        """What the account answers; ids of other accounts are not known here, wherever they stand."""
        path = asked.path.partition("?")[0].removeprefix("/v1")
        named = re.findall(rf"(?:{'|'.join(KINDS.values())})[A-Za-z0-9_-]+", path + asked.body.decode("latin-1")[:65536])
        for ident in named:
            if ident not in self.kept:
                return self.missing(ident)
        parts = path.strip("/").split("/")
        if parts[-1] == "moderations":
            return 200, {"id": "modr-1", "model": asked.json.get("model", "omni"), "results": []}
        if parts[-1] == "client_secrets":
            session = {**asked.json["session"], "id": "sess_1", "object": "realtime.session"}
            return 200, {"value": "ek_1", "expires_at": 1, "session": session}
        if parts[0] == "realtime" and parts[-1] == "calls":
            return 201, b"v=0 answer"
        if parts[-1] == "hangup":
            return (200, {}) if parts[-2] == f"rtc_{self.name}1" else self.missing(parts[-2])
        if parts[-1] == "parts":
            self.uploaded += len(asked.body)
            return 200, self.make("part_", {"object": "upload.part", "upload_id": parts[-2]})
        if parts[-1] == "content":
            return 200, self.kept[parts[-2]]["raw"]
        if parts[-1] == "input_items":
            return self.listing([{"id": "msg_1", "type": "message", "role": "user", "content": []}])
        if parts[-1] in ("cancel", "complete") or (len(parts) > 1 and parts[-1] in self.kept):
            return self.one(asked, parts)
        if parts[-1] == "files" and len(parts) > 1 and asked.method == "POST":
            return 200, {"id": asked.json["file_id"], "object": "vector_store.file", "vector_store_id": parts[-2], "status": "completed"}
        if parts[-1] not in KINDS:
            return self.missing(path)
        if asked.method == "GET":
            prefix = KINDS[parts[-1]]
            return self.listing([shown(one) for ident, one in self.kept.items() if ident.startswith(prefix)])
        return self.create(asked, parts[-1])

    def one(self, asked: Asked, parts: list[str]) -> Told:
        ident = parts[-2] if parts[-1] in ("cancel", "complete") else parts[-1]
        if asked.method == "DELETE":
            del self.kept[ident]
            return 200, {"id": ident, "object": "deleted", "deleted": True}
        if parts[-1] == "complete":
            file = self.make("file-", {"object": "file", "raw": b"all"})
            self.kept[ident] |= {"status": "completed", "file": shown(file)}
        elif parts[-1] == "cancel":
            self.kept[ident] |= {"status": "cancelled"}
        return 200, shown(self.kept[ident])

    def create(self, asked: Asked, kind: str) -> Told:
        if kind == "files":
            self.uploaded += len(asked.body)
            return 200, shown(self.make("file-", {"object": "file", "raw": asked.body[:20], "bytes": len(asked.body)}))
        told = asked.json
        made = self.make(KINDS[kind], {**told, "object": kind, "status": "completed"})
        if kind == "batches":
            made["output_file_id"] = self.make("file-", {"object": "file", "raw": b"results"})["id"]
        if kind == "responses":
            made |= {"object": "response", "created_at": 1, "output": [], "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}}
            made.pop("stream", None)
            if told.get("stream"):
                return 200, iter([
                    event({"type": "response.created", "response": made}, "response.created"),
                    event({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0,
                           "delta": f'{{"id": "{made["id"]}"}}'}, "response.output_text.delta"),
                    event({"type": "response.completed", "response": made}, "response.completed"),
                ])  # fmt: skip
        return 200, made

    def make(self, prefix: str, members: dict[str, Any]) -> dict[str, Any]:
        ident = f"{prefix}{self.name}{len(self.kept)}"
        self.kept[ident] = {**members, "id": ident}
        return self.kept[ident]

    def listing(self, data: list[Any]) -> Told:
        ends = {"first_id": data[0]["id"], "last_id": data[-1]["id"]} if data else {}
        return 200, {"object": "list", "data": data, "has_more": False, **ends}


def shown(kept: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in kept.items() if name != "raw"}
