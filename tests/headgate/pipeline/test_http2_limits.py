"""`frontendPolicies.http.http2*` as the engine gets them."""

from __future__ import annotations

from headgate.config.load import TextSource, load
from headgate.ir.frontend import Frontend
from headgate.ir.hbone import Hbone
from headgate.pipeline.http2_limits import GROWN_WINDOW, http2_limits


def frontend(fields: str) -> Frontend:
    text = f"gateways: {{default: {{port: 1}}}}\nfrontendPolicies: {{http: {{{fields}}}}}\n"
    return load(TextSource(text, "c"), environ={}).gateway.frontend


def test_what_is_not_set_has_the_defaults() -> None:
    found = http2_limits(frontend(""))
    assert (found.window, found.max_window, found.max_frame, found.max_list) == (65536, GROWN_WINDOW, 16384, 16384)
    assert found.ping_interval_ns == 0
    assert (found.max_streams, found.max_fields, found.max_continuations) == (200, 256, 32)
    assert (found.resets, found.resets_per_second, found.oddities, found.oddities_per_second) == (500, 33, 1000, 100)


def test_what_is_set_is_in_force() -> None:
    found = http2_limits(frontend(
        "http2WindowSize: 70000, http2ConnectionWindowSize: 100000, http2FrameSize: 20000, http2MaxHeaderSize: 9000, "
        "http2KeepaliveInterval: 2s, http2KeepaliveTimeout: 500ms"))
    assert (found.window, found.max_window, found.connection_window) == (70000, 70000, 100000)
    assert (found.max_frame, found.max_list) == (20000, 9000)
    assert (found.ping_interval_ns, found.ping_timeout_ns) == (2_000_000_000, 500_000_000)


def test_what_floods_cost_is_in_force() -> None:
    found = http2_limits(frontend(
        "http2MaxHeaders: 60, http2MaxConcurrentStreams: 40, http2MaxContinuations: 0, http2MaxResets: 30, http2MaxControlFrames: 25"))
    assert (found.max_streams, found.max_fields, found.max_continuations) == (40, 60, 0)
    assert (found.resets, found.resets_per_second, found.oddities, found.oddities_per_second) == (30, 2, 25, 2)
    least = http2_limits(frontend("http2MaxResets: 1, http2MaxControlFrames: 1"))
    assert (least.resets, least.resets_per_second, least.oddities, least.oddities_per_second) == (1, 1, 1, 1)


def test_a_port_of_the_mesh_has_windows_of_its_own() -> None:
    found = http2_limits(frontend("http2WindowSize: 70000, http2MaxHeaderSize: 9000"), Hbone(frame=20_000))
    assert (found.window, found.max_window, found.connection_window) == (4_194_304, 4_194_304, 16_777_216)
    assert (found.max_frame, found.max_list) == (20_000, 9000)
