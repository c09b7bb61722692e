"""Changes of where a request goes."""

from __future__ import annotations

from headgate.document.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorityRewrite:
    """One of `full`, `host`, `port`, `keep` for the client's own (no rewrite at all), `auto` for the backend's."""

    full: str | None = None
    host: str | None = None
    port: int = 0
    keep: bool = False
    auto: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PathRewrite:
    """`full` path, or `prefix` in the place of the one that the route matched."""

    full: str | None = None
    prefix: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """Of authority and path; None leaves as it is (an authority then follows the backend's own rule)."""

    authority: AuthorityRewrite | None = None
    path: PathRewrite | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    """An answer that sends the client elsewhere."""

    scheme: str | None = None
    authority: AuthorityRewrite | None = None
    path: PathRewrite | None = None
    status: int = 302
