from collections.abc import Callable

class ForeignHistory:
    """Finds what a provider refuses of the turns of other vendors: ids of tool calls, unsigned thoughts.

    `format`: messages, count_tokens, completions or responses. `longest`: of an id; `strict`: members about reasoning
    are refused; `any_id`: every id is to be looked at. `clean(body)` returns the body that the provider takes.
    """

    def __init__(
        self,
        format: str,
        clean: Callable[[bytes], bytes],
        *,
        longest: int = ...,
        strict: bool = ...,
        any_id: bool = ...,
    ) -> None: ...
    @property
    def clean(self) -> Callable[[bytes], bytes]: ...
    def is_in(self, body: bytes) -> bool:
        """Whether `clean` may have something to do."""
