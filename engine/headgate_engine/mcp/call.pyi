from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.link.client import ClientCall, ClientResponse
from headgate_engine.link.timers import Timer

ACCEPT: bytes
NAMED: tuple[bytes, ...]

class DirectTimer(Timer):
    """C face only."""

class DirectCall(ClientCall):
    """One call in progress; a DirectBackend makes it."""

    @property
    def refusal(self) -> Reply | None:
        """The answer of a policy in front of the target, None where none refused."""
    @property
    def remaining_s(self) -> float | None:
        """What is left of the target's time, in seconds; None: there is no limit."""
    @property
    def waited_s(self) -> float:
        """How long the call has been under way, in seconds."""
    @property
    def context(self) -> RequestContext | None: ...
    @property
    def place(self) -> object: ...
    def route_labels(self) -> str: ...
    def add_log_field(self, key: str, value: object) -> None: ...
    async def wait_for_head(self) -> None:
        """Wait until there is an answer, or none will come: then `answer()` says which."""
    def answer(self) -> ClientResponse:
        """Return the target's answer; raises CallError, TimeoutError, or what a policy raised."""
    def give_up(self) -> None:
        """End the call at the target, if it has not ended."""
    def client_writable(self) -> None: ...
    def client_gone(self) -> None: ...
