"""Paths and reports."""

from __future__ import annotations

import pytest

from headgate.document.nodes import DocumentNode, Report, child
from headgate.errors import Problem


@pytest.mark.parametrize(
    ("path", "key", "expected"),
    [
        ("", "a", "a"),
        ("a", "b", "a.b"),
        ("a[0]", "b-c", "a[0].b-c"),
        ("a", "b.c", "a['b.c']"),
        ("a", "", "a['']"),
    ],
)
def test_paths_quote_keys_that_are_no_plain_words(path: str, key: str, expected: str) -> None:
    assert child(path, key) == expected


def test_a_report_keeps_the_order_of_the_document_and_each_fault_once() -> None:
    report = Report("c.yaml")
    report.add(Problem.VALUE, "b", "late", DocumentNode(1, 9, 1))
    report.add(Problem.VALUE, "a", "early", DocumentNode(1, 2, 5))
    report.add(Problem.VALUE, "a", "early", DocumentNode(1, 2, 5))
    assert [fault.message for fault in report.in_order()] == ["early", "late"]


def test_a_report_is_bounded() -> None:
    report = Report("c.yaml", limit=3)
    for number in range(10):
        report.add(Problem.VALUE, str(number), "x")
    assert len(report.errors) == 3


def test_not_supported_alone_does_not_break_a_document() -> None:
    report = Report("c.yaml")
    report.add(Problem.UNSUPPORTED, "a", "")
    assert not report.broken
    report.add(Problem.TYPE, "b", "")
    assert report.broken
