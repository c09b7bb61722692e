"""Signatures of ours and of the vendor's own signer, over many requests."""

from __future__ import annotations

import calendar
import pickle
import time
from typing import Any
from unittest import mock

import pytest
from botocore import auth as vendor
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import example, given
from hypothesis import strategies as st

from headgate_drivers.requests import same_keys
from headgate_engine.context.request import make_context
from headgate_engine.plan.step import CONTINUE_VERDICT, run_step
from headgate_engine.steps.aws_signature import AwsKeys, AwsSignatureStep, sign
from headgate_engine.steps.held import HeldCredential

# The published test suite of Signature Version 4: key, date, region and service of all its cases.
ACCESS, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
NOW = 1440938160.0
SERVICES = ("bedrock", "execute-api", "lambda", "s3", "sts", "bedrock-agentcore")
Pairs = list[tuple[str, str]]


def ours(method: str, target: str, headers: Pairs, body: bytes, *, service: str = "service", token: str | None = None,
         host: str = "example.amazonaws.com") -> dict[str, str]:  # fmt: skip
    keys = AwsKeys(ACCESS.encode(), SECRET.encode(), None if token is None else token.encode())
    found = sign(method, target, host, headers, body, keys, region="us-east-1", service=service, now=NOW)
    return {name.lower(): value for name, value in found}


def theirs(method: str, target: str, headers: Pairs, body: bytes, *, service: str, token: str | None) -> dict[str, str]:
    """What botocore makes of the same request, with the headers that we sign."""
    kind: Any = vendor.S3SigV4Auth if service == "s3" else vendor.SigV4Auth
    wanted = [pair for pair in headers if pair[0] in ("content-type", "date") or pair[0].startswith("x-amz-")]
    request = AWSRequest(method, f"https://example.amazonaws.com{target}", data=body)
    for name, value in wanted:
        request.headers.add_header(name, value)
    signer = kind(Credentials(ACCESS, SECRET, token), service, "us-east-1")
    moment = vendor.datetime.datetime.fromtimestamp(NOW, vendor.datetime.timezone.utc)
    with mock.patch.object(vendor, "get_current_datetime", return_value=moment):
        signer.add_auth(request)
    return {name.lower(): value for name, value in request.headers.items()}


