"""`inferenceRouting`: a service picks the endpoint of a model server for each request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headgate.document.lazy_dataclass import dataclass

if TYPE_CHECKING:  # it has policies of its own
    from headgate.ir.remote_service import RemoteService

DEFAULT_TIMEOUT_MS: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceRouting:
    """`validated`: only endpoints of the backend may be picked. `fail_open`: without the picker, any of them is used.

    `timeout_ms` is the longest wait for an answer of the picker.
    """

    picker: RemoteService
    validated: bool = True
    fail_open: bool = False
    timeout_ms: int = DEFAULT_TIMEOUT_MS
