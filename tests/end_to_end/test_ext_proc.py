"""`extProc`: a processor sees requests and responses, and changes them."""

from __future__ import annotations

import base64
import socket
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.end_to_end.ext_authz_rig import shown
from tests.end_to_end.ext_proc_rig import BodyBackend, ProcessorPeer, content, fields_of, put, unchanged

pytestmark = pytest.mark.warm

ROUTE = """
gateways:
  default: {{port: {{port}}}}
routes:
- name: processed
  policies:
    extProc: {policy}
  backends:
  - host: 127.0.0.1:{backend}
"""


def config(backend: BodyBackend, processor: ProcessorPeer, options: dict[str, Any] | None = None, **policy: Any) -> str:
    if options is not None:
        policy["processingOptions"] = options
    return ROUTE.format(policy=shown({"host": f"127.0.0.1:{processor.port}", **policy}), backend=backend.port)


HEADERS = {"requestBodyMode": "none", "responseBodyMode": "none"}


def test_headers_are_changed_in_both_directions(gateway: Any, processor: ProcessorPeer, backend: BodyBackend) -> None:
    def react(part: str, message: dict[str, Any]) -> Iterator[Any]:
        if part == "request_headers":
            change = put(("x-new", "1"), (":path", "/changed?q"), ("content-length", "99"), ("x-there", "other"))
            change["removeHeaders"] = ["x-secret", ":path", "host"]
            yield {part: {"response": {"headerMutation": change}}}
        else:
            yield {part: {"response": {"headerMutation": put((":status", "202"), ("x-kind", "processor"))}}}

    processor.react = react
    running = gateway(config(backend, processor, HEADERS))
    answer = httpx.post(running.url + "/p?a=1", headers={"x-secret": "s", "x-there": "old"}, content=b"hello")
    assert (answer.status_code, answer.text, answer.headers["x-kind"]) == (202, "from the backend", "processor")
    [seen] = backend.seen
    assert (seen.target, seen.body, seen.fields["x-new"], seen.fields["x-there"]) == ("/changed?q", b"hello", "1", "other")
    assert "x-secret" not in seen.fields
    sent = fields_of(processor.seen[0][0])
    assert (sent[":method"], sent[":path"], sent[":scheme"], sent["x-secret"]) == ("POST", "/p?a=1", "http", "s")
    assert fields_of(processor.seen[0][1])[":status"] == "200"
    assert processor.parts == ["request_headers", "response_headers"]


MODES = ("none", "buffered", "bufferedPartial", "fullDuplexStreamed")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", [0, 5, 300_000])
def test_what_is_not_changed_passes(gateway: Any, processor: ProcessorPeer, backend: BodyBackend, mode: str, size: int) -> None:
    def react(part: str, message: dict[str, Any]) -> Iterator[Any]:
        if mode == "fullDuplexStreamed" or not part.endswith("_body"):
            yield from unchanged(part, message)
        else:
            yield {part: {}}

    processor.react = react
    backend.chunks = lambda: [b"b" * size]
    running = gateway(config(backend, processor, {"requestBodyMode": mode, "responseBodyMode": mode}))
    with httpx.Client() as client:
        for _ in range(3):
            answer = client.post(running.url + "/", content=b"a" * size)
            assert (answer.status_code, answer.content) == (200, b"b" * size)
            assert backend.seen[-1].body == b"a" * size


def changing(**edits: bytes) -> Any:
    """Replace bodies: those that are streamed get a part behind each piece, others are replaced."""

    def react(part: str, message: dict[str, Any]) -> Iterator[Any]:
        if part in edits:
            yield {part: {"response": {"bodyMutation": {"body": content(edits[part])}}}}
        else:
            yield {part: {}}

    return react


@pytest.mark.parametrize("mode", ["buffered", "bufferedPartial"])
def test_whole_bodies_are_replaced(gateway: Any, processor: ProcessorPeer, backend: BodyBackend, mode: str) -> None:
    processor.react = changing(request_body=b"a longer request", response_body=b"short")
    running = gateway(config(backend, processor, {"requestBodyMode": mode, "responseBodyMode": mode}))
    answer = httpx.post(running.url + "/", content=b"request")
    assert (answer.content, answer.headers["content-length"]) == (b"short", "5")
    assert (backend.seen[0].body, backend.seen[0].fields["content-length"]) == (b"a longer request", "16")
    assert processor.seen[0][1]["request_body"] == {"body": content(b"request"), "end_of_stream": True}
    assert processor.parts == ["request_headers", "request_body", "response_headers", "response_body"]


