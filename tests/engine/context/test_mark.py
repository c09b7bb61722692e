"""Snapshots of a request head."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate_engine.context.headers import MessageHead
from headgate_engine.context.mark import mark

NAMES = st.sampled_from(["a", "b", "cookie", "authorization"])
EDITS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), NAMES, st.text("xyz", max_size=40)),
        st.tuples(st.just("set"), NAMES, st.text("xyz", max_size=40)),
        st.tuples(st.just("remove"), NAMES, st.just("")),
    ),
    max_size=20,
)


def edit(head: MessageHead, edits: list[tuple[str, str, str]]) -> None:
    for verb, name, value in edits:
        if verb == "remove":
            head.remove(name)
        else:
            getattr(head, verb)(name, value)


def seen(head: MessageHead) -> tuple[object, ...]:
    return head.method, head.target, head.path, head.authority, head.items()


@given(first=EDITS, second=EDITS, third=EDITS)
def test_edits_after_the_mark_are_undone(first: list, second: list, third: list) -> None:  # type: ignore[type-arg]
    head = MessageHead()
    head.set_request("GET", "/path?query=1", "a.test:80")
    edit(head, first)
    before = seen(head)
    taken = mark(head)
    for edits in (second, third):       # a mark may be gone back to more than once
        edit(head, edits)
        head.set_request("PUT", "/other", "b.test")
        taken.put_back(head)
        assert seen(head) == before
