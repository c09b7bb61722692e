"""Secrets show nowhere but through reveal()."""

from __future__ import annotations

import copy
import json
import logging
import pickle

import pytest

from headgate.document.secret import REDACTED, Secret, private_channel

MARK = "canary-5d1f"


@pytest.mark.parametrize(
    "show",
    [
        str,
        repr,
        "{}".format,
        "{:>30}".format,
        lambda secret: f"{secret!r} {secret!s} {secret}",
        lambda secret: "%s %r" % (secret, secret),  # noqa: UP031
        lambda secret: repr([secret, {"k": secret}]),
        lambda secret: json.dumps({"k": secret}, default=str),
    ],
)
def test_no_way_of_printing_shows_the_text(show: object) -> None:
    assert callable(show)
    printed = show(Secret(MARK))
    assert MARK not in printed
    assert REDACTED in printed


def test_a_log_record_does_not_show_the_text(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        logging.getLogger("t").info("key %s", Secret(MARK), extra={"key": Secret(MARK)})
    assert MARK not in caplog.text
    assert MARK not in str(caplog.records[0].__dict__)


def test_reveal_gives_the_text_back() -> None:
    assert Secret(MARK).reveal() == MARK
    assert Secret(MARK).reveal_bytes() == MARK.encode()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickling_is_refused_outside_the_private_channel(protocol: int) -> None:
    with pytest.raises(TypeError):
        pickle.dumps({"deep": [Secret(MARK)]}, protocol)
    with private_channel():
        data = pickle.dumps([Secret(MARK)], protocol)
    assert pickle.loads(data) == [Secret(MARK)]
    with pytest.raises(TypeError):
        pickle.dumps(Secret(MARK), protocol)


def test_copies_are_the_secret_itself() -> None:
    secret = Secret(MARK)
    assert copy.copy(secret) is secret
    assert copy.deepcopy([secret])[0] is secret


def test_equality_is_by_text_and_never_with_a_plain_text() -> None:
    assert Secret(MARK) == Secret(MARK)
    assert hash(Secret(MARK)) == hash(Secret(MARK))
    assert Secret(MARK) != Secret(MARK + "x")
    assert Secret(MARK) != MARK


def test_fingerprints_tell_equal_from_different_and_hold_no_text() -> None:
    assert Secret("a").fingerprint() == Secret("a").fingerprint()
    assert Secret("a").fingerprint() != Secret("b").fingerprint()
    assert len(Secret(MARK).fingerprint()) == 16


def test_the_length_is_not_told() -> None:
    with pytest.raises(TypeError):
        len(Secret(MARK))
    assert bool(Secret(""))
