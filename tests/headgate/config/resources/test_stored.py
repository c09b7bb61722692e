"""What a change makes of what is stored."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.config.resources import stored
from headgate.config.resources.kinds import KINDS
from headgate.config.resources.stored import (
    ResourceChange,
    ResourceConflict,
    ResourceMissing,
    ResourcePut,
    StoredSnapshot,
    Written,
    apply,
    timestamp,
)

NOBODY = {name: frozenset[str]() for name in KINDS}


def write(before: StoredSnapshot, *names: str, owned: Any = NOBODY, now: int = 1, **more: Any) -> Written:
    puts = tuple(ResourcePut(None, {"name": name}, **more) for name in names)
    return apply(before, ResourceChange("llm.model", puts), owned, now)


def test_resources_keep_their_place_and_time_of_creation() -> None:
    first = write(StoredSnapshot(), "b", "a").after
    assert (first.version, [one.id for one in first.resources]) == (1, ["b", "a"])
    second = write(first, "b", now=2)
    assert [one.label for one in second.puts] == ["llm.model/b"]
    assert [(one.id, one.revision, one.created_us, one.updated_us) for one in second.after.resources] == [("b", 2, 1, 2), ("a", 1, 1, 1)]
    third = apply(second.after, ResourceChange("llm.model", delete="b", revision=2), NOBODY, 3)
    assert (third.deleted, [one.id for one in third.after.resources], third.after.version) == ((("llm.model", "b"),), ["a"], 3)
    # A kind of its own has ids of its own.
    both = apply(third.after, ResourceChange("llm.provider", (ResourcePut(None, {"name": "a"}),)), NOBODY, 4).after
    assert [one.label for one in both.resources] == ["llm.model/a", "llm.provider/a"]


def test_what_a_change_is_not_based_on_is_a_conflict() -> None:
    before = write(StoredSnapshot(), "a").after
    for refused in (
        lambda: write(before, "a", revision=2),
        lambda: write(before, "new", revision=1),
        lambda: write(before, "a", fresh=True),
        lambda: write(before, "b", "b"),
        lambda: write(before, "f", owned={**NOBODY, "llm.model": frozenset("f")}),
        lambda: apply(before, ResourceChange("llm.model", delete="a", revision=5), NOBODY, 1),
        lambda: apply(before, ResourceChange("llm.model", delete="f"), {**NOBODY, "llm.model": frozenset("f")}, 1),
    ):
        with pytest.raises(ResourceConflict):
            refused()
    with pytest.raises(ResourceMissing):
        apply(before, ResourceChange("llm.model", delete="x"), NOBODY, 1)
    assert write(before, "a", revision=1).after.version == 2


def test_fields_that_the_file_sets_cannot_be_set_again() -> None:
    owned = {**NOBODY, "mcp.settings": frozenset(("port",))}
    change = ResourceChange("mcp.settings", (ResourcePut(None, {"port": 1}),))
    with pytest.raises(ResourceConflict, match="owned by the file"):
        apply(StoredSnapshot(), change, owned, 1)
    change = ResourceChange("mcp.settings", (ResourcePut(None, {"statefulMode": "stateless"}),))
    assert apply(StoredSnapshot(), change, owned, 1).after.resources[0].id == "default"


def test_number_and_size_have_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "MAX_RESOURCES", 3)
    full = write(StoredSnapshot(), "a", "b", "c").after
    assert write(full, "a").after.version == 2
    with pytest.raises(ResourceConflict, match="more than 3 resources"):
        write(full, "d")
    monkeypatch.setattr(stored, "MAX_BYTES", 20)
    with pytest.raises(ResourceConflict, match="more than 20 bytes"):
        write(StoredSnapshot(), "a", "b")


def test_times_are_written_as_rfc_3339() -> None:
    assert timestamp(1_700_000_000_123_456) == "2023-11-14T22:13:20.123456Z"
