from collections.abc import Iterable

class LoadRequest:
    """A request that a run sends again and again. Raises ValueError for parts that cannot be sent."""

    def __init__(
        self, method: str, target: str, authority: str, headers: Iterable[tuple[str, str]], body: bytes = b""
    ) -> None: ...
    @property
    def body(self) -> bytes: ...
    @property
    def judgement(self) -> int:
        """What is read of its answer. 0: the status, 1: the events of a stream, 2: a JSON-RPC response."""
    @property
    def format(self) -> str | None:
        """Of the stream that answers it."""
    def number(self, at: int) -> None:
        """Put a number that no other request has in the place of the ten digits at `at` of the body.

        Raises ValueError if there are none.
        """
    def judge_stream(self, format: str) -> None:
        """Read the answer as a stream of an LLM.

        format: completions, messages, responses, gemini or converse; ValueError for others.
        """
    def judge_rpc(self) -> None:
        """Read the answer as a JSON-RPC response."""
