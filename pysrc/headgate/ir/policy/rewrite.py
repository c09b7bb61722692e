"""Rewrites of a request's authority and path, and redirects."""

from __future__ import annotations

from headgate.document.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorityRewrite:
    """The new authority. Exactly one field is set: `keep` keeps the client's authority, `auto` uses the backend's."""

    full: str | None = None
    host: str | None = None
    port: int = 0
    keep: bool = False
    auto: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PathRewrite:
    """The new path: a `full` path, or a `prefix` that replaces the prefix that the route has matched.

    `level`: the route is one of those that have delegated the request, this one counted from the outermost; None: the
    one that has it.
    """

    full: str | None = None
    prefix: str | None = None
    level: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """Rewrites of authority and path. A path of None is kept; an authority of None follows the backend's own rule."""

    authority: AuthorityRewrite | None = None
    path: PathRewrite | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    """A redirect response (RFC 9110 section 15.4). None takes the part of the URL from the request."""

    scheme: str | None = None
    authority: AuthorityRewrite | None = None
    path: PathRewrite | None = None
    status: int = 302
