"""The neutral form of a complete reply, which the readers in formats/ return and the writers take."""

from __future__ import annotations

from dataclasses import field
from typing import Any, NamedTuple

from headgate.dialect.llm.contract import Json, UpstreamGarbage
from headgate.document.lazy_dataclass import dataclass
from headgate_engine.llm.translate.counts import UsageCounts
from headgate_engine.llm.translate.evidence import Citation, RanTool
from headgate_engine.llm.translate.readers import Garbage, load_json

# Names of tools of vendors that run code, and of those whose results are told by citations.
CODE = frozenset({"code_execution", "bash_code_execution"})
SEARCHES = frozenset({"web_search", "web_fetch"})


class Text(NamedTuple):
    """Text of the reply, with citations by the places of their characters in all of its texts."""

    text: str
    citations: tuple[Citation, ...] = ()


class Refusal(NamedTuple):
    """The model's reason for refusing to reply."""

    text: str


class Thinking(NamedTuple):
    """Reasoning, with the provider's signature, "" if there is none."""

    text: str
    signature: str = ""


class RedactedThinking(NamedTuple):
    """Reasoning in a form that only the provider can read."""

    data: str


class ToolCall(NamedTuple):
    """One tool call. `arguments` is JSON text of an object, or any other text that the model has written instead.

    `custom`: the provider has called a custom tool, and `arguments` have its input as their member `input`.
    """

    id: str
    name: str
    arguments: str
    custom: bool = False


class Image(NamedTuple):
    """A picture that the model has made, as a URL: a data URL, as a rule."""

    url: str


class Sound(NamedTuple):
    """Sound that the model has made, in Base64."""

    media_type: str
    data: str


Part = Text | Image | Sound | Refusal | Thinking | RedactedThinking | ToolCall | RanTool


@dataclass(slots=True, kw_only=True)
class NeutralReply:
    """One reply. `id` and `model` are "" if the provider gives none.

    `stop` is one of headgate_engine.llm.translate.stops.STOPS, `sequence` the stop sequence that was hit. `probs` are
    log probabilities of the tokens of its text. `untold`: the provider has made something that no part says. `others`
    are further choices, of which only `parts`, `probs` and `stop` are used.
    """

    id: str = ""
    model: str = ""
    parts: list[Part] = field(default_factory=list)
    stop: str = "end"
    sequence: str | None = None
    usage: UsageCounts | None = None
    created: int | None = None
    service_tier: str | None = None
    probs: list[Json] = field(default_factory=list)
    untold: bool = False
    others: list[NeutralReply] = field(default_factory=list)

    def length(self) -> int:
        """Return the number of characters of the texts."""
        return sum(len(part.text) for part in self.parts if isinstance(part, Text))

    def citations(self) -> list[Citation]:
        """Return the citations of all texts."""
        return [one for part in self.parts if isinstance(part, Text) for one in part.citations]

    def cite(self, citations: list[Citation]) -> None:
        """Add each citation to the text in which it begins, or to the last one."""
        at = 0
        for index, part in enumerate(self.parts):
            if isinstance(part, Text):
                end = at + len(part.text)
                last = end == self.length()
                own = tuple(one for one in citations if at <= one.start and (one.start < end or last))
                if own:
                    self.parts[index] = Text(part.text, (*part.citations, *own))
                at = end

    def images(self) -> list[Image]:
        """Return the pictures."""
        return [part for part in self.parts if isinstance(part, Image)]

    def sounds(self) -> list[Sound]:
        """Return the sounds."""
        return [part for part in self.parts if isinstance(part, Sound)]

    def ran_others(self) -> bool:
        """Return whether the vendor has run a tool other than a search, of which citations are told."""
        return any(isinstance(part, RanTool) and part.name not in SEARCHES for part in self.parts)

    def calls(self) -> list[ToolCall]:
        """Return the tool calls."""
        return [part for part in self.parts if isinstance(part, ToolCall)]

    def text(self) -> str:
        """Return the concatenated texts."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    def thinking(self) -> str:
        """Return the concatenated reasoning."""
        return "".join(part.text for part in self.parts if isinstance(part, Thinking))

    def ended(self) -> str:
        """Return the stop reason. It is `tools` for a reply with tool calls, even if the provider says `end`."""
        return "tools" if self.stop == "end" and self.calls() else self.stop


def garbage(at: str, what: str) -> UpstreamGarbage:
    """Return the error for a reply that violates its format. `at` is the path, `what` the fault."""
    return UpstreamGarbage(f"the provider's reply is broken: {at} {what}")


def a_dict(value: object, at: str) -> Json:
    """Return the object. Raises UpstreamGarbage for anything else."""
    if isinstance(value, dict):
        return value
    raise garbage(at, "is not an object")


def a_list(value: object, at: str) -> list[Any]:
    """Return the array, [] for null. Raises UpstreamGarbage for anything else."""
    if value is None:
        return []
    if isinstance(value, list):
        return value
    raise garbage(at, "is not an array")


def a_text(value: object, at: str) -> str:
    """Return the string, "" for null. Raises UpstreamGarbage for anything else."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    raise garbage(at, "is not a string")


def told(value: object) -> str:
    """Return the string, "" for anything else. Use it for values that are only passed on."""
    return value if isinstance(value, str) else ""


def input_of(call: ToolCall) -> Json:
    """Return the arguments as an object. If the model has written anything else, it is the member `input`."""
    if not call.arguments.strip():
        return {}
    try:
        found = load_json(call.arguments)
    except Garbage:
        return {"input": call.arguments}
    return found if isinstance(found, dict) else {"input": found}
