"""HTTP/2 and gRPC with the clients and servers of others."""

from __future__ import annotations

import json
import queue
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path

import grpc
import httpx
import pytest
from tests.end_to_end.running import free_port
from tests.end_to_end.tls_rig import (
    authority,  # noqa: F401
    issue,
    tls_upstream,
)

ROOT = Path(__file__).resolve().parents[2]
H2SPEC = ROOT / "build" / "bin" / "h2spec"

CONFIG = """
gateways:
  default: {port: {port}}
  secure:
    port: SECURE
    listeners:
    - {name: a, hostname: a.test, protocol: HTTPS, tls: {cert: FOLDER/a.pem, key: FOLDER/a.key}}
routes:
- name: one
  gateways: [default, secure/a]
  matches: [{path: {pathPrefix: /one}}]
  policies: {requestHeaderModifier: {set: {x-seen: "yes"}}}
  backends: [{host: "127.0.0.1:BACKEND", policies: {http: {version: HTTP/1.1}}}]
- name: made
  gateways: [default, secure/a]
  matches: [{path: {pathPrefix: /made}}]
  policies: {directResponse: {status: 201, body: made here}}
- name: read
  gateways: [default, secure/a]
  matches: [{path: {pathPrefix: /read}}]
  policies: {buffer: {request: {maxBytes: 65536}}}
  backends: [{host: "127.0.0.1:BACKEND", policies: {http: {version: HTTP/1.1}}}]
- name: limited
  gateways: [default, secure/a]
  matches: [{path: {pathPrefix: /limited}}]
  policies: {localRateLimit: [{maxTokens: 1, tokensPerFill: 1, fillInterval: 1h}]}
  backends: [{host: "127.0.0.1:BACKEND"}]
- name: grpc
  gateways: [default]
  matches: [{path: {pathPrefix: /test.Echo}}]
  backends: [{host: "127.0.0.1:GRPC"}]
- name: safe-grpc
  gateways: [secure/a]
  matches: [{path: {pathPrefix: /test.Echo}}]
  backends: [{host: "127.0.0.1:SAFE", policies: {backendTLS: {root: FOLDER/ca.pem, hostname: grpc.test}}}]
- name: safe
  gateways: [default]
  matches: [{path: {pathPrefix: /safe}}]
  policies: {urlRewrite: {path: {full: /one/safe}, authority: {full: a.test}}}
  backends: [{host: "127.0.0.1:SECURE", policies: {backendTLS: {root: FOLDER/ca.pem, hostname: a.test, alpn: [h2]}}}]
- name: older
  gateways: [default]
  matches: [{path: {pathPrefix: /older}}]
  backends: [{host: "127.0.0.1:OLDER", policies: {backendTLS: {root: FOLDER/ca.pem, hostname: old.test, alpn: [h2]}}}]
- name: dead
  gateways: [default, secure/a]
  matches: [{path: {pathPrefix: /test.Dead}}]
  backends: [{host: "127.0.0.1:1"}]
"""


def filled(folder: Path, **ports: int) -> str:
    text = CONFIG.replace("FOLDER", str(folder))
    for name, port in ports.items():
        text = text.replace(name, str(port))
    return text


def serve(key: bytes, chain: bytes) -> tuple[grpc.Server, int, int]:
    """A gRPC server with one method of each kind, its port in plain text and that with TLS; messages are plain bytes."""

    def unary(request: bytes, context: grpc.ServicerContext) -> bytes:
        metadata = dict(context.invocation_metadata())
        if request == b"fail":
            context.abort(grpc.StatusCode.DATA_LOSS, "as asked: 100%")
        context.set_trailing_metadata((("x-trailer", str(metadata.get("x-given", "none"))),))
        return b"got " + request

    def up(requests: Iterator[bytes], _context: grpc.ServicerContext) -> bytes:
        return b" ".join(requests)

    def down(request: bytes, _context: grpc.ServicerContext) -> Iterator[bytes]:
        for index in range(int(request)):
            yield b"%d" % index

    def both(requests: Iterator[bytes], _context: grpc.ServicerContext) -> Iterator[bytes]:
        for request in requests:
            yield b"again " + request

    server = grpc.server(futures.ThreadPoolExecutor(8))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Echo", {
        "Unary": grpc.unary_unary_rpc_method_handler(unary),
        "Up": grpc.stream_unary_rpc_method_handler(up),
        "Down": grpc.unary_stream_rpc_method_handler(down),
        "Both": grpc.stream_stream_rpc_method_handler(both),
    }),))
    port = server.add_insecure_port("127.0.0.1:0")
    safe = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(key, chain)]))
    server.start()
    return server, port, safe


