"""`retry` from the file to the IR and the dump."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headgate.config.load import TextSource, load
from headgate.config.policy.retry import dump
from headgate.errors import ConfigErrors
from headgate.ir.gateway import Gateway
from headgate.ir.policy.retry import RetryBudgetLimits, RetryPolicy

CASES = [
    ("{codes: []}", RetryPolicy(), {"attempts": 1, "codes": []}),
    (
        "{attempts: 3, codes: [503, 500, 503], backoff: 1500ms}",
        RetryPolicy(attempts=3, codes=(500, 503), backoff_ms=1500),
        {"attempts": 3, "codes": [500, 503], "backoff": "1500ms"},
    ),
    (
        "{codes: [500], budget: {percent: 50}}",
        RetryPolicy(codes=(500,), budget=RetryBudgetLimits(percent=50)),
        {"attempts": 1, "codes": [500], "budget": {"percent": 50, "minPerSecond": 10}},
    ),
    (
        "{codes: [500], budget: {minPerSecond: 0, percent: 20}}",
        RetryPolicy(codes=(500,), budget=RetryBudgetLimits(least_per_s=0)),
        {"attempts": 1, "codes": [500], "budget": {"percent": 20, "minPerSecond": 0}},
    ),
]


def text_of(body: str) -> str:
    return f"gateways: {{default: {{port: 1}}}}\nroutes: [{{policies: {{retry: {body}}}}}]"


@pytest.mark.parametrize(("body", "policy", "shown"), CASES, ids=[case[0] for case in CASES])
def test_forms(loaded: Callable[..., Gateway], body: str, policy: RetryPolicy, shown: dict[str, object]) -> None:
    assert loaded(text_of(body)).binds[0].listeners[0].routes[0].policies.retry == policy
    assert dump(policy) == shown


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("{codes: [99]}", "status 99 is not in 100..999"),
        ("{codes: [1000]}", "status 1000 is not in 100..999"),
        ("{attempts: 0, codes: []}", "out of range 1..255"),
        ("{attempts: 256, codes: []}", "out of range 1..255"),
        ("{codes: [], budget: {percent: 1001}}", "out of range 0..1000"),
        ("{codes: [], budget: {minPerSecond: -1}}", "out of range 0..10000"),
        ("{attempts: 1}", "missing field 'codes'"),
    ],
)
def test_faults(body: str, message: str) -> None:
    with pytest.raises(ConfigErrors, match=message):
        load(TextSource(text_of(body)))
