"""What a request with two keys may use: what both may."""

from __future__ import annotations

from itertools import combinations, product

from headgate_engine.llm.pattern import ModelPattern
from headgate_engine.shared.segment import Segment
from headgate_engine.steps.virtual_key import KeyUse, VirtualKey

TARGETS, TOOLS = ("a", "b"), ("echo", "add")
ENTRIES = ("echo", "add", "a/echo", "b/echo", "a/*", "b/*")


def use(tools: list[str] | None = None, models: list[str] | None = None) -> KeyUse:
    metadata: dict[str, object] = {"name": "one"} if tools is None else {"name": "one", "allowedTools": tools}
    patterns = None if models is None else [ModelPattern(one) for one in models]
    return KeyUse(VirtualKey(Segment.create(), ("one", ""), metadata, (), (patterns, None)))


def may(tools: list[str] | None) -> set[tuple[str, str]]:
    """The tools that a list allows, as docs/virtual-keys.md has it; all without a list."""
    return {
        (target, tool) for target, tool in product(TARGETS, TOOLS)
        if tools is None or {tool, f"{target}/{tool}", f"{target}/*"} & set(tools)
    }  # fmt: skip


def test_a_request_with_two_keys_may_use_the_tools_that_both_allow() -> None:
    lists = [None, *([*some] for size in range(3) for some in combinations(ENTRIES, size))]
    for first in lists:
        taken = use(first)
        for second in lists:
            metadata, _ = taken.narrowed(({} if second is None else {"allowedTools": second}, None))
            found = metadata.get("allowedTools")
            assert found is None or isinstance(found, list)
            assert may(found) == may(first) & may(second), (first, second)


def test_a_request_with_two_keys_may_use_the_models_that_both_allow() -> None:
    for first, second, both in (
        (None, None, None), (["gpt-*"], None, ["gpt-*"]), (None, ["gpt-*"], ["gpt-*"]), (["gpt-*"], ["gpt-4o*", "x"], ["gpt-4o*"]), (["a"], ["b"], []),
    ):  # fmt: skip
        _, models = use(models=first).narrowed(({}, None if second is None else tuple(map(ModelPattern, second))))
        assert (None if models is None else [one.text for one in models]) == both


def test_the_metadata_is_that_of_the_second_key() -> None:
    metadata, _ = use(["a/*"]).narrowed(({"name": "two"}, None))
    assert metadata == {"name": "two", "allowedTools": ["a/*"]}
