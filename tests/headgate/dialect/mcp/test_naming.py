"""Names of several servers' things, there and back."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.dialect.mcp import naming
from headgate.dialect.mcp.naming import UnknownName

TARGETS = st.from_regex(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", fullmatch=True)
URIS = st.tuples(st.sampled_from(["note", "http", "x+y", "UI", "ui", "file"]), st.text(max_size=20)).map(
    lambda pair: f"{pair[0]}://{pair[1]}"
)


@given(TARGETS, st.text(min_size=1, max_size=20))
def test_names(target: str, name: str) -> None:
    assert naming.split_name(f"{target}_{name}") == (target, name)


@given(TARGETS, URIS)
def test_uris(target: str, uri: str) -> None:
    shown = naming.uri_with_target(target, uri)
    assert naming.split_uri(shown) == (target, uri)
    assert shown.lower().startswith("ui://") is uri.lower().startswith("ui://")


@given(TARGETS, st.text(max_size=20))
def test_tasks(target: str, task: str) -> None:
    assert naming.split_task(naming.task_with_target(target, task)) == (target, task)


@given(TARGETS, st.one_of(st.text(max_size=20), st.integers(-(10**18), 10**18)))
def test_ids_of_server_requests(target: str, value: str | int) -> None:
    shown = naming.request_id(target, json.dumps(value).encode())
    assert isinstance(json.loads(shown), str)
    found = naming.split_request_id(shown)
    assert found is not None
    assert (found[0], json.loads(found[1])) == (target, value)


@pytest.mark.parametrize("raw", [b"5", b'"x"', b'"gw_a"', b'"gw_a_x_1"', b'"gw_a_n_1e5"', b'"gw_a_n_"', b"null", None, b"{"])
def test_ids_that_are_none_of_ours(raw: bytes | None) -> None:
    assert naming.split_request_id(raw) is None


@pytest.mark.parametrize(
    ("split", "text"),
    [
        (naming.split_name, "echo"), (naming.split_name, "_x"), (naming.split_name, "a_"), (naming.split_name, ""),
        (naming.split_uri, "note:x"), (naming.split_uri, "+note://x"), (naming.split_uri, "a+ui://x"),
        (naming.split_uri, "ui://x"), (naming.split_uri, "ui://a/b+c"), (naming.split_uri, "ui://+x"),
        (naming.split_task, "x"), (naming.split_task, "+x"),
    ],
)  # fmt: skip
def test_names_of_nobody(split: Callable[[str], tuple[str, str]], text: str) -> None:
    with pytest.raises(UnknownName):
        split(text)


def test_a_uri_without_scheme_stays_as_it_is() -> None:
    assert naming.uri_with_target("a", "readme.txt") == "readme.txt"


def test_tasks_of_processes_lead_back_to_their_worker() -> None:
    assert naming.task_worker(naming.task_id_prefix(12) + "abc") == 12
    for text in ("abc", "w~x", "w12345~x", "x w1~", "1~x", "w\u0661~x", ""):
        assert naming.task_worker(text) is None
