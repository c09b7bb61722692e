from collections.abc import Callable, Collection, Iterable
from typing import Protocol

from headgate_engine.context.request import TokenUsage
from headgate_engine.llm.content_capture import CapturedAnswer
from headgate_engine.llm.eventstream import EventStreamDecoder
from headgate_engine.llm.metered import KINDS as KINDS
from headgate_engine.llm.pattern import ModelPattern
from headgate_engine.llm.prices import PriceList
from headgate_engine.llm.top_members import TopMembers
from headgate_engine.plan.tap import ResponseTap
from headgate_engine.steps.virtual_key import KeyUse

class _Sealer(Protocol):
    def seal(self, value: bytes, place: bytes, origin: bytes | None) -> bytes | None: ...

def tokens_of(text: str) -> int:
    """Return about how many tokens a text has."""

def generated_tokens(format: str, events: bytes) -> int:
    """Of output, in events of a stream in a client's format."""

class JudgedTap(ResponseTap):
    """A stream that guards look at: each piece goes on when they have answered, the last one at the end."""

def judged_stream(format: str, pieces: list[bytes], use: KeyUse, bound: int) -> tuple[bytes, int, str | None]:
    """Return what a client gets of a stream that guards look at, how many tokens were counted, and the fault.

    use: of a request that has reserved `bound` tokens of an answer, and whose limits stop it.
    """

def tokens_of_prompt(format: str, body: bytes) -> int:
    """Return about how many prompt tokens a request in a client format has; 0 for a body that is no JSON object."""

def is_first_words(format: str, name: bytes, data: bytes) -> bool:
    """Return whether an event has words of the answer, or ends it. name: for "bedrock" the kind of a frame."""

def path_model(path: str) -> str | None:
    """Return the model that a path names (Gemini, Vertex, Bedrock), decoded; None without one."""

def azure_path(path: bytes, query: bytes) -> tuple[bytes | None, bytes] | None:
    """Return the model in a path of Azure's and the target that other vendors' clients would ask for.

    None for any other path. query: with its `?`. The model is None where query or body name it.
    """

def sealed_text(
    pieces: Iterable[bytes],
    ids: _Sealer,
    place: bytes,
    origin: bytes | None = None,
    google: bool = False,
    paths: tuple[bytes, bytes] = ...,
) -> bytes:
    """Return what a client gets of the pieces of a body. ids.seal() says what becomes of an id.

    `paths`: how the provider's paths begin, and what clients' paths have in the place of that.
    """

def tap_stream(
    pieces: Iterable[bytes], format: str, stream_error: Callable[[str], bytes], *, strip: bool = False
) -> tuple[bytes, str | None, TokenUsage | None]:
    """Return what a client gets of these bytes of a 200 event stream, the fault found, and the usage."""

def free_pieces(deltas: list[str]) -> list[str]:
    """Return what each delta of the arguments adds to the input, and at last what their end adds."""

def price_of(
    prices: PriceList, provider: str, answered: str | None, asked: str | None, usage: TokenUsage
) -> dict[str, int] | None:
    """Return picodollars by part, None without a price; the model that answered counts before the one asked for."""

def add_body(answer: CapturedAnswer, body: bytes) -> None:
    """Take a whole answer."""

def add_event(answer: CapturedAnswer, name: str, data: bytes) -> None:
    """Take one event of a stream; name: as the framing tells it, "" when it does not."""

def edit_known(
    body: bytes,
    members: TopMembers | None,
    sets: dict[str, bytes],
    defaults: dict[str, bytes],
    removes: Collection[str],
) -> bytes:
    """Return what llm.edit.edit() does, of an object whose members have been looked for."""

def common_pattern(one: ModelPattern, other: ModelPattern) -> str | None:
    """Return the pattern of what fits both, None where nothing does; a start and an end meet in `start*end`."""

def rest_of_frames(decoder: EventStreamDecoder) -> bytes:
    """Return the bytes behind the last frame: none when the stream was not cut."""
