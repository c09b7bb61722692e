"""Fragments and the file that they make together."""

from __future__ import annotations

import random

import pytest

from headgate.cluster.translate.fragments import Fragment, assembled
from headgate.document.expand import expand

PARTS = [
    Fragment(key="bind/80/a", place="binds", value={"port": 80}, order=(80,)),
    Fragment(key="bind/9/a", place="binds", value={"port": 9}, order=(9,)),
    Fragment(key="listener/a.x", place="listeners", value={"name": "x"}, parent="bind/80/a", order=(0,)),
    Fragment(key="route/b", place="routes", value={"name": "b"}, parent="listener/a.x", order=("1", "b")),
    Fragment(key="route/a", place="routes", value={"name": "a"}, parent="listener/a.x", order=("2", "a")),
    Fragment(key="route/c", place="routes", value={"name": "c"}, parent="listener/a.x", order=("2", "a")),
]


def test_the_file_is_the_same_whatever_comes_first() -> None:
    whole = {
        "binds": [
            {"port": 9},
            {"port": 80, "listeners": [{"name": "x", "routes": [{"name": "b"}, {"name": "a"}, {"name": "c"}]}]},
        ]
    }
    for seed in range(10):
        parts = PARTS.copy()
        random.Random(seed).shuffle(parts)
        assert assembled(parts) == whole
    assert PARTS[0].value == {"port": 80}


def test_a_fragment_stands_in_one_that_there_is() -> None:
    with pytest.raises(KeyError):
        assembled(PARTS[2:])


def test_nobody_reads_the_environment_of_a_gateway() -> None:
    """A dollar sign of a resource stays one: see document.expand."""
    value = {"$KEY": ["^/v1$", "${KEY}", 1, None], "b": "$$"}
    found = assembled([Fragment(key="a", place="binds", value=value)])
    assert found == {"binds": [{"$$KEY": ["^/v1$$", "$${KEY}", 1, None], "b": "$$$$"}]}
    assert [expand(text, {"KEY": "secret"}).text for text in found["binds"][0]["$$KEY"][:2]] == ["^/v1$", "${KEY}"]
