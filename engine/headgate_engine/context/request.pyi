from collections.abc import Iterable

from headgate_engine.context.headers import MessageHead
from headgate_engine.llm.attempt import LlmCall
from headgate_engine.llm.pattern import ModelPattern

class Reply:
    """An answer the gateway makes itself: status 200..999, body, header pairs as bytes (names in lower case).

    reason: value of the `reason` label in metrics and logs. TypeError for headers that are no pairs of bytes;
    ValueError for a status outside 100..999 and for names and values that HTTP does not have (RFC 9110 section 5).
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

class Usage:
    """Tokens as the provider counted them; -1 where it said nothing."""

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

class RequestContext:
    """What is known of one request; valid until the request is over.

    jwt: verified claims, jwt_token: the token they came in. api_key: metadata of the presented key,
    api_key_text: the key. basic_user: name that basic authentication proved. metadata: what transformations
    set. dynamic: what external services said, by name (`extauthz`, `extproc`). All None until a step sets them.
    secure: the client's connection is TLS. signing_keys: AwsKeys of this request alone.
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
    @property
    def request(self) -> MessageHead: ...
    @property
    def trace(self) -> object | None:
        """Who records what happens to this request; None: nobody watches it."""
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
        """What a step waited for; setting it replaces the client's body."""
    @request_body.setter
    def request_body(self, body: bytes) -> None: ...
    @property
    def body_state(self) -> int:
        """BodyState: 0 nobody read it, 1 request_body is whole, 2 it is the first body_limit bytes."""
    @property
    def response_head(self) -> MessageHead | None: ...
    @property
    def own_reply(self) -> Reply | None:
        """What a step answers with."""
    @property
    def added_response_headers(self) -> list[tuple[bytes, bytes]]: ...
    @property
    def log_field_items(self) -> list[tuple[str, object]]: ...
    @property
    def peer(self) -> str: ...
    def add_log_field(self, key: str, value: object) -> None: ...
    def add_response_header(self, name: str, value: str) -> None: ...
    def respond(self, reply: Reply) -> None: ...

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
    """Return a context of its own with that request, for tests and benches; with a body it counts as read."""

def derived_context(
    source: RequestContext | None,
    method: str,
    target: str,
    authority: str,
    headers: Iterable[tuple[str, str]],
    body: bytes | None = None,
) -> RequestContext:
    """Return a context of its own for another request that is made on behalf of the client of `source`.

    It knows who asks and what policies found out; steps that run on it change nothing of `source`.
    """
