"""Numbers of RFC 9113, as other implementations have them."""

from __future__ import annotations

import h2.errors
import h2.settings
import hyperframe.frame as frames

from headgate_engine.http2.kinds import ERRORS, FRAMES, SETTINGS, error_name


def test_frame_types_and_flags() -> None:
    for name, number, _, _, _, flags in FRAMES:
        known = frames.FRAMES.get(number)
        if known is None:
            assert name == "PRIORITY_UPDATE"
            continue
        assert known.__name__.replace("Frame", "").upper() == name.replace("_", "")
        assert {flag.name: flag.bit for flag in known.defined_flags} == flags


def test_error_codes() -> None:
    assert [code.name for code in h2.errors.ErrorCodes] == list(ERRORS)
    assert error_name(1) == "PROTOCOL_ERROR"
    assert error_name(77) == "77"


def test_settings() -> None:
    known = {int(code): code.name for code in h2.settings.SettingCodes}
    for name, number, _, least, most, _ in SETTINGS:
        assert known.get(number, "NO_RFC7540_PRIORITIES") == name
        assert least <= most
