from collections.abc import Callable, Set

LIMIT: int
PROMPT: str
ANSWER: tuple[str, ...]
COUNT: str
JOINERS: dict[str, str]
TEXTS: dict[str, tuple[str, ...]]
TOOL_USES: tuple[str, ...]
REPLIES: dict[str, Callable[..., None]]
EVENTS: dict[str, Callable[..., None]]

class CaptureOptions:
    """What the expressions of a configuration ask for."""

    @property
    def prompt(self) -> bool: ...
    @property
    def answer(self) -> bool: ...
    @property
    def count(self) -> bool: ...
    def note(self, variables: Set[str]) -> None:
        """Take into account an expression that reads these dotted names."""

class CapturedAnswer:
    """What one answer says, as it comes. limit: characters of its texts that are kept.

    format: the client's; for others the members of what comes add_body what it is.
    """

    def __init__(self, format: str, limit: int = ...) -> None: ...
    @property
    def format(self) -> str: ...
    @property
    def ended(self) -> bool: ...
    def completion(self) -> list[str]:
        """Return what each choice says."""
    def tool_calls(self) -> list[dict[str, object]]:
        """Return the tool calls: id, name, arguments."""

def prompts(format: str, body: bytes) -> list[dict[str, str]] | None:
    """Return role and content of each message of a request; None when it is no JSON object."""

def counted(body: bytes) -> int:
    """Return the tokens that an answer to a counting request tells, -1 without any."""