def test_a_beginning_is_sent_of_long_bodies(gateway: Any, processor: ProcessorPeer, backend: BodyBackend) -> None:
    processor.react = changing(request_body=b"<", response_body=b">")
    backend.chunks = lambda: [b"b" * 3000]
    modes = {"requestBodyMode": "bufferedPartial", "responseBodyMode": "bufferedPartial"}
    running = gateway(config(backend, processor, modes) + SMALL)
    answer = httpx.post(running.url + "/", content=b"a" * 2500)
    assert answer.content == b">" + b"b" * 2000
    assert backend.seen[0].body == b"<" + b"a" * 1500
    [_, body, *_] = processor.seen[0]
    assert body["request_body"] == {"body": content(b"a" * 1000)}


SMALL = """
frontendPolicies:
  http: {maxBufferSize: 1000}
"""


def test_long_bodies_are_refused(gateway: Any, processor: ProcessorPeer, backend: BodyBackend) -> None:
    processor.react = changing()
    backend.chunks = lambda: [b"b" * 3000]
    running = gateway(config(backend, processor, {"requestBodyMode": "buffered", "responseBodyMode": "buffered"}) + SMALL)
    answer = httpx.post(running.url + "/", content=b"a" * 2500)
    assert (answer.status_code, answer.text) == (413, "ext_proc failed: the request body has more than 1000 bytes")
    assert backend.seen == []
    answer = httpx.post(running.url + "/", content=b"a")
    assert (answer.status_code, answer.text) == (500, "ext_proc failed: the response body has more than 1000 bytes")


def test_streams_are_changed_piece_by_piece(gateway: Any, processor: ProcessorPeer, backend: BodyBackend) -> None:
    def react(part: str, message: dict[str, Any]) -> Iterator[Any]:
        if part.endswith("_body"):
            for piece in (message[part].get("body"), content(b"+")):
                if piece:
                    yield {part: {"response": {"bodyMutation": {"streamedResponse": {"body": piece}}}}}
            if message[part].get("end_of_stream"):
                yield {part: {"response": {"bodyMutation": {"streamedResponse": {"endOfStream": True}}}}}
        else:
            yield {part: {}}

    processor.react = react
    told = threading.Event()

    def chunks() -> Iterator[bytes]:
        yield b"one"
        assert told.wait(60)
        yield b"two"

    backend.chunks = chunks
    running = gateway(config(backend, processor))
    with httpx.stream("POST", running.url + "/", content=b"request") as answer:
        pieces = answer.iter_raw()
        found = b""
        while found != b"one+":
            found += next(pieces)
        told.set()
        assert b"".join(pieces) == b"two++"
    assert backend.seen[0].body == b"request++"
    assert "content-length" not in backend.seen[0].fields


def test_the_processor_answers_itself(gateway: Any, processor: ProcessorPeer, backend: BodyBackend) -> None:
    def react(part: str, message: dict[str, Any]) -> Iterator[Any]:
        where = fields_of(processor.seen[-1][0])["x-where"]
        if part != where:
            yield from unchanged(part, message)
            return
        yield {
            "immediateResponse": {
                "status": {"code": 418},
                "headers": put(("x-own", "1"), ("content-type", "text/tea"), ("connection", "close")),
                "body": content(b"tea"),
                "details": "no coffee",
            }
        }

    processor.react = react
    running = gateway(config(backend, processor))
    for number, part in enumerate(("request_headers", "request_body", "response_headers")):
        answer = httpx.post(running.url + "/", headers={"x-where": part}, content=b"a")
        assert (answer.status_code, answer.text, answer.headers["x-own"]) == (418, "tea", "1")
        assert answer.headers["content-type"] == "text/tea"
        assert len(backend.seen) == (number == 2)
    running.wait_log_count(" reason=ExtProc ", 3)
    assert "no coffee" in running.log()


def test_an_answer_behind_the_head_breaks_the_response(
    gateway: Any, processor: ProcessorPeer, backend: BodyBackend
) -> None:
    def react(part: str, message: dict[str, Any]) -> Iterator[Any]:
        if part == "response_body" and message[part].get("end_of_stream"):
            yield {"immediateResponse": {"status": {"code": 403}}}
        else:
            yield from unchanged(part, message)

    processor.react = react
    running = gateway(config(backend, processor))
    with pytest.raises(httpx.RemoteProtocolError):
        httpx.get(running.url + "/")


def test_a_status_of_zero_is_200(gateway: Any, processor: ProcessorPeer, backend: BodyBackend) -> None:
    processor.react = lambda part, message: iter([{"immediateResponse": {"body": content(b"fine")}}])
    running = gateway(config(backend, processor))
    answer = httpx.get(running.url + "/")
    assert (answer.status_code, answer.text, answer.headers["content-type"]) == (200, "fine", "text/plain")