def check_calls(channel: grpc.Channel) -> None:
    """Unary and streams in all directions, errors of the server and of the gateway."""
    unary = channel.unary_unary("/test.Echo/Unary")
    answer, call = unary.with_call(b"it", metadata=(("x-given", "yes"),), timeout=60)
    assert answer == b"got it"
    assert dict(call.trailing_metadata())["x-trailer"] == "yes"
    large = bytes(3_000_000)
    assert unary(large, timeout=60) == b"got " + large
    assert channel.stream_unary("/test.Echo/Up")(iter([b"a", b"b", b"c"]), timeout=60) == b"a b c"
    assert list(channel.unary_stream("/test.Echo/Down")(b"500", timeout=60)) == [b"%d" % index for index in range(500)]
    # Each message is sent when the one before has come back: neither side waits for an end.
    messages: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    answers = channel.stream_stream("/test.Echo/Both")(iter(messages.get, None), timeout=60)
    for index in range(20):
        messages.put(b"%d" % index)
        assert next(answers) == b"again %d" % index
    messages.put(None)
    assert list(answers) == []
    for path, request, code, words in (
        ("/test.Echo/Unary", b"fail", grpc.StatusCode.DATA_LOSS, "as asked: 100%"),
        ("/test.Echo/None", b"", grpc.StatusCode.UNIMPLEMENTED, "Method not found!"),
        ("/test.Nobody/Unary", b"", grpc.StatusCode.UNIMPLEMENTED, "route not found"),
        ("/test.Dead/Unary", b"", grpc.StatusCode.UNAVAILABLE, "upstream call failed"),
    ):
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary(path)(request, timeout=60)
        assert caught.value.code() == code, path
        assert words in caught.value.details()


def curl(*words: str) -> str:
    return subprocess.run(["curl", "-s", "--max-time", "60", *words], capture_output=True, text=True, check=True).stdout


