"""`apiKey`: a key that nothing names is told by its place."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from headgate.config.policy.identity import dump_api_key
from headgate.ir.gateway import Gateway

KEYS = "gateways: {default: {port: 80, apiKey: {keys: [{key: one, metadata: {name: n}}, {key: two, metadata: GIVEN}]}}}"


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ("null", {"place": "gateways.default.apiKey.keys[1]"}),
        ("{team: t}", {"team": "t", "place": "gateways.default.apiKey.keys[1]"}),
        ("{owner: o}", {"owner": "o"}),
        ("{user: u}", {"user": "u"}),
        ("{place: theirs}", {"place": "theirs"}),
    ],
)
def test_a_key_without_a_name_has_its_place(given: str, seen: dict[str, str], loaded: Callable[..., Gateway]) -> None:
    auth = loaded(KEYS.replace("GIVEN", given)).binds[0].listeners[0].policies.api_key
    assert auth is not None
    assert [json.loads(key.metadata) for key in auth.keys] == [{"name": "n"}, seen]
    # The dump shows what was written.
    written = {name: value for name, value in seen.items() if value == "theirs" or name != "place"}
    assert [key["metadata"] for key in dump_api_key(auth)["keys"]] == [{"name": "n"}, written]
