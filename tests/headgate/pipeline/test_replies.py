"""The error table is whole."""

from __future__ import annotations

from headgate.pipeline.replies import REPLIES, engine_replies
from headgate_engine.link.reasons import REPLY_IDS


def test_every_reason_of_the_engine_has_a_row_and_every_row_a_reason() -> None:
    assert REPLIES.keys() == REPLY_IDS.keys()
    assert sorted(REPLY_IDS.values()) == list(range(len(REPLY_IDS)))


def test_rows_become_answers() -> None:
    for name, reply in engine_replies().items():
        row = REPLIES[name]
        assert (reply.status, reply.body.decode(), reply.reason) == row
        assert bool(reply.headers) == bool(row.body)
