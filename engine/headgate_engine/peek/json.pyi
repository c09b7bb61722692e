ANSWERS: dict[int, tuple[str, ...]]
CHAT_FIELDS: dict[int, tuple[str, ...]]
COUNTS: dict[int, tuple[str, ...]]
GEMINI_COUNTS: dict[int, tuple[str, ...]]
GEMINI_SUMS: tuple[str, ...]
GEMINI_USAGE: dict[int, tuple[str, ...]]
INPUT_DETAILS: tuple[str, ...]
INPUT_PARTS: tuple[str, ...]
OUTPUT_DETAILS: tuple[str, ...]
OUTPUT_PARTS: tuple[str, ...]
PARAMS: tuple[str, ...]
SUMS: tuple[str, ...]
USAGE_FIELDS: dict[int, tuple[str, ...]]
RPC_FIELDS: dict[int, tuple[str, ...]]
MAX_DEPTH: int

class PeekError(ValueError):
    """The text is not JSON (RFC 8259, UTF-8 without a byte order mark); `offset` is the byte where that shows."""

    offset: int
    def __init__(self, reason: str, offset: int) -> None: ...

class DepthError(PeekError):
    """The text may be JSON, but is nested deeper than allowed; `offset` is the bracket that is one too many."""

class ObjectPeek:
    """Checks a JSON text in one pass and tells what it watches; the tables above list that as paths.

    max_depth: containers within one another, 1..MAX_DEPTH; ValueError otherwise. Of members that stand twice in one
    object the last one counts, as with json.loads, and `duplicate` is set: whoever reads the text next may take the
    other one.
    """

    def __init__(self, max_depth: int = ...) -> None: ...
    @property
    def max_depth(self) -> int: ...
    @property
    def kind(self) -> int:
        """What the whole text is: 1 string, 2 number, 3 true, 4 false, 5 null, 6 object, 7 array; 0 before a scan."""
    @property
    def object_end(self) -> int:
        """Offset of the closing brace or bracket of the whole text, -1 when it is no container."""
    @property
    def empty(self) -> bool:
        """Whether the whole text is a container without members."""
    @property
    def duplicate(self) -> bool: ...
    @property
    def is_object(self) -> bool: ...
    @property
    def is_array(self) -> bool:
        """Whether the whole text is an array; for JSON-RPC: a batch."""

class ChatPeek(ObjectPeek):
    """What routing an LLM request needs."""

    @property
    def has_model(self) -> bool: ...
    @property
    def model_is_string(self) -> bool: ...
    @property
    def duplicate_model(self) -> bool: ...
    @property
    def stream(self) -> bool:
        """Whether `stream` is true (not: 1 or "true")."""
    @property
    def has_stream_options(self) -> bool: ...
    @property
    def include_usage(self) -> bool:
        """Whether `stream_options.include_usage` is true."""
    @property
    def has_include_usage(self) -> bool:
        """Whether `stream_options` has a member `include_usage`."""
    @property
    def has_completion_limit(self) -> bool:
        """Whether there is a member `max_completion_tokens`."""
    @property
    def model_start(self) -> int: ...
    @property
    def model_stop(self) -> int:
        """model_start..model_stop is the raw value, quotes included, so that it can be replaced in place."""
    def params(self) -> dict[str, str | int | float] | None:
        """Return the settings of PARAMS that are there, None without any; values of more than 64 bytes are none."""
    def peek(self, text: bytes) -> tuple[str | None, bool, bool, tuple[int, int]]:
        """Return (model or None, stream, has stream options, raw span of the model); PeekError when not JSON."""

class UsagePeek(ObjectPeek):
    """What accounting reads from an answer: -1 where the provider said nothing, or no count of up to 18 digits."""

    @property
    def has_usage(self) -> bool:
        """Whether `usage` is an object."""
    @property
    def has_model(self) -> bool:
        """Whether `model` is a string."""
    @property
    def choices_empty(self) -> bool:
        """Whether `choices` is an empty array."""
    @property
    def has_error(self) -> bool:
        """Whether `error` is an object or a string: the provider tells a failure within its stream."""
    @property
    def input_tokens(self) -> int:
        """`prompt_tokens`, else `input_tokens`."""
    @property
    def output_tokens(self) -> int:
        """`completion_tokens`, else `output_tokens`."""
    @property
    def total_tokens(self) -> int: ...
    @property
    def cached_tokens(self) -> int: ...
    @property
    def reasoning_tokens(self) -> int: ...
    @property
    def cache_write_tokens(self) -> int: ...
    @property
    def tool_prompt_tokens(self) -> int:
        """Gemini: what tools put into the prompt, which is not in its input."""
    @property
    def input_text_tokens(self) -> int: ...
    @property
    def input_image_tokens(self) -> int: ...
    @property
    def input_audio_tokens(self) -> int: ...
    @property
    def output_text_tokens(self) -> int: ...
    @property
    def output_image_tokens(self) -> int: ...
    @property
    def output_audio_tokens(self) -> int: ...
    @property
    def of_gemini(self) -> bool:
        """Whether the usage that was found has Gemini's names."""
    @property
    def model(self) -> str | None: ...
    def peek(self, text: bytes, place: int = ...) -> tuple[int, int, int, int, int] | None:
        """Return (input, output, total, cached, reasoning) tokens, None without usage; PeekError when not JSON.

        place: 0 `usage`, 1 `message.usage`, 2 `response.usage`, 3 `usageMetadata`, 4 `usage` or
        `meta`, 5 any of these.
        """

class RpcPeek(ObjectPeek):
    """The envelope of a JSON-RPC 2.0 message, as far as it must be known to tell what it is (rpc.pyi)."""

    @property
    def has_id(self) -> bool: ...
    @property
    def has_method(self) -> bool: ...
    @property
    def method_is_string(self) -> bool: ...
    @property
    def has_result(self) -> bool: ...
    @property
    def has_error(self) -> bool: ...
    @property
    def has_params(self) -> bool: ...
    @property
    def id_kind(self) -> int:
        """As `kind`: 1 string, 2 number, 5 null, 0 not there."""
    def string(self, *path: str) -> str | None:
        """Return the string at a path of RPC_FIELDS, None when it is missing or no string; KeyError for other paths."""
    def peek(self, text: bytes) -> None:
        """Scan `text`; PeekError when it is not JSON."""
    def id_span(self) -> tuple[int, int]:
        """Return where the raw id lies, (0, 0) when there is none."""
    def params_span(self) -> tuple[int, int]:
        """Return where the raw params lie, (0, 0) when there are none."""
