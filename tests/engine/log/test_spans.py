"""Which requests are sampled. What their spans say is looked at on the wire (tests/end_to_end/test_traces.py)."""

from __future__ import annotations

import pytest

from headgate.expr.compile import compile_expression
from headgate_drivers.log import is_sampled
from headgate_engine.context.request import make_context
from headgate_engine.log.otlp_fields import OtlpFields
from headgate_engine.log.otlp_sink import OtlpSink
from headgate_engine.log.span_names import GRPC_CODES, HIDABLE
from headgate_engine.log.spans import RequestSpans, Sampling, TracePlan


def by(text: str) -> Sampling:
    return Sampling(program=compile_expression(text, "gateway"))


@pytest.mark.parametrize(
    ("sampling", "chosen"),
    [
        (Sampling(), False),
        (Sampling(1.0), True),
        (by("true"), True),
        (by("false"), False),
        (by("1"), True),
        (by("7"), True),
        (by("-1"), False),
        (by("1.0"), True),
        (by("0.0"), False),
        (by("2u"), True),
        (by("'yes'"), False),
        (by("request.headers['none'] == 'x'"), False),
        (by("request.path == '/p'"), True),
    ],
)
def test_a_request_is_chosen(sampling: Sampling, chosen: bool) -> None:
    ctx = make_context("GET", "/p")
    assert {is_sampled(sampling, ctx) for _ in range(50)} == {chosen}


def test_a_share_is_about_that_of_requests() -> None:
    ctx = make_context()
    assert 4000 < sum(is_sampled(Sampling(0.5), ctx) for _ in range(10_000)) < 6000, "20 standard deviations"
    assert 4000 < sum(is_sampled(by("0.5"), ctx) for _ in range(10_000)) < 6000


@pytest.mark.parametrize("ratio", [-0.1, 1.1, float("nan")])
def test_a_share_is_between_0_and_1(ratio: float) -> None:
    with pytest.raises(ValueError, match="no share"):
        Sampling(ratio)


def test_a_plan_says_what_it_was_made_of() -> None:
    fields, sink, random, client = OtlpFields(tuple(HIDABLE), span=True), OtlpSink(), Sampling(), Sampling(1.0)
    plan = TracePlan(fields, sink, random, client)
    assert (plan.fields, plan.sink, plan.random, plan.client, plan.name) == (fields, sink, random, client, None)


def test_spans_are_only_made_for_requests() -> None:
    with pytest.raises(TypeError):
        RequestSpans()


def test_codes_of_grpc_have_their_names() -> None:
    assert (GRPC_CODES[0], GRPC_CODES[14], len(GRPC_CODES)) == ("OK", "UNAVAILABLE", 17)
