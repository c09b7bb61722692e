"""Cross-origin resource sharing (https://fetch.spec.whatwg.org/#http-cors-protocol)."""

from __future__ import annotations

from headgate.document.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Cors:
    """Allowed cross-origin requests. Origins are `*` or `scheme://host[:port]`, with wildcards (`*`) in the host.

    With `max_age_s` None no `access-control-max-age` is sent.
    """

    origins: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    exposed: tuple[str, ...] = ()
    credentials: bool = False
    max_age_s: int | None = None
