"""The page of what is not built."""

from __future__ import annotations

import re
from pathlib import Path

from headgate.config.pending import page, pending
from headgate.config.schema import LATER, printed

DOCS = Path(__file__).parents[3] / "docs"


def test_the_committed_page_is_current() -> None:
    current = (DOCS / "not-supported-yet.md").read_text()
    assert current == page(), "run: python -m headgate.config.pending > docs/not-supported-yet.md"


def test_whatever_the_schema_calls_unbuilt_is_on_the_page() -> None:
    named = set(re.findall(r'"([A-Za-z0-9]+)": \{[^{}]*(?:\{[^{}]*\}[^{}]*)*"description": "[^"]*' + re.escape(LATER), printed()))
    assert len(named) > 10
    listed = {re.split(r"[.\[\]]+", line.split(" ")[0])[-1] for line in pending()}
    assert named - listed <= {"minTlsVersion", "maxTlsVersion"}  # other spellings
