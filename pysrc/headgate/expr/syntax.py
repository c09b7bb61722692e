"""The syntax tree of an expression: its rules, and access to their parts."""

from __future__ import annotations

from typing import Final

from lark import Token, Tree

Part = Tree[Token]
# Rules that may have a single rule as their child, which means the same.
PASSED: Final = frozenset(
    ("expr", "conditionalor", "conditionaland", "relation", "addition", "multiplication", "unary", "primary")
)
STEPS: Final = frozenset(
    ("member_dot", "member_dot_arg", "member_index", "member_object", "member_maybe_dot", "member_maybe_index")
)


def inner(tree: Part, position: int) -> Part:
    """Return the child of a rule at a position. The child must be a rule, not a token."""
    found = tree.children[position]
    assert isinstance(found, Tree)
    return found


def chain(tree: Part) -> list[Part]:
    """Return the operands of a left-recursive rule, from left to right."""
    found: list[Part] = []
    rule = tree.data
    while tree.data == rule and len(tree.children) == 2:
        found.append(inner(tree, 1))
        tree = inner(tree, 0)
    found.append(tree)
    return found[::-1]


def arguments(tree: Part, start: int) -> list[Part]:
    """Return the arguments of a call. `start` is the index of the child that holds the argument list, if any."""
    return [one for one in inner(tree, start).children if isinstance(one, Tree)] if len(tree.children) > start else []


def field_name(token: object) -> str:
    """Return a field's name without the backquotes that it may have."""
    return str(token).strip("`")
