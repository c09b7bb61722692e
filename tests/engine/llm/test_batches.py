"""The models of a batch, read by offsets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate_engine.llm.batches import MOST_MODELS, is_batch, looked_at, models_of


def batch(*models: Any) -> bytes:
    requests = [{"custom_id": str(at), "params": {"max_tokens": 9, "model": model}} for at, model in enumerate(models)]
    return json.dumps({"requests": requests}).encode()


def names(body: bytes) -> list[str]:
    found = models_of(body)
    assert found is not None
    return [name.decode() for name in found.names]


def test_each_model_is_named_once_in_their_order() -> None:
    assert names(batch("b", "a", "b")) == ["b", "a"]
    assert names(json.dumps(json.loads(batch("b", "é")), indent=2, ensure_ascii=False).encode()) == ["b", "é"]
    assert names(b' { "x" : [ {} , "requests" ] , "requests" : [ ] } ') == []


def test_names_with_escapes_are_the_names_that_they_are() -> None:
    assert names(b'{"req\\u0075ests":[{"p\\u0061rams":{"mod\\u0065l":"a\\u0062"}}]}') == ["ab"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'{"requests":{}}', b'{"requests":null}', b"3"])
def test_what_is_no_batch(body: bytes) -> None:
    assert models_of(body) is None


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b'{"requests":[{}]}', r"requests\[0\].params.model must be"),
        (b'{"requests":[3]}', r"requests\[0\].params.model must be"),
        (b'{"requests":[{"params":{"model":"a"}},{"params":{"model":3}}]}', r"requests\[1\].params.model must be"),
        (b'{"requests":[{"params":{"model":""}}]}', r"requests\[0\].params.model must be"),
        (b'{"requests":[{"params":{"model":"a"},"params":{"model":"b"}}]}', r"requests\[0\].params.model must be"),
        (b'{"requests":[{"params":{"model":"a","mod\\u0065l":"b"}}]}', r"requests\[0\].params names the model twice"),
        (batch(*map(str, range(MOST_MODELS + 1))), f"more than {MOST_MODELS} models"),
    ],
)
def test_what_is_refused(body: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        models_of(body)
    told, seen = looked_at(body)
    assert isinstance(told, str)
    assert seen is body


def test_of_two_lists_the_last_one_counts() -> None:
    assert names(b'{"requests":[{"params":{"model":"a"}}],"requests":[{"params":{"model":"b"}}]}') == ["b"]


@pytest.mark.parametrize(
    ("method", "path", "batch"),
    [("POST", b"/v1/messages/batches", True), ("POST", b"/messages/batches/", True), ("GET", b"/v1/messages/batches", False),
     ("POST", b"/v1/messages/batches/x/cancel", False), ("POST", b"/v1/batches", False)],
)  # fmt: skip
def test_which_requests_make_one(method: str, path: bytes, batch: bool) -> None:
    assert is_batch(method, path) == batch
