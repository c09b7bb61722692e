"""What all connections of a worker share."""

from __future__ import annotations

import email.utils

from hypothesis import given
from hypothesis import strategies as st

from headgate_engine.link.worker import http_date


@given(st.integers(0, 253_402_300_799))
def test_a_date_is_that_of_the_standard_library(now: int) -> None:
    assert http_date(now + 0.5) == email.utils.formatdate(now + 0.5, usegmt=True).encode()


def test_a_date_of_rfc_9110() -> None:
    assert http_date(784111777) == b"Sun, 06 Nov 1994 08:49:37 GMT"