def test_a_grpc_client_gets_a_status(gateway: Any, processor: ProcessorPeer, backend: BodyBackend) -> None:
    own = {"status": {"code": 403}, "grpcStatus": {"status": 7}, "body": content("nö".encode())}
    processor.react = lambda part, message: iter([{"immediateResponse": own}])
    running = gateway(config(backend, processor))
    answer = httpx.post(running.url + "/", headers={"content-type": "application/grpc"}, content=b"")
    assert (answer.status_code, answer.headers["grpc-status"], answer.headers["grpc-message"]) == (200, "7", "n%C3%B6")


@pytest.mark.parametrize("mode", MODES)
def test_a_head_may_come_with_another_body(
    gateway: Any, processor: ProcessorPeer, backend: BodyBackend, mode: str
) -> None:
    def react(part: str, message: dict[str, Any]) -> Iterator[Any]:
        if part.endswith("_headers"):
            body = {"body": content(b"instead of " + part.encode())}
            mutation = {"status": "CONTINUE_AND_REPLACE", "bodyMutation": body, "headerMutation": put(("x-a", "b"))}
            yield {part: {"response": mutation}}

    processor.react = react
    backend.chunks = lambda: [b"x" * 100_000] * 10
    running = gateway(config(backend, processor, {"requestBodyMode": mode, "responseBodyMode": mode}))
    with httpx.Client() as client:
        for _ in range(2):
            answer = client.post(running.url + "/", content=b"y" * 200_000)
            assert (answer.content, answer.headers["x-a"]) == (b"instead of response_headers", "b")
            assert backend.seen[-1].body == b"instead of request_headers"
            assert backend.seen[-1].fields["x-a"] == "b"


@pytest.mark.parametrize("mode", MODES)
def test_trailers_are_sent_and_changed(gateway: Any, processor: ProcessorPeer, backend: BodyBackend, mode: str) -> None:
    def react(part: str, message: dict[str, Any]) -> Iterator[Any]:
        if part.endswith("_trailers"):
            yield {part: {"headerMutation": {**put(("x-new", part)), "removeHeaders": ["x-gone"]}}}
        elif part.endswith("_body") and mode != "fullDuplexStreamed":
            yield {part: {}}
        else:
            yield from unchanged(part, message)

    processor.react = react
    backend.trailers = [("x-kept", "1"), ("x-gone", "2")]
    running = gateway(config(backend, processor, {"requestBodyMode": mode, "responseBodyMode": mode}))
    head = b"POST / HTTP/1.1\r\nhost: a\r\nte: trailers\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", running.port)) as client:
        client.sendall(head + b"3\r\nabc\r\n0\r\nx-kept: 1\r\nx-gone: 2\r\n\r\n")
        found = b""
        while data := client.recv(65536):
            found += data
    assert found.endswith(b"\r\n0\r\nx-kept: 1\r\nx-new: response_trailers\r\n\r\n"), found
    assert b"from the backend" in found
    assert backend.seen[0].body == b"abc"
    assert backend.seen[0].trailers == {"x-kept": "1", "x-new": "request_trailers"}
    assert fields_of(next(one for one in processor.seen[0] if "request_trailers" in one)) == {"x-kept": "1", "x-gone": "2"}


def test_what_is_skipped_is_not_sent(gateway: Any, processor: ProcessorPeer, backend: BodyBackend) -> None:
    options = {
        "requestHeaderMode": "skip", "responseHeaderMode": "skip", "requestBodyMode": "none",
        "responseBodyMode": "buffered", "responseTrailerMode": "skip",
    }  # fmt: skip
    processor.react = changing(response_body=b"changed")
    backend.trailers = [("x-kept", "1")]
    running = gateway(config(backend, processor, options))
    assert httpx.post(running.url + "/", content=b"a").text == "changed"
    assert processor.parts == ["response_body"]
    assert processor.seen[0][0]["protocol_config"] == {"response_body_mode": "BUFFERED"}


def test_the_processor_chooses_the_parts(gateway: Any, processor: ProcessorPeer, backend: BodyBackend) -> None:
    def react(part: str, message: dict[str, Any]) -> Iterator[Any]:
        mode = {"requestBodyMode": "BUFFERED", "responseHeaderMode": "SKIP", "responseBodyMode": "BUFFERED"}
        if part == "request_headers":
            yield {part: {}, "modeOverride": mode}
        else:
            yield {part: {"response": {"bodyMutation": {"body": content(part.encode())}}}}

    processor.react = react
    running = gateway(config(backend, processor, {**HEADERS, "allowModeOverride": True}))
    assert httpx.post(running.url + "/", content=b"a").text == "response_body"
    assert backend.seen[0].body == b"request_body"
    assert processor.parts == ["request_headers", "request_body", "response_body"]


