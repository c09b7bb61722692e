"""The error table is whole."""

from __future__ import annotations

from pathlib import Path

from headgate.pipeline.replies import CAUSES, POLICY_ROWS, REASONS, REPLIES, engine_replies, page
from headgate_engine.link.reasons import REPLY_IDS


def test_every_reason_of_the_engine_has_a_row_and_every_row_a_reason() -> None:
    assert REPLIES.keys() == REPLY_IDS.keys()
    assert sorted(REPLY_IDS.values()) == list(range(len(REPLY_IDS)))


def test_rows_become_answers() -> None:
    for name, reply in engine_replies().items():
        row = REPLIES[name]
        assert (reply.status, reply.body.decode(), reply.reason) == row
        assert bool(reply.headers) == bool(row.body)


def test_the_committed_page_of_errors_is_current() -> None:
    committed = Path(__file__).parents[3] / "docs/errors.md"
    assert committed.read_text() == page(), "run: python -m headgate.pipeline.replies > docs/errors.md"


def test_all_answers_have_reasons_of_the_table() -> None:
    used = {row.reason for row in (*REPLIES.values(), *(row for _, row, _ in POLICY_ROWS))}
    assert used | {"Upstream", "DirectResponse", "MCP"} == set(REASONS)


def test_every_answer_has_a_cause() -> None:
    assert set(CAUSES) == set(REPLIES)
