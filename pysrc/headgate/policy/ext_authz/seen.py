"""What an authorization service sees of a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headgate.ir.policy.ext_authz import AuthzBody
from headgate_engine.context.request import RequestContext

WHOLE: Final = 1
# Says whether the body that the service sees was cut, as Envoy does.
PARTIAL: Final = "x-envoy-auth-partial-body"


class SeenRequest:
    """`sent`: names of headers, None for all. `body`: how much of the body, None for nothing."""

    def __init__(self, sent: tuple[str, ...] | None, body: AuthzBody | None) -> None:
        self._sent = None if sent is None else frozenset(sent)
        self._body = body
        self.as_bytes = body is not None and body.as_bytes

    @property
    def body_bytes(self) -> int:
        """How much of the body is read; -1 for nothing."""
        return -1 if self._body is None else self._body.max_bytes

    def fields(self, ctx: RequestContext, pseudo: Mapping[str, str]) -> dict[str, str]:
        """Return the headers by name in lower case. Values of one name are joined (RFC 9110 section 5.2)."""
        sent = self._sent
        found = {name: value for name, value in pseudo.items() if sent is None or name in sent}
        for spelled, value in ctx.request.items():
            name = spelled.lower()
            if sent is not None and name not in sent:
                continue
            if name in found:
                value = f"{found[name]}{'; ' if name == 'cookie' else ', '}{value}"
            found[name] = value
        if self.content(ctx) is not None:
            found[PARTIAL] = "true" if self.is_cut(ctx) else "false"
        return found

    def content(self, ctx: RequestContext) -> bytes | None:
        """Return what the service sees of the body, None for nothing."""
        body = ctx.request_body
        return None if self._body is None or body is None else body[: self._body.max_bytes]

    def is_cut(self, ctx: RequestContext) -> bool:
        """Return whether the body is longer than what the service sees."""
        if self._body is None or ctx.request_body is None:
            return False
        return ctx.body_state != WHOLE or len(ctx.request_body) > self._body.max_bytes

    def too_long(self, ctx: RequestContext) -> bool:
        """Return whether the body is longer than what the service is to see of it, where that is refused."""
        return self._body is not None and not self._body.partial and self.is_cut(ctx)