def test_the_processor_may_not_choose_unless_allowed(
    gateway: Any, processor: ProcessorPeer, backend: BodyBackend
) -> None:
    processor.react = lambda part, message: iter([{part: {}, "modeOverride": {"requestBodyMode": "BUFFERED"}}])
    running = gateway(config(backend, processor, HEADERS))
    assert httpx.post(running.url + "/", content=b"a").status_code == 200
    assert processor.parts == ["request_headers", "response_headers"]


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("mode", ["SEND", "SKIP"])
def test_the_processor_chooses_trailers(
    gateway: Any, processor: ProcessorPeer, backend: BodyBackend, mode: str, late: bool
) -> None:
    """They may be there before it has chosen, or come behind that."""
    chosen = threading.Event()

    def react(part: str, message: dict[str, Any]) -> Iterator[Any]:
        if part == "request_headers":
            yield {part: {}, "modeOverride": {"requestTrailerMode": mode, "responseTrailerMode": "SKIP"}}
            chosen.set()
        elif part == "request_trailers":
            yield {part: {"headerMutation": put(("x-kept", "2"))}}
        else:
            yield {part: {}}

    processor.react = react
    planned = {"requestTrailerMode": "skip", "responseTrailerMode": "send"} if mode == "SEND" else {}
    running = gateway(config(backend, processor, {**HEADERS, **planned, "allowModeOverride": True}))
    with socket.create_connection(("127.0.0.1", running.port), timeout=60) as client:
        head = b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n3\r\nabc\r\n"
        end = b"0\r\nx-kept: 1\r\n\r\n"
        client.sendall(head if late else head + end)
        assert chosen.wait(60)
        if late:
            client.sendall(end)
        while client.recv(65536):
            pass
    sent = mode == "SEND"
    assert (backend.seen[0].body, backend.seen[0].trailers) == (b"abc", {"x-kept": "2" if sent else "1"})
    assert processor.parts == ["request_headers", *(["request_trailers"] if sent else []), "response_headers"]


def test_a_mode_that_is_not_supported_is_refused(gateway: Any, processor: ProcessorPeer, backend: BodyBackend) -> None:
    processor.react = lambda part, message: iter([{part: {}, "modeOverride": {"requestBodyMode": "STREAMED"}}])
    running = gateway(config(backend, processor, {**HEADERS, "allowModeOverride": True}))
    answer = httpx.post(running.url + "/", content=b"a")
    assert (answer.status_code, answer.text) == (
        500, "ext_proc failed: the processor asks for a body mode that is not supported",
    )  # fmt: skip


def test_expressions_are_sent_and_metadata_is_kept(gateway: Any, processor: ProcessorPeer, backend: BodyBackend) -> None:
    def react(part: str, message: dict[str, Any]) -> Iterator[Any]:
        yield {part: {}, "dynamicMetadata": {"user": "ann", "n": {part: True}}}

    processor.react = react
    text = config(
        backend, processor, HEADERS,
        requestAttributes={"path": "request.path", "list": "[1, 'a']", "bad": "jwt.sub"},
        responseAttributes={"code": "response.code"},
        metadataContext={"own": {"m": "request.method", "bad": "jwt.sub"}, "empty": {"bad": "jwt.sub"}},
    )  # fmt: skip
    text = text.replace(
        "    extProc:", "    transformations: {request: {set: {x-user: 'extproc.user'}}}\n    extProc:"
    )
    running = gateway(text)
    assert httpx.get(running.url + "/p").status_code == 200
    assert backend.seen[0].fields["x-user"] == "ann"
    first, second = processor.seen[0]
    assert first["attributes"] == {"envoy.filters.http.ext_proc": {"path": "/p", "list": [1.0, "a"]}}
    assert second["attributes"] == {"envoy.filters.http.ext_proc": {"code": 200.0}}
    assert first["metadata_context"] == second["metadata_context"] == {"filter_metadata": {"own": {"m": "GET"}}}
    assert "protocol_config" in first
    assert "protocol_config" not in second


