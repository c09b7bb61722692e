"""Reasons of failed handshakes."""

from __future__ import annotations

from headgate_engine.tls.faults import CODES, FIRST_ALERT, REASONS, reason_of


def test_each_code_has_a_reason_that_is_listed() -> None:
    assert set(CODES.values()) <= REASONS.keys()
    assert reason_of(FIRST_ALERT + 48) == "alert"
    assert reason_of(193) == "cipher"
    assert reason_of(999) == "protocol"
