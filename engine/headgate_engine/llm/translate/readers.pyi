from typing import Self

from headgate_engine.llm.translate.writers import Writer

CUT: str
PROVIDER_ERROR: str

class Garbage(ValueError):
    """What a provider sent is not what its format says."""

class EventReader:
    """The provider's half of one stream. Never raises for what the provider sends: the client gets an error event.

    event() and end() return the client's bytes.
    """

    def __new__(cls, writer: Writer) -> Self: ...
    @property
    def writer(self) -> Writer: ...
    @property
    def failed(self) -> bool:
        """Whether the stream is broken; the client has been told."""
    def event(self, name: str | None, data: bytes) -> bytes:
        """Translate one event; b"" when it says nothing to the client, and after the end."""
    def end(self, fault: str | None) -> bytes:
        """End the stream: an error unless the provider had said all, and then only what is still owed."""

class CompletionsReader(EventReader):
    """chat.completion.chunk events, with what compatible vendors make of them."""

class MessagesReader(EventReader):
    """Events of the Messages API."""

def load_json(text: bytes | str) -> object:
    """Decode JSON; half a surrogate pair is let through. Garbage for what is no JSON, or nested too deep."""