def test_conditions_and_levels(gateway: Any, processor: ProcessorPeer, backend: BodyBackend) -> None:
    """A processor of the gateway runs before a route is chosen, and sees the response last."""
    other = ProcessorPeer()
    try:
        def named(name: str) -> Any:
            def react(part: str, message: dict[str, Any]) -> Iterator[Any]:
                if part.endswith("_headers"):
                    change = [("x-order", name)] if part == "response_headers" else [("x-order", name), (":path", "/b")]
                    yield {part: {"response": {"headerMutation": put(*change, append=True)}}}
                else:
                    streamed = {"body": message[part].get("body", ""), "endOfStream": message[part].get("end_of_stream")}
                    yield {part: {"response": {"bodyMutation": {"streamedResponse": streamed}}}}

            return react

        processor.react, other.react = named("route"), named("gateway")
        text = f"""
gateways:
  default:
    port: {{port}}
    extProc: {{{{host: "127.0.0.1:{other.port}"}}}}
routes:
- name: changed
  matches: [{{{{path: {{{{exact: /b}}}}}}}}]
  policies:
    extProc:
      conditional:
      - {{{{condition: "request.headers['x-go'] == 'no'", host: "127.0.0.1:1"}}}}
      - {{{{host: "127.0.0.1:{processor.port}"}}}}
  backends:
  - host: 127.0.0.1:{backend.port}
"""
        running = gateway(text.replace("{{", "{").replace("}}", "}"))
        for size in (0, 10, 500_000):
            backend.chunks = lambda size=size: [b"b" * size]
            answer = httpx.post(running.url + "/a", headers={"x-go": "yes"}, content=b"a" * size)
            assert (answer.status_code, answer.content) == (200, b"b" * size)
            assert answer.headers.get_list("x-order") == ["route", "gateway"]
            assert backend.seen[-1].body == b"a" * size
            assert backend.seen[-1].target == "/b"
        answer = httpx.get(running.url + "/b", headers={"x-go": "no"})
        assert answer.status_code == 500
        assert answer.text.startswith("ext_proc failed: status 14: ")
    finally:
        other.stop()


def test_answers_of_the_gateway_are_not_processed(gateway: Any, processor: ProcessorPeer, backend: BodyBackend) -> None:
    text = config(backend, processor).replace("    extProc:", "    directResponse: {status: 204}\n    extProc:")
    running = gateway(text)
    assert httpx.post(running.url + "/", content=b"a").status_code == 204
    assert "response_headers" not in processor.parts


def test_collected_headers_stand(gateway: Any, processor: ProcessorPeer, backend: BodyBackend) -> None:
    """What policies put on the response for the client overwrites what the processor says."""
    processor.react = lambda part, message: iter(
        [{part: {"response": {"headerMutation": put(("access-control-allow-origin", "evil"))}}}]
    )
    cors = "    cors: {allowOrigins: ['http://a.test']}\n    extProc:"
    running = gateway(config(backend, processor, HEADERS).replace("    extProc:", cors))
    answer = httpx.get(running.url + "/", headers={"origin": "http://a.test"})
    assert answer.headers["access-control-allow-origin"] == "http://a.test"


def test_a_body_that_was_read_before_stays_whole(gateway: Any, processor: ProcessorPeer, backend: BodyBackend) -> None:
    """An expression has read the body: what the processor makes of it is there whole for the next."""
    def react(part: str, message: dict[str, Any]) -> Iterator[Any]:
        if part == "request_body":
            data = base64.b64decode(message[part].get("body", ""))
            streamed = {"body": content(data.upper()), "endOfStream": message[part].get("end_of_stream", False)}
            yield {part: {"response": {"bodyMutation": {"streamedResponse": streamed}}}}
        else:
            yield from unchanged(part, message)

    processor.react = react
    text = config(backend, processor).replace(
        "    extProc:",
        "    authorization: {rules: [\"string(request.body).startsWith('abc')\"]}\n"
        "    transformations: {request: {set: {x-body: 'string(request.body)'}}}\n    extProc:",
    )
    running = gateway(text)
    answer = httpx.post(running.url + "/", content=b"abcd")
    assert (answer.status_code, answer.text) == (200, "from the backend")
    assert (backend.seen[0].body, backend.seen[0].fields["x-body"]) == (b"ABCD", "ABCD")


def test_head_and_no_content(gateway: Any, processor: ProcessorPeer, backend: BodyBackend) -> None:
    running = gateway(config(backend, processor))
    answer = httpx.head(running.url + "/")
    assert (answer.status_code, answer.headers["content-length"]) == (200, "16")
    assert processor.seen[0][1]["response_headers"]["end_of_stream"] is True
    backend.status, backend.chunks = 304, lambda: []
    assert httpx.get(running.url + "/").status_code == 304
    assert httpx.post(running.url + "/", headers={"expect": "100-continue"}, content=b"a").status_code == 304
