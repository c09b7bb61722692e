"""Conditions of statuses, without the time of their last change: who writes them knows what was there before."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from headgate.cluster.snapshot import GroupKind, ObjectKey

# Bytes of a message that an API server takes.
MOST_MESSAGE: Final = 32_768


class Condition(NamedTuple):
    """`holds` is the status; `reason` a word for programs, `message` a sentence for people."""

    type: str
    holds: bool
    reason: str
    message: str

    def printed(self, generation: int) -> dict[str, Any]:
        """Return the form of the API, about the given generation of the object."""
        return {
            "type": self.type,
            "status": "True" if self.holds else "False",
            "reason": self.reason,
            "message": self.message[:MOST_MESSAGE],
            "observedGeneration": generation,
        }


class ObjectStatus(NamedTuple):
    """What the status of an object is to be. Parts that other controllers write are not in it."""

    kind: GroupKind
    key: ObjectKey
    content: dict[str, Any]


class Unmet(NamedTuple):
    """Why something is not so: the reason and message of a condition that does not hold."""

    reason: str
    message: str


def holds(type_: str, reason: str, message: str) -> Condition:
    """Return a condition that is true."""
    return Condition(type_, True, reason, message)


def fails(type_: str, refusal: Unmet) -> Condition:
    """Return a condition that is false, with its reason and message."""
    return Condition(type_, False, *refusal)


def judged(type_: str, refusals: list[Unmet], message: str) -> Condition:
    """Return a condition that fails with the first reason and its messages, or holds with its own name as reason."""
    if not refusals:
        return holds(type_, type_, message)
    reason = refusals[0].reason
    messages = dict.fromkeys(one.message for one in refusals if one.reason == reason)
    return Condition(type_, False, reason, "; ".join(messages))
