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
    """The text is not JSON (RFC 8259, UTF-8 without a byte order mark). offset: the byte where the error shows."""

    offset: int
    def __init__(self, reason: str, offset: int) -> None: ...

class DepthError(PeekError):
    """The text may be JSON, but is nested too deeply. offset: the first bracket beyond the limit."""

class ObjectPeek:
    """Checks a JSON text in one pass and reads the members that it watches; the tables above list them as paths.

    max_depth: nesting of containers, 1..MAX_DEPTH; ValueError otherwise. If a member occurs twice in one object, the
    last one counts, as with json.loads, and `duplicate` is set: another parser of the text may use the first one.
    """

    def __init__(self, max_depth: int = ...) -> None: ...
    @property
    def max_depth(self) -> int: ...
    @property
    def kind(self) -> int:
        """Type of the whole text: 1 string, 2 number, 3 true, 4 false, 5 null, 6 object, 7 array; 0 before a scan."""
    @property
    def object_end(self) -> int:
        """Offset of the closing brace or bracket of the whole text, -1 if it is not a container."""
    @property
    def empty(self) -> bool:
        """True if the whole text is a container without members."""
    @property
    def duplicate(self) -> bool: ...
    @property
    def is_object(self) -> bool: ...

class ChatPeek(ObjectPeek):
    """The members of an LLM request that routing needs."""

    @property
    def has_model(self) -> bool: ...
    @property
    def model_is_string(self) -> bool: ...
    @property
    def duplicate_model(self) -> bool: ...
    @property
    def stream(self) -> bool:
        """True if `stream` is true (not 1 or "true")."""
    @property
    def has_stream_options(self) -> bool: ...
    @property
    def include_usage(self) -> bool:
        """True if `stream_options.include_usage` is true."""
    @property
    def has_include_usage(self) -> bool:
        """True if `stream_options` has a member `include_usage`."""
    @property
    def has_completion_limit(self) -> bool:
        """True if there is a member `max_completion_tokens`."""
    @property
    def model_start(self) -> int: ...
    @property
    def model_stop(self) -> int:
        """model_start..model_stop is the raw value, quotes included, so that it can be replaced in place."""
    def params(self) -> dict[str, str | int | float] | None:
        """Return the settings of PARAMS in the request, None if there are none. Values over 64 bytes are ignored."""
    def peek(self, text: bytes) -> tuple[str | None, bool, bool, tuple[int, int]]:
        """Scan and return (model or None, stream, has stream options, raw span of the model).

        Raises PeekError if the text is not JSON.
        """

class UsagePeek(ObjectPeek):
    """The members of a response that accounting needs.

    A count is -1 if the provider did not report it, or if it is not a whole number of up to 18 digits.
    """

    @property
    def has_usage(self) -> bool:
        """True if `usage` is an object."""
    @property
    def has_model(self) -> bool:
        """True if `model` is a string."""
    @property
    def choices_empty(self) -> bool:
        """True if `choices` is an empty array."""
    @property
    def has_error(self) -> bool:
        """True if `error` is an object or a string: the provider reports a failure inside the stream."""
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
        """Gemini: tokens that tools added to the prompt. The input count does not include them."""
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
        """True if the usage has Gemini's names."""
    @property
    def model(self) -> str | None: ...
    def peek(self, text: bytes, place: int = ...) -> tuple[int, int, int, int, int] | None:
        """Scan and return (input, output, total, cached, reasoning) tokens, None without usage.

        place: 0 `usage`, 1 `message.usage`, 2 `response.usage`, 3 `usageMetadata`, 4 `usage` or `meta`, 5 any of these.
        Raises PeekError if the text is not JSON.
        """

class RpcPeek(ObjectPeek):
    """The envelope of a JSON-RPC 2.0 message, with the members that decide its type (rpc.pyi)."""

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
        """Type of the id, as `kind`: 1 string, 2 number, 5 null, 0 no id."""
    def string(self, *path: str) -> str | None:
        """Return the string at a path of RPC_FIELDS, None if there is no string. Raises KeyError for other paths."""
    def peek(self, text: bytes) -> None:
        """Scan `text`. Raises PeekError if it is not JSON."""
