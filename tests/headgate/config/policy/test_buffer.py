"""`buffer` from the file to the IR and the dump."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headgate.config.policy.buffer import dump
from headgate.ir.gateway import Gateway
from headgate.ir.policy.buffer import Buffer, BufferBody

CASES = [
    ("{}", Buffer(), {}),
    ("{request: {}}", Buffer(request=BufferBody()), {"request": {"failureMode": "failClosed"}}),
    ("{request: {maxBytes: 64Ki}}", Buffer(request=BufferBody(max_bytes=65536)), {"request": {"failureMode": "failClosed", "maxBytes": 65536}}),
    (
        "{request: {maxBytes: 10, failureMode: FailOpen}, response: {maxBytes: 0}}",
        Buffer(request=BufferBody(max_bytes=10, fail_open=True), response=BufferBody(max_bytes=0)),
        {
            "request": {"failureMode": "failOpen", "maxBytes": 10},
            "response": {"failureMode": "failClosed", "maxBytes": 0},
        },
    ),
]


@pytest.mark.parametrize(("body", "policy", "shown"), CASES, ids=[case[0] for case in CASES])
def test_forms(loaded: Callable[..., Gateway], body: str, policy: Buffer, shown: dict[str, object]) -> None:
    text = f"gateways: {{default: {{port: 1}}}}\nroutes: [{{policies: {{buffer: {body}}}}}]"
    assert loaded(text).binds[0].listeners[0].routes[0].policies.buffer == policy
    assert dump(policy) == shown
