"""What connections of clients that speak HTTP/2 are allowed, by the configuration."""

from __future__ import annotations

from typing import Any, Final

from headgate.ir.frontend import Frontend
from headgate.ir.hbone import Hbone
from headgate_engine.http2.limits import Http2Limits

# To which the window of a stream grows where none is configured, in bytes: a quarter of the connection's, which streams
# that are not read may use up.
GROWN_WINDOW: Final = 262_144
# The part of a budget that comes back each second: of streams that are given up, of frames that carry nothing.
RESETS_BACK: Final = 15
CONTROLS_BACK: Final = 10


def http2_limits(frontend: Frontend, hbone: Hbone | None = None) -> Http2Limits:
    """Return what a connection of a client that speaks HTTP/2 is allowed. hbone: of a port of the mesh."""
    own: dict[str, Any] = {
        "connection_window": frontend.http2_connection_window,
        "max_frame": frontend.http2_frame,
        "max_list": frontend.http2_max_header,
        "max_fields": frontend.http2_max_fields,
        "max_streams": frontend.http2_streams,
        "max_continuations": frontend.http2_continuations,
        "resets": frontend.http2_resets,
        "resets_per_second": _back(frontend.http2_resets, RESETS_BACK),
        "oddities": frontend.http2_control_frames,
        "oddities_per_second": _back(frontend.http2_control_frames, CONTROLS_BACK),
        "ping_interval": None if frontend.http2_keepalive_ms is None else frontend.http2_keepalive_ms / 1000,
    }
    sizes = {name: value for name, value in own.items() if value is not None}
    if hbone is not None:
        sizes |= {"connection_window": hbone.connection_window, "max_frame": hbone.frame}
        return Http2Limits(hbone.window, ping_timeout=frontend.http2_keepalive_timeout_ms / 1000, **sizes)
    if frontend.http2_window is None:
        return Http2Limits(max_window=GROWN_WINDOW, ping_timeout=frontend.http2_keepalive_timeout_ms / 1000, **sizes)
    return Http2Limits(frontend.http2_window, ping_timeout=frontend.http2_keepalive_timeout_ms / 1000, **sizes)


def _back(budget: int | None, part: int) -> int | None:
    return None if budget is None else max(1, budget // part)
