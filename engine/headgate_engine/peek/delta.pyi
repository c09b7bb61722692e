class DeltaPeek:
    """Recognises events of one format that are nothing but one delta: of text, of a thought, of a call's arguments.

    format: completions, messages, responses, gemini or converse; ValueError for others.
    """

    def __init__(self, format: str) -> None: ...
    @property
    def format(self) -> int: ...
    @property
    def start(self) -> int:
        """Where the delta begins, at its opening quote."""
    @property
    def stop(self) -> int:
        """Behind its closing quote."""
    @property
    def index_start(self) -> int: ...
    @property
    def index_stop(self) -> int:
        """Behind the number of the choice, the block, the item or the candidate; 0: there is none."""
    @property
    def part_start(self) -> int: ...
    @property
    def part_stop(self) -> int:
        """Behind the content_index of responses; 0: there is none."""
    @property
    def marks_start(self) -> int: ...
    @property
    def marks_stop(self) -> int:
        """Behind the log probabilities, which repeat the text; 0: there are none."""
    @property
    def usage_start(self) -> int: ...
    @property
    def usage_stop(self) -> int:
        """Behind Gemini's usageMetadata; 0: there is none."""
    @property
    def calls(self) -> bool:
        """Whether `tool_calls` is there."""
    @property
    def call_start(self) -> int: ...
    @property
    def call_stop(self) -> int:
        """Behind the number of a tool call of completions; 0: there is none, or the index tells it."""
    def read(self, data: bytes) -> tuple[str, bytes] | None:
        """Return what the delta is (`text`, `thought`, `arguments`), and itself as JSON, quotes included.

        None for an event that says more, or anything else.
        """
