from typing import Any

from headgate_engine.shared.segment import Segment

FAMILY: bytes
SECONDS: tuple[float, ...]
OK: str
ERROR: str
FAILED: str
DISCOVERED: str
MAX_TEXT: int
TOOL_FAILED: str

class McpTargetMeter:
    """What one worker learns of the target `target` of the backend `backend` from its calls: durations by outcome, in
    series that all workers share, and in this process what the server says of itself, when it last answered, and its
    last error.
    """

    def __init__(self, segment: Segment, backend: str, target: str) -> None: ...
    @property
    def segment(self) -> Segment: ...
    def answered(self, took_ns: int, method: str | None, answer: bytes) -> int:
        """Count a response, which came after `took_ns` ns. It may hold an error, also one of a tool."""
    def refused_with(self, took_ns: int, text: str) -> int:
        """Count an answer that is no response, after `took_ns` ns. `text` says what it is."""
    def failed(self, took_ns: int, text: str) -> int:
        """Count a call without an answer, which was given up after `took_ns` ns. `text` says why."""
    def opened(self, answer: bytes, protocol: str | None) -> None:
        """Note what an answer to `initialize` or `server/discover` tells. `protocol`: the revision, where the answer
        does not say which one is spoken."""
    def state(self) -> dict[str, Any]:
        """Return what is known, {} of a target that was never called.

        `name`, `version`, `protocol` and `error`: texts or None. `opened`, `answered`, `failed` and `erred`: when the
        server last gave its name, answered, did not answer, and when the last error was, in ms since 1970, 0 for never.
        """
