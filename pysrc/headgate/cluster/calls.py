"""What parts of the controller ask of an API server: the interface, and what a refusal is.

Paths are those of the Kubernetes API, such as `/apis/gateway.networking.k8s.io/v1/namespaces/shop/gateways/web/status`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

Json = dict[str, Any]


class ApiError(Exception):
    """The API server refused, or gave no answer (`status` 0).

    `reason` is the word of a Kubernetes `Status` object, such as `NotFound`, `Conflict` or `Expired`; "" without one.
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


class ApiCalls(Protocol):
    """Every call returns the object of the answer and raises ApiError for anything but success."""

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Json: ...

    async def create(self, path: str, document: Json) -> Json: ...

    async def apply(self, path: str, document: Json, manager: str) -> Json:
        """Server-side apply, forced: fields of other managers are taken over."""

    async def merge(self, path: str, document: Json) -> Json:
        """JSON merge patch (RFC 7396). With `metadata.resourceVersion` in it, an object that has changed since is
        refused as a Conflict."""

    async def delete(self, path: str) -> Json: ...
