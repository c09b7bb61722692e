from collections.abc import Awaitable, Iterable
from typing import Protocol, type_check_only

from headgate_engine.context.headers import MessageHead
from headgate_engine.llm.attempt import LlmCall
from headgate_engine.llm.pattern import ModelPattern
from headgate_engine.steps.virtual_key import KeyUse

class Reply:
    """A response of the gateway itself: status 200..999, body, header pairs as bytes (names in lower case).

    reason: value of the `reason` label in metrics and logs. Raises TypeError if a header is not a pair of bytes,
    ValueError for an invalid status, name or value (RFC 9110 section 5).
    """

    def __init__(
        self,
        status: int,
        body: bytes = b"",
        headers: tuple[tuple[bytes, bytes], ...] = (),
        reason: str = "Internal",
    ) -> None: ...
    @property
    def status(self) -> int: ...
    @property
    def body(self) -> bytes: ...
    @property
    def headers(self) -> tuple[tuple[bytes, bytes], ...]: ...
    @property
    def reason(self) -> str: ...

class TokenUsage:
    """Token counts of the provider, -1 if it did not report one."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    cache_write_tokens: int
    provider_input_tokens: int
    provider_total_tokens: int
    input_text_tokens: int
    input_image_tokens: int
    input_audio_tokens: int
    output_text_tokens: int
    output_image_tokens: int
    output_audio_tokens: int
    def __init__(
        self,
        input_tokens: int = -1,
        output_tokens: int = -1,
        cached_tokens: int = -1,
        reasoning_tokens: int = -1,
        cache_write_tokens: int = -1,
        provider_input_tokens: int = -1,
    ) -> None: ...

@type_check_only
class RemoteTokenLimit(Protocol):
    """A limit on the tokens of models that a service counts (steps.remote_limit)."""

    def check(self, ctx: RequestContext, estimate: int, /) -> Awaitable[Reply | None]:
        """Ask whether tokens are left, and count an estimate of the prompt; 0 without one."""
    def settle(self, ctx: RequestContext, used: int, estimate: int, /) -> None:
        """Count what a request has used. `estimate` of it is counted already."""

class RequestContext:
    """State of one request, valid until the request ends.

    jwt: verified claims. jwt_token: the token with these claims. api_key: metadata of the presented key. api_key_text:
    the key. basic_user: authenticated name of basic authentication. metadata: results of transformations. dynamic:
    results of external services by name (`extauthz`, `extproc`). All are None until a step sets them. secure: the
    client's connection is TLS. signing_keys: AwsKeys of this request alone.
    """

    jwt: dict[str, object] | None
    jwt_token: bytes | None
    api_key: dict[str, object] | None
    api_key_text: bytes | None
    allowed_models: tuple[ModelPattern, ...] | None
    llm: LlmCall | None
    basic_user: str | None
    signing_keys: object | None
    metadata: dict[str, object] | None
    dynamic: dict[str, object] | None
    secure: bool
    body_limit: int
    response_body: bytes | None
    response_cut: bool
    own_cookies: list[bytes] | None
    remote_limits: tuple[RemoteTokenLimit, ...] | None
    key_use: KeyUse | None
    origin: dict[str, object] | None
    @property
    def hops(self) -> int: ...
    @property
    def request(self) -> MessageHead: ...
    @property
    def trace(self) -> object | None:
        """The recorder of this request's trace; None if it is not traced."""
    @property
    def method(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def client_target(self) -> str:
        """The target as the client sent it, before rewrites."""
    @property
    def path(self) -> str: ...
    @property
    def authority(self) -> str: ...
    @property
    def request_body(self) -> bytes | None:
        """The request body that a step has waited for. Setting it replaces the client's body."""
    @request_body.setter
    def request_body(self, body: bytes) -> None: ...
    @property
    def body_state(self) -> int:
        """BodyState: 0 the body was not read, 1 request_body is whole, 2 it is the first body_limit bytes."""
    @property
    def own_request_id(self) -> str | None:
        """The id that the gateway has given the request, or taken over; None without ids."""
    @own_request_id.setter
    def own_request_id(self, value: str | None) -> None: ...
    @property
    def response_head(self) -> MessageHead | None: ...
    @property
    def added_response_headers(self) -> list[tuple[bytes, bytes]]: ...
    @property
    def log_field_items(self) -> list[tuple[str, object]]: ...
    @property
    def peer(self) -> str: ...
    def add_log_field(self, key: str, value: object) -> None:
        """Add a field to this request's access-log line. For rare fields only."""
    def add_response_header(self, name: str, value: str) -> None:
        """Set a header of the final response, replacing one with that name; cookies are added."""
    def edit_response_header(self, edit: int, name: bytes, value: bytes) -> None:
        """Do something to a field of the final response: 0 appends a value, 1 adds it where there is none, 2 replaces
        all values or adds one, 3 replaces values that are there.

        Raises ValueError for a name or value that is invalid (RFC 9110 section 5).
        """
    def respond(self, reply: Reply) -> None:
        """Set the reply; the step must then return RESPOND."""

def log_extra(ctx: RequestContext | None, **fields: object) -> dict[str, object]:
    """Return the fields of a log line about a request (None: about none): these, and what tells it from others."""

def make_context(
    method: str = "GET",
    target: str = "/",
    authority: str = "a.test",
    headers: Iterable[tuple[str, str]] = (),
    *,
    body: bytes | None = None,
    secure: bool = False,
    response: MessageHead | None = None,
) -> RequestContext:
    """Return a new context of a request, for tests and benchmarks. A body counts as read."""

def derived_context(
    source: RequestContext | None,
    method: str,
    target: str,
    authority: str,
    headers: Iterable[tuple[str, str]],
    body: bytes | None = None,
) -> RequestContext:
    """Return a new context for another request on behalf of the client of `source` (None: no client).

    It has the client's identity and the results of policies. Steps that run on it do not change `source`.
    """

def answered_context(source: RequestContext, response: MessageHead) -> RequestContext:
    """Return a new context of the same request with this head of an answer, for expressions about it."""
