"""What a whole reply says, in no format: what readers of replies (formats/*) give and writers take."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from headgate.dialect.llm.contract import Json, UpstreamGarbage
from headgate_engine.llm.translate.counts import Usage
from headgate_engine.llm.translate.readers import Garbage, load_json


class Text(NamedTuple):
    """Text of the answer."""

    text: str


class Refusal(NamedTuple):
    """Why there is no answer."""

    text: str


class Thinking(NamedTuple):
    """Reasoning, and the provider's signature of it, empty when it gives none."""

    text: str
    signature: str = ""


class Redacted(NamedTuple):
    """Reasoning that only the provider can read."""

    data: str


class Call(NamedTuple):
    """One tool call. arguments: JSON text of an object, or what the model wrote instead."""

    id: str
    name: str
    arguments: str


Part = Text | Refusal | Thinking | Redacted | Call


@dataclass(slots=True, kw_only=True)
class Said:
    """One reply. id, model: empty when the provider gives none. stop: see stops.STOPS. sequence: which one was hit.
    others: further choices, of which only parts and stop are of use.
    """

    id: str = ""
    model: str = ""
    parts: list[Part] = field(default_factory=list)
    stop: str = "end"
    sequence: str | None = None
    usage: Usage | None = None
    created: int | None = None
    service_tier: str | None = None
    others: list[Said] = field(default_factory=list)

    def calls(self) -> list[Call]:
        """Return the tool calls."""
        return [part for part in self.parts if isinstance(part, Call)]

    def text(self) -> str:
        """Return the texts as one."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    def thinking(self) -> str:
        """Return the reasoning as one."""
        return "".join(part.text for part in self.parts if isinstance(part, Thinking))

    def ended(self) -> str:
        """Return the stop. A reply with tool calls wants them answered, whatever word its provider used."""
        return "tools" if self.stop == "end" and self.calls() else self.stop


def garbage(at: str, what: str) -> UpstreamGarbage:
    """Return the error for a reply that is not what its format says."""
    return UpstreamGarbage(f"the provider's reply is broken: {at} {what}")


def a_dict(value: object, at: str) -> Json:
    """Return the object; UpstreamGarbage for anything else."""
    if isinstance(value, dict):
        return value
    raise garbage(at, "is not an object")


def a_list(value: object, at: str) -> list[Any]:
    """Return the array, [] for null; UpstreamGarbage for anything else."""
    if value is None:
        return []
    if isinstance(value, list):
        return value
    raise garbage(at, "is not an array")


def a_text(value: object, at: str) -> str:
    """Return the string, "" for null; UpstreamGarbage for anything else."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    raise garbage(at, "is not a string")


def told(value: object) -> str:
    """Return the string, "" for anything else: for what is only passed on."""
    return value if isinstance(value, str) else ""


def input_of(call: Call) -> Json:
    """Return the arguments as an object; what is none (a model can write anything) is kept below `input`."""
    if not call.arguments.strip():
        return {}
    try:
        found = load_json(call.arguments)
    except Garbage:
        return {"input": call.arguments}
    return found if isinstance(found, dict) else {"input": found}
