"""Conditions of statuses."""

from __future__ import annotations

from headgate.cluster.translate.conditions import MOST_MESSAGE, Condition, Unmet, fails, holds, judged


def test_a_condition_says_of_which_generation_it_is() -> None:
    assert holds("Accepted", "Accepted", "yes").printed(3) == {
        "type": "Accepted", "status": "True", "reason": "Accepted", "message": "yes", "observedGeneration": 3,
    }  # fmt: skip
    assert fails("Accepted", Unmet("No", "x" * (MOST_MESSAGE + 1))).printed(0)["message"] == "x" * MOST_MESSAGE


def test_the_first_reason_counts_with_all_that_is_said_of_it() -> None:
    refusals = [Unmet("A", "1"), Unmet("B", "2"), Unmet("A", "3"), Unmet("A", "1")]
    assert judged("ResolvedRefs", refusals, "fine") == Condition("ResolvedRefs", False, "A", "1; 3")
    assert judged("ResolvedRefs", [], "fine") == Condition("ResolvedRefs", True, "ResolvedRefs", "fine")
