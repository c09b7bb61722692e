"""`urlRewrite` and `requestRedirect` to the IR and back."""

from __future__ import annotations

from typing import Any, Final

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.errors import Problem
from headgate.ir.policy.rewrite import AuthorityRewrite, PathRewrite, Redirect, Rewrite
from headgate_engine.steps.rewrite import AuthorityChange, PathChange

SCHEMES: Final = ("http", "https")
LEAST_STATUS, MOST_STATUS = 300, 399


def _authority(context: Context, record: Record) -> AuthorityRewrite | None:
    value = record.get("authority")
    if value is None:
        return None
    if value == "auto":
        return AuthorityRewrite(auto=True)
    if value == "none":
        return AuthorityRewrite(keep=True)
    found = AuthorityRewrite(full=value.get("full"), host=value.get("host"), port=value.get("port") or 0)
    try:
        AuthorityChange(found.full, found.host, found.port)
    except UnicodeEncodeError as error:
        context.fault(Problem.VALUE, record, "authority", f"{error.object!r} is not a host: use its IDNA form")
    except ValueError as error:
        context.fault(Problem.VALUE, record, "authority", str(error))
    return found


def _path(context: Context, record: Record) -> PathRewrite | None:
    value = record.get("path")
    if value is None:
        return None
    found = PathRewrite(full=value.get("full"), prefix=value.get("prefix"))
    if (found.full is None) == (found.prefix is None):
        return None      # reported by the check
    try:
        PathChange(found.full, found.prefix)
    except UnicodeEncodeError as error:
        message = f"{error.object!r} is not a path: percent-encode characters outside of ASCII (RFC 3986)"
        context.fault(Problem.VALUE, record, "path", message)
    except ValueError as error:
        context.fault(Problem.VALUE, record, "path", str(error))
    return found


def parse_rewrite(context: Context, record: Record) -> Rewrite:
    """Return `urlRewrite`."""
    return Rewrite(authority=_authority(context, record), path=_path(context, record))


def parse_redirect(context: Context, record: Record) -> Redirect:
    """Return `requestRedirect`."""
    scheme, status = record.get("scheme"), record.get("status")
    if scheme is not None and scheme.lower() not in SCHEMES:
        context.fault(Problem.VALUE, record, "scheme", f"{scheme!r} is neither http nor https")
    if status is not None and not LEAST_STATUS <= status <= MOST_STATUS:
        context.fault(Problem.VALUE, record, "status", f"status {status} is not a redirect status")
    authority = _authority(context, record)
    return Redirect(
        scheme=scheme,
        authority=None if authority is not None and (authority.keep or authority.auto) else authority,
        path=_path(context, record),
        status=302 if status is None else status,
    )


def dump(policy: Rewrite | Redirect) -> dict[str, Any]:
    """Return the form of the configuration dump."""
    found: dict[str, Any] = {}
    if isinstance(policy, Redirect):
        found["status"] = policy.status
        if policy.scheme is not None:
            found["scheme"] = policy.scheme
    authority, path = policy.authority, policy.path
    if authority is not None:
        pairs = (("full", authority.full), ("host", authority.host), ("port", authority.port or None))
        given = {name: value for name, value in pairs if value is not None}
        found["authority"] = "none" if authority.keep else "auto" if authority.auto else given
    if path is not None:
        found["path"] = {"full": path.full} if path.full is not None else {"prefix": path.prefix}
    return found