def test_clients_of_others(gateway, echo, authority, tmp_path) -> None:
    issue(authority, tmp_path, "a", "a.test")
    issue(authority, tmp_path, "grpc", "grpc.test")
    server, grpc_port, safe_port = serve((tmp_path / "grpc.key").read_bytes(), (tmp_path / "grpc.pem").read_bytes())
    tls_port, older = free_port(), tls_upstream(authority, "old.test")
    running = gateway(filled(tmp_path, SECURE=tls_port, BACKEND=echo, GRPC=grpc_port, SAFE=safe_port, OLDER=older))
    plain, secure = f"http://127.0.0.1:{running.port}", f"https://a.test:{tls_port}"
    trust = ["--cacert", str(tmp_path / "ca.pem"), "--resolve", f"a.test:{tls_port}:127.0.0.1"]
    show = ["-o", "/dev/null", "-w", "%{http_version} %{http_code}"]
    # curl: prior knowledge, ALPN, and HTTP/1.1 beside them on the same ports.
    assert curl("--http2-prior-knowledge", *show, f"{plain}/made") == "2 201"
    assert curl(*show, f"{plain}/made") == "1.1 201"
    assert curl(*trust, *show, f"{secure}/made") == "2 201"
    assert curl(*trust, "--http1.1", *show, f"{secure}/made") == "1.1 201"
    assert curl("--http2-prior-knowledge", *show, "-X", "POST", "-d", "x", f"{plain}/one") == "2 200"
    running.wait_log("http.path=/one http.version=HTTP/2.0 http.status=200")
    # A limit counts for both protocols together.
    assert [curl(flag, *show, f"{plain}/limited") for flag in ("--http2-prior-knowledge", "--http1.1")] == ["2 200", "1.1 429"]
    # httpx, many requests at once on one connection.
    context = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
    with httpx.Client(http1=False, http2=True, verify=context) as client:
        answers = [client.post(f"https://127.0.0.1:{tls_port}/made", headers={"host": "a.test"},
                               extensions={"sni_hostname": "a.test"}) for _ in range(10)]
    assert {(answer.http_version, answer.status_code, answer.text) for answer in answers} == {("HTTP/2", 201, "made here")}
    if shutil.which("nghttp"):
        done = subprocess.run(["nghttp", "-v", f"{plain}/made"], capture_output=True, text=True, check=True)
        assert ":status: 201" in done.stdout
    if shutil.which("h2load"):
        done = subprocess.run(
            ["h2load", "-n", "500", "-c", "3", "-m", "50", f"{plain}/one"], capture_output=True, text=True, check=True)
        assert "500 succeeded, 0 failed" in done.stdout
    # A backend with TLS that is spoken to in HTTP/2: the gateway itself, 2 MB each way.
    numbers = "".join(f"{number:7}\n" for number in range(250_000))
    (tmp_path / "numbers").write_text(numbers)
    assert json.loads(curl("--data-binary", f"@{tmp_path / 'numbers'}", f"{plain}/safe"))["body"] == numbers
    running.wait_log("http.path=/one/safe http.version=HTTP/2.0 http.status=200")
    # One that does not choose it in the handshake is not spoken to at all.
    assert "the backend does not offer HTTP/2 (ALPN h2)" in curl("-w", "%{http_code}", f"{plain}/older")
    # gRPC-Web is an ordinary exchange over both versions, also where the gateway fails it.
    for flag in ("--http2-prior-knowledge", "--http1.1"):
        web = [flag, "-H", "content-type: application/grpc-web+proto", "--data-binary", "x"]
        assert json.loads(curl(*web, f"{plain}/one"))["body"] == "x"
        assert curl(*web, *show, f"{plain}/test.Dead/Unary").endswith(" 503")
        assert curl(*web, *show, f"{plain}/test.Nobody/Unary").endswith(" 404")
    # gRPC in plain text and over TLS, to the client and to the backend: that is spoken to in HTTP/2 in both cases.
    credentials = grpc.ssl_channel_credentials((tmp_path / "ca.pem").read_bytes())
    with grpc.insecure_channel(f"127.0.0.1:{running.port}") as channel:
        check_calls(channel)
    with grpc.secure_channel(
            f"127.0.0.1:{tls_port}", credentials, options=(("grpc.ssl_target_name_override", "a.test"),)) as channel:
        check_calls(channel)
    server.stop(None)


@pytest.mark.skipif(not H2SPEC.exists(), reason="make h2spec brings it")
def test_h2spec(gateway, echo, authority, tmp_path) -> None:
    """All of it over TLS; in plain text, what is no preface is a request of HTTP/1.1, and gets its answer."""
    issue(authority, tmp_path, "a", "a.test")
    tls_port = free_port()
    running = gateway(filled(tmp_path, SECURE=tls_port, BACKEND=echo, GRPC=1, SAFE=1, OLDER=1).replace("hostname: a.test, ", ""))
    for port, flags, failed in ((tls_port, ["-t", "-k"], "0 failed"), (running.port, [], "1 failed")):
        # A backend answers, or the gateway itself.
        for path in ("/read", "/made"):
            done = subprocess.run(
                [str(H2SPEC), "-h", "127.0.0.1", "-p", str(port), "-P", path, *flags], capture_output=True, text=True, check=False)
            assert failed in done.stdout, path + done.stdout[-3000:]
            assert failed == "0 failed" or "Sends invalid connection preface" in done.stdout.split("Failures:")[1]
