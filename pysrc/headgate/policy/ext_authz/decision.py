"""What an authorization service has decided, and what that does to a request."""

from __future__ import annotations

import logging
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote_plus, unquote_plus

from headgate.document.lazy_dataclass import dataclass
from headgate.policy.header_values import ADD_IF_ABSENT, APPEND, REPLACE_IF_PRESENT, FieldEdit
from headgate_engine.context.request import Reply, RequestContext

if TYPE_CHECKING:
    from headgate_engine.envoy.check import Allowance

logger = logging.getLogger("headgate.ext_authz")

REASON: Final = "ExtAuth"
TEXT: Final = "external authorization failed"
PLAIN: Final = (b"content-type", b"text/plain")
VARIABLE: Final = "extauthz"


@dataclass(slots=True)
class AuthzDecision:
    """`reply` refuses the request; None lets it go on. `allowance`: how it goes on, where the engine has read that.

    `edits` and `removed` change the request, `query_set` and `query_removed` its query, `answered` the response to the
    client. `metadata` becomes the variable `extauthz`.
    """

    reply: Reply | None = None
    edits: tuple[FieldEdit, ...] = ()
    removed: tuple[str, ...] = ()
    query_set: tuple[tuple[str, str], ...] = ()
    query_removed: tuple[str, ...] = ()
    answered: tuple[FieldEdit, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    allowance: Allowance | None = None

    def apply(self, ctx: RequestContext) -> Reply | None:
        """Change the request. Return the reply that ends it, None if it continues."""
        if self.allowance is not None:
            self.allowance.apply(ctx)
            return None
        if self.metadata:
            found: dict[str, Any] = {} if ctx.dynamic is None else ctx.dynamic
            found[VARIABLE] = {**found.get(VARIABLE, {}), **self.metadata}
            ctx.dynamic = found
        if self.reply is not None:
            return self.reply
        for name in self.removed:
            ctx.request.remove(name)
        for edit in self.edits:
            _edit(ctx, edit)
        if self.query_set or self.query_removed:
            _set_target(ctx, with_query(ctx.target, self.query_set, self.query_removed))
        for edit in self.answered:
            ctx.edit_response_header(edit.action, *edit.encoded)
        return None


def refusal(status: int) -> Reply:
    """Return the gateway's own refusal."""
    return Reply(status, TEXT.encode(), (PLAIN,), REASON)


# What is decided about connections, which get no answer.
FINE: Final = AuthzDecision()
REFUSED_CONNECTION: Final = AuthzDecision(reply=refusal(403))


def usable_pseudo(edit: FieldEdit) -> bool:
    """Return whether this changes the start line in a way that is allowed: the path or the authority."""
    if edit.name == ":path":
        return edit.value.startswith("/") and "#" not in edit.value
    return edit.name in (":authority", "host") and bool(edit.value) and not set(edit.value) & set("/?#@")


def _edit(ctx: RequestContext, edit: FieldEdit) -> None:
    head, name, value = ctx.request, edit.name, edit.value
    if name in (":authority", "host"):
        try:
            head.set_request(head.method, head.target, value)
        except ValueError:
            logger.debug("the service has set an authority that is not valid")
        return
    if name == ":path":
        _set_target(ctx, value)
        return
    there = edit.action != APPEND and head.get(name) is not None
    if edit.action == (ADD_IF_ABSENT if there else REPLACE_IF_PRESENT):
        return
    if edit.action == APPEND or not there:
        head.add(name, value)
    else:
        head.set(name, value)


def _set_target(ctx: RequestContext, target: str) -> None:
    head = ctx.request
    try:
        head.set_request(head.method, target, head.authority)
    except ValueError:
        logger.debug("the service has set a path that is not valid")


def with_query(target: str, put: tuple[tuple[str, str], ...], removed: tuple[str, ...]) -> str:
    """Return a request target with parameters of its query set and removed. Others keep their spelling."""
    path, _, query = target.partition("?")
    gone = {name for name, _ in put} | set(removed)
    kept = [part for part in query.split("&") if part and unquote_plus(part.partition("=")[0]) not in gone]
    # Set after they are removed, as Envoy does it: a name in both lists is set.
    kept += [f"{quote_plus(name)}={quote_plus(value)}" for name, value in put]
    return f"{path}?{'&'.join(kept)}" if kept else path


