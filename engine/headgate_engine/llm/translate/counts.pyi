PARTS: tuple[str, ...]
MODALITIES: dict[str, int]

class UsageCounts:
    """Tokens of one exchange, in one convention for all formats.

    input contains what was read from a cache (`cached`) and written to one (`written`); output contains `reasoning`.
    total is what the provider says, or input + output. parts: PARTS of input, then of output, -1 for what is not told;
    None when nothing of it is.
    """

    input: int
    output: int
    cached: int
    written: int
    reasoning: int
    total: int
    parts: tuple[int, ...] | None
    def __init__(
        self,
        input: int = 0,
        output: int = 0,
        cached: int = 0,
        written: int = 0,
        reasoning: int = 0,
        total: int = -1,
        parts: tuple[int, ...] | None = None,
    ) -> None: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

def completions_usage(usage: object) -> UsageCounts | None:
    """Read `usage` of completions and embeddings; None when it counts nothing."""

def exclusive_usage(usage: object) -> UsageCounts | None:
    """Read `usage` of messages, where input_tokens leaves cached ones out."""

def responses_usage(usage: object) -> UsageCounts | None:
    """Read `usage` of responses and of realtime's `response.done`."""

def gemini_usage(usage: object) -> UsageCounts | None:
    """Read `usageMetadata` of generateContent."""

def converse_usage(usage: object) -> UsageCounts | None:
    """Read `usage` of Converse, where inputTokens leaves cached ones out."""

def gemini_parts(usage: object) -> tuple[int, ...] | None:
    """Read from `usageMetadata` what input and output are made of, as Usage.parts."""

def rerank_usage(meta: object) -> UsageCounts | None:
    """Read `meta` of a rerank reply."""