def test_vectors_of_the_suite() -> None:
    cases = (
        ("GET", "/", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        ("GET", "/?Param2=value2&Param1=value1", "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"),
        ("POST", "/", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
    )
    for method, target, signature in cases:
        found = ours(method, target, [], b"")
        assert found["x-amz-date"] == "20150830T123600Z"
        assert found["authorization"].rpartition("Signature=")[2] == signature


SEGMENT = st.text(st.sampled_from("abZ09-_.~%:@!$&'()*,;= "), max_size=8)
WORD = st.text(st.sampled_from("abcXYZ019-_.~ /:=+é&"), max_size=8)
HEADERS = st.lists(
    st.tuples(
        st.sampled_from(("content-type", "x-amz-meta-a", "x-amz-b", "accept", "user-agent", "x-other")),
        st.text(st.sampled_from("abc /;=,019 "), max_size=12).map(lambda text: f"v{text}v"),
    ),
    max_size=6,
)


def target_of(segments: list[str], query: list[tuple[str, str]]) -> str:
    from urllib.parse import quote

    path = "/" + "/".join(quote(segment, safe="-_.~") for segment in segments)
    told = "&".join(f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}" for name, value in query)
    return f"{path}?{told}" if told else path


@given(
    method=st.sampled_from(("GET", "POST", "PUT", "DELETE")),
    segments=st.lists(SEGMENT, max_size=5),
    query=st.lists(st.tuples(WORD, WORD), max_size=4),
    headers=HEADERS,
    body=st.binary(max_size=64),
    service=st.sampled_from(SERVICES),
    token=st.none() | st.just("a/session+token=="),
)
@example("POST", ["model", "arn:aws:bedrock:eu-west-1:1:inference-profile/eu.x", "converse"], [], [], b"{}", "bedrock", None)
@example("GET", ["a b", "..", ".", "", "c/d"], [("b", "2"), ("a", "1"), ("a", "0")], [], b"", "s3", "t")
@example("GET", ["..", "..", ""], [("q", "a+b c"), ("", "x")], [], b"", "lambda", None)
def test_the_vendors_signer_says_the_same(method, segments, query, headers, body, service, token) -> None:
    target = target_of(segments, query)
    found = ours(method, target, headers, body, service=service, token=token)
    wanted = theirs(method, target, headers, body, service=service, token=token)
    for name in ("authorization", "x-amz-date", "x-amz-security-token", "x-amz-content-sha256"):
        assert found.get(name) == wanted.get(name), name


def test_queries_that_are_not_escaped_are_signed_as_aws_reads_them() -> None:
    plain = ours("GET", "/?alt=a%3Ab&b=%2B&c=x%20y", [], b"")
    assert ours("GET", "/?alt=a:b&b=%2b&c=x+y", [], b"")["authorization"] == plain["authorization"]
    assert ours("GET", "/?a", [], b"")["authorization"] == ours("GET", "/?a=", [], b"")["authorization"]


def test_what_the_client_brought_of_a_signature_is_gone() -> None:
    stale = [("authorization", "AWS4-HMAC-SHA256 old"), ("x-amz-date", "old"), ("x-amz-security-token", "old"),
             ("x-amz-content-sha256", "old")]  # fmt: skip
    for service in ("bedrock", "s3"):
        assert ours("POST", "/", stale, b"x", service=service) == ours("POST", "/", [], b"x", service=service)


@pytest.mark.parametrize("told", ["UNSIGNED-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"])
def test_a_client_of_s3_may_say_how_its_body_is_framed(told: str) -> None:
    headers = [("x-amz-content-sha256", told)]
    assert ours("PUT", "/k", headers, b"x", service="s3")["x-amz-content-sha256"] == told
    assert "x-amz-content-sha256" not in ours("PUT", "/k", headers, b"x", service="bedrock")


def test_the_trace_id_is_not_signed() -> None:
    found = ours("GET", "/", [("x-amzn-trace-id", "Root=1"), ("x-amzn-other", "1")], b"")
    assert "SignedHeaders=host;x-amz-date;x-amzn-other," in found["authorization"]


def test_a_step_signs_what_is_there() -> None:
    held = HeldCredential()
    held.keep(AwsKeys(ACCESS.encode(), SECRET.encode()), 1, 1)
    step = AwsSignatureStep(held, region="us-east-1", service="bedrock")
    ctx = make_context("POST", "/model/m/converse", "h.test", [("content-type", "application/json")], body=b"{}")
    assert run_step(step, ctx) == CONTINUE_VERDICT
    fields = dict(ctx.request.items())
    now = calendar.timegm(time.strptime(fields["x-amz-date"], "%Y%m%dT%H%M%SZ"))
    keys = AwsKeys(ACCESS.encode(), SECRET.encode())
    again = sign("POST", "/model/m/converse", "h.test", [("content-type", "application/json")], b"{}", keys,
                 region="us-east-1", service="bedrock", now=now)  # fmt: skip
    assert fields == dict(again)


def test_a_step_without_keys_does_not_let_the_request_go() -> None:
    step = AwsSignatureStep(None, region="us-east-1", service="bedrock")
    with pytest.raises(RuntimeError):
        run_step(step, make_context("POST", body=b""))
    ctx = make_context("POST", body=b"")
    ctx.signing_keys = AwsKeys(b"a", b"b")
    assert run_step(step, ctx) == CONTINUE_VERDICT


def test_keys_do_not_show_and_do_not_travel() -> None:
    keys = AwsKeys(b"CANARY-access", b"CANARY-secret", b"CANARY-token")
    held = HeldCredential()
    held.keep(keys, 1, 1)
    for one in (keys, held):
        assert "CANARY" not in repr(one)
        with pytest.raises(TypeError):
            pickle.dumps(one)
    with pytest.raises(ValueError) as told:
        AwsKeys(b"CANARY\r\n", b"x")
    assert "CANARY" not in str(told.value)
    assert same_keys(keys, AwsKeys(b"CANARY-access", b"CANARY-secret", b"CANARY-token"))
    assert not same_keys(keys, AwsKeys(b"CANARY-access", b"CANARY-secret"))
