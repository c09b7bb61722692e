"""Lists of statuses that name other objects."""

from __future__ import annotations

import random

from headgate.cluster.translate.ancestors import by_reference


def test_entries_are_sorted_by_what_they_name() -> None:
    ordered = [
        {"group": "", "kind": "Service", "name": "z"},
        {"name": "a"}, {"name": "b", "port": 9}, {"name": "b", "port": 80, "namespace": "x"}, {"name": "b", "port": 80, "namespace": "y"},
        {"name": "b", "sectionName": "a"}, {"kind": "ListenerSet", "name": "a"},
    ]  # fmt: skip
    for seed in range(5):
        found = ordered.copy()
        random.Random(seed).shuffle(found)
        assert sorted(found, key=by_reference) == ordered
