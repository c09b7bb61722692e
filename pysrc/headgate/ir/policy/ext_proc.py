"""`extProc`: an external processor sees requests and responses, and may change them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from headgate.document.lazy_dataclass import dataclass

if TYPE_CHECKING:  # it has policies of its own
    from headgate.ir.remote_service import RemoteService

Pairs = tuple[tuple[str, str], ...]
BodyMode = Literal["none", "buffered", "bufferedPartial", "fullDuplexStreamed"]
STREAMED: Final = "fullDuplexStreamed"
DEFAULT_TIMEOUT_MS: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SentParts:
    """What the processor sees of a message. A body that is streamed has its trailers sent in any case."""

    headers: bool = True
    body: BodyMode = STREAMED
    trailers: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessingOptions:
    """`override`: the processor may choose other parts than these for one request."""

    request: SentParts = SentParts()
    response: SentParts = SentParts()
    override: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtProc:
    """One processor, which speaks `envoy.service.ext_proc.v3.ExternalProcessor`.

    `timeout_ms` is the longest wait for an answer. `metadata`: by namespace, (key, expression) pairs of the metadata
    context. `request_attributes`, `response_attributes`: (name, expression) pairs. `condition` is the expression under
    which this entry applies, if the policy has conditional entries.
    """

    service: RemoteService
    fail_open: bool = False
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    metadata: tuple[tuple[str, Pairs], ...] = ()
    request_attributes: Pairs = ()
    response_attributes: Pairs = ()
    options: ProcessingOptions = ProcessingOptions()
    condition: str | None = None
